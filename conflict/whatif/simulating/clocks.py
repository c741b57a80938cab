"""
The time of recorded epochs, and how long they travelled.

An epoch's number has the checkpoint in its high word and counts epochs in it in the low word, so it is a clock that
ticks once an epoch. Epochs last somewhat longer than ``TimeBetweenEpochs``, more so when a cluster is busy, so the
numbers of two clusters drift apart by more than an epoch takes to travel. What epochs took is therefore read from the
Gtid events, which have the microsecond at which each was logged; a log without these has its numbers alone.

The hosts of two clusters may have different times: they are set against each other so that the fastest epochs took as
long one way as the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from conflict.engine.kernels.arrays import Int64
from conflict.history.epochs import BinlogEpoch

CHECKPOINT = 2_000_000  # TimeBetweenGlobalCheckpoints, microseconds; no binlog tells it
USUAL_EPOCHS = (1, 2, 4, 5, 10, 20, 40, 50, 100, 200)  # in a checkpoint
FASTEST = 0.05  # share of the epochs that count as the fastest
NEIGHBOURS, ALIKE_EPOCHS = 3, 2  # to average over, on either side
LOW_WORD = 0xFFFFFFFF
SECOND = 1_000_000
MOST_LONGER = 2  # an epoch lasts at most so many times as long as it should, or its log tells something else


@attrs.frozen
class EpochClock:
    """
    A cluster's epochs as a clock.

    Attributes:
        epoch: Length of an epoch, microseconds.
        late: How many epochs more than usual the checkpoints had that came late, by checkpoint.
        checkpoint: Length of a checkpoint that comes in time.
        logged: When each epoch was logged, by its host; empty if the log tells no more than seconds.
    """

    epoch: int
    late: Mapping[int, int] = attrs.field(factory=dict)
    checkpoint: int = CHECKPOINT
    logged: Mapping[int, int] = attrs.field(factory=dict, repr=False)

    @classmethod
    def of_log(cls, epochs: Sequence[BinlogEpoch]) -> EpochClock:
        """Return the clock of a log; its epochs last as long as they did."""
        clock = cls.of([epoch.number for epoch in epochs])
        if all(epoch.committed % SECOND == 0 for epoch in epochs):
            return clock
        ticks = np.array([clock.time(epoch.number) for epoch in epochs], np.int64)
        logged = np.array([epoch.committed for epoch in epochs], np.int64)
        # Over a tenth of the log at a time, so that a stop of the server does not count.
        apart = max(len(epochs) // 10, 1)
        spans = ticks[apart:] - ticks[:-apart]
        longer = float(np.median((logged[apart:] - logged[:-apart]) / spans)) if len(spans) and spans.all() else 1.0
        if not 1 / MOST_LONGER < longer < MOST_LONGER:
            return clock
        count = clock.checkpoint // clock.epoch
        epoch = round(clock.epoch * longer)
        return cls(epoch, clock.late, epoch * count, {each.number: each.committed for each in epochs})

    @classmethod
    def of(cls, numbers: Sequence[int]) -> EpochClock:
        """Return the clock that some epoch numbers come from, if checkpoints have their usual length."""
        last: dict[int, int] = {}
        for number in numbers:
            last[number >> 32] = max(last.get(number >> 32, 0), number & LOW_WORD)
        # One that comes late has more epochs; one whose end has no logged epoch seems to have less.
        usual = float(np.quantile(list(last.values()), 0.75)) + 1
        count = min(USUAL_EPOCHS, key=lambda each: abs(math.log(each / usual)))
        late = {number: low + 1 - count for number, low in last.items() if low >= count}
        return cls(CHECKPOINT // count, late)

    def time(self, number: int) -> int:
        """Return when an epoch began, microseconds from an unknown moment on."""
        checkpoint = number >> 32
        before = sum(epochs for each, epochs in self.late.items() if each < checkpoint)
        return checkpoint * self.checkpoint + ((number & LOW_WORD) + before) * self.epoch

    def ended(self, number: int) -> int:
        """Return when an epoch ended, by its host; by its number if the log does not tell."""
        return self.logged.get(number, self.time(number) + self.epoch)

    def offset(self) -> int:
        """Return by how much times of the host are ahead of those by number."""
        ahead = [logged - self.time(number) - self.epoch for number, logged in self.logged.items()]
        return int(np.median(ahead)) if ahead else 0


@attrs.frozen(eq=False)
class Journeys:
    """
    How long the epochs of two clusters travelled.

    Attributes:
        shift: What to add to times by the second cluster's numbers to get those by the first one's.
        begun: Per cluster, when each epoch that arrived began, by its number. Shape (epochs,).
        took: Per cluster, how long each took from its end to its commit by the other's applier. Shape (epochs,).
    """

    shift: int
    begun: tuple[Int64, Int64]
    took: tuple[Int64, Int64]

    def trace(self, side: int, begin: int) -> list[list[float]]:
        """
        Return the latency of the epochs of a cluster: seconds after `begin`, and milliseconds.

        An epoch has that of the moment at which it began, so that it has its own, whenever in it users begin.
        """
        moments, took = self.begun[side] - begin, self.took[side]
        kept = np.flatnonzero(moments >= 0)
        if not len(kept):
            return [[0.0, 0.0]]
        return [[int(moments[place]) // 1000 / 1e3, round(int(took[place]) / 1e3, 1)] for place in kept]


Side = tuple[EpochClock, Sequence[BinlogEpoch], int]


def journeys(first: Side, second: Side) -> Journeys:
    """
    Find how long the epochs of two clusters travelled.

    Args:
        first: Clock, epochs and server id of the first cluster.
        second: The same of the second one.
    """
    forth, back = _journeys(first, second), _journeys(second, first)
    epoch = max(first[0].epoch, second[0].epoch)
    ahead = round((_fastest(back[1], epoch) - _fastest(forth[1], epoch)) / 2)
    took = (_smooth(forth[1] + ahead, first[0].epoch), _smooth(back[1] - ahead, second[0].epoch))
    shift = ahead + second[0].offset() - first[0].offset()
    return Journeys(shift, (forth[0], back[0]), took)


def never_arrived(source: Side, applier: Side) -> int:
    """
    Return how many epochs with users' changes had not arrived when the applier's log ends, although none took so long.

    They come after the last one that arrived, and had been on their way for longer than any that did.
    """
    clock, epochs, _ = source
    other, applied, _ = applier
    begun, took = _journeys(source, applier)
    last, longest = (int(begun.max()), int(took.max())) if len(begun) else (-1, 0)
    end = other.ended(applied[-1].number)
    late = [each.number for each in epochs if each.transactions and clock.time(each.number) > last]
    return sum(end - clock.ended(number) > longest for number in late)


def _fastest(took: Int64, epoch: int) -> float:
    """Return how long the fastest epochs took on average, by clocks that are not set against each other."""
    if not len(took):
        return 0.0
    return float(took[took <= np.quantile(took, FASTEST) + ALIKE_EPOCHS * epoch].mean())


def _smooth(took: Int64, epoch: int) -> Int64:
    """
    Return averages over neighbours that took about as long, none negative.

    Each alone is as uncertain as an epoch is long; where an applier stops or begins again, they jump.
    """
    total, count = np.zeros(len(took)), np.zeros(len(took))
    for distance in range(-NEIGHBOURS, NEIGHBOURS + 1):
        there = np.clip(np.arange(len(took)) + distance, 0, max(len(took) - 1, 0))
        alike = np.abs(took[there] - took) <= ALIKE_EPOCHS * epoch
        total += np.where(alike, took[there], 0)
        count += alike
    return np.maximum(np.rint(total / np.maximum(count, 1)), 0).astype(np.int64)


def _journeys(source: Side, applier: Side) -> tuple[Int64, Int64]:
    """
    Return when epochs began that left a trace, by number, and how long after their ends they were applied, by hosts.

    The commit was somewhere in the applier's epoch: half of it, on average, from its end. An epoch that is older than
    the source's log does not count, because nothing says when it was logged.
    """
    clock, own, server_id = source
    other, epochs, _ = applier
    held = {each.number for each in own}
    found = [
        (clock.time(each.epoch), other.ended(epoch.number) - other.epoch // 2 - clock.ended(each.epoch))
        for epoch in epochs
        for each in epoch.applied
        if each.server_id == server_id and each.epoch in held
    ]
    begun, took = np.array(found, np.int64).reshape(-1, 2).T
    return begun, took
