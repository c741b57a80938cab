"""
A bucket as another format would have logged it, or as another policy compares it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from conflict.columnar.bucket import Bucket, Carried
from conflict.columnar.kernels.arrays import BucketRows, Int8, Int32, Int64, Presence, UInt64
from conflict.comparing.relogging import Relogging
from ndb_formats.events.rows_event import Operation

__all__ = ["BucketView", "CommitTimes"]

_FIRST_OPERATION, _LAST_OPERATION = int(min(Operation)), int(max(Operation))


@attrs.frozen(eq=False)
class CommitTimes:
    """
    When each own epoch of a cluster committed, as a value that no two clusters share. Shape (epochs,).

    Attributes:
        epoch: The epochs, ascending.
        value: Microseconds since 1970, doubled; one more on the cluster with the higher server id.
    """

    epoch: UInt64
    value: UInt64

    def of(self, epochs: UInt64) -> UInt64:
        """Return the value of each epoch. Shape of `epochs`."""
        return self.value[np.searchsorted(self.epoch, epochs)]


@attrs.frozen(eq=False)
class BucketView:
    """
    What a trial makes of the logged changes.

    Attributes:
        relogging: By table number, how its changes are logged again; empty for as they are.
        times: Per cluster, its commit times, which are then compared instead of a column; None to compare the column.
    """

    relogging: Mapping[int, Relogging] = attrs.field(factory=dict)
    times: tuple[CommitTimes, CommitTimes] | None = None

    def of(self, bucket: Bucket) -> Bucket:
        """Return the bucket; what it has read of the History stays."""
        if not self.relogging and self.times is None:
            return bucket
        relogged = self._relogged(bucket) if self.relogging else None
        found = attrs.evolve(bucket, relogged=relogged, kept=None)
        if self.times is not None:
            first, second = found.rows
            found = attrs.evolve(found, kept=(_timed(first, self.times[0]), _timed(second, self.times[1])))
        return found

    def _relogged(self, bucket: Bucket) -> Carried:
        sets, numbers = list(bucket.carried.sets), dict[frozenset[int] | None, int]()
        for number, columns in enumerate(sets):
            numbers.setdefault(None if columns is None else frozenset(columns), number)

        def numbered(columns: frozenset[int] | None) -> int:
            if columns not in numbers:
                numbers[columns] = len(sets)
                sets.append(None if columns is None else set(columns))
            return numbers[columns]

        images, operations = list[tuple[Int32, Int32]](), list[Int8]()
        for changes, (before, after) in zip(bucket.changes, bucket.carried.images, strict=True):
            operation, table = changes.array("operation"), bucket.key_table[changes.array("key")]
            shapes, shape = _shapes(table, operation, before, after)
            made = shapes[:, 1:].astype(np.int32)
            for place, (number, kind, _, second) in enumerate(shapes.tolist()):
                rule = self.relogging.get(number)
                if rule is not None and _FIRST_OPERATION <= kind <= _LAST_OPERATION:
                    event = rule.event(Operation(kind), bucket.carried.sets[second])
                    made[place] = event.operation, *map(numbered, map(_set, (event.before, event.after)))
            operations.append(made[shape, 0].astype(np.int8))
            images.append((np.ascontiguousarray(made[shape, 1]), np.ascontiguousarray(made[shape, 2])))
        return Carried(sets, images, (operations[0], operations[1]))


def _set(columns: tuple[int, ...] | None) -> frozenset[int] | None:
    return None if columns is None else frozenset(columns)


def _shapes(*facts: np.ndarray) -> tuple[Int64, Int64]:
    """Return the different rows of some columns, shape (shapes, columns), and which one each row is, shape (rows,)."""
    code = np.zeros(len(facts[0]), np.int64)
    for fact in facts:
        code *= int(fact.max(initial=0)) + 1
        code += fact
    _, first, shape = np.unique(code, return_index=True, return_inverse=True)
    return np.stack([fact[first] for fact in facts], axis=1).astype(np.int64), shape.ravel()


def _timed(rows: BucketRows, times: CommitTimes) -> BucketRows:
    """Return changes that bring the moment of their commit, whatever their images carry."""
    value, given = times.of(rows.epoch), np.int8(Presence.PRESENT)
    before, after = (
        np.where(presence == Presence.NO_COLUMNS, presence, given)
        for presence in (rows.before_presence, rows.after_presence)
    )
    return attrs.evolve(rows, before_presence=before, before_value=value, after_presence=after, after_value=value)
