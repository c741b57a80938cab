"""
The tasks of the resolve job: what one worker does with one bucket of a History. They need no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import attrs
import numpy as np
import pyarrow as pa

from conflict.engine.columnar.applier_stops import StoppingOperation, first_stopping, stopping_decisions
from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.bucket_round import (
    Changed,
    Findings,
    conflicting_transactions,
    fold_again,
    fold_round,
)
from conflict.engine.columnar.contested import (
    NOTHING_DIFFERS,
    Applied,
    ContestedRows,
    compare_effects,
    contested_rows,
)
from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.kept_rows import keep_logged, keep_rows, load_logged, load_rows
from conflict.engine.columnar.keys.foreign_keys import linked_states
from conflict.engine.columnar.keys.unique_keys import unique_states
from conflict.engine.columnar.older_rows import OlderRows, find_older_rows, older_applies
from conflict.engine.columnar.setups import rules_of
from conflict.engine.columnar.shown_transactions import (
    ShownTransactions,
    TouchedTransactions,
    refreshing_applies,
    touched_transactions,
)
from conflict.engine.columnar.writing.exceptions_numbering import TrackedRows
from conflict.engine.columnar.writing.writer import write_bucket
from conflict.engine.kernels.arrays import Bool, Conflicts, EpochApplies, Int64
from conflict.engine.kernels.fold import fold
from conflict.engine.kernels.records import packed_changes
from conflict.engine.ledger.summary import BucketSummary
from conflict.history.grid.folder import Folder
from conflict.history.scheduling.schedule_columns import among
from conflict.history.tasks import Shared
from conflict.runs.resolving.careful_rows import careful_findings, careful_stops, resolve_careful
from conflict.runs.resolving.rows_by_reference import resolve_left_open
from conflict.runs.rows.task_inputs import Part, PartKind, TaskInputs
from conflict.runs.rows.touched_rows import TouchedRows


@attrs.frozen
class BucketTask:
    """
    One part of a run.

    Attributes:
        run: The run.
        part: Which part.
        applies: All epoch applies in order.
        conflicts: Transactions in conflict, as far as they are known.
        round: Number of the round, from 1; after the rounds, that of the last one; 0 if there are none.
        changed: Transactions that the round before added or removed; None in a first round.
        whole: Fold all rows in this round, because an operation of this bucket stops an applier.
        transactions: What the binlogs show of transactions, if the log starts in the middle.
        careful: The rows of a careful part; None for a bucket.
    """

    run: TaskInputs
    part: Part
    applies: Shared[EpochApplies]
    conflicts: Shared[Conflicts]
    round: int = 0
    changed: Shared[Changed] | None = None
    whole: bool = False
    transactions: Shared[ShownTransactions] | None = None
    careful: Shared[TouchedRows] | None = None

    def load(self, *, images: bool) -> Bucket:
        """Read the bucket without rows that the reference engine resolves, with its images or without."""
        run = self.run
        bucket = run.load_bucket(self.bucket, images=images)
        careful = run.careful_keys(bucket)
        bucket = bucket.of_keys(~careful) if careful.any() else bucket
        return bucket if run.view is None else run.view.of(bucket)

    def load_after_rounds(self, *, images: bool) -> Bucket:
        """Read the bucket as `load` does; the columns that decide as rounds left them, if there were any."""
        bucket = self.load(images=images)
        if self.run.needs_rounds:
            bucket.kept = load_rows(self.kept, self.bucket).all(changes.array("ordinal") for changes in bucket.changes)
        return bucket

    @property
    def bucket(self) -> int:
        """Number of the bucket."""
        return self.part.bucket

    @property
    def is_careful(self) -> bool:
        """Whether the reference engine resolves it."""
        return self.part.kind is PartKind.CAREFUL

    def careful_rows(self) -> TouchedRows:
        """Return the rows of a careful part."""
        assert self.careful is not None
        return self.careful.load()

    @property
    def shown_transactions(self) -> ShownTransactions:
        """What the binlogs show of transactions."""
        return ShownTransactions() if self.transactions is None else self.transactions.load()

    @property
    def kept(self) -> Folder:
        """Where the rounds leave the bucket's rows."""
        return self.run.shared.below(f"rows/bucket={self.bucket:05d}")


@attrs.frozen
class BucketReport:
    """
    What the driver receives of a resolved bucket.

    Attributes:
        summaries: What the bucket adds to the figures of the run; what it left to the reference engine by itself.
        tracked: Exceptions rows that passes over the bucket made and rolled back, by number of the part.
        stopping: Per cluster, the first operation that stops its applier; empty after rounds, which found them.
        contested: Rows that may have been judged before a change of their own cluster.
        differing: Epoch applies for which the binlogs show other effects than the kernels derived.
        left_out: Epoch applies that the binlogs contradict on rows that are left to the reference engine.
        refreshing: Epoch applies of epochs that are older than the log, with refreshed rows.
    """

    summaries: Sequence[BucketSummary]
    tracked: Mapping[int, TrackedRows]
    stopping: dict[str, StoppingOperation]
    contested: ContestedRows
    differing: AbstractSet[Applied] = frozenset()
    left_out: Int64 = attrs.field(factory=lambda: np.zeros(0, np.int64))
    refreshing: Int64 = attrs.field(factory=lambda: np.zeros(0, np.int64))


def run_round(task: BucketTask) -> Findings:
    """Run a round on a bucket. A first round folds all of it, and keeps its rows for the next ones."""
    clusters, applies, conflicts = task.run.clusters, task.applies.load(), task.conflicts.load()
    if task.is_careful:
        return careful_findings(task.run, task.careful_rows(), applies, conflicts)
    found = None
    with_earlier_rows = task.run.part.starts_in_the_middle or task.run.window is not None
    if task.changed is not None and not task.whole and not with_earlier_rows:
        logged = load_logged(task.kept, task.round - 1)
        found = fold_again(load_rows(task.kept, task.bucket), clusters, applies, conflicts, task.changed.load(), logged)
    if found is None:
        bucket = task.load(images=False)
        if task.changed is None:
            keep_rows(bucket, task.kept)
        found = fold_round(bucket, clusters, applies, conflicts, _older_rows(task, bucket, applies))
    keep_logged(found.logged, task.kept, task.round)
    return found.findings


def find_unique_states(task: BucketTask) -> pa.Table:
    """Return every state of the bucket's rows that have unique keys."""
    bucket, applies = task.load(images=True), task.applies.load()
    older = _older_rows(task, bucket, applies)
    return unique_states(bucket, task.run.clusters, applies, task.conflicts.load(), older)


def find_linked_states(task: BucketTask) -> pa.Table:
    """Return every state of the bucket's rows that take part in foreign keys."""
    return linked_states(task.load(images=True), task.run.clusters, task.applies.load(), task.conflicts.load())


def find_touched_transactions(task: BucketTask) -> TouchedTransactions:
    """Return the transactions that touched the bucket's rows, of epochs with transactions in conflict."""
    return touched_transactions(decided(task, task.load(images=False), candidates=False))


def resolve_bucket(task: BucketTask) -> BucketReport | None:
    """Decide a bucket and write its part of the result; None if only the reference engine can resolve it."""
    run = task.run
    if task.is_careful:
        return _resolve_careful(task)
    bucket = task.load_after_rounds(images=True)
    result = decided(task, bucket, candidates=True)
    before, differing = result, NOTHING_DIFFERS
    left_out, refreshing = np.zeros(0, np.int64), np.zeros(0, np.int64)
    stopping = {} if run.needs_rounds else first_stopping(bucket, run.clusters, result.applies)
    if result.older is not None:
        stopping = {} if run.needs_rounds else stopping_decisions(bucket, run.clusters, result.applies, result.folded)
        left_open = result.older.left_open
        differing = compare_effects(result, with_applies=True)
        keys = np.concatenate([rows.of_kinds().key for rows in differing.rows])
        if run.needs_rounds and not left_open[keys].all():
            return None
        result, left_out = _without(result, keys), _numbers_of(result.applies, differing.applies)
        assumed = _assumed_conflicts(before, left_open)
        refreshing = refreshing_applies(before, older_applies(result.applies, run.first_epochs))
    summary, tracked = write_bucket(result, run.manifest.files, run.out, run.options, run.databases)
    every = before.older is not None
    if summary.contradicted and not every:
        differing = compare_effects(before, with_applies=True)
    contested = ContestedRows.joined([contested_rows(before, differing.rows, every=every), _careful_contested(task)])
    found = BucketReport(
        [summary],
        {bucket.number: tracked},
        stopping,
        contested,
        differing=differing.applies,
        left_out=left_out,
        refreshing=refreshing,
    )
    if result.older is None or not result.older.left_open.any():
        return found
    rest = resolve_left_open(run, result, assumed, task.shown_transactions)
    if rest is None:
        return None
    older = Part(PartKind.OLDER, bucket.number).number(run)
    return attrs.evolve(found, summaries=[summary, rest[0]], tracked={bucket.number: tracked, older: rest[1]})


def _resolve_careful(task: BucketTask) -> BucketReport | None:
    """Resolve careful rows, and write their part of the result."""
    run, applies, conflicts = task.run, task.applies.load(), task.conflicts.load()
    found = resolve_careful(run, task.part, task.careful_rows(), applies, conflicts)
    if found is None:
        return None
    stopping = {} if run.needs_rounds else found.stopping
    tracked = {task.part.number(run): found.tracked}
    return BucketReport([found.summary], tracked, stopping, ContestedRows(), left_out=found.contradicted)


def _careful_contested(task: BucketTask) -> ContestedRows:
    """Return the careful rows of a bucket that may have been judged before a change of their own cluster."""
    if task.run.careful is None:
        return ContestedRows()
    bucket = task.run.load_bucket(task.bucket, images=False)
    careful = task.run.careful_keys(bucket)
    if not careful.any():
        return ContestedRows()
    return contested_rows(decided(task, bucket.of_keys(careful), candidates=False), every=True)


def find_careful_stops(task: BucketTask) -> dict[str, StoppingOperation]:
    """Return, per cluster, the first operation that stops its applier on a row that the reference engine resolves."""
    return careful_stops(task.run, task.careful_rows(), task.applies.load(), task.conflicts.load())


def _assumed_conflicts(result: FoldedBucket, left_open: Bool) -> set[tuple[int, int]]:
    """Return epoch apply and group of the transactions in conflict because of rows that are left open."""
    found = conflicting_transactions(
        result.clusters, result.applies, result.conflicts, result.folded, result.bucket.key_table
    )
    return {(apply, group) for key, apply, group in found.tolist() if left_open[key]}


def _without(result: FoldedBucket, keys: Int64) -> FoldedBucket:
    """Leave the rows out that the kernels do not tell, and some more."""
    assert result.older is not None
    older = result.older.leave_open(keys)
    folded = result.folded.without_rows(older.left_open)
    return FoldedBucket(result.bucket, result.clusters, result.applies, result.conflicts, folded, older=older)


def _numbers_of(applies: EpochApplies, chosen: AbstractSet[Applied]) -> Int64:
    """Return the numbers of epoch applies, sorted, without those that are not there."""
    epochs = np.array(sorted({epoch for _, epoch, _ in chosen}), np.uint64)
    there = np.flatnonzero(among(applies.epoch, epochs))  # few of very many
    columns = (column[there].tolist() for column in (applies.applier, applies.epoch, applies.group))
    found = dict(zip(zip(*columns, strict=True), there.tolist(), strict=True))
    return np.array(sorted(found[each] for each in chosen if each in found), np.int64)


def decided(task: BucketTask, bucket: Bucket, *, candidates: bool) -> FoldedBucket:
    """
    Decide a bucket.

    Args:
        task: The task.
        bucket: What it loaded.
        candidates: Whether the decisions that the binlogs leave open are noted.
    """
    clusters, applies, conflicts = task.run.clusters, task.applies.load(), task.conflicts.load()
    moments = applies.moments.of_bucket(bucket.number)
    older = _older_rows(task, bucket, applies)
    folded = fold(
        applies,
        packed_changes(bucket.rows),
        rules_of(clusters),
        conflicts,
        bucket.key_table,
        candidates=candidates,
        moments=moments,
        older=None if older is None else older.first,
        standing=None if bucket.standing is None else bucket.standing.states,
    )
    told = None if task.run.window is None else task.run.window.boundary.later(applies)
    folded = folded.tracking_conflicts_alone(conflicts)
    return FoldedBucket(bucket, clusters, applies, conflicts, folded, older=older, told=told)


def _older_rows(task: BucketTask, bucket: Bucket, applies: EpochApplies) -> OlderRows | None:
    """Return what the rows of the bucket were before the log starts; None if there were none."""
    run = task.run
    if not run.part.starts_in_the_middle:
        return None
    first, second = (name in run.part.shows for name in bucket.clusters)
    return find_older_rows(bucket, run.clusters, applies, run.first_epochs, (first, second))
