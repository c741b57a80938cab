"""
A History on disk to a result on disk: the driver of the resolve job. Computes docs/jobs.md, "Resolve".

1. Order the epoch applies of both appliers once (see `conflict.engine.columnar.order`), and share them with all tasks.
2. Where transactions can be in conflict, or what one applier logs can stop the other, fold the buckets in rounds until
   both are known (see `conflict.engine.columnar.fixed_point`).
3. Run one task per bucket, which decides it in one pass and writes its part of the result (see
   `conflict.runs.resolving.bucket_tasks`). If a task meets an operation that stops an applier, leave out all that this
   applier would have applied from there on, and resolve the buckets again.
4. Number the rows of the exceptions tables, and add up the summaries.
5. Where the binlogs contradict the result, or leave open when a row was judged, find the moments (see
   `conflict.engine.inference.moments`); if these explain a contradiction, write the result again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import attrs
import numpy as np

from conflict.config.arguments import StageProgress
from conflict.engine.columnar.applier_stops import stop_of
from conflict.engine.columnar.beyond_kernels import compares_reflected, ends_apart
from conflict.engine.columnar.bucket import CarefulRows
from conflict.engine.columnar.folded_bucket import numbered_stretches
from conflict.engine.columnar.order import ApplierEpochs, Located
from conflict.engine.columnar.setups import ClusterSetup, cluster_setups
from conflict.engine.columnar.unlogged_rows import NO_UNLOGGED, UnloggedRows
from conflict.engine.inference.moments import Moments
from conflict.engine.inference.placement import Placed
from conflict.engine.kernels.arrays import Bool, Conflicts, EpochApplies, RowMoments
from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.layout import DEFAULT_OPTIONS, ResultOptions, applied_epochs_path, applied_epochs_table
from conflict.engine.ledger.open_places import OpenSchedule, possible_restarts
from conflict.engine.ledger.resolution_ledger import KeyTexts, write_open, write_unlogged
from conflict.engine.ledger.summary import (
    BucketSummary,
    RunSummary,
    add_summaries,
    with_open_rows,
    with_open_schedule,
    with_tables,
)
from conflict.errors import ConfigurationError
from conflict.history.grid.epoch_files import read_epoch_sizes, read_schedule
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest, read_manifest
from conflict.history.ingestion.extension import changes_that_count, row_steps
from conflict.history.model import Link
from conflict.history.reading.readings import with_changes
from conflict.history.run import Run
from conflict.history.scheduling.schedule_columns import ScheduleColumns
from conflict.history.scheduling.summaries import EpochSizes
from conflict.history.tasks import Runner
from conflict.history.unlogged import UnloggedChange
from conflict.results.run_document import RunDocument
from conflict.rules.counters import transaction_counters
from conflict.runs.resolving.deciding_applies import Schedule
from conflict.runs.resolving.finding_careful import with_respelled
from conflict.runs.resolving.judging_as_shown import differing_as_shown
from conflict.runs.resolving.keeping_state import keep_state, not_kept
from conflict.runs.resolving.other_forms import meets_another_form
from conflict.runs.resolving.resolve_stages import ResolveJob, WrittenBuckets
from conflict.runs.resolving.settling import Examined, Settling, layouts_of
from conflict.runs.resolving.windows import told_after, window_after
from conflict.runs.rows.task_inputs import WHOLE, LogPart, ReadPart, TaskInputs
from conflict.runs.rows.window import digest_of_configuration, refuse_other_history


def resolve_history(
    runner: Runner,
    run: Run,
    history: Folder,
    out: Folder,
    options: ResultOptions = DEFAULT_OPTIONS,
    *,
    use_evidence: bool = True,
    progress: StageProgress = lambda stage, done, total: None,
    part: ReadPart | None = None,
) -> RunSummary:
    """
    Resolve a History and write outcomes, exceptions and rows.

    Args:
        runner: Runs the tasks.
        run: The run.
        history: A History that `ingest` made for that run.
        out: Folder of the result.
        options: What the result holds.
        use_evidence: Where the order of the binlogs leaves something open, choose what agrees with the changes that
            they show (see `conflict.engine.inference.moments`).
        progress: Called with the name of the stage, tasks done, and their number.
        part: What is read of it, with its schedule and figures (see `part_of_log`); None for all.

    Raises:
        HistoryError: The schedule is circular.
        ConfigurationError: Only the reference engine can resolve the part.
    """
    settled = settle_history(
        runner, run, history, out, options, use_evidence=use_evidence, progress=progress, part=part
    )
    if isinstance(settled, CareKind):
        message = f"only the reference engine can resolve this, because {settled.value.what}"
        raise ConfigurationError(message)
    settled.write()
    return settled.summary()


def settle_history(
    runner: Runner,
    run: Run,
    history: Folder,
    out: Folder,
    options: ResultOptions = DEFAULT_OPTIONS,
    *,
    use_evidence: bool = True,
    progress: StageProgress = lambda stage, done, total: None,
    part: ReadPart | None = None,
    unlogged: UnloggedRows = NO_UNLOGGED,
) -> SettledHistory | CareKind:
    """
    Write the parts of all buckets, and settle when each epoch was applied.

    Arguments are those of `resolve_history`; `unlogged`: rows that clusters changed without a log.

    Returns:
        What was settled, whose `write` writes the rest of the result; or why only the reference engine can resolve it.

    Raises:
        HistoryError: The schedule is circular.
    """
    if part is None:
        manifest = read_manifest(history)
        part = WHOLE, read_schedule(history, list(manifest.clusters)), manifest
    log_part, schedule, manifest = part
    changes = changes_that_count(run, manifest)
    run = with_changes(run, changes)
    if ends_apart(run):
        return CareKind.ONE_SIDED_DEFINITION
    roles = {name: own.roles for name, own in schedule.items()}
    if any(roles.values()) and compares_reflected(run, roles):
        return CareKind.REFLECTED_VALUE
    common = _with_care(runner, run_of_part(run, history, out, part, options), unlogged, progress)
    if isinstance(common, CareKind):
        return common
    if log_part.starts_in_the_middle and not common.refreshes_tell:
        return CareKind.MIDDLE_REFRESHES
    if options.after is not None:
        window = window_after(options.after, run, common, schedule)
        common, schedule = attrs.evolve(common, window=window), window.with_places(schedule)
    job = ResolveJob(runner, common, progress)
    settling = Settling(runner, common, run, progress, changes)
    placed = settling.place_untraced(schedule) if any(len(own.windowed) for own in schedule.values()) else None
    tables = frozenset(table for known in run.setups.at_end.values() for table in known)
    settle = partial(_settled, job, schedule, tables=tables, unlogged=unlogged.changes, configured=run)
    settled = settle(placed)
    if isinstance(settled, CareKind):
        return settled
    if use_evidence and placed is not None and settled.contradicted:
        again = settling.place_contradicted(schedule, placed, settled.resolved.differing_at())
        if again.schedule.skipped != placed.schedule.skipped:
            job.clear()
            settled = settle(again)
    return _explained(settled, settling) if use_evidence and not isinstance(settled, CareKind) else settled


def _with_care(
    runner: Runner, common: TaskInputs, unlogged: UnloggedRows, progress: StageProgress
) -> TaskInputs | CareKind:
    """Return a run with the rows that are left to the reference engine from the start; why, if all rows are."""
    middle = common.part.starts_in_the_middle
    if middle and any(cluster.later_roles for cluster in common.clusters):
        return CareKind.CHANGING_ROLES
    if middle and common.linked.tables.any():
        if common.needs_rounds:
            return CareKind.MIDDLE_LINKS
        common = common.with_careful(CarefulRows(common.linked.tables))
    if unlogged.are_followed:
        careful = CarefulRows(np.zeros(len(common.numbers.tables), np.bool_), unlogged.keys)
        common = attrs.evolve(common.with_careful(careful), unlogged=unlogged.changes)
    common = with_respelled(runner, common, progress)
    if common.respelled is not None and middle and common.needs_rounds:
        return CareKind.MIDDLE_RESPELLED
    return common


def _settled(
    job: ResolveJob,
    schedule: Schedule,
    placed: Placed | None,
    tables: frozenset[str],
    unlogged: Mapping[str, tuple[UnloggedChange, ...]],
    configured: Run,
) -> SettledHistory | CareKind:
    """Resolve the buckets, with untraced epochs where they were placed; or say why the kernels cannot."""
    if placed is not None:
        schedule = {name: own.with_places(placed.applies[name]) for name, own in schedule.items()}
    if job.run.window is not None:
        refuse_other_history(job.run.window, job.run.manifest, schedule)
    if meets_another_form(job.run, schedule):
        return CareKind.OTHER_FORM
    applied = _applied(job.run, schedule)
    resolved = job.resolve(applied)
    if isinstance(resolved, CareKind):
        return resolved
    return SettledHistory(configured, job, schedule, applied, resolved, Moments(), placed, tables, unlogged=unlogged)


def run_of_part(run: Run, history: Folder, out: Folder, part: ReadPart, options: ResultOptions) -> TaskInputs:
    """Return what all tasks of a run have in common; arguments as for `resolve_history`."""
    log_part, schedule, manifest = part
    run = run.numbered_as(manifest.tables)
    steps, roles = row_steps(run, manifest, run.numbers), {name: own.roles for name, own in schedule.items()}
    setups = cluster_setups(run, run.numbers, changes_that_count(run, manifest), steps, roles)
    return TaskInputs(
        history, out, manifest.for_tasks(), run.numbers, setups, options, log_part, databases=run.databases
    )


def _explained(settled: SettledHistory, settling: Settling) -> SettledHistory | CareKind:
    """Return the result with the moments of judging that explain what the binlogs show; or why the kernels cannot."""
    job, resolved = settled.job, settled.resolved
    examined = Examined.nothing(job.run)
    examined.add_whole(resolved, resolved.left_out)
    examined.add_open(resolved)
    if settled.contradicted:
        differing = resolved.numbers(resolved.differing_at())
        if job.run.window is None and attrs.evolve(settling, common=job.run).states_decide:
            differing = differing_as_shown(job, resolved.found, differing)
        examined.add_whole(resolved, differing)
    schedule, moments, applied, more = settled.schedule, Moments(), settled.applied, len(examined) > 0
    if more:
        schedule = {name: own.applied_alone() for name, own in schedule.items()}
    # What is explained can leave other rows open than before.
    while more:
        known, more = moments.found, False
        # What the binlogs leave open is looked for in the whole History of a row.
        whole = attrs.evolve(job.run, window=None)
        moments, located = attrs.evolve(settling, common=whole).find_moments(schedule, examined.rows)
        if moments.found != known:
            job.clear()
            early = [_row_moments(name, own, moments, located) for name, own in schedule.items()]
            applied = _applied(job.run, schedule, early)
            found = job.resolve(applied)
            if isinstance(found, CareKind):
                return found
            resolved = found
            more = examined.add_whole(resolved, resolved.left_out)
            more = examined.add_open(resolved) or more
    left = examined.count_left + moments.not_examined
    return attrs.evolve(settled, applied=applied, resolved=resolved, moments=moments, not_examined=left)


_NEVER_EARLY = (RowMoments.none(), RowMoments.none())


def _applied(run: TaskInputs, schedule: Schedule, moments: Sequence[RowMoments] = _NEVER_EARLY) -> list[ApplierEpochs]:
    """Return what each applier applied; `moments`: per cluster, the rows that it judged early, as they were found."""
    known = _NEVER_EARLY if run.window is None else run.window.moments
    return [
        ApplierEpochs.of_columns(own, run.part.starts.get(name), RowMoments.joined(early))
        for (name, own), *early in zip(schedule.items(), known, moments, strict=True)
    ]


@attrs.frozen(eq=False)
class SettledHistory:
    """
    A History that was resolved: its figures, and what is left to write of the result.

    Attributes:
        configured: The run.
        job: The stages, and what all their tasks have in common.
        schedule: Per cluster, the epoch applies of its applier, at their places.
        applied: Per cluster, the epochs that its applier applies, with the moments of judging that were found.
        resolved: The parts that the buckets wrote.
        moments: The moments of judging that explain what the binlogs show.
        placed: The places of untraced epochs; None if there are none.
        tables: The tables that a cluster had at some time.
        not_examined: Epoch applies that were not examined for whether they leave open when a row was judged.
        unlogged: Per cluster, the rows that it changed without a log; the first ones, if they are too many to follow.
    """

    configured: Run = attrs.field(repr=False)
    job: ResolveJob
    schedule: Schedule = attrs.field(repr=False)
    applied: Sequence[ApplierEpochs]
    resolved: WrittenBuckets
    moments: Moments
    placed: Placed | None
    tables: frozenset[str]
    not_examined: int = 0
    unlogged: Mapping[str, tuple[UnloggedChange, ...]] = attrs.field(factory=dict)

    @property
    def contradicted(self) -> bool:
        """Whether the binlogs contradict the result."""
        return any(summary.contradicted for summary in self.resolved.summaries)

    @property
    def part(self) -> LogPart:
        """The part of the logs that was read."""
        return self.job.run.part

    @property
    def manifest(self) -> Manifest:
        """What the History holds of that part."""
        return self.job.run.manifest

    def summary(self) -> RunSummary:
        """Return the figures of the result."""
        run, found = self.job.run, self.resolved.found
        stops = {
            cluster.name: stop_of(
                found.stopping[cluster.name], cluster, run.manifest.files[run.clusters[1 - number].name]
            )
            for number, cluster in enumerate(run.clusters)
            if cluster.name in found.stopping
        }
        transactions = count_transactions(run.clusters, found.applies, found.conflicts, self._told)
        summary = with_tables(add_summaries([*self.resolved.summaries, transactions], stops), self.tables)
        restarts = possible_restarts(self.job.numbered.further)
        summary = attrs.evolve(summary, settled=tuple(self.moments.inferences), rounds=found.rounds, restarts=restarts)
        summary = attrs.evolve(with_open_rows(summary, self.moments.open_epochs), not_examined=self.not_examined)
        return summary if self.placed is None else with_open_schedule(summary, self.placed.schedule)

    @property
    def _told(self) -> Bool | None:
        """Which epoch applies the result tells of; None for all. Shape (applies,)."""
        window = self.job.run.window
        return None if window is None else window.boundary.later(self.resolved.found.applies)

    def told_in_part(self, resolved: RunDocument) -> RunDocument:
        """Return a result that says where it begins, with the row changes that clusters made from there on."""
        window, earlier = self.job.run.window, self.job.run.options.after
        if window is None or earlier is None:
            return resolved
        return told_after(window, earlier, resolved, self.epoch_sizes())

    @property
    def unsure(self) -> frozenset[tuple[str, int]]:
        """Applier and number of the epochs whose place is open, or that were never applied."""
        schedule = OpenSchedule() if self.placed is None else self.placed.schedule
        places = {(each.applier, each.foreign_epoch) for each in schedule.places}
        return frozenset(places | {(each.applier, each.foreign_epoch) for each in schedule.skipped})

    @property
    def state_not_kept(self) -> str | None:
        """Why no later run can go on from it, as the end of a sentence; None if one can."""
        if self.unlogged:
            return "clusters changed rows without a log"
        return not_kept(self.job.run, self.schedule, self.resolved, self.summary())

    def last_applied(self) -> dict[Link, int]:
        """Return, per link, the last epoch that was applied."""
        names, found = list(self.manifest.clusters), (own.columns["foreign_epoch"] for own in self.applied)
        links = zip(names, reversed(names), strict=True)
        return {link: int(epochs.max()) for link, epochs in zip(links, found, strict=True) if len(epochs)}

    def epoch_sizes(self) -> dict[str, EpochSizes]:
        """Return, per cluster, the own epochs of the part that was read, with their row changes."""
        bounds, manifest = self.part.bounds or {}, self.manifest
        found = {}
        for name in manifest.segments:
            first = bounds[name].first if name in bounds else 0
            sizes = read_epoch_sizes(self.job.run.history, name, manifest.batches)
            found[name] = sizes.between(first, manifest.last_epochs[name])
        return found

    def write(self) -> None:
        """Write what is not written bucket by bucket: the applied epochs, and what the binlogs leave open."""
        run = self.job.run
        if run.options.keep_state and self.state_not_kept is None:
            digest = digest_of_configuration(self.configured)
            keep_state(self.job, self.schedule, self.resolved, digest, self.unsure)
        run.shared.delete()
        _write_applied_epochs(run.out, run.clusters, self.resolved.found.applies, self._told)
        tables = {table.full_name: table for table in run.numbers.tables}
        keys = KeyTexts(layouts_of(run.manifest, run.numbers), tables)
        schedule = OpenSchedule() if self.placed is None else self.placed.schedule
        write_open(run.out, schedule, self.moments.open_epochs, keys)
        write_unlogged(run.out, self.unlogged, keys)


def _row_moments(name: str, own: ScheduleColumns, moments: Moments, located: Located) -> RowMoments:
    """Return the moments of judging that were found of a cluster's epoch applies."""
    found = {place: rows for (cluster, place), rows in moments.found.items() if cluster == name}
    numbers = own.traced_at(found)
    places = zip(own["epoch"][numbers].tolist(), own["group"][numbers].tolist(), strict=True)
    rows = [
        (number, *located[each.table, each.key], *each.after)
        for number, place in zip(numbers.tolist(), places, strict=True)
        for each in found[place]
    ]
    return RowMoments.of_rows(rows)


_WRITTEN = 1 << 20  # applied epochs in memory at a time


def _write_applied_epochs(
    out: Folder, clusters: Sequence[ClusterSetup], applies: EpochApplies, told: Bool | None
) -> None:
    for number, cluster in enumerate(clusters):
        mine, source = np.flatnonzero(applies.applier == number), clusters[1 - number].name
        mine = mine if told is None else mine[told[mine]]
        parts = (mine[first : first + _WRITTEN] for first in range(0, max(len(mine), 1), _WRITTEN))
        columns = ((applies.foreign_epoch[part], applies.epoch[part], applies.group[part]) for part in parts)
        out.write_rows(applied_epochs_path(cluster.name), (applied_epochs_table(source, *each) for each in columns))


def count_transactions(
    clusters: Sequence[ClusterSetup], applies: EpochApplies, conflicts: Conflicts, told: Bool | None = None
) -> BucketSummary:
    """
    Count the rejected transactions, and the epochs that hold some. Computes docs/functions.md, "Counters".

    `told`: the epoch applies that count; None for all. Shape (applies,).
    """
    summary = BucketSummary()
    of, stretches = numbered_stretches(clusters, applies)
    for number, cluster in enumerate(clusters):
        mine = conflicts.applies[applies.applier[conflicts.applies] == number]
        mine = mine if told is None else mine[told[mine]]
        rejected = conflicts.offsets[mine + 1] - conflicts.offsets[mine]
        summary.counters[cluster.name] = transaction_counters(len(mine), int(rejected.sum()))
        own = {place: each for place, (side, each) in enumerate(stretches) if side == number}
        summary.stretches[cluster.name] = {
            stretch: transaction_counters(int(chosen.sum()), int(rejected[chosen].sum()))
            for place, stretch in own.items()
            for chosen in [of[mine] == place]
        }
    return summary
