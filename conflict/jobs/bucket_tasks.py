"""
The tasks of the resolve job: what one worker does with one bucket of a History. They need no Spark.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import pyarrow as pa

from conflict.columnar.applier_stops import StoppingOperation, can_log_stopping, first_stopping
from conflict.columnar.bucket import Bucket, load_bucket
from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.cluster_setup import ClusterSetup, rules_of, transactional_tables
from conflict.columnar.foreign_keys.states import LinkedKeys, linked_keys, linked_states
from conflict.columnar.kernels.arrays import Conflicts, EpochApplies, Int64
from conflict.columnar.kernels.fold import fold
from conflict.columnar.output.contested import contested_applies
from conflict.columnar.output.effects import Differing, compare_effects
from conflict.columnar.output.exceptions_numbering import TrackedRows
from conflict.columnar.output.writer import write_bucket
from conflict.columnar.rounds.bucket_round import Changed, Findings, fold_again, fold_round
from conflict.columnar.rounds.kept_rows import keep_logged, keep_rows, load_logged, load_rows
from conflict.columnar.unique_keys.states import has_unique_keys, unique_states
from conflict.grid.folder import Folder
from conflict.grid.manifest import Manifest
from conflict.grid.tables import TableNumbers
from conflict.jobs.shared import Shared
from conflict.results.options import ResultOptions
from conflict.results.summary import BucketSummary

__all__ = [
    "BucketTask",
    "ResolveRun",
    "ResolvedBucket",
    "compare_bucket",
    "find_linked_states",
    "find_unique_states",
    "resolve_bucket",
    "run_round",
]


@attrs.frozen(slots=False)
class ResolveRun:
    """
    What all tasks of a run have in common.

    Attributes:
        history: Folder of the History.
        out: Folder of the result.
        manifest: What the History holds.
        numbers: The tables.
        clusters: Both clusters.
        options: What the result holds.
    """

    history: Folder
    out: Folder
    manifest: Manifest
    numbers: TableNumbers
    clusters: tuple[ClusterSetup, ...]
    options: ResultOptions

    @property
    def shared(self) -> Folder:
        """Where the driver and the tasks leave what later tasks read; removed at the end."""
        return self.out.below("shared")

    @cached_property
    def checks_unique_keys(self) -> bool:
        """Whether a table has unique keys besides the primary key."""
        return bool(has_unique_keys(self.clusters).any())

    @cached_property
    def linked(self) -> LinkedKeys:
        """The ends of all foreign keys."""
        return linked_keys(self.numbers.tables)

    @cached_property
    def needs_rounds(self) -> bool:
        """Whether transactions can be in conflict, or what one applier logs can stop the other."""
        transactional = bool(transactional_tables(self.clusters).any())
        return self.checks_unique_keys or transactional or can_log_stopping(self.clusters)


@attrs.frozen
class BucketTask:
    """
    One bucket of a run.

    Attributes:
        run: The run.
        bucket: Number of the bucket.
        applies: All epoch applies in order.
        conflicts: Transactions in conflict, as far as they are known.
        round: Number of the round, from 1; after the rounds, that of the last one; 0 if there are none.
        changed: Transactions that the round before added or removed; None in a first round.
        whole: Fold all rows in this round, because an operation of this bucket stops an applier.
    """

    run: ResolveRun
    bucket: int
    applies: Shared[EpochApplies]
    conflicts: Shared[Conflicts]
    round: int = 0
    changed: Shared[Changed] | None = None
    whole: bool = False

    def load(self, *, images: bool) -> Bucket:
        """Read the bucket, with its images or without."""
        run = self.run
        layouts = run.manifest.layouts(run.numbers)
        return load_bucket(run.history, self.bucket, run.manifest, run.numbers, layouts, images=images)

    @property
    def kept(self) -> Folder:
        """Where the rounds leave the bucket's rows."""
        return self.run.shared.below(f"rows/bucket={self.bucket:05d}")


@attrs.frozen
class ResolvedBucket:
    """
    What the driver receives of a resolved bucket.

    Attributes:
        summary: What the bucket adds to the figures of the run.
        tracked: Exceptions rows that passes over the bucket made and rolled back.
        stopping: Per cluster, the first operation that stops its applier; empty after rounds, which found them.
        contested: Epoch applies with rows that may have been judged before a change of their own cluster.
    """

    summary: BucketSummary
    tracked: TrackedRows
    stopping: dict[str, StoppingOperation]
    contested: Int64


def run_round(task: BucketTask) -> Findings:
    """Run a round on a bucket. A first round folds all of it, and keeps its rows for the next ones."""
    clusters, applies, conflicts = task.run.clusters, task.applies.load(), task.conflicts.load()
    found = None
    if task.changed is not None and not task.whole:
        logged = load_logged(task.kept, task.round - 1)
        found = fold_again(load_rows(task.kept, task.bucket), clusters, applies, conflicts, task.changed.load(), logged)
    if found is None:
        bucket = task.load(images=False)
        if task.changed is None:
            keep_rows(bucket, task.kept)
        found = fold_round(bucket, clusters, applies, conflicts)
    keep_logged(found.logged, task.kept, task.round)
    return found.findings


def find_unique_states(task: BucketTask) -> pa.Table:
    """Return every state of the bucket's rows that have unique keys."""
    return unique_states(task.load(images=True), task.run.clusters, task.applies.load(), task.conflicts.load())


def find_linked_states(task: BucketTask) -> pa.Table:
    """Return every state of the bucket's rows that take part in foreign keys."""
    return linked_states(task.load(images=True), task.run.clusters, task.applies.load(), task.conflicts.load())


def compare_bucket(task: BucketTask) -> Differing:
    """Return how the appliers' effects on the bucket differ from what their binlogs show."""
    return compare_effects(_decided(task, task.load(images=False), candidates=False), with_applies=True)


def resolve_bucket(task: BucketTask) -> ResolvedBucket:
    """Decide a bucket and write its part of the result."""
    run, bucket = task.run, task.load(images=True)
    if run.needs_rounds:
        bucket.kept = load_rows(task.kept, task.bucket).all(changes.array("ordinal") for changes in bucket.changes)
    result = _decided(task, bucket, candidates=True)
    summary, tracked = write_bucket(result, run.manifest.files, run.out, run.options)
    stopping = {} if run.needs_rounds else first_stopping(bucket, run.clusters, result.applies)
    return ResolvedBucket(summary, tracked, stopping, contested_applies(result))


def _decided(task: BucketTask, bucket: Bucket, *, candidates: bool) -> BucketResult:
    clusters, applies, conflicts = task.run.clusters, task.applies.load(), task.conflicts.load()
    moments = applies.moments.of_bucket(bucket.number)
    folded = fold(
        applies, bucket.rows, rules_of(clusters), conflicts, bucket.key_table, candidates=candidates, moments=moments
    )
    return BucketResult(bucket, clusters, applies, conflicts, folded.tracking_conflicts_alone(conflicts))
