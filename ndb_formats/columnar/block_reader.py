"""
Blocks of walked rows to record batches, whatever the rows of a batch have in common.

A file is read chunk by chunk. Compiled code finds the offset of every wanted value and fills the buffers of Arrow
arrays from there; no Python runs per row. That code only notices *that* an event is wrong. Then all rows before it are
yielded, and the scalar reader reads the event again to raise the error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.binlog_reader import locate, unpacked
from ndb_formats.columnar.column_arrays import ColumnFaultError
from ndb_formats.columnar.commits import Commits
from ndb_formats.columnar.event_chunks import EventChunk, read_chunks
from ndb_formats.columnar.event_index import changed_file
from ndb_formats.columnar.kernels.layout import by_kind
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import BatchShape, ImageColumn, reader_of, table_id_of, wanted_columns
from ndb_formats.constants import ColumnCode
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_reader import rows_of
from ndb_formats.schema.tables import full_name
from ndb_formats.selection import DecodingState, decode_event

Rows_co = TypeVar("Rows_co", covariant=True)
_EVENTS_PER_ROW = 8
OPERATIONS = pa.array(["", *(operation.name for operation in Operation)], pa.string())
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


@attrs.frozen(eq=False)
class BlockPart:
    """
    Rows of a block that become one batch.

    Attributes:
        shapes: The shapes that they have.
        rows: Their numbers in the block, in its order. Shape (rows,), int64.
    """

    shapes: tuple[BatchShape, ...]
    rows: npt.NDArray[np.int64]


@attrs.frozen(eq=False, kw_only=True)
class DecodedRows:
    """
    Row changes of one table in a block.

    Attributes:
        database: Database name.
        table: Table name.
        types: Type code of every column of the table.
        layout: How rows of the table are read.
        records: The columns of `METADATA`, then the structs ``before`` and ``after``.
        places: Number of each row in its block, which gives the order of the file. Shape (rows,), int64.
        signs_known: Whether something tells which integers are unsigned.
        events: Number of the event of each row among those of `commits`. Shape (rows,), int64.
        commits: The transactions that the rows are part of.
    """

    database: str
    table: str
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

    def where(self, kept: npt.NDArray[np.bool_]) -> Self:
        """Return the rows that are kept. Shape (rows,)."""
        return self if kept.all() else attrs.evolve(self, **self._kept(kept))

    def _kept(self, kept: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Return what differs where some rows are left out."""
        return {
            "records": self.records.filter(pa.array(kept)),
            "places": self.places[kept],
            "events": self.events[kept],
        }


class BlockReader(ABC, Generic[Rows_co]):
    """Makes the batches of one file, block by block."""

    def __init__(self, walk: RowWalk) -> None:
        """Read what a walk finds."""
        self.walk = walk

    @abstractmethod
    def parts(self, order: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64]) -> Sequence[BlockPart]:
        """
        Return the rows of a block by batch.

        Args:
            order: The rows of the block, those of each shape together. Shape (rows,).
            bounds: Where each shape of the register starts among them. Shape (shapes + 1,).
        """

    @abstractmethod
    def columns(self, part: BlockPart) -> tuple[Sequence[ImageColumn], npt.NDArray[np.uint32]]:
        """Return the columns of both images, and the cells of each. Shape (columns, rows)."""

    @abstractmethod
    def batch(self, part: BlockPart, chunk: EventChunk) -> Rows_co:
        """
        Return a batch.

        Raises:
            ColumnFaultError: Arrow cannot hold one of its values.
        """

    def blocks(self, chunk: EventChunk) -> Iterator[list[Rows_co]]:
        """
        Yield the batches of each block of a chunk.

        Raises:
            FormatError: A row of it cannot be read; all rows before it have been yielded.
        """
        for count, fault in self.walk.blocks(chunk):
            yield from self._emit(chunk, count)
            if fault is not None:
                raise reason(self.walk, chunk, fault)

    def _emit(self, chunk: EventChunk, count: int) -> Iterator[list[Rows_co]]:
        """Yield the first rows of a block as batches, up to the first value that Arrow cannot hold."""
        parts = self._parts(count)
        try:
            batches = [self.batch(part, chunk) for part in parts]
        except ColumnFaultError:
            first = min(self._first_fault(part, chunk, count) for part in parts)
            yield [self.batch(part, chunk) for part in self._parts(first)]
            shape = self.walk.register.shapes[self.walk.rows.batches[first]]
            raise reason(self.walk, chunk, int(self.walk.rows.events[first]), shape) from None
        yield batches

    def _parts(self, count: int) -> Sequence[BlockPart]:
        return self.parts(*by_kind(self.walk.rows.batches, count, len(self.walk.register.shapes)))

    def _first_fault(self, part: BlockPart, chunk: EventChunk, count: int) -> int:
        """Return the first row that has a value that Arrow cannot hold, or `count`."""
        first = count
        for column, cells in zip(*self.columns(part), strict=True):
            try:
                column.array(chunk.data, chunk.base, cells)
            except ColumnFaultError as fault:
                first = min(first, int(part.rows[fault.row]))
        return first

    def facts(self, rows: npt.NDArray[np.int64], chunk: EventChunk) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
        """Return the events of rows, by their numbers, and the columns of `METADATA` but for the operation."""
        facts, events = self.walk.facts, self.walk.rows.events.take(rows)
        return events, [
            pa.array(chunk.positions.view(np.uint64).take(events)),
            pa.array(chunk.payload_positions.astype(np.uint32).take(events)),
            pa.array(self.walk.rows.numbers.take(rows)),
            pa.array(chunk.server_ids.take(events)),
            pa.array(chunk.timestamps.take(events)),
            pa.array(facts.epochs.take(events), mask=facts.no_epoch.take(events)),
            pa.array(facts.transaction_ids.take(events), mask=facts.no_id.take(events)),
            pa.array(facts.flags.take(events), mask=facts.no_flags.take(events)),
        ]


def read_blocks(
    path: str | Path, reader: BlockReader[Rows_co], *, start: int, stop: int | None, verify: bool, rows: int, span: int
) -> Iterator[Rows_co]:
    """
    Yield the batches of a file; the arguments are those of `ndb_formats.columnar.batches.read_batches`.

    Args:
        path: The binlog file.
        reader: What makes the batches.
        start: Position of a transaction's first event.
        stop: Position to stop before; None for the end of the file.
        verify: Whether to check checksums.
        rows: Most rows of a block.
        span: Most bytes of the file that a block covers, unless a single event has more.

    Raises:
        FormatError: The file cannot be read further; all rows before have been yielded.
    """
    events = max(rows * _EVENTS_PER_ROW, 1024)
    for chunk in read_chunks(path, start=start, stop=stop, verify=verify, events=events, span=span):
        for block in reader.blocks(chunk):
            yield from block
        if chunk.error is not None:
            raise chunk.error


def reason(walk: RowWalk, chunk: EventChunk, number: int, shape: BatchShape | None = None) -> FormatError:
    """Return the error that the scalar reader raises at an event that cannot be read."""
    event, register = chunk.event(number), walk.register
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
                            _check(walk, image)
    except FormatError as error:
        return error
    return changed_file(event)


def _check(walk: RowWalk, image: RowImage) -> None:
    """Decode the wanted columns of an image as Arrow values."""
    layout, register = image.layout, walk.register
    wanted = wanted_columns(register.columns_wanted, layout.table)
    for ordinal in image.present:
        name = layout.names[ordinal]
        if not wanted(name):
            continue
        reader = reader_of(layout, ordinal, text=register.text, diff=ordinal in image.partial, moments=register.moments)
        payload = image.raw(ordinal)
        try:
            if isinstance(payload, bytes):
                reader.check(payload)
        except FormatError as error:
            raise error.located(table=layout.table, column=name) from None
