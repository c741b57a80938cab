"""
Rows events to Arrow record batches, with the values that `row_reader` gives.

A file is read chunk by chunk. Compiled code finds the offset of every wanted value and fills the buffers of Arrow
arrays from there; no Python runs per row. That code only notices *that* an event is wrong. Then all rows before it are
yielded, and the scalar reader reads the event again to raise the error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.binlog_reader import FIRST_POSITION, locate, unpacked
from ndb_formats.columnar.column_arrays import ColumnFaultError
from ndb_formats.columnar.commits import Commits
from ndb_formats.columnar.event_chunks import EventChunk, read_chunks
from ndb_formats.columnar.event_index import changed_file
from ndb_formats.columnar.kernels.layout import by_kind, cells_of
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
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_reader import rows_of
from ndb_formats.schema.tables import Schema, full_name
from ndb_formats.selection import DecodingState, decode_event

_OPERATIONS = pa.array(["", *(operation.name for operation in Operation)], pa.string())
# The columns that every batch has, before the images.
METADATA = pa.schema(
    [
        ("position", pa.uint64()),
        ("payload_position", pa.uint32()),
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
    Row changes of one table and one operation, whose images carry the same columns.

    A column that is in neither `before` nor `after` is absent from the images. One that is there is a field of the
    struct of that name, with nulls for NULL; a column that was not asked for is left out of the struct.

    Attributes:
        database: Database name.
        table: Table name.
        operation: Write, update or delete.
        before: Names of the columns that the before images carry; None for a write.
        after: Names of the columns that the after images carry; None for a delete.
        diffs: Names of the columns whose after images are JSON diffs, not documents.
        types: Type code of every column of the table.
        layout: How rows of the table are read.
        records: The columns of `METADATA`, then a struct ``before``, a struct ``after``, or both.
        places: Number of each row in its block, which gives the order of the file. Shape (rows,), int64.
        signs_known: Whether something tells which integers are unsigned.
        events: Number of the event of each row among those of `commits`. Shape (rows,), int64.
        commits: The transactions that the rows are part of.
    """

    database: str
    table: str
    operation: Operation
    before: tuple[str, ...] | None
    after: tuple[str, ...] | None
    diffs: tuple[str, ...]
    types: Mapping[str, ColumnCode] = attrs.field(repr=False)
    layout: RowLayout = attrs.field(repr=False)
    records: pa.RecordBatch = attrs.field(repr=False)
    places: npt.NDArray[np.int64] = attrs.field(repr=False)
    signs_known: bool
    events: npt.NDArray[np.int64] = attrs.field(repr=False)
    commits: Commits = attrs.field(repr=False)

    def __len__(self) -> int:
        return int(self.records.num_rows)

    @property
    def full_name(self) -> str:
        """``database.table``."""
        return full_name(self.database, self.table)

    def where(self, kept: npt.NDArray[np.bool_]) -> RowBatch:
        """Return the rows that are kept. Shape (rows,)."""
        if kept.all():
            return self
        records = self.records.filter(pa.array(kept))
        return attrs.evolve(self, records=records, places=self.places[kept], events=self.events[kept])

    @property
    def gtids(self) -> pa.StringArray:
        """GTID of the transaction of each row; null where none is logged."""
        return self.commits.gtids(self.events)

    @property
    def committed(self) -> pa.TimestampArray:
        """When the server of the log committed the transaction of each row, to the microsecond; null if not logged."""
        return self.commits.times(self.events)


def read_batches(
    path: str | Path,
    *,
    start: int = FIRST_POSITION,
    stop: int | None = None,
    schema: Schema | None = None,
    tables: Collection[str] | None = None,
    columns: Columns = None,
    text: bool = True,
    moments: bool = False,
    verify: bool = True,
    batch_rows: int = 1 << 15,
    batch_bytes: int = 1 << 26,
    strict: bool = True,
) -> Iterator[RowBatch]:
    """
    Yield the row changes of a file as Arrow record batches.

    The file is read in blocks of at most `batch_rows` rows, and the rows of a block that belong together become one
    batch, in their order. Memory is bounded by one block.

    Args:
        path: The binlog file.
        start: Position of a transaction's first event.
        stop: Position to stop before; None for the end of the file.
        schema: Definitions, for names and types that are not in the binlog.
        tables: Tables to read, as ``database.table``; None for all but NDB's `ndb_apply_status`.
        columns: Names of the columns to decode, for all tables or by ``database.table`` (a table that is not named
            there is decoded in full); None for all.
        text: Whether to decode text; if not, it is binary, as in the binlog.
        moments: Whether DATE, DATETIME and TIMESTAMP become dates and timestamps of Arrow, which hold no zero dates; if
            not, they are text.
        verify: Whether to check checksums.
        batch_rows: Most rows of a batch.
        batch_bytes: Most bytes of the file that a block covers, unless a single event has more.
        strict: Whether a definition that does not fit the log is an error; if not, the log is right.

    Raises:
        FormatError: The file cannot be read further, or Arrow cannot hold a wanted value; all rows before it have been
            yielded. The error names file and position.
    """
    names = None if tables is None else frozenset(tables)
    wanted = APPLY_STATUS.__ne__ if names is None else names.__contains__
    register = TableRegister(schema or Schema(), wanted, columns, text=text, moments=moments, strict=strict)
    reading = BlockReader(RowWalk(register, batch_rows))
    events = max(batch_rows * _EVENTS_PER_ROW, 1024)
    for chunk in read_chunks(path, start=start, stop=stop, verify=verify, events=events, span=batch_bytes):
        for block in reading.blocks(chunk):
            yield from block
        if chunk.error is not None:
            raise chunk.error


def error_at(walk: RowWalk, chunk: EventChunk, number: int) -> FormatError:
    """Return the error that the scalar reader raises at an event that a walk could not read."""
    return BlockReader(walk).reason(chunk, number)


@attrs.frozen(eq=False)
class _BlockPart:
    """The rows of a block that become one batch, by their numbers in the block."""

    shape: BatchShape
    rows: npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class BlockReader:
    """Makes the batches of one file, block by block."""

    _walk: RowWalk

    def blocks(self, chunk: EventChunk) -> Iterator[list[RowBatch]]:
        """
        Yield the batches of each block of a chunk.

        Raises:
            FormatError: A row of it cannot be read; all rows before it have been yielded.
        """
        for count, fault in self._walk.blocks(chunk):
            yield from self._emit(chunk, self._walk.facts, count)
            if fault is not None:
                raise self.reason(chunk, fault)

    def _emit(self, chunk: EventChunk, facts: Facts, count: int) -> Iterator[list[RowBatch]]:
        """Yield the first rows of a block as batches, up to the first value that Arrow cannot hold."""
        parts = self._parts(count)
        try:
            batches = [self._batch(part, chunk, facts) for part in parts]
        except ColumnFaultError:
            first = min(self._first_fault(part, chunk, count) for part in parts)
            yield [self._batch(part, chunk, facts) for part in self._parts(first)]
            shape = self._walk.register.shapes[self._walk.rows.batches[first]]
            raise self.reason(chunk, int(self._walk.rows.events[first]), shape) from None
        yield batches

    def _parts(self, count: int) -> Sequence[_BlockPart]:
        """Return the first rows of a block by batch, in the order of their first rows."""
        shapes = self._walk.register.shapes
        order, bounds = by_kind(self._walk.rows.batches, count, len(shapes))
        found = np.flatnonzero(np.diff(bounds))
        return [
            _BlockPart(shapes[number], order[bounds[number] : bounds[number + 1]])
            for number in sorted(found.tolist(), key=lambda number: int(order[bounds[number]]))
        ]

    def _first_fault(self, part: _BlockPart, chunk: EventChunk, count: int) -> int:
        """Return the first row that has a value that Arrow cannot hold, or `count`."""
        first = count
        cells = cells_of(self._walk.cells, self._walk.rows.first_cells, part.rows, part.shape.width)
        for number, column in enumerate((*part.shape.before_columns, *part.shape.after_columns)):
            try:
                column.array(chunk.data, chunk.base, cells[number])
            except ColumnFaultError as fault:
                first = min(first, int(part.rows[fault.row]))
        return first

    def _batch(self, part: _BlockPart, chunk: EventChunk, facts: Facts) -> RowBatch:
        shape, rows = part.shape, part.rows
        assert self._walk.commits is not None
        events = self._walk.rows.events.take(rows)
        cells = cells_of(self._walk.cells, self._walk.rows.first_cells, rows, shape.width)
        arrays = [
            pa.array(chunk.positions.view(np.uint64).take(events)),
            pa.array(chunk.payload_positions.astype(np.uint32).take(events)),
            pa.array(self._walk.rows.numbers.take(rows)),
            pa.array(chunk.server_ids.take(events)),
            pa.array(chunk.timestamps.take(events)),
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
                arrays.append(_image(columns, chunk, chosen, len(rows)))
                fields.append(pa.field(name, arrays[-1].type, nullable=False))
        names = shape.layout.names
        return RowBatch(
            shape.table_map.database,
            shape.table_map.table,
            shape.operation,
            None if shape.before is None else tuple(names[ordinal] for ordinal in shape.before),
            None if shape.after is None else tuple(names[ordinal] for ordinal in shape.after),
            tuple(names[ordinal] for ordinal in shape.diffs),
            dict(zip(names, (wire.code for wire in shape.layout.types), strict=True)),
            shape.layout,
            pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)),
            rows,
            shape.signs_known,
            events,
            self._walk.commits,
        )

    def reason(self, chunk: EventChunk, number: int, shape: BatchShape | None = None) -> FormatError:
        """Return the error that the scalar reader raises at an event."""
        event, register = chunk.event(number), self._walk.register
        state = DecodingState(register.maps)
        if shape is not None:
            # Its table id may belong to another table by now.
            table_id = table_id_of(chunk.body(number))
            state.maps[table_id] = attrs.evolve(shape.table_map, table_id=table_id)
        try:
            with locate(event):
                # Of a compressed transaction, the events before it have been read, and tables may be others since.
                place = number - int(np.searchsorted(chunk.positions, event.position))
                for inner in islice(unpacked(event), place, place + 1):
                    for row in rows_of(
                        [decode_event(inner, state)], register.schema, register.wanted, strict=register.strict
                    ):
                        for image in (row.before, row.after):
                            if image is not None:
                                self._check(image)
        except FormatError as error:
            return error
        return changed_file(event)

    def _check(self, image: RowImage) -> None:
        """Decode the wanted columns of an image as Arrow values."""
        layout = image.layout
        wanted = wanted_columns(self._walk.register.columns_wanted, layout.table)
        for ordinal in image.present:
            name = layout.names[ordinal]
            if not wanted(name):
                continue
            register = self._walk.register
            reader = reader_of(
                layout, ordinal, text=register.text, diff=ordinal in image.partial, moments=register.moments
            )
            payload = image.raw(ordinal)
            try:
                if isinstance(payload, bytes):
                    reader.check(payload)
            except FormatError as error:
                raise error.located(table=layout.table, column=name) from None


def _image(columns: Sequence[ImageColumn], chunk: EventChunk, cells: npt.NDArray[np.uint32], rows: int) -> pa.Array:
    """Return the values of an image as a struct."""
    arrays = [column.array(chunk.data, chunk.base, chosen) for column, chosen in zip(columns, cells, strict=True)]
    fields = [pa.field(column.name, array.type) for column, array in zip(columns, arrays, strict=True)]
    # Only this way has a struct without fields a length.
    return pa.Array.from_buffers(pa.struct(fields), rows, [None], 0, children=arrays)
