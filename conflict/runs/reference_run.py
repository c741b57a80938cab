"""
A run with the reference engine: from binlogs to a result, in this process and in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs

from conflict.config.arguments import StageProgress, no_progress
from conflict.engine.inference.moments import Moments, find_moments
from conflict.engine.inference.observed import ObservedCluster
from conflict.engine.inference.placement import Placed, place_untraced, restricted, touched_rows
from conflict.engine.inference.replay import ObservedApplier, observed_appliers
from conflict.engine.inference.replay import resolve as replay
from conflict.engine.ledger.contradictions import ContradictedRow, contradicted_marks, contradicted_rows
from conflict.engine.ledger.layout import DEFAULT_OPTIONS, ResultOptions
from conflict.engine.ledger.resolution import Outcome, Resolution
from conflict.engine.ledger.resolution_ledger import (
    Compared,
    KeyTexts,
    Recorded,
    ReferenceLedger,
    write_open,
    write_resolution,
    write_unlogged,
)
from conflict.engine.ledger.summary import with_open_rows, with_open_schedule
from conflict.engine.reference.replay import play
from conflict.errors import HistoryError
from conflict.history.epochs import BinlogEpoch
from conflict.history.grid.folder import Folder
from conflict.history.model import History, Link
from conflict.history.reading.readings import (
    ClusterReading,
    cut_readings,
    history_of,
    possible_readings,
    read_clusters,
    usable_epochs,
    with_unlogged,
    within_readings,
)
from conflict.history.roles import FittingMarks
from conflict.history.run import Run
from conflict.history.scheduling.schedule import ClusterHints
from conflict.history.scheduling.start import changes_older_rows
from conflict.history.scheduling.summaries import EpochSizes, summarize
from conflict.history.shown_effects import logged_images, recorded_effects, recorded_images
from conflict.history.timeline import EpochApply
from conflict.results.cause_kinds import LogFacts
from conflict.results.cutovers import ChannelMoves, RowOfEpoch, moves_of, write_repeats
from conflict.results.likely_causes import changed_roles, declared_types, facts_of_epochs, likely_causes
from conflict.results.run_document import RunDocument, is_same_result, reading_path, with_readings
from conflict.rules.table_setup import TableSetup
from conflict.runs.end_of_logs import at_end_of_logs, from_the_start
from ndb_formats.schema.row_keys import refuse_inexact_keys


def run_in_memory(
    run: Run,
    out: Folder,
    progress: StageProgress = no_progress,
    options: ResultOptions = DEFAULT_OPTIONS,
    readings: Mapping[str, ClusterReading] | None = None,
) -> tuple[RunDocument, History]:
    """
    Resolve with the reference engine, in this process, and write the result.

    Args:
        run: The run.
        out: Where the result goes.
        progress: Called with the name of the stage, what is done, and what there is to do.
        options: What the result holds.
        readings: What was read of the binlogs; None to read them.

    Returns:
        The result; and the History: its epochs at their places, rows judged when they were.
    """
    run, facts, found = _read(run, progress, readings)
    runs = [
        _written(out if number == 1 else out.below(reading_path(number)), each, facts, options)
        for number, each in enumerate(found, start=1)
    ]
    further = [each.resolution for each in found[1:]]
    resolved = attrs.evolve(
        runs[0],
        run=run,
        notes=run.notes,
        summary=with_readings(runs[0].summary, found[0].resolution, further),
        other_readings=tuple(runs[1:]),
    )
    return resolved, found[0].history


def _read(
    run: Run, progress: StageProgress, readings: Mapping[str, ClusterReading] | None = None
) -> tuple[Run, dict[str, LogFacts], list[_ResolvedReading]]:
    """Read the binlogs of a run; return it as they show it, what they tell, and their likeliest readings, resolved."""
    refuse_inexact_keys(run.data_schema.tables)
    readings = readings or read_clusters(run, partial(progress, "reading binlogs"))
    hints = run.hints(usable_epochs(run, readings, with_holes=run.span.cuts))
    facts = {
        cluster.name: facts_of_epochs(
            readings[cluster.name].epochs,
            replicates=bool(run.links.sources(cluster.name)),
            role=cluster.role,
        )
        for cluster in run.clusters
    }
    readings = cut_readings(run, readings)
    found = _best_readings(run, possible_readings(run, readings, hints), hints, progress)
    if run.compressed and found[0].contradictions:
        skipping = {name: attrs.evolve(each, taken_whole=False) for name, each in readings.items()}
        others = _best_readings(run, possible_readings(run, skipping, hints), hints, progress)
        if others[0].contradictions < found[0].contradictions:
            run, found = attrs.evolve(run, notes=(*run.notes, _SKIPS)), others
    return run, facts, found


@attrs.frozen(eq=False)
class Replayed:
    """
    A run as it ended.

    Attributes:
        run: The run, as its binlogs show it.
        history: What happened: epochs at their places, rows judged when they were.
        appliers: By cluster, its applier, which has the cluster, after all of it.
        times: By cluster and own epoch, the microsecond since 1970 at which it committed; 0 where no log tells.
        counters: The counters of the run, if the clusters hold some of its rows; None if they hold all.
    """

    run: Run
    history: History
    appliers: Mapping[str, ObservedApplier]
    times: Mapping[str, Mapping[int, int]]
    counters: Mapping[str, Mapping[str, int]] | None = None

    @property
    def outcomes(self) -> list[Outcome]:
        """What appliers decided."""
        return [outcome for applier in self.appliers.values() for outcome in applier.here.outcomes]


def replay_in_memory(
    run: Run,
    progress: StageProgress = no_progress,
    made_of: Callable[..., ObservedCluster] = ObservedCluster,
) -> Replayed:
    """
    Let the clusters of a run do once more what its binlogs say, and keep them.

    Args:
        run: The run.
        progress: Called with the name of the stage, what is done, and what there is to do.
        made_of: What makes a cluster.

    Raises:
        HistoryError: Binlogs, schedule and configuration contradict each other.
    """
    _, _, found = _read(run, progress)
    first, configuration = found[0], run.configuration
    history, epochs = first.history, first.epochs
    recorded = {name: recorded_effects(own) for name, own in epochs.items()}
    setups = first.run.setups.at_start
    skip = configuration.skip_missing
    appliers = observed_appliers(history, setups, skip_missing=skip, shown=recorded, made_of=made_of)
    items = sum(len(cluster.timeline) for cluster in history.clusters)
    play(history, appliers, lambda done: progress("replaying", done, items))
    times = {name: {each.number: each.committed or 0 for each in own} for name, own in epochs.items()}
    return Replayed(first.run, history, appliers, times)


_SKIPS = (
    "the appliers skip changes of their own cluster in compressed transactions, too, as their binlogs show; those of "
    "MySQL NDB Cluster 9.7 do not"
)


@attrs.frozen
class _ResolvedReading:
    """A reading of the binlogs of a run, and its result."""

    run: Run
    readings: Mapping[str, ClusterReading]
    history: History
    placed: Placed
    resolution: Resolution
    moments: Moments

    @property
    def epochs(self) -> dict[str, list[BinlogEpoch]]:
        """Per cluster, the epochs that count."""
        summaries = usable_epochs(self.run, self.readings)
        return {name: reading.epochs[: len(summaries[name])] for name, reading in self.readings.items()}

    @property
    def contradictions(self) -> int:
        """How many rows the binlogs show otherwise."""
        return sum(len(rows) for _, rows in self.compared().values())

    def lacks_older_rows(self) -> bool:
        """Whether something is not explained, and a row can be older than the logs."""
        unexplained = any(result.unexplained for result in self.resolution.clusters.values())
        return unexplained and any(map(changes_older_rows, self.epochs.values()))

    def compared(self) -> Compared:
        """Return, per cluster, how many rows were compared with its binlog, and those that differ."""
        setups, epochs = self.run.setups.at_start, self.epochs
        fitting = FittingMarks.of(self.run.setups.over_time.values())
        found: dict[str, tuple[int, list[ContradictedRow]]] = {}
        for name, result in self.resolution.clusters.items():
            own, cluster = epochs[name], self.history.cluster(name)
            shown = recorded_effects(own), recorded_images(own)
            compared, rows = contradicted_rows((result.effects, result.images), shown)
            known = {(row.epoch, row.group, row.table, row.key) for row in rows}
            marked = contradicted_marks(cluster, setups[name], own, fitting)
            rows += [row for row in marked if (row.epoch, row.group, row.table, row.key) not in known]
            found[name] = compared, rows
        return found


def _best_readings(
    run: Run,
    readings: Sequence[Mapping[str, ClusterReading]],
    hints: ClusterHints | None,
    progress: StageProgress,
) -> list[_ResolvedReading]:
    """
    Resolve every reading; return those that the binlogs contradict the least, without those of equal results.

    Raises:
        HistoryError: No reading has an order of causes.
    """
    found: list[tuple[int, _ResolvedReading]] = []
    for number, each in enumerate(readings):
        try:
            resolved = _resolve_reading(run, each, hints, progress)
        except HistoryError:
            if not found and number == len(readings) - 1:
                raise
            continue
        found.append((0 if len(readings) == 1 else resolved.contradictions, resolved))
    least = min(count for count, _ in found)
    kept: list[_ResolvedReading] = []
    for resolved in (resolved for count, resolved in found if count == least):
        if not any(is_same_result(resolved.resolution, other.resolution) for other in kept):
            kept.append(resolved)
    return kept


def _resolve_reading(
    run: Run,
    readings: Mapping[str, ClusterReading],
    hints: ClusterHints | None,
    progress: StageProgress,
) -> _ResolvedReading:
    """Resolve a reading; if it starts in the middle after all, as one that does."""
    return from_the_start(
        within_readings(run, readings),
        lambda each, _: _attempt(each, readings, hints, progress),
        _ResolvedReading.lacks_older_rows,
    )


def _attempt(
    run: Run, readings: Mapping[str, ClusterReading], hints: ClusterHints | None, progress: StageProgress
) -> _ResolvedReading:
    """Resolve a reading as the run says that it starts."""
    summaries = usable_epochs(run, readings)
    epochs = {name: reading.epochs[: len(summaries[name])] for name, reading in readings.items()}
    recorded, at_start = {name: recorded_effects(own) for name, own in epochs.items()}, run.setups.at_start
    history = with_unlogged(run, readings, history_of(run, readings, hints))
    placed = place_in_memory(history, at_start, recorded, skip_missing=run.configuration.skip_missing)
    history = placed.history(history)
    items = sum(len(cluster.timeline) for cluster in history.clusters)
    history, resolution, moments = resolve_settled(
        history,
        at_start,
        recorded,
        lambda done: progress("resolving", done, items),
        skip_missing=run.configuration.skip_missing,
    )
    return _ResolvedReading(run, readings, history, placed, resolution, moments)


def _written(
    out: Folder, found: _ResolvedReading, facts: Mapping[str, LogFacts], options: ResultOptions
) -> RunDocument:
    """Write the result of a reading, and return its figures."""
    run, readings, history, epochs = found.run, found.readings, found.history, found.epochs
    placed, resolution, moments, setups = found.placed, found.resolution, found.moments, run.setups.at_end
    wanted = ResultOptions(all_outcomes=options.all_outcomes, epoch_range=options.epoch_range)
    ledger = ReferenceLedger(history, setups, resolution, found.compared(), wanted)
    summary = write_resolution(out, ledger)
    keys = KeyTexts(history.layouts, {table.full_name: table for table in run.schema.tables})
    write_open(out, placed.schedule, moments.open_epochs, keys)
    write_unlogged(out, history.unlogged, keys)
    summary = with_open_schedule(summary, placed.schedule)
    summary = attrs.evolve(with_open_rows(summary, moments.open_epochs), not_examined=moments.not_examined)
    if any(reading.shown_roles for reading in readings.values()):
        facts = {name: attrs.evolve(own, role=None) for name, own in facts.items()}
    images = {name: logged_images(own) for name, own in epochs.items()}
    sizes = {name: EpochSizes.of_summaries(map(summarize, own)) for name, own in epochs.items()}
    applied: dict[Link, int] = {}
    for cluster in history.clusters:
        for item in cluster.timeline:
            if isinstance(item, EpochApply) and item.applied:
                link = cluster.name, item.source
                applied[link] = max(applied.get(link, -1), item.foreign_epoch)
    moves = _moves(found, keys)
    write_repeats(out, moves)
    resolved = RunDocument(
        run,
        summary=summary,
        changes=sum(int(own.changes.sum()) for own in sizes.values()),
        errors={name: str(reading.error) for name, reading in readings.items() if reading.error is not None},
        left_out={name: reading.left_out for name, reading in readings.items() if reading.left_out},
        assumed=placed.schedule.assumed,
        epochs_left_out={name: len(readings[name].epochs) - len(own) for name, own in epochs.items()},
        settled=tuple(moments.inferences),
        starts={
            cluster.name: cluster.start.epoch
            for cluster in history.clusters
            if cluster.start is not None and not cluster.start.whole
        },
        unlogged=history.unlogged,
        unlogged_followed=any(cluster.unlogged for cluster in history.clusters),
        crashes=history.crashes,
        likely_causes=(
            *declared_types(images, run.setups.over_time),
            *likely_causes(summary.contradictions, facts, run.setups.last_functions, summary.stops, lossy=run.is_lossy),
            *changed_roles({name: reading.shown_roles for name, reading in readings.items()}, facts),
        ),
        moves=moves,
    )
    return at_end_of_logs(resolved, applied, sizes)


def _moves(found: _ResolvedReading, keys: KeyTexts) -> ChannelMoves:
    """Return what became of channels, with the rows of epochs that were applied again."""
    applies = {name: result.applies for name, result in found.resolution.clusters.items()}
    times = {name: {each.number: each.committed for each in own} for name, own in found.epochs.items()}
    moves = moves_of(applies, times)
    changes: dict[tuple[str, int], list[RowOfEpoch]] = {}
    for name, epochs in moves.repeated.items():
        for epoch in (each for each in found.epochs[name] if each.number in epochs):
            rows = [change for transaction in epoch.transactions for change in transaction.changes]
            texts = keys.of(rows).to_pylist()
            changes[name, epoch.number] = [
                (row.table, row.operation.name, text, row.key) for row, text in zip(rows, texts, strict=True)
            ]
    return moves.with_changes(changes)


def place_in_memory(
    history: History, setups: Mapping[str, dict[str, TableSetup]], recorded: Recorded, *, skip_missing: bool = False
) -> Placed:
    """Place the untraced epochs of a History in memory; see `conflict.engine.inference.placement`."""
    touched = restricted(history, touched_rows(history, setups, recorded))
    return place_untraced(touched, setups, recorded, skip_missing=skip_missing)


def resolve_settled(
    history: History,
    setups: Mapping[str, dict[str, TableSetup]],
    recorded: Recorded,
    progress: Callable[[int], None] = lambda done: None,
    *,
    skip_missing: bool = False,
) -> tuple[History, Resolution, Moments]:
    """
    Resolve a History with the reference engine; use the effects in the binlogs to settle what their order leaves open.

    Args:
        history: What happened.
        setups: Per cluster, how its server set up each table.
        recorded: Per cluster, what its binlog shows of its applier's work.
        progress: Called with the number of timeline items done so far.
        skip_missing: Leave out operations that lack a value to compare, instead of stopping their applier.

    Returns:
        The History with its rows judged when they were, the result, and what was found of these moments.
    """
    moments = find_moments(history, setups, recorded, skip_missing=skip_missing)
    history = attrs.evolve(history, clusters=moments.clusters(history.clusters))
    return history, replay(history, setups, progress, skip_missing=skip_missing, shown=recorded), moments
