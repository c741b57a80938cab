"""
A History on disk to a result on disk: the driver of the resolve job. Computes docs/jobs.md, "Resolve".

1. Order the epoch applies of both appliers once (see `conflict.columnar.apply_order`), and share them with all tasks.
2. Where transactions can be in conflict, or what one applier logs can stop the other, fold the buckets in rounds until
   both are known (see `conflict.columnar.rounds.fixed_point`).
3. Run one task per bucket, which decides it in one pass and writes its part of the result (see
   `conflict.jobs.bucket_tasks`). If a task meets an operation that stops an applier, leave out all that this applier
   would have applied from there on, and resolve the buckets again.
4. Number the rows of the exceptions tables, and add up the summaries.
5. Where the binlogs contradict the result, or leave open when a row was judged, find the moments (see
   `conflict.reference.moments`); if these explain a contradiction, write the result again.
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
from conflict.columnar.apply_order import ApplierEpochs
from conflict.columnar.cluster_setup import ClusterSetup
from conflict.columnar.foreign_keys.broken import breaks_a_link
from conflict.columnar.kernels.arrays import Conflicts, EpochApplies, Int64
from conflict.columnar.output.exceptions_numbering import number_exceptions
from conflict.columnar.rounds.bucket_round import Findings
from conflict.columnar.rounds.fixed_point import FixedPoint, Round, find_fixed_point, without_rounds
from conflict.columnar.setups_over_time import cluster_setups
from conflict.columnar.stop_reports import stop_of
from conflict.columnar.told_transactions import told_transactions
from conflict.columnar.unique_keys.duplicates import find_duplicates
from conflict.config.configuration import Configuration
from conflict.errors import NotBuiltError
from conflict.grid.epoch_files import applies_of, schedule_table
from conflict.grid.folder import Folder
from conflict.grid.manifest import Manifest, read_manifest
from conflict.grid.schemas import SCHEDULE
from conflict.grid.tables import table_numbers
from conflict.history.following import follow_definitions
from conflict.history.model import Cluster, EpochApply, Position, Start
from conflict.ingestion.definition_steps import definition_changes, row_steps
from conflict.jobs.bucket_tasks import (
    BucketTask,
    ResolvedBucket,
    compare_bucket,
    find_linked_states,
    find_touched_transactions,
    find_unique_states,
    resolve_bucket,
    run_round,
)
from conflict.jobs.log_part import WHOLE, LogPart
from conflict.jobs.resolve_run import ResolveRun
from conflict.jobs.runner import Runner, StageProgress, in_threads
from conflict.jobs.settling import Settling, layouts_of
from conflict.jobs.shared import Shared, share
from conflict.reference.moments import Moments
from conflict.results.files import write_open_places, write_open_rows
from conflict.results.layout import BUCKET_PARTS, applied_epochs_path, applied_epochs_table
from conflict.results.open_places import PossibleRestart
from conflict.results.options import DEFAULT_OPTIONS, ResultOptions
from conflict.results.summary import BucketSummary, RunSummary, add_summaries, with_open_rows, with_open_schedule
from conflict.rules.counters import TRANSACTION_COMMITS, TRANSACTION_ITERATIONS, TRANSACTION_REJECTS

__all__ = ["LeftToReferenceError", "resolve_history"]

Result = TypeVar("Result")
# The driver itself runs a round about so few transactions over so few buckets: handing out the tasks takes longer.
_FEW_TRANSACTIONS, _FEW_BUCKETS = 2_000, 32
# Of so many epoch applies it is looked at whether they leave open when a row was judged.
MAX_OPEN_EPOCHS = 5_000


class LeftToReferenceError(Exception):
    """A part of the logs that the kernels cannot resolve; the reference engine can."""


def resolve_history(
    runner: Runner,
    configuration: Configuration,
    history: Folder,
    out: Folder,
    options: ResultOptions = DEFAULT_OPTIONS,
    *,
    use_evidence: bool = True,
    progress: StageProgress = lambda stage, done, total: None,
    part: tuple[LogPart, pa.Table, Manifest] | None = None,
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
            they show (see `conflict.reference.moments`).
        progress: Called with the name of the stage, tasks done, and their number.
        part: What is read of it, with its schedule and figures (see `part_of_log`); None for all.

    Raises:
        HistoryError: The schedule is circular.
        NotBuiltError: A foreign key refuses or changes something; nothing is written then.
        LeftToReferenceError: The part cannot be resolved by the kernels.
    """
    configuration = follow_definitions(configuration)
    if part is None:
        part = WHOLE, history.read_table("schedule.parquet", SCHEDULE), read_manifest(history)
    (log_part, schedule, manifest), numbers = part, table_numbers(configuration)
    changes = definition_changes(configuration, manifest)
    setups = cluster_setups(configuration, numbers, changes, row_steps(configuration, manifest, numbers))
    run = ResolveRun(history, out, manifest, numbers, setups, options, log_part)
    if log_part.starts_in_the_middle and (not run.refreshes_tell or run.linked.tables.any()):
        raise LeftToReferenceError
    job = _Job(runner, run, progress)
    settling = Settling(runner, run, configuration, progress, changes)
    placed = settling.place_untraced(_applies(schedule, manifest)) if _has_windows(schedule) else None
    if placed is not None:
        schedule = schedule_table([(name, apply) for name, own in placed.applies.items() for apply in own])
    resolved = job.resolve([ApplierEpochs.of_table(schedule, name) for name in manifest.clusters])
    moments = Moments()
    if use_evidence:
        resolved, moments = _explained(job, settling, schedule, resolved)
    job.refuse_broken_links(resolved.found)
    found, summaries = resolved.found, resolved.summaries
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
    summary = attrs.evolve(summary, settled=tuple(moments.inferences), rounds=found.rounds, restarts=restarts)
    tables, layouts = {table.full_name: table for table in numbers.tables}, layouts_of(manifest, numbers)
    write_open_rows(out, moments.open_epochs, layouts, tables)
    summary = with_open_rows(summary, moments.open_epochs)
    if placed is None:
        return summary
    write_open_places(out, placed.schedule.places, layouts, tables)
    return with_open_schedule(summary, placed.schedule)


def _explained(job: _Job, settling: Settling, schedule: pa.Table, resolved: _Resolved) -> tuple[_Resolved, Moments]:
    """Return the result with the moments of judging that explain what the binlogs show, and these."""
    wanted = resolved.positions(resolved.contested[:MAX_OPEN_EPOCHS])
    if any(summary.contradicted for summary in resolved.summaries):
        for name, positions in job.differing(resolved.found).items():
            wanted[name] |= positions
    if not any(wanted.values()):
        return resolved, Moments()
    clusters = _timelines(schedule, job.run.manifest, job.run.part.starts)
    applies = {
        cluster.name: [item for item in cluster.timeline if isinstance(item, EpochApply)] for cluster in clusters
    }
    moments, seen = Moments(), 0
    # What is explained can leave other rows open than before.
    while (count := sum(map(len, wanted.values()))) > seen:
        seen, known = count, moments.found
        moments, located = settling.find_moments(applies, wanted)
        if moments.found != known:
            job.clear()
            explained = moments.clusters(clusters)
            resolved = job.resolve([ApplierEpochs.of_cluster(cluster, located) for cluster in explained])
            for name, positions in resolved.positions(resolved.contested[:MAX_OPEN_EPOCHS]).items():
                wanted[name] |= positions
    return resolved, moments


@attrs.frozen(eq=False)
class _Resolved:
    """
    A result that was written.

    Attributes:
        found: What the appliers applied, and the transactions in conflict.
        summaries: What each bucket adds to the figures.
        contested: Numbers of epoch applies with rows that may have been judged earlier, sorted.
        names: The clusters.
    """

    found: FixedPoint
    summaries: list[BucketSummary]
    contested: Int64
    names: Sequence[str]

    def positions(self, applies: Int64) -> dict[str, set[Position]]:
        """Return, per applier, the own positions of epoch applies, given by number."""
        wanted: dict[str, set[Position]] = {name: set() for name in self.names}
        all_applies = self.found.applies
        for number in applies.tolist():
            name = self.names[all_applies.applier[number]]
            wanted[name].add((int(all_applies.epoch[number]), int(all_applies.group[number])))
        return wanted


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

    def resolve(self, applied: Sequence[ApplierEpochs]) -> _Resolved:
        """Write the result."""
        found = self._find(applied)
        in_the_middle = self.run.part.starts_in_the_middle
        if in_the_middle and found.stopping:
            raise LeftToReferenceError
        if (
            in_the_middle
            and not self.run.needs_rounds
            and self.run.checks_unique_keys
            and self._check_unique_keys(found.applies, found.conflicts)
        ):
            raise LeftToReferenceError
        resolved = self._resolve_buckets(found)
        stops = _earliest([each.stopping for each in resolved])
        if stops:
            if in_the_middle:
                raise LeftToReferenceError
            self.clear()
            found = without_rounds(applied, self._names, stops)
            resolved = self._resolve_buckets(found)
        tracked = [each.tracked[0] for each in resolved]
        if in_the_middle:  # what was left to the reference engine stands after all buckets
            tracked += [each.tracked[-1] if len(each.tracked) > 1 else {} for each in resolved]
        self.further_rows = number_exceptions(self.run.out, self.run.clusters, found.applies, found.conflicts, tracked)
        contested = np.unique(np.concatenate([each.contested for each in resolved]))
        summaries = [summary for each in resolved for summary in each.summaries]
        return _Resolved(found, summaries, contested, self._names)

    def differing(self, found: FixedPoint) -> dict[str, set[Position]]:
        """Return, per applier, the own positions of epoch applies of which the binlogs show other effects."""
        differing: dict[str, set[Position]] = {name: set() for name in self._names}
        for part in self._stage("comparing", compare_bucket, self._tasks(found.applies, found.conflicts)):
            for number, epoch, group in part.applies:
                differing[self._names[number]].add((epoch, group))
        return differing

    def clear(self) -> None:
        """Remove the parts of the result that buckets wrote."""
        for part in BUCKET_PARTS:
            self.run.out.delete(part)

    def refuse_broken_links(self, found: FixedPoint) -> None:
        """
        Make sure that no foreign key refuses or changes anything; else remove what was written.

        Raises:
            NotBuiltError: One does.
        """
        if not self.run.linked.tables.any():
            return
        states = self._stage("checking foreign keys", find_linked_states, self._tasks(found.applies, found.conflicts))
        if breaks_a_link(states, self.run.linked):
            self.clear()
            self.run.shared.delete()
            message = "a foreign key refuses a change or makes one of its own, which only the reference engine follows"
            raise NotBuiltError(message)

    @property
    def _names(self) -> list[str]:
        return [cluster.name for cluster in self.run.clusters]

    def _find(self, applied: Sequence[ApplierEpochs]) -> FixedPoint:
        """Return the epochs that appliers apply and the transactions in conflict, as far as rounds are needed."""
        if not self.run.needs_rounds:
            return without_rounds(applied, self._names, {})
        check = self._check_unique_keys if self.run.checks_unique_keys else None
        return find_fixed_point(applied, self._names, self.run.manifest.buckets, self._run_round, check)

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
        tasks = self._tasks(found.applies, found.conflicts)
        if self.run.part.starts_in_the_middle and len(found.conflicts.groups):
            touched = self._stage("telling transactions apart", find_touched_transactions, tasks)
            told = self._share(told_transactions(touched))
            tasks = [attrs.evolve(task, told=told) for task in tasks]
        resolved = self._stage("resolving", resolve_bucket, tasks)
        if any(each is None for each in resolved):
            raise LeftToReferenceError
        return [each for each in resolved if each is not None]

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


def _applies(schedule: pa.Table, manifest: Manifest) -> dict[str, tuple[EpochApply, ...]]:
    """Return the epoch applies of each applier, those that may have been among them."""
    applied = applies_of(schedule)
    return {name: tuple(applied.get(name, ())) for name in manifest.clusters}


def _timelines(schedule: pa.Table, manifest: Manifest, starts: Mapping[str, Start]) -> list[Cluster]:
    """Return the clusters with their epoch applies alone; the transactions stay in the grid."""
    applies = applies_of(schedule)
    return [
        Cluster(name, server_id, tuple(each for each in applies.get(name, ()) if each.applied), start=starts.get(name))
        for name, server_id in manifest.clusters.items()
    ]


def _has_windows(schedule: pa.Table) -> bool:
    """Whether a table `SCHEDULE` holds epoch applies without a place of their own."""
    return not pc.all(schedule.column("traced")).as_py() and any(
        apply.window is not None
        for own in applies_of(schedule.filter(pc.invert(schedule.column("traced")))).values()
        for apply in own
    )


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
