"""
A bucket as another format would have logged it, where the log tells that exactly, or as another policy compares it.

Computes docs/compare.md, "Formats".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import attrs
import numpy as np

from conflict.engine.columnar.bucket import Bucket, Carried
from conflict.engine.kernels.arrays import BucketRows, Int8, Int32, Int64, Presence, UInt64
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.rules.update_format import UpdateFormat, ndb_event
from ndb_formats.schema.tables import Table


@attrs.frozen
class Relogging:
    """
    The changes of a table in another format.

    Attributes:
        table: The table.
        logged: The format that they are logged in.
        wanted: The other format.
    """

    table: Table
    logged: UpdateFormat
    wanted: UpdateFormat

    def event(self, operation: Operation, after: Collection[int] | None) -> EventColumns:
        """
        Return the columns of the event of a change.

        Args:
            operation: As logged.
            after: The columns of its after image as logged; None if there is none.
        """
        marked = frozenset(after or ()) - frozenset(self.table.key_ordinals)
        event = ndb_event(self.wanted, self.table, operation, marked)
        assert event is not None
        return event

    def fault(self, shapes: Iterable[EventColumns]) -> str | None:
        """Return why the log does not tell how these changes would be logged; None if it does."""
        if self.logged == self.wanted:
            return None
        if not self.wanted.logged:
            return "nothing would be logged"
        if not self.logged.logged:
            return "nothing is logged"
        if self.logged.as_write:
            return "updates are logged as writes, like inserts"
        if self.wanted.updated_only and not self.logged.updated_only:
            return "images with all columns do not tell which ones a statement set"
        for shape in shapes:
            event = self.event(shape.operation, shape.after)
            for which, needed, held in (("before", event.before, shape.before), ("after", event.after, shape.after)):
                missing = sorted(set(needed or ()) - set(held or ()))
                if missing:
                    name = self.table.columns[missing[0]].name
                    return f"{which} images of {_WORDS[shape.operation]} lack column {name}"
        return None


_WORDS: Mapping[Operation, str] = {
    Operation.WRITE_ROW: "inserts",
    Operation.UPDATE_ROW: "updates",
    Operation.DELETE_ROW: "deletes",
}


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
