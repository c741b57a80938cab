"""
What a made History looks like, and all of it that does not depend on rows: epochs, transactions, takes.

Both clusters go by one clock of *slots*: in every slot each of them logs one epoch. An epoch of one cluster is taken by
the other some slots later; as many epochs are in flight.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

__all__ = ["CLUSTERS", "Clock", "Shape", "epoch_numbers", "server_id"]

CLUSTERS = ("A", "B")
EPOCHS_PER_CHECKPOINT = 20  # 100 ms each, 2 s together
FIRST_CHECKPOINTS = (70_001, 91_007)
# How many of a hundred transactions change so many rows, from 1 on.
TRANSACTION_SIZES = (30, 20, 15, 10, 8, 7, 5, 5)
PATTERNS = 256

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


def server_id(cluster: int) -> int:
    """Return the server id of a cluster."""
    return cluster + 1


@attrs.frozen
class Shape:
    """
    What a History shall look like.

    Every key has a home: the cluster that inserts it, and makes nearly all of its changes. An update of a key by the
    other cluster (*away*) meets those of its home that are in flight, and that makes nearly all of the conflicts.

    Attributes:
        changes: Row changes of both clusters together.
        seed: Of all chance.
        keys: How many keys are there to be inserted; about 95 of 100 are. None is a tenth of the changes.
        skew: The n-th hottest key of a cluster is changed in proportion to n + `flat` to the power of minus this.
        flat: About so many of the hottest keys are equally hot: no key is changed faster than applications can.
        changes_per_epoch: Row changes of a cluster in an epoch, on average; each epoch has half to one and a half.
        loaded: Part of the keys that are inserted at the start, before any other change.
        away: Part of the updates that go to keys of the other cluster, any of them.
        clashes: Part of the updates that go to keys of the other cluster that it has just changed itself.
        churn: Part of the transactions of one row that delete a row, or insert one again that was deleted.
        window: Fewest and most slots between an epoch and its take.
        binlog_type: 7 (all columns in both images), 8 (the key, changed columns) or 9 (the key, all columns).
        buckets: None is one per 5 million row changes, at least 4, and an even number: two cores share them alike.
        segments: Segments of epochs per cluster.
    """

    changes: int = attrs.field(validator=attrs.validators.ge(2000))
    seed: int = 1
    keys: int = attrs.field(default=None, converter=attrs.converters.default_if_none(0))
    skew: float = 1.0
    flat: int = 500
    changes_per_epoch: int = attrs.field(default=200, validator=attrs.validators.ge(20))
    loaded: float = 0.5
    away: float = 0.005
    clashes: float = 0.0013
    churn: float = 0.5
    window: tuple[int, int] = (1, 3)
    binlog_type: int = attrs.field(default=7, validator=attrs.validators.in_((7, 8, 9)))
    buckets: int = attrs.field(default=None, converter=attrs.converters.default_if_none(0))
    segments: int = 4

    def __attrs_post_init__(self) -> None:
        for name, usual in (("keys", self.changes // 10), ("buckets", max(4, 2 * -(-self.changes // 10_000_000)))):
            object.__setattr__(self, name, getattr(self, name) or usual)
        if self.keys < 64 * self.buckets:
            message = f"{self.keys} keys are too few for {self.buckets} buckets"
            raise ValueError(message)

    @property
    def slots(self) -> int:
        """How many epochs each cluster logs."""
        return max(self.changes // (2 * self.changes_per_epoch), self.segments)

    def chance(self, *purpose: int) -> np.random.Generator:
        """Return a source of chance for one purpose."""
        return np.random.default_rng([self.seed, *purpose])


def epoch_numbers(cluster: int, slots: npt.NDArray[Any]) -> UInt64:
    """Return the epochs that a cluster logs in slots."""
    high, low = np.divmod(slots.astype(np.uint64), np.uint64(EPOCHS_PER_CHECKPOINT))
    return ((high + np.uint64(FIRST_CHECKPOINTS[cluster])) << np.uint64(32)) | low


@attrs.define(slots=False)
class Clock:
    """
    When one cluster did what.

    Attributes:
        shape: Of the History.
        cluster: Its number.
        starts: Number of the first change of each epoch, and their total. Shape (slots + 1,).
        applied: Slot in which the other cluster takes each epoch; `Shape.slots` or more if it does not. Shape (slots,).
        patterns: Transaction of each change of an epoch, by pattern. Shape (patterns, changes).
        singles: Whether that transaction changes one row alone. Shape (patterns, changes).
    """

    shape: Shape
    cluster: int
    starts: Int64
    applied: Int64
    patterns: Int32
    singles: npt.NDArray[np.bool_]

    @classmethod
    def make(cls, shape: Shape, cluster: int) -> Clock:
        """Return the clock of a cluster."""
        total = shape.changes // 2 + (shape.changes % 2 if cluster == 0 else 0)
        weights = shape.chance(cluster, 0).uniform(0.5, 1.5, shape.slots)
        ends = np.floor(np.cumsum(weights) / weights.sum() * total + 0.5).astype(np.int64)
        starts = np.concatenate([[0], ends])
        delays = shape.chance(cluster, 1).integers(*shape.window, shape.slots, endpoint=True)
        applied = np.maximum.accumulate(np.arange(shape.slots) + delays)
        patterns, singles = _patterns(shape.chance(cluster, 2), int(np.diff(starts).max()))
        return cls(shape, cluster, starts, applied, patterns, singles)

    @cached_property
    def pattern(self) -> Int64:
        """Pattern of each epoch. Shape (slots,)."""
        return self.shape.chance(self.cluster, 3).integers(0, PATTERNS, self.shape.slots)

    @cached_property
    def transactions(self) -> Int64:
        """How many own transactions each epoch holds. Shape (slots,)."""
        return self.patterns[self.pattern, np.diff(self.starts) - 1].astype(np.int64) + 1

    @cached_property
    def place(self) -> Int64:
        """Own transaction of each epoch before which the takes stand. Shape (slots,)."""
        chance = self.shape.chance(self.cluster, 4).random(self.shape.slots)
        return np.floor(chance * (self.transactions + 1)).astype(np.int64)

    @cached_property
    def epochs(self) -> UInt64:
        """Own epoch of each slot. Shape (slots,)."""
        return epoch_numbers(self.cluster, np.arange(self.shape.slots))

    def seen(self, other: Clock, *, after: bool) -> Int64:
        """Return the last slot of the other cluster that is taken before or after the takes of each epoch."""
        return np.searchsorted(other.applied, np.arange(self.shape.slots), "right" if after else "left") - 1

    def applies(self, other: Clock) -> Int64:
        """Return how many epochs of the other cluster are taken in each epoch. Shape (slots,)."""
        return self.seen(other, after=True) - self.seen(other, after=False)

    @property
    def load_end(self) -> int:
        """The first slot in which rows are changed that are there."""
        return int(np.searchsorted(self.starts, self.shape.loaded * self.shape.keys / 2))

    @property
    def inserts(self) -> float:
        """Part of the transactions after `load_end` that insert new rows."""
        rest = int(self.starts[-1] - self.starts[min(self.load_end, self.shape.slots)])
        return min(1.0, max(0.0, (0.95 - self.shape.loaded) * self.shape.keys / 2 / max(rest, 1)))


def _patterns(chance: np.random.Generator, length: int) -> tuple[Int32, npt.NDArray[np.bool_]]:
    """Return ways to divide the changes of an epoch into transactions."""
    weights = np.array(TRANSACTION_SIZES) / sum(TRANSACTION_SIZES)
    sizes = chance.choice(np.arange(1, len(weights) + 1), (PATTERNS, length), p=weights)
    shape = (PATTERNS, length)
    patterns, singles = np.empty(shape, np.int32), np.empty(shape, np.bool_)
    for number in range(PATTERNS):
        patterns[number] = np.repeat(np.arange(length), sizes[number])[:length]
        singles[number] = np.repeat(sizes[number] == 1, sizes[number])[:length]
    return patterns, singles
