"""
When each cluster took which epoch of the other.

A binlog shows every foreign epoch that changed something. One that changed nothing leaves no trace;
when it was taken is only bounded: by its neighbours, for epochs are taken in order; by causality, for an
epoch that carries news of ours was taken after ours was made; and by what is known from elsewhere (`Hint`).
Inside its bounds it is placed as early as possible, and counted where that choice could matter.

A take without a trace belongs to the own epoch that is logged next: should an engine find that it
changes something after all (because other functions are tried on the same binlogs), the change travels with that epoch.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence

import attrs

from conflict.errors import HistoryError
from conflict.history.epochs import AppliedEpoch, BinlogEpoch
from conflict.history.model import EpochApply, Timeline, Transaction

__all__ = ["Hint", "Hints", "Position", "Summary", "consistent_cut", "place_applies", "summarize", "timeline_of"]

# (own epoch, group): "after that group of that epoch". Nothing comes before START.
Position = tuple[int, int]
START: Position = (0, -1)
END: Position = (2**64, 0)


@attrs.frozen
class Summary:
    """
    What the schedule needs to know of one own epoch.

    Attributes:
        number: The epoch.
        transactions: Groups that are user transactions.
        applied: Foreign epochs that stand in it.
        changes: How many row changes those transactions made.
    """

    number: int
    transactions: tuple[int, ...]
    applied: tuple[AppliedEpoch, ...]
    changes: int = 0


@attrs.frozen
class Hint:
    """
    What is known from elsewhere of when a foreign epoch was taken. Where one with a trace was committed shows.

    Attributes:
        earliest: Not before this position.
        latest: Before the first transaction after this position; None if not known.
        applied: False if it was not taken at all.
        run: Number of the applier's run, from its start to its stop, that took it.
    """

    earliest: Position = START
    latest: Position | None = None
    applied: bool = True
    run: int = 0


# What is known of one applier, by foreign epoch: one mapping from each time on that it was set back.
Hints = Sequence[Mapping[int, Hint]]


def summarize(epoch: BinlogEpoch) -> Summary:
    """Return what the schedule needs of an epoch."""
    groups = tuple(transaction.group for transaction in epoch.transactions)
    changes = sum(len(transaction.changes) for transaction in epoch.transactions)
    return Summary(epoch.number, groups, epoch.applied, changes)


def consistent_cut(
    summaries: Mapping[str, Sequence[Summary]], server_ids: Mapping[str, int]
) -> dict[str, list[Summary]]:
    """
    Return each cluster's epochs up to the point where they build on something that is not there.

    A binlog can show that epochs of the other cluster were applied whose own binlog ends before them, because it
    was cut short or copied earlier. What follows from them cannot be told, nor what follows from that.

    Args:
        summaries: Per cluster, its own epochs.
        server_ids: Per cluster, its server id.

    Raises:
        HistoryError: Epochs are missing in the middle: a file was left out.
    """
    kept = {name: list(own) for name, own in summaries.items()}
    while True:
        before = {name: len(own) for name, own in kept.items()}
        for name, own in kept.items():
            (peer,) = (other for other in kept if other != name)
            last = kept[peer][-1].number if kept[peer] else -1
            for place, summary in enumerate(own):
                if any(item.server_id == server_ids[peer] and item.epoch > last for item in summary.applied):
                    del own[place:]
                    break
        if before == {name: len(own) for name, own in kept.items()}:
            _check_gaps(kept, server_ids)
            return kept


def _check_gaps(kept: Mapping[str, Sequence[Summary]], server_ids: Mapping[str, int]) -> None:
    for name, own in kept.items():
        (peer,) = (other for other in kept if other != name)
        known = {summary.number for summary in kept[peer]}
        for summary in own:
            for item in summary.applied:
                inside = item.server_id == server_ids[peer] and item.epoch > min(known, default=item.epoch)
                if inside and item.epoch not in known:
                    message = (
                        f"cluster {name} applied epoch {item.epoch} of cluster {peer}, whose binlogs hold epochs "
                        "before and after it, but not this one; give all binlog files between the first and the last"
                    )
                    raise HistoryError(message)


def place_applies(
    applier: Sequence[Summary],
    source: Sequence[Summary],
    *,
    source_name: str,
    source_id: int,
    applier_id: int,
    hints: Hints = (),
    cut: bool = False,
) -> tuple[list[EpochApply], int]:
    """
    Return when the applier took each epoch of the source, in order.

    A replica that is set back takes epochs again. Where the trace shows an epoch that is not later than the one
    before, that happened in between, and the epochs from that one on were taken again.

    Args:
        applier: Own epochs of the applying cluster.
        source: Own epochs of the other one.
        source_name: Name of the other cluster.
        source_id: Its server id.
        applier_id: Server id of the applying cluster.
        hints: What is known of source epochs, by epoch; one mapping from each time on that the replica was set back.
        cut: Whether the applier's binlog goes on after its last epoch here. What it took after that
            may have left a trace that is not there, so nothing is assumed of it.

    Returns:
        The takes, and how many of them stand at a place that was assumed.
    """
    ends = _ends(applier)
    places = _Places(
        transactions=[(summary.number, group) for summary in applier for group in summary.transactions],
        ends=ends,
        causal=_causal_bounds(ends, source, applier_id),
        source_name=source_name,
        cut=cut,
    )
    numbers = [summary.number for summary in source]
    stretches = _stretches(_traces(applier, source_id), hints)
    for place, stretch in enumerate(stretches):
        following = [min(later.traces.values()) for later in stretches[place + 1 :] if later.traces]
        places.apply_stretch(stretch, numbers, following[0] if following else END)
    return places.applies, places.assumed


@attrs.define
class _Stretch:
    """What an applier took between two times that it was set back."""

    traces: dict[int, Position]
    hints: Mapping[int, Hint]
    first: int | None = None
    last: int | None = None

    def epochs(self, source: Sequence[int]) -> list[int]:
        """Return the source epochs that may belong to the stretch."""
        return [
            number
            for number in sorted({*source, *self.traces})
            if (self.first is None or number >= self.first) and (self.last is None or number <= self.last)
        ]


def _stretches(traces: Sequence[tuple[int, Position]], hints: Hints) -> list[_Stretch]:
    """Divide what the binlog shows where the applier was set back."""
    stretches = [_Stretch({}, each) for each in hints] or [_Stretch({}, {})]
    place = 0
    for epoch, position in traces:
        known = stretches[place].hints.get(epoch)
        later = place + 1 < len(hints)
        if later and known is not None and not known.applied:
            place += 1
        elif stretches[place].traces and epoch <= max(stretches[place].traces):
            place += 1
            if not later:
                # Nothing says from where the replica took epochs again, but the first that shows.
                stretches[place - 1].last = max(stretches[place - 1].traces)
                stretches.append(_Stretch({}, {}, first=epoch))
        stretches[place].traces[epoch] = position
    return stretches


@attrs.define
class _Places:
    """The takes of one applier while they are placed."""

    transactions: list[Position]
    ends: list[Position]
    causal: dict[int, Position]
    source_name: str
    cut: bool
    applies: list[EpochApply] = attrs.field(factory=list)
    assumed: int = 0
    _previous: Position = START
    _run: int | None = None

    def apply_stretch(self, stretch: _Stretch, source: Sequence[int], following: Position) -> None:
        """Place the takes of a stretch, which ends before the position `following`."""
        epochs = stretch.epochs(source)
        next_trace = _next_traces(epochs, stretch.traces, following)
        for epoch in epochs:
            trace = stretch.traces.get(epoch)
            hint = stretch.hints.get(epoch, Hint())
            if trace is not None:
                self._put(EpochApply(*trace, self.source_name, epoch), trace, hint)
            elif following <= self.causal.get(epoch, START):
                continue  # it was made after the replica had been set back
            elif hint.applied and not (self.cut and next_trace[epoch] == END):
                self._assume(epoch, hint, next_trace[epoch])

    def _assume(self, epoch: int, hint: Hint, latest: Position) -> None:
        """Place an epoch without a trace as early as it can have been taken."""
        earliest = max(self._previous, self.causal.get(epoch, START), hint.earliest)
        earliest = min(earliest, _before(latest))
        bound = latest if hint.latest is None else min(latest, (hint.latest[0], hint.latest[1] + 1))
        self.assumed += _any_between(self.transactions, earliest, bound)
        apply = EpochApply(*_owner(earliest, self.ends), self.source_name, epoch, traced=False)
        self._put(apply, earliest, hint)

    def _put(self, apply: EpochApply, position: Position, hint: Hint) -> None:
        restarted = self._run is not None and hint.run != self._run
        arrived = max(self.causal.get(apply.foreign_epoch, START), hint.earliest)
        self.applies.append(attrs.evolve(apply, restarted=restarted, arrived=arrived))
        self._previous, self._run = position, hint.run


def _traces(applier: Sequence[Summary], source_id: int) -> list[tuple[int, Position]]:
    """Return the foreign epochs that the applier's binlog shows, and where, in order."""
    return [
        (applied.epoch, (summary.number, applied.group))
        for summary in applier
        for applied in summary.applied
        if applied.server_id == source_id
    ]


def _ends(applier: Sequence[Summary]) -> list[Position]:
    """Return the last group of each own epoch."""
    return [
        (summary.number, max([*summary.transactions, *(item.group for item in summary.applied)], default=0))
        for summary in applier
    ]


def _owner(position: Position, ends: Sequence[Position]) -> Position:
    """Return the place of a take that follows `position`: in its epoch, or before the next one's groups."""
    place = bisect.bisect_left(ends, position)
    if place < len(ends) and ends[place][0] == position[0] and position < ends[place]:
        return position
    place = bisect.bisect_right(ends, position)
    return (ends[place][0], -1) if place < len(ends) else (position[0] + 1, -1)


def _causal_bounds(ends: Sequence[Position], source: Sequence[Summary], applier_id: int) -> dict[int, Position]:
    """Return, per source epoch, the last own position that it carries news of."""
    numbers = [number for number, _ in ends]
    bounds, newest = {}, -1
    for summary in source:
        own = [item.epoch for item in summary.applied if item.server_id == applier_id]
        newest = max([newest, *own])
        place = bisect.bisect_right(numbers, newest)
        bounds[summary.number] = ends[place - 1] if place else START
    return bounds


def _next_traces(foreign: Sequence[int], traces: Mapping[int, Position], position: Position) -> dict[int, Position]:
    following = {}
    for epoch in reversed(foreign):
        position = traces.get(epoch, position)
        following[epoch] = position
    return following


def _before(position: Position) -> Position:
    """The last position that still comes before a trace."""
    epoch, group = position
    return (epoch, group - 1) if group > 0 else (epoch - 1, 2**31)


def _any_between(transactions: Sequence[Position], earliest: Position, latest: Position) -> bool:
    place = bisect.bisect_right(transactions, earliest)
    return place < len(transactions) and transactions[place] < latest


def timeline_of(transactions: Sequence[Transaction], applies: Sequence[EpochApply]) -> Timeline:
    """Merge a cluster's transactions and takes into the order in which they happened."""
    items: list[tuple[tuple[int, int, int, int], Transaction | EpochApply]] = [
        ((item.epoch, item.group, 0, 0), item) for item in transactions
    ]
    items += [((item.epoch, item.group, 0 if item.traced else 1, order), item) for order, item in enumerate(applies)]
    return tuple(item for _, item in sorted(items, key=lambda entry: entry[0]))
