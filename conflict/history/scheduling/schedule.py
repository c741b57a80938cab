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
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Self

import attrs
import numpy as np
import numpy.typing as npt

from conflict.history.epochs import AppliedEpoch, BinlogEpoch
from conflict.history.model import (
    END,
    LAST_GROUP,
    START,
    EpochApply,
    Position,
    Window,
)
from conflict.rules.replication_table import Role

__all__ = [
    "Barrier",
    "ClusterHints",
    "EpochEnds",
    "EpochSizes",
    "Hint",
    "Hints",
    "HintsOf",
    "Summary",
    "epoch_ends",
    "logged_at",
    "place_applies",
    "set_back",
    "summarize",
]


@attrs.frozen
class Summary:
    """
    What the schedule needs to know of one own epoch.

    Attributes:
        number: The epoch.
        transactions: Groups that are user transactions.
        applied: Foreign epochs in it.
        changes: How many row changes its transactions made.
        committed: Microsecond since 1970 at which it committed; None if not known.
        unread: Whether it has rows of tables that are not read.
    """

    number: int
    transactions: tuple[int, ...]
    applied: tuple[AppliedEpoch, ...]
    changes: int = 0
    committed: int | None = attrs.field(default=None, eq=False)
    unread: bool = False


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
HintsOf = Callable[[Mapping[str, Sequence[Summary]]], ClusterHints]  # from the own epochs of each cluster


def summarize(epoch: BinlogEpoch) -> Summary:
    """Return what the schedule needs to know of an epoch."""
    groups = tuple(transaction.group for transaction in epoch.transactions)
    changes = sum(len(transaction.changes) for transaction in epoch.transactions)
    return Summary(epoch.number, groups, epoch.applied, changes, epoch.committed, epoch.unread)


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
) -> tuple[list[EpochApply], int]:
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

    Returns:
        The epoch applies, and how many of them stand at an assumed place. Those that may have been applied, but need
        not, are not `applied`.
    """
    ends = epoch_ends(applier)
    placement = _Placement(
        transactions=[(summary.number, group) for summary in applier for group in summary.transactions],
        ends=ends,
        causal=_causal_bounds(ends, source, applier_id, barriers),
        source_name=source_name,
        cut=cut,
        committed={summary.number: summary.committed for summary in source},
        barriers=barriers,
        unread=frozenset(summary.number for summary in source if summary.unread),
    )
    numbers = [summary.number for summary in source]
    periods = _periods(_traces(applier, source_id), hints)
    if again and not hints and any(period.traces for period in periods):
        periods.append(_Period({}, {}, epochs=(END[0], END[0])))
    for place, period in enumerate(periods):
        next_starts = [min(later.traces.values()) for later in periods[place + 1 :] if later.traces]
        placement.place(place, period, numbers, next_starts[0] if next_starts else END)
    return placement.applies, placement.assumed


def set_back(applier: Sequence[Summary], source_id: int) -> bool:
    """
    Whether the traces of an applier show that its replica was set back.

    A channel that moves to another SQL node can go on there some epochs early. That is no habit.
    """
    traces = [
        (applied.through, applied.epoch)
        for summary in applier
        for applied in summary.applied
        if applied.server_id == source_id
    ]
    return any(before == through and later <= earlier for (before, earlier), (through, later) in pairwise(traces))


@attrs.define
class _Period:
    """
    What an applier applied between two rewinds.

    Attributes:
        traces: Where the binlog shows each foreign epoch.
        hints: What other sources say, by foreign epoch.
        epochs: First and last foreign epoch that count as applied in it.
        highest: The highest foreign epoch of the traces; -1 if there is none.
    """

    traces: dict[int, Position]
    hints: Mapping[int, Hint]
    epochs: tuple[int, int] = (0, END[0])
    highest: int = -1

    def may_show(self, epoch: int) -> bool:
        """Whether the next trace of the applier, of this epoch, can belong to the period."""
        return self.hints.get(epoch, Hint()).applied and epoch > self.highest


def _periods(traces: Sequence[tuple[int, Position]], hints: Hints) -> list[_Period]:
    """Divide the traces of an applier at its rewinds."""
    periods = [_Period({}, each) for each in hints] or [_Period({}, {})]
    place = 0
    for epoch, position in traces:
        while place + 1 < len(periods) and not periods[place].may_show(epoch):
            place += 1
        if epoch <= periods[place].highest:
            # Only the first trace tells from which epoch on the replica surely applied epochs again.
            periods[place].epochs = (periods[place].epochs[0], periods[place].highest)
            periods.append(_Period({}, {}, epochs=(epoch, END[0])))
            place += 1
        periods[place].traces[epoch] = position
        periods[place].highest = max(periods[place].highest, epoch)
    return periods


@attrs.define
class _Placement:
    """
    Places the epoch applies of one applier, period by period.

    Attributes:
        transactions: Positions of its user transactions.
        ends: Last group of each own epoch.
        causal: By source epoch, the position after which it was applied at the earliest.
        source_name: Name of the other cluster.
        cut: See `place_applies`.
        committed: When each epoch of the other cluster committed.
        barriers: See `place_applies`.
        unread: The epochs of the other cluster with rows of tables that are not read. One that left no trace did
            nothing to these either: it may have been skipped, as where the applier lacks such a table and stopped.
        applies: What was placed so far.
        assumed: How many of them stand at an assumed place.
    """

    transactions: list[Position]
    ends: list[Position]
    causal: dict[int, Position]
    source_name: str
    cut: bool
    committed: Mapping[int, int | None]
    barriers: Sequence[Barrier] = ()
    unread: frozenset[int] = frozenset()
    applies: list[EpochApply] = attrs.field(factory=list)
    assumed: int = 0
    _previous: Position = START
    _run: int | None = None

    def place(self, number: int, period: _Period, source: Sequence[int], stop: Position) -> None:
        """Place the epoch applies of a period, which ends before the position `stop`."""
        epochs = sorted({*source, *period.traces})
        next_trace = _next_traces(epochs, period.traces, stop, self.barriers)
        first, last = min(period.traces, default=END[0]), max(period.traces, default=-1)
        last = max([last, *(each.foreign_epoch + 1 for each in self.barriers if each.position != END)])
        for epoch in epochs:
            trace = period.traces.get(epoch)
            hint = period.hints.get(epoch, _NO_HINT)
            if trace is not None:
                self._add(self._apply(trace, epoch, hint, number), trace, hint)
            elif stop <= self.causal.get(epoch, START) or not hint.applied:
                continue  # the epoch was made after the rewind, or never applied
            else:
                between = epoch < last and (number == 0 or epoch > first) and epoch not in self.unread
                window = self._window(epoch, hint, next_trace[epoch], between=between)
                applied = period.epochs[0] <= epoch <= period.epochs[1]
                applied = applied and epoch not in self.unread and not (self.cut and next_trace[epoch] == END)
                apply = self._apply(START, epoch, hint, number)
                apply = attrs.evolve(apply, traced=False, window=window, applied=applied)
                self._add_untraced(apply, hint, next_trace[epoch])

    def _apply(self, at: Position, epoch: int, hint: Hint, period: int) -> EpochApply:
        """Return a traced epoch apply at a position, or what an untraced one is made of."""
        return EpochApply(
            *at,
            self.source_name,
            epoch,
            restarted=self._run is not None and hint.run != self._run,
            arrived=max(self.causal.get(epoch, START), hint.earliest),
            period=period,
            role=hint.role,
            committed=self.committed.get(epoch),
        )

    def _window(self, epoch: int, hint: Hint, next_trace: Position, *, between: bool) -> Window:
        """Return what bounds an untraced epoch; `between`: it lies between two traces. News outrank a hint."""
        if hint.latest is not None and not (self.cut and next_trace == END):
            place = bisect.bisect_right(self.transactions, hint.latest)
            before = min([next_trace, *self.transactions[place : place + 1]])
            if before > max(self.causal.get(epoch, START), hint.earliest):
                return Window(before, certain=True)
        return Window(next_trace, certain=between)

    def _add_untraced(self, apply: EpochApply, hint: Hint, next_trace: Position) -> None:
        """Place an untraced epoch as early as it can have been applied."""
        window = apply.window or Window()
        earliest = max(self._previous, self.causal.get(apply.foreign_epoch, START), hint.earliest)
        earliest = min(earliest, _before(next_trace))
        self.assumed += apply.applied and _any_between(self.transactions, earliest, window.before)
        own_epoch, group = logged_at(earliest, self.ends, window.before)
        self._add(attrs.evolve(apply, epoch=own_epoch, group=group), earliest, hint)

    def _add(self, apply: EpochApply, position: Position, hint: Hint) -> None:
        self.applies.append(apply)
        if apply.applied:
            self._previous, self._run = position, hint.run


def _traces(applier: Sequence[Summary], source_id: int) -> list[tuple[int, Position]]:
    """Return the foreign epochs that the applier's binlog shows, with their positions, in order."""
    return [
        (applied.epoch, (summary.number, applied.group))
        for summary in applier
        for applied in summary.applied
        if applied.server_id == source_id
    ]


@attrs.frozen(eq=False)
class EpochEnds(Sequence[Position]):
    """
    The last group of each own epoch, in columns. Both arrays have shape (epochs,).

    Attributes:
        numbers: The epochs. uint64.
        groups: The last group of each. int32.
    """

    numbers: npt.NDArray[np.uint64]
    groups: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: int) -> Position:  # type: ignore[override]  # no slices
        return int(self.numbers[place]), int(self.groups[place])


@attrs.frozen(eq=False)
class EpochSizes:
    """
    How many row changes own epochs have. Both arrays have shape (epochs,).

    Attributes:
        numbers: The epochs, in order. uint64.
        changes: The row changes of each. int64.
    """

    numbers: npt.NDArray[np.uint64]
    changes: npt.NDArray[np.int64]

    @classmethod
    def of_summaries(cls, summaries: Iterable[Summary]) -> Self:
        """Return those of some epochs, in order."""
        sizes = [(each.number, each.changes) for each in summaries]
        return cls(np.array([each for each, _ in sizes], np.uint64), np.array([each for _, each in sizes], np.int64))

    def of(self, epochs: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Return how many changes epochs have; 0 for one that is not there."""
        place = np.searchsorted(self.numbers, epochs)
        found = np.append(self.numbers, np.uint64(0))[place] == epochs
        return np.where(found, np.append(self.changes, 0)[place], 0)

    def between(self, first: int, last: int) -> EpochSizes:
        """Return those of the epochs from `first` to `last`."""
        start = np.searchsorted(self.numbers, np.uint64(first))
        stop = np.searchsorted(self.numbers, np.uint64(last), "right")
        return EpochSizes(self.numbers[start:stop], self.changes[start:stop])


def epoch_ends(applier: Sequence[Summary]) -> list[Position]:
    """Return the last group of each own epoch."""
    return [
        (summary.number, max([*summary.transactions, *(item.group for item in summary.applied)], default=0))
        for summary in applier
    ]


def logged_at(position: Position, ends: Sequence[Position], before: Position = END) -> Position:
    """
    Return where an epoch apply after `position` stands: in its epoch, or before all groups of the next one.

    If it comes before a change of definitions, at `before`, it stands before all epochs that follow that.
    """
    found = _logged_at(position, ends)
    return found if found < before or before[1] != LAST_GROUP else (before[0] + 1, -1)


def _logged_at(position: Position, ends: Sequence[Position]) -> Position:
    place = bisect.bisect_left(ends, position)
    if place < len(ends) and ends[place][0] == position[0] and position < ends[place]:
        return position
    place = bisect.bisect_right(ends, position)
    return (ends[place][0], -1) if place < len(ends) else (position[0] + 1, -1)


def _causal_bounds(
    ends: Sequence[Position], source: Sequence[Summary], applier_id: int, barriers: Sequence[Barrier]
) -> dict[int, Position]:
    """Return, by source epoch, the last own position that it has news of, or that a barrier puts before it."""
    numbers = [number for number, _ in ends]
    bounds, newest = {}, -1
    for summary in source:
        own = [item.epoch for item in summary.applied if item.server_id == applier_id]
        newest = max([newest, *own])
        place = bisect.bisect_right(numbers, newest)
        passed = [each.position for each in barriers if each.foreign_epoch < summary.number]
        bounds[summary.number] = max([ends[place - 1] if place else START, *passed])
    return bounds


def _next_traces(
    epochs: Sequence[int], traces: Mapping[int, Position], stop: Position, barriers: Sequence[Barrier]
) -> dict[int, Position]:
    """Return, by foreign epoch, the position of the first trace or barrier from it on; `stop` if there is none."""
    following, position, left = {}, stop, list(barriers)
    for epoch in reversed(epochs):
        while left and epoch <= left[-1].foreign_epoch:
            position = min(position, left.pop().position)
        position = traces.get(epoch, position)
        following[epoch] = position
    return following


def _before(position: Position) -> Position:
    """Return the last position before a trace."""
    epoch, group = position
    return (epoch, group - 1) if group > 0 else (epoch - 1, LAST_GROUP)


def _any_between(transactions: Sequence[Position], earliest: Position, latest: Position) -> bool:
    place = bisect.bisect_right(transactions, earliest)
    return place < len(transactions) and transactions[place] < latest
