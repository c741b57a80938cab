"""
Where the logs of a run start and stop: all of them, or a cut that is asked for.

A binlog that ends earlier than the others, because it was cut short or copied before them, ends the others too: what
they hold after it follows from epochs that are not there.

A log that starts in the middle has a consistent start on both clusters: one starts where it is told to, the other after
the last of its epochs that the first had applied by then. What was on the way from the first to the other then is not
known, and is taken from the other's own binlog (see `conflict.engine.inference.not_known`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

import attrs
import numpy as np

from conflict.config.configuration import Links, Span
from conflict.config.definitions import ClusterDefinitions
from conflict.config.option_values import shown_range
from conflict.errors import ConfigurationError, MissingEpochsError
from conflict.history.epochs import BinlogEpoch
from conflict.history.scheduling.schedule_columns import ScheduleColumns, among, chosen_by
from conflict.history.scheduling.summaries import Summary, SummaryColumns
from ndb_formats.events.rows_event import Operation


def consistent_cut(
    summaries: Mapping[str, Sequence[Summary]], server_ids: Mapping[str, int], *, with_holes: bool = False
) -> dict[str, SummaryColumns]:
    """
    Return each cluster's epochs up to the first one that depends on a missing epoch.

    A binlog can show that epochs of another cluster were applied although that cluster's binlog ends before them,
    because it was cut short or copied earlier. What follows from missing epochs cannot be derived.

    Args:
        summaries: Per cluster, its own epochs.
        server_ids: Per cluster, its server id.
        with_holes: Whether epochs may be missing in the middle, because it is not yet known which part is read.

    Raises:
        MissingEpochsError: Epochs are missing in the middle: a file was left out.
    """
    kept = {name: SummaryColumns.of(own) for name, own in summaries.items()}
    while True:
        before = {name: len(own) for name, own in kept.items()}
        for name, own in kept.items():
            missing = np.zeros(len(own.epoch), np.bool_)
            for peer in kept.keys() - {name}:
                last = kept[peer][-1].number if len(kept[peer]) else -1
                missing |= own.of_server(server_ids[peer]) & (own.epoch > last)
            if missing.any():
                place = int(np.searchsorted(own.applied.offsets, int(missing.argmax()), "right")) - 1
                kept[name] = own.part(0, place)
        if before == {name: len(own) for name, own in kept.items()}:
            if not with_holes:
                _check_gaps(kept, server_ids)
            return kept


def _check_gaps(kept: Mapping[str, SummaryColumns], server_ids: Mapping[str, int]) -> None:
    for name, peer in permutations(kept, 2):
        numbers, shown = kept[peer].number, kept[name].epoch[chosen_by(kept[name].of_server(server_ids[peer]))]
        missing = shown[~among(shown, numbers)] if len(numbers) else shown[:0]
        missing = missing[missing > numbers[:1]]
        if len(missing):
            last = int(missing.max())
            place = int(np.searchsorted(numbers, np.uint64(last)))
            raise MissingEpochsError(peer, name, last, int(numbers[place - 1]), int(numbers[place]))


LAST = 2**64 - 1
_MICROSECONDS = 1_000_000  # in a second


@attrs.frozen
class Bounds:
    """
    The own epochs of one cluster that a run reads.

    Attributes:
        first: None is before it.
        last: None is after it.
    """

    first: int = 0
    last: int = LAST

    def __contains__(self, epoch: int) -> bool:
        return self.first <= epoch <= self.last


def bounds_of(span: Span, links: Links, summaries: Mapping[str, Sequence[Summary]]) -> dict[str, Bounds]:
    """
    Return which own epochs of each cluster a run reads.

    Args:
        span: The part of the logs that is asked for, in epochs.
        links: The two clusters.
        summaries: Per cluster, all its own epochs.

    Raises:
        ConfigurationError: A cluster has no epoch left.
    """
    bounds = dict[str, Bounds]()
    for name, own in summaries.items():
        peer = links.peer(name).name
        first = span.first.get(name, 0)
        if name not in span.first and peer in span.first:
            before = [each for each in summaries[peer] if each.number < span.first[peer]]
            first = _last_applied(before, links.server_ids[name]) + 1
        bounds[name] = Bounds(first, span.last.get(name, LAST))
        if name in {*span.first, *span.last} and not any(each.number in bounds[name] for each in own):
            message = (
                f"cluster {name} has no epoch between the start and the stop that are asked for; its binlogs hold "
                f"{_held(own)}"
            )
            raise ConfigurationError(message)
    return bounds


def _held(own: Sequence[Summary]) -> str:
    """Return which epochs a cluster has, and from when to when they committed."""
    if not own:
        return "none"
    ends = own[0].committed, own[-1].committed
    seconds = [each // _MICROSECONDS for each in ends if each is not None]
    times = f", from {shown_range(*seconds)}" if len(seconds) == len(ends) else ""
    return f"epochs {own[0].number} to {own[-1].number}{times}"


def span_of_times(span: Span, times: Mapping[str, Sequence[tuple[int, int]]]) -> Span:
    """
    Return a span with epochs in place of its moments; an epoch that is given as well counts instead of a moment.

    Args:
        span: The span.
        times: Per cluster, second since 1970 and number of each own epoch, in order.
    """
    first, last = dict(span.first), dict(span.last)
    for place, (name, epochs) in enumerate(times.items()):
        if place == 0 and span.first_time is not None:
            later = (number for time, number in epochs if time >= (span.first_time or 0))
            first.setdefault(name, next(later, LAST))
        if span.stop_time is not None:
            before = [number for time, number in epochs if time < span.stop_time]
            last.setdefault(name, before[-1] if before else 0)
    return attrs.evolve(span, first=first, last=last)


def _last_applied(own: Sequence[Summary], server_id: int) -> int:
    """Return the last epoch of another server that a cluster's epochs show as applied; -1 for none."""
    applied = [item.epoch for summary in own for item in summary.applied if item.server_id == server_id]
    return applied[-1] if applied else -1


def starts_in_the_middle(span: Span, links: Links, summaries: Mapping[str, Sequence[Summary]]) -> bool:
    """
    Whether tables may have held rows before the logs of a run start.

    The run says so, or a log shows it: its applier applied an epoch of another cluster that is older than that
    cluster's log.

    Args:
        span: The part of the logs that the run reads.
        links: Its clusters.
        summaries: Per cluster, the own epochs that the run reads.
    """
    cut = bool(span.first) or span.first_time is not None
    if span.empty is not None and not cut:
        return not span.empty
    columns = {name: SummaryColumns.of(own) for name, own in summaries.items()}
    return cut or any(
        bool((own.epoch[own.of_server(source.server_id)] < columns[source.name][0].number).any())
        for name, own in columns.items()
        for source in links.sources(name)
        if len(columns[source.name])
    )


def returned_before(links: Links, summaries: Mapping[str, Sequence[Summary]], name: str) -> int:
    """
    Return the own epoch of a cluster that had come back to it before the first epoch that the other log holds.

    Where a log starts earlier than the other one, its cluster applied epochs of the other one that are in no log, and
    these carried back what the other one had applied of it: all before the first epoch that the other log shows as
    applied. An epoch of these that changed nothing there did not come back; which ones are those is not known.

    Args:
        links: Two clusters that replicate to each other.
        summaries: Per cluster, the own epochs that the run reads.
        name: The cluster.
    """
    own, peer = summaries[name], links.peer(name)
    theirs, ours = summaries[peer.name], links.server_ids[name]
    first = theirs[0].number if theirs else 0
    earlier = any(
        each.server_id == peer.server_id and each.epoch < first for summary in own for each in summary.applied
    )
    shown = next((each.epoch for summary in theirs for each in summary.applied if each.server_id == ours), None)
    if not earlier or shown is None:
        return 0
    return max((summary.number for summary in own if summary.number < shown), default=0)


def refuse_changes(definitions: Mapping[str, ClusterDefinitions]) -> None:
    """
    Make sure that definitions stay as they are in a run on a part of a log.

    Raises:
        ConfigurationError: They change, or differ between the clusters.
    """
    if not definitions:
        return
    errors = [known.error for known in definitions.values() if known.error is not None]
    why = "definitions of tables change in the binlogs, or differ between the clusters"
    message = (
        f"{why}; that is followed only from binlogs before which all tables were empty, up to their end. Give binlogs "
        f"from the start on, or from after the last change{''.join(f'; {error}' for error in errors)}"
    )
    raise ConfigurationError(message)


def changes_older_rows(epochs: Sequence[BinlogEpoch]) -> bool:
    """Whether a cluster's first change of a row in its log is an update or a delete: the row was there before."""
    seen: set[tuple[str, bytes]] = set()
    for epoch in epochs:
        groups = [(each.group, True, change) for each in epoch.transactions for change in each.changes]
        groups += [(group, False, change) for group, change in epoch.consequences]
        for _, own, change in sorted(groups, key=lambda each: each[0]):
            key = change.table, change.key
            if own and change.operation is not Operation.WRITE_ROW and key not in seen:
                return True
            seen.add(key)
    return False


def certain_applies(applies: ScheduleColumns, start: int) -> ScheduleColumns:
    """
    Leave out the epoch applies that do not certainly come after the start of the log.

    Args:
        applies: All of one applier, in order.
        start: Its first own epoch.
    """
    shown = np.maximum.accumulate(applies["traced"])  # those from the first trace on
    return applies.chosen(shown | (applies["arrived_epoch"] >= np.uint64(start)))
