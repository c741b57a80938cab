"""
What the epochs of a source took to the cluster that applied them: times, backlog, stops.

An epoch that left no trace in the applier's log was applied at some time up to the next one that did. Delays and
conflict windows are measured of epochs that left one. An epoch waits until it, or a later one, is shown as applied.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from conflict.operating.window.clocks import ClockDifference, clock_difference
from conflict.operating.window.logs import SECOND, Bool, ClusterLog, Int64, UInt64, places_of

NOT_KNOWN = -1  # in place of a time
_NO_EPOCH = np.zeros(1, np.uint64)


@attrs.frozen(eq=False)
class Stops:
    """
    Times in which an applier is shown to have applied nothing, although an epoch waited. Shape (stops,).

    Attributes:
        begin: Microsecond since 1970 at which each began.
        end: When it ended; of one that lasts to the end of the log, that end.
        open: Whether it lasts to the end of the log.
        after: The last epoch that was shown as applied before; 0 if none was.
    """

    begin: Int64
    end: Int64
    open: Bool
    after: UInt64

    def __len__(self) -> int:
        return len(self.begin)


@attrs.frozen(slots=False, eq=False)
class Channel:
    """
    The epochs of a source on their way to one applier.

    All times are microseconds since 1970 by one clock, that of the first cluster of the run.

    Attributes:
        source: The cluster that made them.
        applier: The cluster that applied them.
        clocks: By how much the clocks of the two clusters differ, and which of them is corrected.
        number: The epochs. Shape (epochs,).
        committed: When each was logged. Shape (epochs,).
        size: Bytes of each. Shape (epochs,).
        rows: Row changes in each. Shape (epochs,).
        waits: Whether each has changes of the source itself, which the applier has to apply while its log lasts.
        delay: How long until the applier had logged that it applied each; `NOT_KNOWN` if that left no trace.
        window: How long until the source had logged that this came back; `NOT_KNOWN` if that left no trace. By one
            clock, whatever the other one was.
        gone: When each, or a later one, is first known to be applied; `NOT_KNOWN` of those that are not.
        begins: When the applier's log begins.
        ends: When it ends.
    """

    source: str
    applier: str
    clocks: ClockDifference
    number: UInt64
    committed: Int64
    size: Int64
    rows: Int64
    waits: Bool
    delay: Int64
    window: Int64
    gone: Int64
    begins: int
    ends: int

    @property
    def name(self) -> str:
        """Its name: source and applier."""
        return f"{self.source} → {self.applier}"

    @cached_property
    def backlog(self) -> tuple[Int64, Int64]:
        """The moments at which the number of epochs that wait changes, in order, and this number from each on."""
        known = self.waits & (self.gone != NOT_KNOWN)
        moments = np.concatenate([self.committed[self.waits], self.gone[known]])
        step = np.repeat(np.array([1, -1]), [np.count_nonzero(self.waits), np.count_nonzero(known)])
        order = np.lexsort((-step, moments))
        return moments[order], np.cumsum(step[order])

    @property
    def left(self) -> int:
        """How many epochs wait when the applier's log ends."""
        return int(np.count_nonzero(self.waits & (self.gone == NOT_KNOWN)))

    @cached_property
    def stops(self) -> Stops:
        """Where the applier applied nothing for a second longer than the fastest epoch took, although one waited."""
        moments, last = self._steps
        begin, end, before = np.append(self.begins, moments), np.append(moments, self.ends), np.append(_NO_EPOCH, last)
        waits = np.flatnonzero(self.waits)
        oldest = np.searchsorted(self.number[waits], before, "right")
        since = np.maximum(begin, np.append(self.committed[waits], np.iinfo(np.int64).max)[oldest])
        fastest = int(self.delay[self.delay != NOT_KNOWN].min())
        found = np.flatnonzero(end - np.minimum(since, end) > fastest + SECOND)
        return Stops(since[found], end[found], found == len(moments), before[found])

    @property
    def _steps(self) -> tuple[Int64, UInt64]:
        """When the applier is known to have applied something, in order, and the last epoch that it then had."""
        known = np.flatnonzero(self.gone != NOT_KNOWN)
        moments, first = np.unique(self.gone[known], return_index=True)
        last = np.append(first[1:], len(known)) - 1
        return moments, self.number[known[last]]


def channel_of(
    source: ClusterLog, applier: ClusterLog, *, source_first: bool, placed: tuple[UInt64, UInt64] | None = None
) -> Channel | None:
    """
    Return what the epochs of a source took to an applier; None if its log shows none of them as applied.

    Args:
        source: The log of the source.
        applier: The log of the applier.
        source_first: Whether the source stands first in the run, so that its clock is the one of all times.
        placed: Foreign epochs that a result knows to be applied besides, and the own epochs that were logged next.
    """
    there, back = _arrivals(source, applier), _arrivals(applier, source)
    if not len(there.epoch):
        return None
    sides = [(source, there.smallest), (applier, back.smallest)]
    (first, forth), (second, home) = sides if source_first else sides[::-1]
    clocks = clock_difference(first.name, second.name, forth, home, (first.imprecision, second.imprecision))
    ahead = clocks.estimate if source_first else -clocks.estimate  # the applier's clock, of the source's
    delay, window = np.full(len(source), NOT_KNOWN, np.int64), np.full(len(source), NOT_KNOWN, np.int64)
    delay[there.place] = there.delay - ahead
    # What was applied in an epoch came back when that epoch was applied in turn.
    known, held = places_of(back.epoch, applier.number[there.applied_in])
    at = there.place[held]
    window[at] = source.committed[back.applied_in[known[held]]] - source.committed[at]
    shift = 0 if source_first else clocks.estimate  # from the source's clock to the clock of all times
    gone = _gone(source, applier, there, placed)
    gone[gone != NOT_KNOWN] -= ahead + shift
    committed = source.committed - shift
    begins, ends = (int(each) - ahead - shift for each in (applier.committed.min(), applier.committed.max()))
    waits = (source.own > 0) & ((committed >= begins) | (source.number >= there.epoch[0]))
    waits &= (committed <= ends) | (gone != NOT_KNOWN)
    return Channel(
        source.name,
        applier.name,
        clocks,
        source.number,
        committed,
        source.size,
        source.rows,
        waits,
        delay,
        window,
        gone,
        begins,
        ends,
    )


@attrs.frozen(eq=False)
class _Arrivals:
    """
    The epochs of one log that another one shows as applied, in order, as far as both hold them. Shape (epochs,).

    Attributes:
        epoch: The epochs.
        place: Their places in the log that made them.
        applied_in: The place, in the log that applied them, of the first epoch that shows each.
        delay: How long each took, by the clocks of both.
    """

    epoch: UInt64
    place: Int64
    applied_in: Int64
    delay: Int64

    @property
    def smallest(self) -> int | None:
        """The smallest delay; None without one."""
        return int(self.delay.min()) if len(self.delay) else None


def _arrivals(source: ClusterLog, applier: ClusterLog) -> _Arrivals:
    foreign, shown_in = applier.applied.get(source.name, (np.zeros(0, np.uint64), np.zeros(0, np.int64)))
    epochs, first = np.unique(foreign, return_index=True)
    place, held = places_of(source.number, epochs)
    place, applied_in = place[held], shown_in[first[held]]
    return _Arrivals(epochs[held], place, applied_in, applier.committed[applied_in] - source.committed[place])


def _gone(source: ClusterLog, applier: ClusterLog, there: _Arrivals, placed: tuple[UInt64, UInt64] | None) -> Int64:
    """Return, by the applier's clock, when each epoch of the source or a later one was first known to be applied."""
    epochs, moments = there.epoch, applier.committed[there.applied_in]
    if placed is not None:
        place, held = places_of(applier.number, placed[1])
        epochs = np.concatenate([epochs, placed[0][held]])
        moments = np.concatenate([moments, applier.committed[place[held]]])
        order = np.argsort(epochs, kind="stable")
        epochs, moments = epochs[order], moments[order]
    earliest = np.minimum.accumulate(moments[::-1])[::-1]
    place = np.searchsorted(epochs, source.number)
    found: Int64 = np.append(earliest, NOT_KNOWN)[place]
    return found
