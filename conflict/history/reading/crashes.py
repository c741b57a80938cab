"""
Data nodes that all went down: the cluster comes back from its last durable global checkpoint.

Changes of later global checkpoints are gone, though the binlog holds them: those of the cluster itself, and those that
its applier had applied. The log shows an incident (cluster disconnect), and a global checkpoint index (GCI) that falls
behind the clock: GCIs stand still while the data nodes are down. If only the SQL node had lost the connection, they
would have gone on.

A GCI is durable once it is saved, at the latest when the second one after it begins. All or nothing of a GCI is gone,
and all that comes after it. So one image that shows which of a row's states survived decides all other rows, too.

Computes docs/result.md, "Changes that a crash may have taken".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Self

import attrs

from conflict.history.reading.unlogged_changes import ANY, LoggedState, fits
from conflict.history.restarts import Disconnect
from conflict.history.timeline import START
from conflict.history.unlogged import Crash, UnloggedChange, UnloggedKind

_Row = tuple[str, bytes]
# By row, all that a log says of it; epochs do not fall.
States = Mapping[_Row, Sequence[LoggedState]]

_SECOND = 1_000_000  # microseconds
_PERIOD, _STEP = 2.0, 0.1  # seconds; TimeBetweenGlobalCheckpoints and TimeBetweenEpochs by default
_LONGEST_PERIOD = 5.0  # above it, data nodes can be back before a GCI is missing
_DETECTION = 6.0  # seconds in which an SQL node misses four heartbeats (HeartbeatIntervalDbApi), the most by default


def gci_of(epoch: int) -> int:
    """Return the global checkpoint index of an epoch."""
    return epoch >> 32


def crashes_of(disconnects: Iterable[Disconnect], epochs: Sequence[tuple[int, int]]) -> list[Crash]:
    """
    Return where the data nodes of a cluster went down, with the GCIs that may be gone as far as clocks tell.

    Args:
        disconnects: The incidents in the logs of its SQL nodes.
        epochs: Its own epochs, each with the microsecond since 1970 at which it committed, in order.
    """
    places: dict[int, Disconnect] = {}
    for each in disconnects:
        places.setdefault(sum(number <= each.last for number, _ in epochs), each)
    places.pop(0, None)  # nothing of the log is before it
    clock = _Clock.of([epochs[a:b] for a, b in pairwise([0, *sorted(places), len(epochs)])])
    found = list[Crash]()
    for after, each in sorted(places.items()):
        last, first = epochs[after - 1], epochs[after] if after < len(epochs) else None
        if first is not None and clock.goes_on(last, first):
            continue
        gci = gci_of(last[0])
        durable = max(
            clock.gci_at(last, each.earliest - _DETECTION, clock.error) - 2, gci_of(found[-1].last) if found else 0
        )
        if durable < gci:
            latest = max(durable, min(gci, clock.gci_at(last, each.latest, -clock.error) - 1))
            found.append(Crash(each, last[0], None if first is None else first[0], durable, latest))
    return found


@attrs.frozen
class _Clock:
    """
    How the global checkpoints of a cluster follow each other, as its log shows it.

    Attributes:
        period: Seconds from one GCI to the next.
        step: Seconds from one epoch of a GCI to the next.
        error: The greatest relative error of the period.
    """

    period: float = _PERIOD
    step: float = _STEP
    error: float = 0.1

    @classmethod
    def of(cls, stretches: Iterable[Sequence[tuple[int, int]]]) -> Self:
        """Return the clock that stretches of a log show, in which the data nodes ran; the default if they are short."""
        known = [each for each in stretches if each]
        pairs = [pair for each in known for pair in pairwise(each) if gci_of(pair[0][0]) == gci_of(pair[1][0])]
        steps = sum(second[0] - first[0] for first, second in pairs)
        step = sum(second[1] - first[1] for first, second in pairs) / _SECOND / steps if steps else _STEP
        ends = [(each[0], each[-1]) for each in known]
        gcis = sum(gci_of(last[0]) - gci_of(first[0]) for first, last in ends)
        seconds = sum(_begun(last, step) - _begun(first, step) for first, last in ends)
        if gcis < 2 or seconds <= 0:
            return cls(step=step)
        return cls(seconds / gcis, step, 2 * step * len(ends) / seconds)

    def gci_at(self, epoch: tuple[int, int], second: float, error: float) -> int:
        """Return the GCI at a later second, if the data nodes run on after an epoch; `error` of the period."""
        return gci_of(epoch[0]) + max(0, int((second - _begun(epoch, self.step)) / (self.period * (1 + error))))

    def goes_on(self, last: tuple[int, int], first: tuple[int, int]) -> bool:
        """Whether GCIs went on between two epochs as the clock did, so that the data nodes ran."""
        expected = (_begun(first, self.step) - _begun(last, self.step)) / self.period
        unsure = 0.5 + expected * self.error
        behind = expected - (gci_of(first[0]) - gci_of(last[0]))
        return self.period <= _LONGEST_PERIOD and unsure <= 1 and behind < unsure


def _begun(epoch: tuple[int, int], step: float) -> float:
    """Return the second since 1970 at which the GCI of an epoch began."""
    number, committed = epoch
    return committed / _SECOND - step * ((number & 0xFFFFFFFF) + 1)


def crashes_in_rows(crashes: Iterable[Crash], states: States) -> tuple[list[Crash], tuple[UnloggedChange, ...]]:
    """
    Return the crashes of a cluster that may have taken changes, and the rows that may not be what its log says.

    Args:
        crashes: Its crashes as far as clocks tell, in order.
        states: All that its log says of the rows that changed then, and the changes of these before and afterwards.
    """
    found, rows = list[Crash](), list[UnloggedChange]()
    for each in crashes:
        crash = _with_evidence(each, states)
        lost = list(_lost_rows(crash, states))
        if lost:
            found.append(crash)
            rows += lost
    return found, tuple(rows)


def not_by_crash(shown: Iterable[UnloggedChange], lost: Iterable[UnloggedChange]) -> list[UnloggedChange]:
    """Return the changes without a log that no crash explains."""
    crashed = {(each.table, each.key, each.after) for each in lost}
    return [each for each in shown if (each.table, each.key, each.after) not in crashed]


def _with_evidence(crash: Crash, states: States) -> Crash:
    """Return a crash with what the first image of each row after it says of the GCIs that survived."""
    possible = list(range(crash.durable, gci_of(crash.last) + 1))
    for row in states.values():
        before = _found_first(crash, row)
        if before is not None and _may_be_gone(crash, row):
            possible = [gci for gci in possible if any(fits(before, each) for each in _left(crash, row, gci))]
    if not possible:  # something else changed rows, too
        return crash
    # Images count before clocks.
    likely = [gci for gci in possible if gci <= crash.latest] or possible
    return attrs.evolve(crash, durable=min(likely), latest=max(likely))


def _may_be_gone(crash: Crash, row: Sequence[LoggedState]) -> bool:
    return any(crash.durable < gci_of(each.position[0]) and each.position[0] <= crash.last for each in row)


def _found_first(crash: Crash, row: Sequence[LoggedState]) -> int | None:
    """Return the digest of a row as it was found first after a crash; None if the log does not tell."""
    later = [each for each in row if each.position[0] > crash.last]
    here = [each for each in later if each.position[0] == later[0].position[0]]
    if any(not each.own for each in here) and len(here) > 1:
        return None  # within an epoch, a change of the applier has no order
    first = min(here, key=lambda each: each.place, default=None)
    return None if first is None else first.met if first.before is None else first.before


def _left(crash: Crash, row: Sequence[LoggedState], gci: int) -> list[int]:
    """Return the digests that a row can have if a GCI is the last one that survived; `ANY` if that is not known."""
    kept = [each for each in row if gci_of(each.position[0]) <= gci and each.position[0] <= crash.last]
    if not kept:
        return [ANY if row[0].before is None else row[0].before]
    last = [each for each in kept if each.position[0] == kept[-1].position[0]]
    own = sorted((each for each in last if each.own), key=lambda each: each.place)
    return [each.after for each in (*own[-1:], *[each for each in last if not each.own][-1:])]


def _lost_rows(crash: Crash, states: States) -> Iterator[UnloggedChange]:
    """Yield the rows that may not have come back as the log says, and what is known of them."""
    for (table, key), row in states.items():
        before = [each for each in row if each.position[0] <= crash.last]
        later = [gci_of(each.position[0]) for each in before if gci_of(each.position[0]) > crash.durable]
        if not later:
            continue
        kept = max((each.position for each in before if gci_of(each.position[0]) <= crash.durable), default=START)
        certain = min(later) > crash.latest
        kind = UnloggedKind.GONE if certain else UnloggedKind.MAY_BE_GONE
        after = max(each.position for each in before)
        yield UnloggedChange(table, key, kind, after, crash.shown, crash.origin, kept if certain else None)
