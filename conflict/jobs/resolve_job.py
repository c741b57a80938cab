"""
A History on disk to a result on disk: the bucket-partitioned resolve job.

1. The driver orders all takes once (see `conflict.columnar.apply_order`), and puts them where every task can read them.
2. Where transactions can be in conflict, or what an applier logs can stop the other one, buckets are
   folded in rounds until both are known (see `conflict.columnar.rounds.fixed_point`).
3. One task per bucket folds it in one pass and writes its part of the result. If it meets an operation that stops an
   applier, nothing after the first of them is taken, and the buckets are resolved again.
4. The driver numbers the rows of the exceptions tables and adds up the summaries.
5. If the binlogs show something else of the appliers' work, an order of takes that explains it is looked for (see
   `conflict.history.reconcile`), and the result is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import attrs
import numpy as np
import pyarrow as pa

from conflict.columnar.applier_stops import StoppingOperation, can_log_stopping, first_stopping
from conflict.columnar.apply_order import ApplierEpochs, order_applies, plan_applies
from conflict.columnar.bucket import Bucket, load_bucket
from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.cluster_setup import ClusterSetup, rules_of, transactional_tables
from conflict.columnar.kernels.arrays import Conflicts, EpochApplies
from conflict.columnar.kernels.fold import fold
from conflict.columnar.output.effects import Difference, Differing, compare_effects
from conflict.columnar.output.exceptions_numbering import TrackedRows, number_exceptions
from conflict.columnar.output.writer import write_bucket
from conflict.columnar.rounds.bucket_round import Changed, Findings, fold_again, fold_round
from conflict.columnar.rounds.entries import keep_entries, load_entries
from conflict.columnar.rounds.fixed_point import FixedPoint, conflicts_of, find_fixed_point
from conflict.columnar.rounds.kept_rows import keep_rows, load_rows
from conflict.columnar.stop_reports import stop_of
from conflict.columnar.unique_keys.duplicates import find_duplicates
from conflict.columnar.unique_keys.states import has_unique_keys, unique_states
from conflict.config.configuration import Configuration
from conflict.grid.folder import Folder
from conflict.grid.manifest import Manifest, read_manifest
from conflict.grid.schemas import SCHEDULE
from conflict.grid.tables import TableNumbers, table_numbers
from conflict.history import reconcile
from conflict.history.model import Cluster, EpochApply
from conflict.jobs.runner import Runner, StageProgress, in_threads
from conflict.jobs.shared import Shared, share
from conflict.results.layout import applied_epochs_path, applied_epochs_table
from conflict.results.summary import BucketSummary, RunSummary, add_summaries
from conflict.rules.counters import TRANSACTION_COMMITS, TRANSACTION_ITERATIONS, TRANSACTION_REJECTS

__all__ = ["resolve_history"]

Result = TypeVar("Result")
# Changed transactions, and buckets, of a round that the driver runs itself.
_FEW, _FEW_BUCKETS = 2_000, 32
_RESULT_PARTS = ("outcomes", "exceptions", "staged_exceptions", "rows", "undecided")


@attrs.frozen
class _BucketTask:
    """
    One bucket to look at, to fold or to resolve.

    `look` if nobody has looked yet for rows that stop an applier; `round` is the number of the round, and `whole`
    whether all rows are folded in it: an operation that stops an applier is among them.
    """

    history: Folder
    out: Folder
    bucket: int
    manifest: Manifest
    numbers: TableNumbers
    clusters: tuple[ClusterSetup, ...]
    final_rows: bool
    all_outcomes: bool
    look: bool = False
    applies: Shared[EpochApplies] | None = None
    conflicts: Shared[Conflicts] | None = None
    changed: Shared[Changed | None] | None = None
    round: int = 0
    whole: bool = False

    def load(self, *, images: bool) -> Bucket:
        """Read the bucket."""
        layouts = self.manifest.layouts(self.numbers)
        return load_bucket(self.history, self.bucket, self.manifest, self.numbers, layouts, images=images)

    @property
    def kept(self) -> Folder:
        """Where the first round leaves the bucket's rows."""
        return self.out.below(f"shared/rows/bucket={self.bucket:05d}")

    @property
    def settled(self) -> tuple[EpochApplies, Conflicts]:
        """All takes, and the transactions in conflict as far as is known."""
        assert self.applies is not None
        assert self.conflicts is not None
        return self.applies.load(), self.conflicts.load()


def resolve_history(
    runner: Runner,
    configuration: Configuration,
    history: Folder,
    out: Folder,
    *,
    use_evidence: bool = True,
    final_rows: bool = True,
    all_outcomes: bool = False,
    progress: StageProgress = lambda stage, done, total: None,
) -> RunSummary:
    """
    Resolve a History and write outcomes, exceptions and rows.

    Args:
        runner: Runs the tasks.
        configuration: The run.
        history: A History that `ingest` made for that run.
        out: Where the result goes.
        use_evidence: Settle what the binlogs leave open by what they show (see `conflict.history.reconcile`).
        final_rows: Whether the rows of the tables at the end are wanted; reading all images takes most of the time.
        all_outcomes: Whether outcomes are written of every operation, or of those alone that were not applied as they
            stood.
        progress: Called with the name of the stage, tasks done, and their number.

    Raises:
        HistoryError: The schedule is circular.
    """
    manifest = read_manifest(history)
    numbers = table_numbers(configuration)
    base = _BucketTask(history, out, 0, manifest, numbers, _sites(configuration, numbers), final_rows, all_outcomes)
    job = _Job(runner, base, progress)
    table = history.read_table("schedule.parquet", SCHEDULE)
    settled, summaries = job.resolve([ApplierEpochs.of_table(table, name) for name in manifest.clusters])
    answers: Sequence[reconcile.Inference] = ()
    if use_evidence and any(summary.contradicted for summary in summaries):
        timelines, answers = reconcile.infer(_timelines(history, manifest), job.contradictions)
        if answers:
            job.clear()
            settled, summaries = job.resolve([ApplierEpochs.of_cluster(cluster) for cluster in timelines])
    out.delete("shared")
    clusters, applies, conflicts = job.base.clusters, settled.applies, settled.conflicts
    _write_applied_epochs(out, clusters, applies)
    stops = {
        cluster.name: stop_of(settled.stopping[cluster.name], cluster, manifest.files[clusters[1 - number].name])
        for number, cluster in enumerate(clusters)
        if cluster.name in settled.stopping
    }
    summary = add_summaries([*summaries, _transactions(clusters, applies, conflicts)], stops)
    return attrs.evolve(summary, settled=tuple(answers), rounds=settled.rounds)


@attrs.define
class _Job:
    """
    The stages of the job over all buckets.

    Attributes:
        runner: Runs the tasks.
        base: The task of any bucket.
        progress: Called with the name of the stage, tasks done, and their number.
    """

    runner: Runner
    base: _BucketTask
    progress: StageProgress
    _last: tuple[list[Cluster], FixedPoint] | None = None
    _shared: dict[str, tuple[object, Shared[Any]]] = attrs.field(factory=dict)

    def _stage(
        self,
        name: str,
        function: Callable[[_BucketTask], Result],
        runner: Runner | None = None,
        number: int = 0,
        whole: Sequence[bool] = (),
        **shared: Any,
    ) -> list[Result]:
        """
        Run a function on every bucket, `shared` put where all can read it; `run` in place of the job's runner.

        A round has a number, which is also that of the last one for what follows, and says of each bucket whether all
        of it is folded.
        """
        folder = self.base.out.below("shared")
        for each, value in shared.items():
            known = self._shared.get(each)
            if known is None or known[0] is not value:
                self._shared[each] = value, share(folder, value)
        written: dict[str, Any] = {each: self._shared[each][1] for each in shared}
        common = attrs.evolve(self.base, look=not self._needs_rounds(), round=number, **written)
        tasks = [
            attrs.evolve(common, bucket=bucket, whole=bool(whole) and whole[bucket])
            for bucket in range(self.base.manifest.buckets)
        ]
        return (runner or self.runner)(function, tasks, partial(self.progress, name))

    def clear(self) -> None:
        """Remove what was written of the result."""
        for part in _RESULT_PARTS:
            self.base.out.delete(part)

    def _needs_rounds(self) -> bool:
        clusters = self.base.clusters
        return bool(
            has_unique_keys(clusters).any() or transactional_tables(clusters).any() or can_log_stopping(clusters)
        )

    def _settle(self, applied: Sequence[ApplierEpochs]) -> FixedPoint:
        """Find out which takes are made and which transactions are in conflict."""
        names = [cluster.name for cluster in self.base.clusters]
        if self._needs_rounds():
            check = self._check if has_unique_keys(self.base.clusters).any() else None
            return find_fixed_point(applied, names, self.base.manifest.buckets, self._round, check)
        return _without_rounds(applied, names, {})

    def _round(
        self,
        number: int,
        name: str,
        applies: EpochApplies,
        conflicts: Conflicts,
        changed: Changed | None,
        whole: Sequence[bool],
    ) -> Sequence[Findings]:
        # A task that folds a few rows takes less time than to hand it out.
        few = changed is not None and len(changed) <= _FEW and self.base.manifest.buckets <= _FEW_BUCKETS
        run = in_threads if few else None
        return self._stage(name, _run_round, run, number, whole, applies=applies, conflicts=conflicts, changed=changed)

    def _check(self, applies: EpochApplies, conflicts: Conflicts) -> Mapping[int, StoppingOperation]:
        parts = self._stage("checking unique keys", _unique_states, applies=applies, conflicts=conflicts)
        return find_duplicates(parts)

    def contradictions(self, timelines: Sequence[Cluster]) -> list[reconcile.Contradiction]:
        """Return where binlogs show something else than is found with these clusters, causes first."""
        settled = self._settle_clusters(timelines)
        parts = self._stage("comparing", _differing, applies=settled.applies, conflicts=settled.conflicts)
        found: dict[tuple[int, int, int], Difference] = {}
        for part in parts:
            for place, difference in part.places.items():
                found[place] = found.get(place, Difference()) + difference
        applies = plan_applies(timelines)
        places = zip(applies.applier.tolist(), applies.epoch.tolist(), applies.group.tolist(), strict=True)
        order = {place: number for number, place in enumerate(places)}
        ordered = sorted(found, key=lambda place: (order.get(place, len(order)), place))
        return [
            reconcile.Contradiction(
                timelines[place[0]].name, *place[1:], found[place].rows, tuple(sorted(found[place].changed_at))
            )
            for place in ordered
        ]

    def _settle_clusters(self, timelines: Sequence[Cluster]) -> FixedPoint:
        """Find out which takes are made, stops considered, unless that was asked just before."""
        if self._last is None or self._last[0] != list(timelines):
            applied = [ApplierEpochs.of_cluster(cluster) for cluster in timelines]
            settled = self._settle(applied)
            if not self._needs_rounds():
                stops = _first_of_each(self._stage("checking images", _first_stops, applies=settled.applies))
                settled = _without_rounds(applied, [cluster.name for cluster in timelines], stops)
            self._last = list(timelines), settled
        return self._last[1]

    def resolve(self, applied: Sequence[ApplierEpochs]) -> tuple[FixedPoint, list[BucketSummary]]:
        """Write the result; returns what was settled, and what each bucket adds to the whole."""
        settled = self._settle(applied)
        results = self._resolve_buckets(settled)
        stops = _first_of_each([found for _, _, found in results])
        if stops:
            self.clear()
            settled = _without_rounds(applied, [cluster.name for cluster in self.base.clusters], stops)
            results = self._resolve_buckets(settled)
        base = self.base
        tracked = [each for _, each, _ in results]
        number_exceptions(base.out, base.clusters, settled.applies, settled.conflicts, base.manifest.buckets, tracked)
        return settled, [summary for summary, _, _ in results]

    def _resolve_buckets(
        self, settled: FixedPoint
    ) -> list[tuple[BucketSummary, TrackedRows, dict[str, StoppingOperation]]]:
        applies, conflicts = settled.applies, settled.conflicts
        return self._stage(
            "resolving", _resolve_bucket, number=len(settled.rounds), applies=applies, conflicts=conflicts
        )


def _without_rounds(
    applied: Sequence[ApplierEpochs], names: Sequence[str], stops: Mapping[str, StoppingOperation]
) -> FixedPoint:
    """Return the takes that are made where no transaction can be in conflict."""
    kept = [each.first(stops[name].apply if name in stops else None) for name, each in zip(names, applied, strict=True)]
    applies = order_applies(kept, names)
    return FixedPoint(applies, conflicts_of(applies, np.zeros((0, 2), np.int64)), stops)


def _sites(configuration: Configuration, numbers: TableNumbers) -> tuple[ClusterSetup, ...]:
    setups = configuration.setups()
    return tuple(
        ClusterSetup(
            cluster.name,
            cluster.server_id,
            tuple(setups[cluster.name][table.full_name] for table in numbers.tables),
            cluster.role,
            configuration.skip_missing,
        )
        for cluster in configuration.clusters
    )


def _timelines(history: Folder, manifest: Manifest) -> list[Cluster]:
    """Return the clusters with their takes alone; transactions stay in the grid."""
    applies: dict[str, list[EpochApply]] = {name: [] for name in manifest.clusters}
    for row in history.read_table("schedule.parquet", SCHEDULE).to_pylist():
        arrived = (row.pop("arrived_epoch"), row.pop("arrived_group"))
        applies[row.pop("applier")].append(EpochApply(**row, arrived=arrived))
    return [Cluster(name, server_id, tuple(applies[name])) for name, server_id in manifest.clusters.items()]


def _first_stops(task: _BucketTask) -> dict[str, StoppingOperation]:
    assert task.applies is not None
    return first_stopping(task.load(images=False), task.clusters, task.applies.load())


def _run_round(task: _BucketTask) -> Findings:
    """Run a round on a bucket: the first one on all of it, which it then leaves for the next ones."""
    assert task.changed is not None
    changed = task.changed.load()
    found = None
    if changed is not None and not task.whole:
        entries = load_entries(task.kept, task.round - 1)
        found = fold_again(load_rows(task.kept), task.clusters, *task.settled, changed, entries)
    if found is None:
        bucket = task.load(images=False)
        if changed is None:
            keep_rows(bucket, task.kept)
        found = fold_round(bucket, task.clusters, *task.settled)
    keep_entries(found.entries, task.kept, task.round)
    return found.findings


def _unique_states(task: _BucketTask) -> pa.Table:
    return unique_states(task.load(images=True), task.clusters, *task.settled)


def _differing(task: _BucketTask) -> Differing:
    applies, conflicts = task.settled
    bucket = task.load(images=False)
    folded = fold(applies, bucket.rows, rules_of(task.clusters), conflicts, bucket.key_table, candidates=False)
    return compare_effects(BucketResult(bucket, task.clusters, applies, conflicts, folded), with_places=True)


def _resolve_bucket(task: _BucketTask) -> tuple[BucketSummary, TrackedRows, dict[str, StoppingOperation]]:
    applies, conflicts = task.settled
    bucket = task.load(images=True)
    if not task.look:
        bucket.kept = load_rows(task.kept).all(changes.array("ordinal") for changes in bucket.changes)
    folded = fold(applies, bucket.rows, rules_of(task.clusters), conflicts, bucket.key_table, candidates=True)
    folded = folded.tracking_conflicts_alone(conflicts)
    result = BucketResult(bucket, task.clusters, applies, conflicts, folded)
    wanted = {"final_rows": task.final_rows, "all_outcomes": task.all_outcomes}
    summary, tracked = write_bucket(result, task.manifest.files, task.out, **wanted)
    return summary, tracked, first_stopping(bucket, task.clusters, applies) if task.look else {}


def _first_of_each(found: Sequence[Mapping[str, StoppingOperation]]) -> dict[str, StoppingOperation]:
    first: dict[str, StoppingOperation] = {}
    for part in found:
        for name, stopping in part.items():
            first[name] = min(first.get(name, stopping), stopping)
    return first


def _write_applied_epochs(out: Folder, clusters: Sequence[ClusterSetup], applies: EpochApplies) -> None:
    for number, cluster in enumerate(clusters):
        mine, source = applies.applier == number, clusters[1 - number].name
        applied = applied_epochs_table(source, applies.foreign_epoch[mine], applies.epoch[mine], applies.group[mine])
        out.write_table(applied_epochs_path(cluster.name), applied)


def _transactions(clusters: Sequence[ClusterSetup], applies: EpochApplies, conflicts: Conflicts) -> BucketSummary:
    """Count the transactions that were rejected, and the epochs that held some."""
    summary = BucketSummary()
    for number, cluster in enumerate(clusters):
        mine = conflicts.applies[applies.applier[conflicts.applies] == number]
        rejected = int(np.diff(conflicts.offsets)[mine].sum())
        # Every such epoch is looked at once for dependencies, and committed once.
        counters = {TRANSACTION_ITERATIONS: len(mine), TRANSACTION_COMMITS: len(mine), TRANSACTION_REJECTS: rejected}
        summary.counters[cluster.name] = counters
    return summary
