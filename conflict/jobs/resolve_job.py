"""
A History on disk to a result on disk: the driver of the resolve job. Computes docs/jobs.md, "Resolve".

1. Order the epoch applies of both appliers once (see `conflict.columnar.apply_order`), and share them with all tasks.
2. Where transactions can be in conflict, or what one applier logs can stop the other, fold the buckets in rounds until
   both are known (see `conflict.columnar.rounds.fixed_point`).
3. Run one task per bucket, which decides it in one pass and writes its part of the result (see
   `conflict.jobs.bucket_tasks`). If a task meets an operation that stops an applier, leave out all that this applier
   would have applied from there on, and resolve the buckets again.
4. Number the rows of the exceptions tables, and add up the summaries.
5. If the binlogs contradict the result, look for an order of epoch applies that agrees with them (see
   `conflict.history.reconcile`), and write the result again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.columnar.applier_stops import StoppingOperation
from conflict.columnar.apply_order import ApplierEpochs, plan_applies
from conflict.columnar.cluster_setup import ClusterSetup
from conflict.columnar.kernels.arrays import Conflicts, EpochApplies
from conflict.columnar.output.effects import Difference
from conflict.columnar.output.exceptions_numbering import number_exceptions
from conflict.columnar.rounds.bucket_round import Findings
from conflict.columnar.rounds.fixed_point import FixedPoint, Round, find_fixed_point, without_rounds
from conflict.columnar.setups_over_time import cluster_setups
from conflict.columnar.stop_reports import stop_of
from conflict.columnar.unique_keys.duplicates import find_duplicates
from conflict.config.configuration import Configuration
from conflict.grid.epoch_files import applies_of, read_summaries, schedule_table
from conflict.grid.folder import Folder
from conflict.grid.manifest import Manifest, read_manifest
from conflict.grid.schemas import SCHEDULE
from conflict.grid.tables import TableNumbers, table_numbers
from conflict.history import reconcile
from conflict.history.following import follow_definitions
from conflict.history.model import Cluster, DefinitionChange, History
from conflict.history.schedule import epoch_ends, timeline_of
from conflict.ingestion.definition_steps import definition_changes, row_steps
from conflict.jobs.bucket_tasks import (
    BucketTask,
    ResolvedBucket,
    ResolveRun,
    compare_bucket,
    find_stops,
    find_unique_states,
    resolve_bucket,
    run_round,
)
from conflict.jobs.runner import Runner, StageProgress, in_threads
from conflict.jobs.shared import Shared, share
from conflict.jobs.touched_rows import TouchedTask, Untraced, read_touched, touched_history
from conflict.reference.placement import Placed, place_untraced
from conflict.results.files import write_open_places
from conflict.results.layout import BUCKET_PARTS, applied_epochs_path, applied_epochs_table
from conflict.results.open_places import PossibleRestart
from conflict.results.options import DEFAULT_OPTIONS, ResultOptions
from conflict.results.summary import BucketSummary, RunSummary, add_summaries, with_open_schedule
from conflict.rules.counters import TRANSACTION_COMMITS, TRANSACTION_ITERATIONS, TRANSACTION_REJECTS
from ndb_formats.events.row_image import RowLayout

__all__ = ["resolve_history"]

Result = TypeVar("Result")
# The driver itself runs a round about so few transactions over so few buckets: handing out the tasks takes longer.
_FEW_TRANSACTIONS, _FEW_BUCKETS = 2_000, 32


def resolve_history(
    runner: Runner,
    configuration: Configuration,
    history: Folder,
    out: Folder,
    options: ResultOptions = DEFAULT_OPTIONS,
    *,
    use_evidence: bool = True,
    progress: StageProgress = lambda stage, done, total: None,
) -> RunSummary:
    """
    Resolve a History and write outcomes, exceptions and rows.

    Args:
        runner: Runs the tasks.
        configuration: The run.
        history: A History that `ingest` made for that run.
        out: Folder of the result.
        options: What the result holds.
        use_evidence: Where the order of the binlogs leaves something open, choose what agrees with the changes that
            they show (see `conflict.history.reconcile`).
        progress: Called with the name of the stage, tasks done, and their number.

    Raises:
        HistoryError: The schedule is circular.
    """
    configuration = follow_definitions(configuration)
    manifest, numbers = read_manifest(history), table_numbers(configuration)
    changes = definition_changes(configuration, manifest)
    setups = cluster_setups(configuration, numbers, changes, row_steps(configuration, manifest, numbers))
    run = ResolveRun(history, out, manifest, numbers, setups, options)
    schedule = history.read_table("schedule.parquet", SCHEDULE)
    job = _Job(runner, run, progress)
    placed = _place_untraced(job, schedule, configuration, changes) if _has_windows(schedule) else None
    if placed is not None:
        schedule = schedule_table([(name, apply) for name, own in placed.applies.items() for apply in own])
    found, summaries = job.resolve([ApplierEpochs.of_table(schedule, name) for name in manifest.clusters])
    answers: Sequence[reconcile.Inference] = ()
    if use_evidence and any(summary.contradicted for summary in summaries):
        timelines, answers = reconcile.infer(_timelines(schedule, manifest), job.contradictions)
        if answers:
            job.clear()
            found, summaries = job.resolve([ApplierEpochs.of_cluster(cluster) for cluster in timelines])
    run.shared.delete()
    _write_applied_epochs(out, run.clusters, found.applies)
    stops = {
        cluster.name: stop_of(found.stopping[cluster.name], cluster, manifest.files[run.clusters[1 - number].name])
        for number, cluster in enumerate(run.clusters)
        if cluster.name in found.stopping
    }
    transactions = _count_transactions(run.clusters, found.applies, found.conflicts)
    summary = add_summaries([*summaries, transactions], stops)
    restarts = {
        name: tuple(PossibleRestart(number, rows) for number, rows in sorted(each.items()))
        for name, each in job.further_rows.items()
    }
    summary = attrs.evolve(summary, settled=tuple(answers), rounds=found.rounds, restarts=restarts)
    if placed is None:
        return summary
    tables = {table.full_name: table for table in numbers.tables}
    write_open_places(out, placed.schedule.places, _layouts(manifest, numbers), tables)
    return with_open_schedule(summary, placed.schedule)


@attrs.define
class _Job:
    """
    The stages of the job; each runs one task per bucket.

    Attributes:
        runner: Runs the tasks.
        run: What all tasks have in common.
        progress: Called with the name of the stage, tasks done, and their number.
        further_rows: What `number_exceptions` returned last.
    """

    runner: Runner
    run: ResolveRun
    progress: StageProgress
    further_rows: Mapping[str, Mapping[int, dict[str, int]]] = attrs.field(factory=dict)
    _shared: dict[type, tuple[object, Shared[Any]]] = attrs.field(factory=dict)

    def resolve(self, applied: Sequence[ApplierEpochs]) -> tuple[FixedPoint, list[BucketSummary]]:
        """Write the result; return what the appliers applied, and what each bucket adds to the figures."""
        found = self._find(applied)
        resolved = self._resolve_buckets(found)
        stops = _earliest([each.stopping for each in resolved])
        if stops:
            self.clear()
            found = without_rounds(applied, self._names, stops)
            resolved = self._resolve_buckets(found)
        tracked = [each.tracked for each in resolved]
        self.further_rows = number_exceptions(self.run.out, self.run.clusters, found.applies, found.conflicts, tracked)
        return found, [each.summary for each in resolved]

    def contradictions(self, timelines: Sequence[Cluster]) -> list[reconcile.Contradiction]:
        """Return where the binlogs contradict the result of these schedules, causes first."""
        found = self._find_with_stops(timelines)
        differences: dict[tuple[int, int, int], Difference] = {}
        for part in self._stage("comparing", compare_bucket, self._tasks(found.applies, found.conflicts)):
            for apply, difference in part.applies.items():
                differences[apply] = differences.get(apply, Difference()) + difference
        applies = plan_applies(timelines)
        keys = zip(applies.applier.tolist(), applies.epoch.tolist(), applies.group.tolist(), strict=True)
        order = {key: number for number, key in enumerate(keys)}
        return [
            reconcile.Contradiction(timelines[key[0]].name, *key[1:], each.rows, tuple(sorted(each.changed_at)))
            for key, each in sorted(differences.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))
        ]

    def clear(self) -> None:
        """Remove the parts of the result that buckets wrote."""
        for part in BUCKET_PARTS:
            self.run.out.delete(part)

    @property
    def _names(self) -> list[str]:
        return [cluster.name for cluster in self.run.clusters]

    def _find(self, applied: Sequence[ApplierEpochs]) -> FixedPoint:
        """Return the epochs that appliers apply and the transactions in conflict, as far as rounds are needed."""
        if not self.run.needs_rounds:
            return without_rounds(applied, self._names, {})
        check = self._check_unique_keys if self.run.checks_unique_keys else None
        return find_fixed_point(applied, self._names, self.run.manifest.buckets, self._run_round, check)

    def _find_with_stops(self, timelines: Sequence[Cluster]) -> FixedPoint:
        """Return the same up to the operations that stop an applier, which rounds find and other runs look for."""
        applied = [ApplierEpochs.of_cluster(cluster) for cluster in timelines]
        found = self._find(applied)
        if self.run.needs_rounds:
            return found
        stops = _earliest(self._stage("checking images", find_stops, self._tasks(found.applies, found.conflicts)))
        return without_rounds(applied, self._names, stops)

    def _run_round(self, this: Round) -> Sequence[Findings]:
        changed = None if this.changed is None else self._share(this.changed)
        few = this.changed is not None and len(this.changed) <= _FEW_TRANSACTIONS
        tasks = [
            attrs.evolve(task, round=this.number, changed=changed, whole=whole)
            for task, whole in zip(self._tasks(this.applies, this.conflicts), this.whole, strict=True)
        ]
        runner = in_threads if few and len(tasks) <= _FEW_BUCKETS else self.runner
        return self._stage(this.name, run_round, tasks, runner)

    def _check_unique_keys(self, applies: EpochApplies, conflicts: Conflicts) -> Mapping[int, StoppingOperation]:
        return find_duplicates(self._stage("checking unique keys", find_unique_states, self._tasks(applies, conflicts)))

    def _resolve_buckets(self, found: FixedPoint) -> list[ResolvedBucket]:
        return self._stage("resolving", resolve_bucket, self._tasks(found.applies, found.conflicts))

    def _tasks(self, applies: EpochApplies, conflicts: Conflicts) -> list[BucketTask]:
        first = BucketTask(self.run, 0, self._share(applies), self._share(conflicts))
        return [attrs.evolve(first, bucket=bucket) for bucket in range(self.run.manifest.buckets)]

    def _share(self, value: Result) -> Shared[Result]:
        """Write a value where all tasks can read it, unless it is the last one of its type."""
        known = self._shared.get(type(value))
        if known is None or known[0] is not value:
            known = self._shared[type(value)] = value, share(self.run.shared, value)
        return known[1]

    def _stage(
        self,
        name: str,
        function: Callable[[BucketTask], Result],
        tasks: Sequence[BucketTask],
        runner: Runner | None = None,
    ) -> list[Result]:
        return (runner or self.runner)(function, tasks, partial(self.progress, name))


def _timelines(schedule: pa.Table, manifest: Manifest) -> list[Cluster]:
    """Return the clusters with their epoch applies alone; the transactions stay in the grid."""
    applies = applies_of(schedule)
    return [
        Cluster(name, server_id, tuple(each for each in applies.get(name, ()) if each.applied))
        for name, server_id in manifest.clusters.items()
    ]


def _has_windows(schedule: pa.Table) -> bool:
    """Whether a table `SCHEDULE` holds epoch applies without a place of their own."""
    return not pc.all(schedule.column("traced")).as_py() and any(
        apply.window is not None
        for own in applies_of(schedule.filter(pc.invert(schedule.column("traced")))).values()
        for apply in own
    )


def _layouts(manifest: Manifest, numbers: TableNumbers) -> dict[str, RowLayout]:
    return {layout.table: layout for layout in manifest.layouts(numbers) if layout is not None}


def _place_untraced(
    job: _Job,
    schedule: pa.Table,
    configuration: Configuration,
    changes: Mapping[str, Sequence[DefinitionChange]],
) -> Placed:
    """Place the epochs that left no trace, from the rows that they touch."""
    run, manifest = job.run, job.run.manifest
    applied = applies_of(schedule)
    applies = {name: tuple(applied.get(name, ())) for name in manifest.clusters}
    untraced = {name: Untraced.of_applies(own) for name, own in applies.items()}
    tasks = [TouchedTask(run, bucket, untraced) for bucket in range(manifest.buckets)]
    parts = job.runner(read_touched, tasks, partial(job.progress, "placing epochs"))
    clusters, recorded = [], {}
    for cluster in configuration.clusters:
        transactions, recorded[cluster.name] = touched_history(parts, cluster.name, run)
        timeline = timeline_of(transactions, applies[cluster.name], changes[cluster.name])
        clusters.append(Cluster(cluster.name, cluster.server_id, timeline, cluster.role))
    ends = {
        name: [end for end in epoch_ends(read_summaries(run.history, name, len(segments))) if end[0] <= last]
        for (name, segments), last in zip(manifest.segments.items(), manifest.last_epochs.values(), strict=True)
    }
    history = History(tuple(clusters), _layouts(manifest, run.numbers), {}, applies, ends)
    return place_untraced(history, configuration.setups_at_start(), recorded, skip_missing=configuration.skip_missing)


def _earliest(found: Sequence[Mapping[str, StoppingOperation]]) -> dict[str, StoppingOperation]:
    """Return, per cluster, the first stopping operation of all buckets."""
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


def _count_transactions(clusters: Sequence[ClusterSetup], applies: EpochApplies, conflicts: Conflicts) -> BucketSummary:
    """Count the rejected transactions, and the epochs that hold some. Computes docs/functions.md, "Counters"."""
    summary = BucketSummary()
    for number, cluster in enumerate(clusters):
        mine = conflicts.applies[applies.applier[conflicts.applies] == number]
        # The server detects dependencies once in each of these epochs, and commits it once.
        summary.counters[cluster.name] = {
            TRANSACTION_ITERATIONS: len(mine),
            TRANSACTION_COMMITS: len(mine),
            TRANSACTION_REJECTS: int(np.diff(conflicts.offsets)[mine].sum()),
        }
    return summary
