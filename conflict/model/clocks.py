"""
The time of recorded epochs, from their numbers, and how long they travelled.

An epoch's number has the checkpoint in its high word and counts epochs in it in the low word, so it is a clock. The
clocks of two clusters are unrelated: they are set against each other so that the fastest epochs took as long one way as
the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from conflict.columnar.kernels.arrays import Int64
from conflict.history.epochs import BinlogEpoch

__all__ = ["EpochClock", "Journeys", "journeys"]

CHECKPOINT = 2_000_000  # TimeBetweenGlobalCheckpoints, microseconds; no binlog tells it
USUAL_EPOCHS = (1, 2, 4, 5, 10, 20, 40, 50, 100, 200)  # in a checkpoint
FASTEST = 0.05  # share of the epochs that count as the fastest
NEIGHBOURS, ALIKE_EPOCHS = 3, 2  # to average over, on either side
LOW_WORD = 0xFFFFFFFF


@attrs.frozen
class EpochClock:
    """
    A cluster's epochs as a clock.

    Attributes:
        epoch: Length of an epoch, microseconds.
        late: How many epochs more than usual the checkpoints had that came late, by checkpoint.
        checkpoint: Length of a checkpoint that comes in time.
    """

    epoch: int
    late: Mapping[int, int] = attrs.field(factory=dict)
    checkpoint: int = CHECKPOINT

    @classmethod
    def of(cls, numbers: Sequence[int]) -> EpochClock:
        """Return the clock that some epoch numbers come from, if checkpoints have their usual length."""
        last: dict[int, int] = {}
        for number in numbers:
            last[number >> 32] = max(last.get(number >> 32, 0), number & LOW_WORD)
        # One that comes late has more epochs; one at the end of which nothing was logged seems to have less.
        usual = float(np.quantile(list(last.values()), 0.75)) + 1
        count = min(USUAL_EPOCHS, key=lambda each: abs(math.log(each / usual)))
        late = {number: low + 1 - count for number, low in last.items() if low >= count}
        return cls(CHECKPOINT // count, late)

    def time(self, number: int) -> int:
        """Return when an epoch began, microseconds from an unknown moment on."""
        checkpoint = number >> 32
        before = sum(epochs for each, epochs in self.late.items() if each < checkpoint)
        return checkpoint * self.checkpoint + ((number & LOW_WORD) + before) * self.epoch


@attrs.frozen(eq=False)
class Journeys:
    """
    How long the epochs of two clusters travelled.

    Attributes:
        shift: What to add to the second cluster's clock to get the first one's.
        closed: Per cluster, when each epoch that arrived ended, by the first cluster's clock. Shape (epochs,).
        took: Per cluster, how long each took from its end to its commit by the other's applier. Shape (epochs,).
    """

    shift: int
    closed: tuple[Int64, Int64]
    took: tuple[Int64, Int64]

    def trace(self, side: int, begin: int) -> list[list[float]]:
        """Return the latency of the epochs of a cluster: seconds after `begin`, and milliseconds."""
        moments, took = self.closed[side] - begin, self.took[side]
        kept = np.flatnonzero(moments >= 0)
        if not len(kept):
            return [[0.0, 0.0]]
        # No moment is later than the end of its epoch, also when it is rounded.
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
    shift = round((_fastest(back[1], epoch) - _fastest(forth[1], epoch)) / 2)
    took = (_smooth(forth[1] + shift, first[0].epoch), _smooth(back[1] - shift, second[0].epoch))
    return Journeys(shift, (forth[0], back[0] + shift), took)


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
    Return when epochs ended that left a trace, by their own clock, and how much later they were applied, by both.

    The commit was somewhere in the applier's epoch: half of it, on average, from its start.
    """
    clock, _, server_id = source
    other, epochs, _ = applier
    found = [
        (clock.time(each.epoch) + clock.epoch, other.time(epoch.number) + other.epoch // 2)
        for epoch in epochs
        for each in epoch.applied
        if each.server_id == server_id
    ]
    closed, applied = np.array(found, np.int64).reshape(-1, 2).T
    return closed, applied - closed
