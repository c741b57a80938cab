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
from conflict.history import Take, Timeline, Transaction
from conflict.ingest import AppliedEpoch, BinlogEpoch

__all__ = ["Hint", "Position", "Summary", "consistent_cut", "place_takes", "summarize", "timeline_of"]

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
    What is known from elsewhere of when a foreign epoch without a trace was taken.

    Attributes:
        earliest: Not before this position.
        latest: Before the first transaction after this position; None if not known.
        taken: False if it was not taken at all.
    """

    earliest: Position = START
    latest: Position | None = None
    taken: bool = True


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


def place_takes(
    applier: Sequence[Summary],
    source: Sequence[Summary],
    *,
    source_name: str,
    source_id: int,
    applier_id: int,
    hints: Mapping[int, Hint] | None = None,
    cut: bool = False,
) -> tuple[list[Take], int]:
    """
    Return when the applier took each epoch of the source, in order.

    Args:
        applier: Own epochs of the applying cluster.
        source: Own epochs of the other one.
        source_name: Name of the other cluster.
        source_id: Its server id.
        applier_id: Server id of the applying cluster.
        hints: What is known of source epochs without a trace, by epoch.
        cut: Whether the applier's binlog goes on after its last epoch here. What it took after that
            may have left a trace that is not there, so nothing is assumed of it.

    Returns:
        The takes, and how many of them stand at a place that was assumed.

    Raises:
        HistoryError: The binlogs contradict each other.
    """
    hints = hints or {}
    traces = _traces(applier, source_id)
    known = {summary.number for summary in source}
    foreign = sorted(known | set(traces))
    transactions = [(summary.number, group) for summary in applier for group in summary.transactions]
    ends = _ends(applier)
    causal = _causal_bounds(ends, source, applier_id)
    next_trace = _next_traces(foreign, traces)
    takes: list[Take] = []
    assumed = 0
    previous = START
    for epoch in foreign:
        trace = traces.get(epoch)
        if trace is not None:
            if trace < previous:
                message = (
                    f"cluster {source_name}'s epoch {epoch} was applied after a later one; "
                    "a replica that was set back to an earlier position cannot be resolved yet"
                )
                raise HistoryError(message)
            takes.append(Take(*trace, source_name, epoch))
            previous = trace
            continue
        hint = hints.get(epoch, Hint())
        if not hint.taken:
            continue
        latest = next_trace[epoch]
        if cut and latest == END:
            continue
        earliest = max(previous, causal.get(epoch, START), hint.earliest)
        earliest = min(earliest, _before(latest))
        bound = latest if hint.latest is None else min(latest, (hint.latest[0], hint.latest[1] + 1))
        assumed += _any_between(transactions, earliest, bound)
        takes.append(Take(*_owner(earliest, ends), source_name, epoch, traced=False))
        previous = earliest
    return takes, assumed


def _traces(applier: Sequence[Summary], source_id: int) -> dict[int, Position]:
    """Return where each foreign epoch stands in the applier's binlog."""
    return {
        applied.epoch: (summary.number, applied.group)
        for summary in applier
        for applied in summary.applied
        if applied.server_id == source_id
    }


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


def _next_traces(foreign: Sequence[int], traces: Mapping[int, Position]) -> dict[int, Position]:
    following, position = {}, END
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


def timeline_of(transactions: Sequence[Transaction], takes: Sequence[Take]) -> Timeline:
    """Merge a cluster's transactions and takes into the order in which they happened."""
    items: list[tuple[tuple[int, int, int, int], Transaction | Take]] = [
        ((item.epoch, item.group, 0, 0), item) for item in transactions
    ]
    items += [((item.epoch, item.group, 0 if item.traced else 1, order), item) for order, item in enumerate(takes)]
    return tuple(item for _, item in sorted(items, key=lambda entry: entry[0]))
