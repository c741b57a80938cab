"""
The events and rows of one run as arrays: where images stand, keys, and the values that conflict functions compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.grid.key_buckets import TableNumbers
from conflict.ingestion.kernels.epochs import read_numbers, roles_of
from ndb_formats.columnar.column_arrays import ColumnFaultError
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.kernels.keys import buckets_of
from ndb_formats.columnar.kernels.row_order import by_kind, cells_of
from ndb_formats.columnar.keys import KeyRows, key_parts, put_keys, slices
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import BatchShape, ImageColumn, TableRegister
from ndb_formats.constants import APPLY_STATUS
from ndb_formats.errors import FormatError
from ndb_formats.schema.tables import Schema, Table
from ndb_formats.types.column_types import WireType

__all__ = ["Events", "Rows", "SegmentWalk", "Shapes", "StatusRows", "UnreadableError"]

_ROWS = 1 << 16
_SERVER_ID, _EPOCH, _LOG_NAME = range(3)
_MOST_FLAGS = 0x7FFF

Bool = npt.NDArray[np.bool_]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Cells = npt.NDArray[np.uint32]


class UnreadableError(Exception):
    """Something in a run is wrong, or unusual; what it is, the scalar reader says."""


class _Parts:
    """Arrays that are collected piece by piece."""

    @classmethod
    def joined(cls, pieces: Sequence[Any]) -> Self:
        """Return pieces as one."""
        fields = attrs.fields(cls)  # type: ignore[arg-type]  # every subclass is an attrs class
        return cls(*(np.concatenate([getattr(piece, field.name) for piece in pieces]) for field in fields))


@attrs.frozen(eq=False)
class Events(_Parts):
    """
    The events of a run. All arrays have shape (events,).

    Attributes:
        roles: What each is to the epochs, see `conflict.ingestion.kernels.epochs.EventRole`. uint8.
        ids: Transaction id. uint64.
        no_id: Whether it has none.
        servers: Server on which the change was made. uint32.
        flags: Conflict flags; 0 for none. uint16.
        positions: Where it starts in the file. int64.
        stops: Where it ends. int64.
        shapes: Number of its shape; -1 for none. int32.
        rows: How many rows it has. int64.
    """

    roles: npt.NDArray[np.uint8]
    ids: UInt64
    no_id: Bool
    servers: npt.NDArray[np.uint32]
    flags: npt.NDArray[np.uint16]
    positions: Int64
    stops: Int64
    shapes: Int32
    rows: Int64


@attrs.frozen(eq=False)
class Rows(_Parts):
    """
    The rows of a run, those of ndb_apply_status among them. All arrays but `keys` have shape (rows,).

    Attributes:
        event: Number of its event. int64.
        number: Its number in the event. int32.
        source: Number of the array of bytes that it stands in. int32.
        before_at: Where its before image starts there. int64.
        before_size: Bytes of that image; -1 if there is none. int64.
        after_at: Where its after image starts. int64.
        after_size: Bytes of that image; -1 if there is none. int64.
        before_value: What is compared of the before image; 0 for NULL and where it is absent. uint64.
        after_value: The same of the after image. uint64.
        bucket: Its bucket. int32.
        key_size: Bytes of its identity. int64.
        keys: Identities, one after the other. Shape (bytes,), uint8.
    """

    event: Int64
    number: Int32
    source: Int32
    before_at: Int64
    before_size: Int64
    after_at: Int64
    after_size: Int64
    before_value: UInt64
    after_value: UInt64
    bucket: Int32
    key_size: Int64
    keys: npt.NDArray[np.uint8]


@attrs.frozen(eq=False)
class StatusRows(_Parts):
    """
    Rows of ndb_apply_status that were written. All arrays have shape (rows,).

    Attributes:
        event: Number of its event. int64.
        number: Its number in the event. int32.
        servers: Server id. uint64.
        epochs: Epoch. uint64.
        logs: Whether it names a log.
    """

    event: Int64
    number: Int32
    servers: UInt64
    epochs: UInt64
    logs: Bool

    def sorted(self) -> StatusRows:
        """Return them in the order of the binlog."""
        order = np.lexsort((self.number, self.event))
        return StatusRows(*(getattr(self, field.name)[order] for field in attrs.fields(StatusRows)))


@attrs.define(eq=False)
class Shapes:
    """
    What is known of each shape of rows, by its number in the register.

    Attributes:
        schema: The tables to read.
        numbers: Their numbers.
        of_status: Whether it is one of ndb_apply_status.
        table: Number of its table.
        operation: What its rows do.
        before: Bitmap of the columns of the before image; None if there is none.
        after: Bitmap of the columns of the after image; None if there is none.
        types: Wire types of the columns of each table met.
    """

    schema: Schema
    numbers: TableNumbers
    of_status: list[bool] = attrs.field(factory=list)
    table: list[int] = attrs.field(factory=list)
    operation: list[int] = attrs.field(factory=list)
    before: list[bytes | None] = attrs.field(factory=list)
    after: list[bytes | None] = attrs.field(factory=list)
    types: dict[str, tuple[WireType, ...]] = attrs.field(factory=dict)

    def add(self, shape: BatchShape) -> None:
        """
        Take a shape that is new.

        Raises:
            UnreadableError: Its rows cannot be resolved, or are not laid out as those before.
        """
        status = shape.table_map.full_name == APPLY_STATUS
        self.of_status.append(status)
        self.table.append(0 if status else self._table(shape))
        self.operation.append(int(shape.operation))
        width = (len(shape.layout.codecs) + 7) // 8
        for sets, columns in ((self.before, shape.before), (self.after, shape.after)):
            sets.append(None if columns is None else sum(1 << place for place in columns).to_bytes(width, "little"))

    def _table(self, shape: BatchShape) -> int:
        table = self.schema.find(shape.table_map.database, shape.table_map.table)
        carried = shape.before if shape.before is not None else shape.after
        if table is None or not table.primary_key or not set(table.key_ordinals) <= set(carried or ()):
            raise UnreadableError
        if self.types.setdefault(table.full_name, shape.layout.types) != shape.layout.types:
            raise UnreadableError
        return self.numbers.number(table.full_name)


class SegmentWalk:
    """
    Collects what is found in a run, stretch by stretch.

    Attributes:
        shapes: The shapes of rows met so far.
        sources: The arrays of bytes that images stand in.
    """

    def __init__(self, schema: Schema, numbers: TableNumbers, buckets: int) -> None:
        tables = tuple(table for table in schema.tables if table.full_name != APPLY_STATUS)
        names = {table.full_name: _wanted_columns(table, numbers) for table in tables}
        wanted = {APPLY_STATUS, *names}
        self.shapes = Shapes(Schema(tables), numbers)
        self.sources: list[npt.NDArray[np.uint8]] = []
        self._buckets = buckets
        self._walk = RowWalk(TableRegister(Schema(tables), wanted.__contains__, names, text=True), _ROWS)
        self._events: list[Events] = []
        self._rows: list[Rows] = []
        self._status: list[StatusRows] = []
        self._first = 0

    @property
    def events(self) -> Events:
        """All events."""
        return Events.joined(self._events)

    @property
    def rows(self) -> Rows:
        """All rows."""
        return Rows.joined(self._rows)

    @property
    def status(self) -> StatusRows:
        """All rows of ndb_apply_status that were written."""
        nothing = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        return StatusRows.joined([StatusRows(*nothing, np.zeros(0, np.bool_)), *self._status]).sorted()

    def add(self, stretch: EventChunk) -> None:
        """
        Walk over a stretch.

        Raises:
            UnreadableError: Something in it is wrong.
        """
        if not self.sources or self.sources[-1] is not stretch.data:
            self.sources.append(stretch.data)
        count = len(stretch.types)
        rows = np.zeros(count, np.int64)
        for found, fault in self._walk.blocks(stretch):
            if fault is not None:
                raise UnreadableError
            self._take(stretch, found)
            rows += np.bincount(self._walk.rows[1][:found], minlength=count)
        facts = self._walk.facts
        if facts.flags.max(initial=0) > _MOST_FLAGS:
            raise UnreadableError
        roles = np.empty(count, np.uint8)
        of_status = np.array(self.shapes.of_status, np.bool_)
        roles_of(stretch.data, stretch.types, stretch.starts, stretch.ends, facts.batches, of_status, roles)
        self._events.append(
            Events(
                roles,
                facts.transaction_ids,
                facts.no_id,
                stretch.server_ids,
                np.where(facts.no_flags, np.uint16(0), facts.flags),
                stretch.positions,
                stretch.stops,
                facts.batches,
                rows,
            )
        )
        self._first += count

    def _take(self, stretch: EventChunk, count: int) -> None:
        """Keep what was found of some rows."""
        shapes = self._walk.register.shapes
        for shape in shapes[len(self.shapes.table) :]:
            self.shapes.add(shape)
        batch, event = (array[:count] for array in self._walk.rows[:2])
        number = self._walk.rows[2][:count]
        start, between, end = (self._walk.rows[4][:count].astype(np.int64) + stretch.base).T
        has_before, has_after = (
            np.array([columns is not None for columns in sets], np.bool_)[batch]
            for sets in (self.shapes.before, self.shapes.after)
        )
        values: tuple[UInt64, UInt64] = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
        keys = []
        order, bounds = by_kind(batch, count, len(shapes))
        for place in np.flatnonzero(np.diff(bounds)).tolist():
            rows = order[bounds[place] : bounds[place + 1]]
            cells = cells_of(self._walk.cells, self._walk.rows[3], rows, shapes[place].width)
            try:
                if self.shapes.of_status[place]:
                    self._add_status(shapes[place], stretch, cells, event[rows] + self._first, number[rows])
                    continue
                keys.append(self._keys(place, shapes[place], stretch, cells, rows))
                self._values(shapes[place], stretch, cells, rows, values)
            except (FormatError, ColumnFaultError):
                raise UnreadableError from None
        data, offsets = put_keys(keys, count)
        buckets = np.empty(count, np.int32)
        buckets_of(data, offsets, self._buckets, buckets)
        self._rows.append(
            Rows(
                event + self._first,
                number.copy(),
                np.full(count, len(self.sources) - 1, np.int32),
                start,
                np.where(has_before, between - start, -1),
                between,
                np.where(has_after, end - between, -1),
                *values,
                buckets,
                np.diff(offsets),
                data,
            )
        )

    def _keys(self, place: int, shape: BatchShape, stretch: EventChunk, cells: Cells, rows: Int64) -> KeyRows:
        number = self.shapes.table[place]
        table = self.shapes.numbers.tables[number]
        columns = shape.before_columns if shape.before is not None else shape.after_columns
        cell_of = {column.ordinal: cell for column, cell in zip(columns, cells, strict=False)}
        parts = [
            key_parts(
                table.columns[ordinal],
                slices(shape.layout.codecs[ordinal], stretch.data, stretch.base, cell_of[ordinal]),
            )
            for ordinal in table.key_ordinals
        ]
        return KeyRows(number, rows, parts)

    def _values(
        self, shape: BatchShape, stretch: EventChunk, cells: Cells, rows: Int64, values: tuple[UInt64, UInt64]
    ) -> None:
        """Fill in what conflict functions compare."""
        resolve = self.shapes.numbers.resolve_ordinal(shape.layout.table)
        split = len(shape.before_columns)
        for columns, chosen, out in (
            (shape.before_columns, cells[:split], values[0]),
            (shape.after_columns, cells[split:], values[1]),
        ):
            for column, cell in zip(columns, chosen, strict=True):
                if column.ordinal == resolve:
                    out[rows] = _compared(column, stretch, cell)

    def _add_status(self, shape: BatchShape, stretch: EventChunk, cells: Cells, event: Int64, number: Int32) -> None:
        if shape.after is None:
            return
        if len(shape.after) <= _LOG_NAME:
            raise UnreadableError
        chosen = cells[len(shape.before_columns) :]
        places = [
            slices(shape.layout.codecs[shape.after[place]], stretch.data, stretch.base, chosen[place])
            for place in (_SERVER_ID, _EPOCH, _LOG_NAME)
        ]
        servers, epochs = np.empty(len(event), np.uint64), np.empty(len(event), np.uint64)
        for out, value in zip((servers, epochs), places, strict=False):
            if not read_numbers(value.data, value.starts, value.lengths, out):
                raise UnreadableError
        self._status.append(StatusRows(event, number, servers, epochs, places[_LOG_NAME].lengths > 0))


def _wanted_columns(table: Table, numbers: TableNumbers) -> list[str]:
    resolve = numbers.resolve_ordinal(table.full_name)
    return [*table.primary_key, *([] if resolve is None else [table.columns[resolve].name])]


def _compared(column: ImageColumn, stretch: EventChunk, cells: Cells) -> UInt64:
    """Return values as they are compared: what is no number, NULL or negative counts as 0."""
    array = column.array(stretch.data, stretch.base, cells)
    if not pa.types.is_integer(array.type):
        return np.zeros(len(cells), np.uint64)
    values = array.fill_null(0)
    if pa.types.is_signed_integer(array.type):
        values = pc.max_element_wise(values, pa.scalar(0, array.type))
    return np.asarray(values.to_numpy()).astype(np.uint64)
