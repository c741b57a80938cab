"""
Rows events to Arrow record batches: the fast path, with the answers of `row_reader` and `column_types`.

A file is read stretch by stretch. Compiled code finds where every value of every wanted column stands, and fills the
buffers of Arrow arrays from there; no Python runs per row. It only notices *that* something is wrong: then the batches
of everything before it are handed out, and the scalar reader reads that one event again and says what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.binlog_reader import FIRST_POSITION, locate, unpacked
from ndb_formats.columnar.column_arrays import ColumnFaultError
from ndb_formats.columnar.event_chunks import EventChunk, read_chunks
from ndb_formats.columnar.kernels.row_order import by_kind, cells_of
from ndb_formats.columnar.row_walk import Facts, RowWalk
from ndb_formats.columnar.tables import (
    BatchShape,
    Columns,
    ImageColumn,
    TableRegister,
    reader_of,
    table_id_of,
    wanted_columns,
)
from ndb_formats.constants import APPLY_STATUS, ColumnCode
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_reader import rows_of
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import DecodingState, decode_event

__all__ = ["METADATA", "RowBatch", "read_batches"]

_OPERATIONS = pa.array(["", *(operation.name for operation in Operation)], pa.string())
# The columns that every batch has, before the images.
METADATA = pa.schema(
    [
        ("position", pa.uint64()),
        ("row", pa.int32()),
        ("server_id", pa.uint32()),
        ("timestamp", pa.uint32()),
        ("epoch", pa.uint64()),
        ("transaction_id", pa.uint64()),
        ("flags", pa.uint16()),
        ("operation", pa.dictionary(pa.int8(), pa.string())),
    ]
)
_EVENTS_PER_ROW = 8


@attrs.frozen(eq=False)
class RowBatch:
    """
    Row changes of one table, of one operation, whose images carry the same columns.

    A column that is in neither `before` nor `after` is absent: the images do not carry it. One that they carry is
    a field of the struct of that name, in which NULL is a null; one that was not asked for is no field of it.

    Attributes:
        database: Database name.
        table: Table name.
        operation: Write, update or delete.
        before: Names of the columns that the before images carry; None for a write.
        after: Names of the columns that the after images carry; None for a delete.
        diffs: Names of those columns of the after images that hold a JSON diff, not a document.
        types: Type code of every column of the table.
        records: The columns of `METADATA`, then structs ``before`` and ``after`` where there are such images.
    """

    database: str
    table: str
    operation: Operation
    before: tuple[str, ...] | None
    after: tuple[str, ...] | None
    diffs: tuple[str, ...]
    types: Mapping[str, ColumnCode] = attrs.field(repr=False)
    records: pa.RecordBatch = attrs.field(repr=False)

    def __len__(self) -> int:
        return int(self.records.num_rows)

    @property
    def full_name(self) -> str:
        """``database.table``."""
        return f"{self.database}.{self.table}"


def read_batches(
    path: str | Path,
    *,
    start: int = FIRST_POSITION,
    stop: int | None = None,
    schema: Schema | None = None,
    tables: Collection[str] | None = None,
    columns: Columns = None,
    text: bool = True,
    verify: bool = True,
    batch_rows: int = 1 << 15,
    batch_bytes: int = 1 << 26,
) -> Iterator[RowBatch]:
    """
    Yield the row changes of a file as Arrow record batches.

    Rows are taken in the order of the file, at most `batch_rows` at a time; those of one take that belong together
    are one batch, in their order. Memory is bounded by one take.

    Args:
        path: The binlog file.
        start: Position of a transaction's first event.
        stop: Position to stop before; None for the end of the file.
        schema: Definitions, for names and types that the binlog itself does not tell.
        tables: Tables to read, as ``database.table``; None for all but NDB's `ndb_apply_status`.
        columns: Names of the columns to decode, of every table or by ``database.table`` (a table that is not named
            there is decoded in full); None for all. Others are stepped over.
        text: Whether text is decoded; if not, it is binary, as it stands in the binlog.
        verify: Whether to check checksums.
        batch_rows: Most rows of a batch.
        batch_bytes: Most bytes of the file that one take covers, unless a single event has more.

    Raises:
        FormatError: The file cannot be read further, or a wanted value has no place in Arrow; everything before it has
            been yielded. The error names file and position.
    """
    names = None if tables is None else frozenset(tables)
    wanted = APPLY_STATUS.__ne__ if names is None else names.__contains__
    known = schema or Schema()
    reading = _Reading(known, wanted, columns, TableRegister(known, wanted, columns, text=text), batch_rows, text=text)
    events = max(batch_rows * _EVENTS_PER_ROW, 1024)
    for stretch in read_chunks(path, start=start, stop=stop, verify=verify, events=events, span=batch_bytes):
        yield from reading.batches(stretch)
        if stretch.error is not None:
            raise stretch.error


@attrs.frozen(eq=False)
class _Take:
    """The rows of one batch of a take: their numbers in the take, and in which events they stand."""

    shape: BatchShape
    rows: npt.NDArray[np.int64]


class _Reading:
    """One file being read."""

    def __init__(
        self,
        schema: Schema,
        wanted: Callable[[str], bool],
        columns: Columns,
        register: TableRegister,
        batch_rows: int,
        *,
        text: bool,
    ) -> None:
        self._schema, self._wanted, self._columns, self._text = schema, wanted, columns, text
        self._register = register
        self._walk = RowWalk(register, batch_rows)

    def batches(self, stretch: EventChunk) -> Iterator[RowBatch]:
        """
        Yield the batches of a stretch.

        Raises:
            FormatError: A row of it cannot be read.
        """
        for count, fault in self._walk.takes(stretch):
            yield from self._emit(stretch, self._walk.facts, count)
            if fault is not None:
                raise self._reason(stretch, fault)

    def _emit(self, stretch: EventChunk, facts: Facts, count: int) -> Iterator[RowBatch]:
        """Yield the first rows of a take as batches; at a value that has no place in Arrow, all rows before it."""
        takes = self._takes(count)
        try:
            batches = [self._batch(take, stretch, facts) for take in takes]
        except ColumnFaultError:
            first = min(self._first_fault(take, stretch, count) for take in takes)
            yield from [self._batch(take, stretch, facts) for take in self._takes(first)]
            shape = self._register.shapes[self._walk.rows[0][first]]
            raise self._reason(stretch, int(self._walk.rows[1][first]), shape) from None
        yield from batches

    def _takes(self, count: int) -> Sequence[_Take]:
        """Return the first rows of a take by batch, in the order of their first rows."""
        shapes = self._register.shapes
        order, bounds = by_kind(self._walk.rows[0], count, len(shapes))
        found = np.flatnonzero(np.diff(bounds))
        return [
            _Take(shapes[number], order[bounds[number] : bounds[number + 1]])
            for number in sorted(found.tolist(), key=lambda number: int(order[bounds[number]]))
        ]

    def _first_fault(self, take: _Take, stretch: EventChunk, count: int) -> int:
        """Return the first row of a take that has a value without a place in Arrow; `count` if there is none."""
        first = count
        cells = cells_of(self._walk.cells, self._walk.rows[3], take.rows, take.shape.width)
        for number, column in enumerate((*take.shape.before_columns, *take.shape.after_columns)):
            try:
                column.array(stretch.data, stretch.base, cells[number])
            except ColumnFaultError as fault:
                first = min(first, int(take.rows[fault.row]))
        return first

    def _batch(self, take: _Take, stretch: EventChunk, facts: Facts) -> RowBatch:
        shape, rows = take.shape, take.rows
        events = self._walk.rows[1].take(rows)
        cells = cells_of(self._walk.cells, self._walk.rows[3], rows, shape.width)
        arrays = [
            pa.array(stretch.positions.view(np.uint64).take(events)),
            pa.array(self._walk.rows[2].take(rows)),
            pa.array(stretch.server_ids.take(events)),
            pa.array(stretch.timestamps.take(events)),
            pa.array(facts.epochs.take(events), mask=facts.no_epoch.take(events)),
            pa.array(facts.transaction_ids.take(events), mask=facts.no_id.take(events)),
            pa.array(facts.flags.take(events), mask=facts.no_flags.take(events)),
            pa.DictionaryArray.from_arrays(np.full(len(rows), int(shape.operation), np.int8), _OPERATIONS),
        ]
        fields = list(METADATA)
        split = len(shape.before_columns)
        images = (
            ("before", shape.before, shape.before_columns, cells[:split]),
            ("after", shape.after, shape.after_columns, cells[split:]),
        )
        for name, present, columns, chosen in images:
            if present is not None:
                arrays.append(_image(columns, stretch, chosen, len(rows)))
                fields.append(pa.field(name, arrays[-1].type, nullable=False))
        names = shape.layout.names
        return RowBatch(
            shape.table_map.database,
            shape.table_map.table,
            shape.operation,
            None if shape.before is None else tuple(names[place] for place in shape.before),
            None if shape.after is None else tuple(names[place] for place in shape.after),
            tuple(names[place] for place in shape.diffs),
            dict(zip(names, (wire.code for wire in shape.layout.types), strict=True)),
            pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)),
        )

    def _reason(self, stretch: EventChunk, number: int, shape: BatchShape | None = None) -> FormatError:
        """Return why an event cannot be read to its end, as the scalar reader says it."""
        event = stretch.event(number)
        state = DecodingState(self._register.maps)
        if shape is not None:
            # Its table id may have been given to another table since.
            table_id = table_id_of(stretch.body(number))
            state.maps[table_id] = attrs.evolve(shape.table_map, table_id=table_id)
        try:
            with locate(event):
                for inner in unpacked(event):
                    for row in rows_of([decode_event(inner, state)], self._schema, self._wanted):
                        for image in (row.before, row.after):
                            if image is not None:
                                self._check(image)
        except FormatError as error:
            return error
        message = f"the event at position {event.position} of {event.file} is readable after all"
        raise AssertionError(message)

    def _check(self, image: RowImage) -> None:
        """Decode the wanted columns of an image into what Arrow takes."""
        layout = image.layout
        wanted = wanted_columns(self._columns, layout.table)
        for place in image.present:
            name = layout.names[place]
            if not wanted(name):
                continue
            reader = reader_of(layout, place, text=self._text, diff=place in image.partial)
            payload = image.raw(place)
            try:
                if isinstance(payload, bytes):
                    reader.check(payload)
            except FormatError as error:
                raise error.located(table=layout.table, column=name) from None


def _image(columns: Sequence[ImageColumn], stretch: EventChunk, cells: npt.NDArray[np.uint32], rows: int) -> pa.Array:
    """Return the values of an image as a struct."""
    arrays = [column.array(stretch.data, stretch.base, chosen) for column, chosen in zip(columns, cells, strict=True)]
    fields = [pa.field(column.name, array.type) for column, array in zip(columns, arrays, strict=True)]
    # A struct of no fields knows its length only this way.
    return pa.Array.from_buffers(pa.struct(fields), rows, [None], 0, children=arrays)
