"""
The schedule: when each cluster applied which epoch of another one.

A binlog shows every foreign epoch that changed something. An epoch that changed nothing leaves no trace, and the time
at which it was applied is only bounded: by its neighbours, because epochs are applied in order; by causality, because
an epoch that reports an own epoch as applied was applied after that own epoch; and by other sources (`Hint`). These
bounds are its `Window`. This module places it as early as they allow; its operations decide where it belongs inside
them (see `conflict.engine.inference.placement`).

An untraced epoch apply belongs to the own epoch that is logged next. If an engine finds that it does change something,
because other functions are tried on the same binlogs, its changes are logged in that epoch.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import attrs
import numpy as np
import numpy.typing as npt

from conflict.history.scheduling.schedule_columns import ScheduleColumns, among, chosen_by, role_number, with_defaults
from conflict.history.scheduling.summaries import Positions, Summary, SummaryColumns, last_known
from conflict.history.timeline import END, LAST_GROUP, START, Position, Window
from conflict.rules.replication_table import Role


@attrs.frozen
class Barrier:
    """
    A change of definitions that an applier took from the other cluster, between epochs of it.

    Attributes:
        foreign_epoch: The last epoch of the other cluster before it.
        position: The own position after which the binlog shows it; `END` if it ends before, so that no later epoch of
            the other cluster was applied.
    """

    foreign_epoch: int
    position: Position


@attrs.frozen
class Hint:
    """
    What other sources say about when a foreign epoch was applied. A trace in the binlog outranks it.

    Attributes:
        earliest: Not before this position.
        latest: Before the first transaction after this position; None if not known.
        applied: False if it was not applied at all.
        run: Number of the applier's run, from its start to its stop, in which it was applied.
        role: The role of the cluster then; None if it never changed.
    """

    earliest: Position = START
    latest: Position | None = None
    applied: bool = True
    run: int = 0
    role: Role | None = None


_NO_HINT = Hint()
# The hints of one applier by foreign epoch: one mapping up to the first rewind of the replica, one after each rewind.
Hints = Sequence[Mapping[int, Hint]]
ClusterHints = Mapping[str, Hints]  # by applying cluster
UInt64 = npt.NDArray[np.uint64]
HintsOf = Callable[[Mapping[str, Sequence[Summary]]], ClusterHints]  # from the own epochs of each cluster


def place_applies(
    applier: Sequence[Summary],
    source: Sequence[Summary],
    *,
    source_name: str,
    source_id: int,
    applier_id: int,
    hints: Hints = (),
    cut: bool = False,
    again: bool = False,
    barriers: Sequence[Barrier] = (),
    statements: Sequence[Position] = (),
) -> tuple[ScheduleColumns, int]:
    """
    Return when the applier applied each epoch of the source, in order.

    A replica that is rewound applies epochs again. A trace that is not later than the trace before it shows such a
    rewind: the epochs from that one on were applied again.

    Args:
        applier: Own epochs of the applying cluster.
        source: Own epochs of the other one.
        source_name: Name of the other cluster.
        source_id: Its server id.
        applier_id: Server id of the applying cluster.
        hints: What other sources say.
        cut: Whether the applier's binlog continues after its last epoch here. The trace of an epoch that was applied
            later may be missing then, so no untraced epoch is taken to be applied after the last trace.
        again: Whether the replica may have been set back once more at the end, which left no trace at all.
        barriers: Changes of definitions that the applier took from the source, in order.
        statements: The positions of all changes of definitions in the applier's binlog, in order.

    Returns:
        The epoch applies, and how many of them stand at an assumed place. Those that may have been applied, but need
        not, are not `applied`.
    """
    columns, made = SummaryColumns.of(applier), SummaryColumns.of(source)
    traces = _Traces.of(columns, source_id)
    causal = _causal_bounds(columns.ends, made, applier_id, barriers)
    placement = _Placement(columns, made, traces, causal, cut, barriers, statements)
    periods = _periods(traces.foreign, hints)
    if again and not hints and any(period.stop > period.start for period in periods):
        periods.append(_Period(len(traces), len(traces), epochs=(END[0], END[0])))
    for number, period in enumerate(periods):
        later = [each.start for each in periods[number + 1 :] if each.stop > each.start]
        placement.place(number, period, traces.positions[later[0]] if later else END)
    return placement.schedule(source_name), placement.assumed


def set_back(applier: Sequence[Summary], source_id: int) -> bool:
    """
    Whether the traces of an applier show that its replica was set back.

    A channel that moves to another SQL node can go on there some epochs early. That is no habit.
    """
    traces = _Traces.of(SummaryColumns.of(applier), source_id)
    through, foreign = traces.through, traces.foreign
    return bool(((through[1:] == through[:-1]) & (foreign[1:] <= foreign[:-1])).any())


@attrs.frozen(eq=False)
class _Traces:
    """
    The foreign epochs of a source that an applier's binlog shows, in order.

    Attributes:
        foreign: The epochs. uint64, shape (traces,).
        through: The SQL node from whose binlog each was applied. uint64, shape (traces,).
        positions: Where each stands.
    """

    foreign: UInt64
    through: UInt64
    positions: Positions

    def __len__(self) -> int:
        return len(self.foreign)

    @classmethod
    def of(cls, applier: SummaryColumns, source_id: int) -> Self:
        """Return those of a source."""
        mine, traces = chosen_by(applier.of_server(source_id)), applier.traces
        return cls(applier.epoch[mine], applier.through[mine], Positions(traces.epochs[mine], traces.groups[mine]))


@attrs.define
class _Period:
    """
    What an applier applied between two rewinds.

    Attributes:
        start: The first of its traces.
        stop: One past the last.
        hints: What other sources say, by foreign epoch.
        epochs: First and last foreign epoch that count as applied in it.
    """

    start: int
    stop: int
    hints: Mapping[int, Hint] = attrs.field(factory=dict)
    epochs: tuple[int, int] = (0, END[0])


def _periods(foreign: UInt64, hints: Hints) -> list[_Period]:
    """Divide the traces of an applier, given by their foreign epochs, at its rewinds; in a period epochs rise."""
    periods = [_Period(0, 0, each) for each in hints] or [_Period(0, 0)]
    falls, place = np.flatnonzero(foreign[1:] <= foreign[:-1]) + 1, 0
    for number in range(len(foreign)) if any(hints) else falls.tolist():
        epoch = int(foreign[number])
        while True:
            period = periods[place]
            period.stop = number
            highest = int(foreign[number - 1]) if number > period.start else -1
            is_last = place + 1 == len(periods)
            if epoch > highest and (is_last or period.hints.get(epoch, _NO_HINT).applied):
                break
            if is_last:
                # Only the first trace tells from which epoch on the replica surely applied epochs again.
                period.epochs = (period.epochs[0], highest)
                periods.append(_Period(number, number, epochs=(epoch, END[0])))
            place += 1
            periods[place].start = number
    for number, period in enumerate(periods[place:]):
        period.start, period.stop = period.start if number == 0 else len(foreign), len(foreign)
    return periods


# What is written of a traced epoch apply; and besides of one without a trace.
_WRITTEN = ("epoch", "group", "before_epoch", "before_group", "certain", "applied")


@attrs.define(eq=False)
class _Placement:
    """
    Places the epoch applies of one applier, period by period.

    Attributes:
        applier: Its own epochs.
        source: Those of the other cluster. One that left no trace did nothing to tables that are not read either: it
            may have been skipped, as where the applier lacks such a table and stopped.
        traces: What its binlog shows.
        causal: By epoch of the source, the position after which it was applied at the earliest.
        cut: See `place_applies`.
        barriers: See `place_applies`.
        statements: See `place_applies`.
        assumed: How many epoch applies stand at an assumed place.
    """

    applier: SummaryColumns
    source: SummaryColumns
    traces: _Traces
    causal: Positions
    cut: bool
    barriers: Sequence[Barrier] = ()
    statements: Sequence[Position] = ()
    assumed: int = 0
    _parts: list[dict[str, npt.NDArray[Any]]] = attrs.field(factory=list)
    _previous: Position = START

    def schedule(self, source: str) -> ScheduleColumns:
        """Return what was placed."""
        columns = {
            name: each[0] if len(each) == 1 else np.concatenate(each)
            for name in self._parts[0]
            for each in [[part[name] for part in self._parts]]
        }
        run = columns.pop("run")
        if (run != run[:1]).any():
            last = np.maximum.accumulate(np.where(columns["applied"], np.arange(len(run)), -1))
            last = np.concatenate([[-1], last])[: len(run)]
            columns["restarted"] = (last >= 0) & (run != run[last])
        return ScheduleColumns(source, columns)

    def place(self, number: int, period: _Period, stop: Position) -> None:
        """Place the epoch applies of a period, which ends before the position `stop`."""
        shown, positions = self.traces.foreign[period.start : period.stop], self.traces.positions
        others = shown[~among(shown, self.source.number)]
        epochs = np.union1d(self.source.number, others) if len(others) else self.source.number
        traced = among(epochs, shown)
        columns, untraced = self._columns(number, period, epochs), np.flatnonzero(~traced)
        columns["traced"] = traced
        for name in _WRITTEN if len(untraced) else _WRITTEN[:2]:
            columns[name] = columns[name].copy()
        columns["epoch"][traced] = positions.epochs[period.start : period.stop]
        columns["group"][traced] = positions.groups[period.start : period.stop]
        kept, passed = np.ones(len(epochs), np.bool_), period.start
        for place in untraced.tolist():
            following = period.start + int(np.searchsorted(shown, epochs[place]))
            if following > passed:
                self._previous, passed = positions[following - 1], following
            kept[place] = self._place_untraced(columns, place, period, following, stop)
        if period.stop > passed:
            self._previous = positions[period.stop - 1]
        self._parts.append(columns if kept.all() else {name: each[kept] for name, each in columns.items()})

    def _columns(self, number: int, period: _Period, epochs: UInt64) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of a period, as of traced epoch applies, with the run of the applier, not yet placed."""
        columns = with_defaults(len(epochs), {"foreign_epoch": epochs, **self._of_source(epochs)})
        for name, value in (("period", np.int32(number)), ("run", np.int64(0))):
            columns[name] = np.broadcast_to(value, len(epochs))
        if period.hints:
            for name in ("arrived_epoch", "arrived_group", "run", "role"):
                columns[name] = columns[name].copy()
        for epoch, hint in period.hints.items():
            place = int(np.searchsorted(epochs, np.uint64(epoch)))
            if place < len(epochs) and epochs[place] == epoch:
                arrived = max(hint.earliest, _position(columns, "arrived", place))
                columns["arrived_epoch"][place], columns["arrived_group"][place] = arrived
                columns["run"][place], columns["role"][place] = hint.run, role_number(hint.role)
        return columns

    def _of_source(self, epochs: UInt64) -> dict[str, npt.NDArray[Any]]:
        """Return what the log of the source tells of the epoch applies of a period."""
        names = ("arrived_epoch", "arrived_group", "committed")
        told = dict(zip(names, (self.causal.epochs, self.causal.groups, self.source.committed), strict=True))
        if epochs is self.source.number:
            return told
        known = among(epochs, self.source.number)
        places = np.searchsorted(self.source.number, epochs)[known]
        found = {name: column.copy() for name, column in with_defaults(len(epochs), {}).items() if name in told}
        for name, column in told.items():
            found[name][known] = column[places]
        return found

    def _place_untraced(
        self, columns: Mapping[str, npt.NDArray[Any]], place: int, period: _Period, following: int, stop: Position
    ) -> bool:
        """
        Place an epoch without a trace as early as it can have been applied; return whether it can have been at all.

        Args:
            columns: The epoch applies of the period.
            place: Its place among them.
            period: The period.
            following: The first trace after it.
            stop: Where the period ends.
        """
        epoch, number = int(columns["foreign_epoch"][place]), int(columns["period"][place])
        hint, arrived = period.hints.get(epoch, _NO_HINT), _position(columns, "arrived", place)
        row = bisect.bisect_left(self.source.number, epoch)
        if stop <= self.causal[row] or not hint.applied:
            return False  # the epoch was made after the rewind, or never applied
        next_trace, unread = self._next_trace(epoch, period, following, stop), bool(self.source.unread[row])
        window = self._window(hint, arrived, next_trace, between=not unread and self._is_between(epoch, period, number))
        applied = period.epochs[0] <= epoch <= period.epochs[1] and not unread
        applied = applied and not (self.cut and next_trace == END)
        earliest = min(max(self._previous, arrived), _before(next_trace))
        self.assumed += applied and _any_between(self.applier.commits, earliest, window.before)
        columns["epoch"][place], columns["group"][place] = logged_at(earliest, self.applier.ends, self.statements)
        columns["before_epoch"][place], columns["before_group"][place] = window.before
        columns["certain"][place], columns["applied"][place] = window.certain, applied
        if applied:
            self._previous = earliest
        return True

    def _is_between(self, epoch: int, period: _Period, number: int) -> bool:
        """Whether an epoch lies between two traces of its period, or before a barrier."""
        traced = self.traces.foreign[period.start : period.stop]
        first, last = (int(traced[0]), int(traced[-1])) if len(traced) else (END[0], -1)
        last = max([last, *(each.foreign_epoch + 1 for each in self.barriers if each.position != END)])
        return epoch < last and (number == 0 or epoch > first)

    def _next_trace(self, epoch: int, period: _Period, following: int, stop: Position) -> Position:
        """Return the position of the first trace or barrier from an epoch without a trace on; `stop` for none."""
        found, until = stop, END[0] + 1
        if following < period.stop:
            found, until = self.traces.positions[following], int(self.traces.foreign[following])
        return min([found, *(each.position for each in self.barriers if epoch <= each.foreign_epoch < until)])

    def _window(self, hint: Hint, arrived: Position, next_trace: Position, *, between: bool) -> Window:
        """Return what bounds an untraced epoch; `between`: it lies between two traces. News outrank a hint."""
        if hint.latest is not None and not (self.cut and next_trace == END):
            commits = self.applier.commits
            place = bisect.bisect_right(commits, hint.latest)
            before = min([next_trace, *([commits[place]] if place < len(commits) else [])])
            if before > arrived:
                return Window(before, certain=True)
        return Window(next_trace, certain=between)


def _position(columns: Mapping[str, npt.NDArray[Any]], name: str, place: int) -> Position:
    return int(columns[f"{name}_epoch"][place]), int(columns[f"{name}_group"][place])


def logged_at(position: Position, ends: Sequence[Position], statements: Sequence[Position] = ()) -> Position:
    """
    Return where an epoch apply after `position` stands: in its epoch, or before all groups of the next one.

    Args:
        position: An own position.
        ends: The last group of each own epoch.
        statements: The positions of changes of definitions; if one comes before the next epoch, it stands before that.
    """
    found, place = _logged_at(position, ends), bisect.bisect_right(statements, position)
    if place == len(statements) or found < statements[place]:
        return found
    epoch, group = statements[place]
    return epoch, group - 1


def _logged_at(position: Position, ends: Sequence[Position]) -> Position:
    place = bisect.bisect_left(ends, position)
    if place < len(ends) and ends[place][0] == position[0] and position < ends[place]:
        return position
    place = bisect.bisect_right(ends, position)
    return (ends[place][0], -1) if place < len(ends) else (position[0] + 1, -1)


def _causal_bounds(ends: Positions, source: SummaryColumns, applier_id: int, barriers: Sequence[Barrier]) -> Positions:
    """Return, by source epoch, the last own position that it has news of, or that a barrier puts before it."""
    known = last_known(ends, source, applier_id)
    epochs, groups = known.epochs, known.groups
    for each in barriers:
        epoch, group = each.position
        later = (epochs < epoch) | ((epochs == epoch) & (groups < group))
        later &= source.number > each.foreign_epoch
        epochs[later], groups[later] = epoch, group
    return known


def _before(position: Position) -> Position:
    """Return the last position before a trace."""
    epoch, group = position
    return (epoch, group - 1) if group > 0 else (epoch - 1, LAST_GROUP)


def _any_between(transactions: Sequence[Position], earliest: Position, latest: Position) -> bool:
    place = bisect.bisect_right(transactions, earliest)
    return place < len(transactions) and transactions[place] < latest
