"""
Rows events to Arrow record batches, with the values that `row_reader` gives; one batch for each kind of rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.binlog_reader import FIRST_POSITION
from ndb_formats.columnar.block_reader import METADATA, OPERATIONS, BlockPart, BlockReader, DecodedRows, read_blocks
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.kernels.layout import cells_of
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import (
    Columns,
    ImageColumn,
    TableRegister,
)
from ndb_formats.constants import APPLY_STATUS
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Schema


@attrs.frozen(eq=False, kw_only=True)
class RowBatch(DecodedRows):
    """
    Row changes of one table and one operation, whose images carry the same columns.

    A column that is in neither `before` nor `after` is absent from the images. One that is there is a field of the
    struct of that name, with nulls for NULL; a column that was not asked for is left out of the struct.
    `records` has the structs of those images that there are.

    Attributes:
        operation: Write, update or delete.
        before: Names of the columns that the before images carry; None for a write.
        after: Names of the columns that the after images carry; None for a delete.
        diffs: Names of the columns whose after images are JSON diffs, not documents.
    """

    operation: Operation
    before: tuple[str, ...] | None
    after: tuple[str, ...] | None
    diffs: tuple[str, ...]

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
    reading = BatchReader(RowWalk(register, batch_rows))
    yield from read_blocks(path, reading, start=start, stop=stop, verify=verify, rows=batch_rows, span=batch_bytes)


class BatchReader(BlockReader[RowBatch]):
    """Makes a batch of the rows that have the same table, operation and columns."""

    def parts(self, order: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64]) -> Sequence[BlockPart]:
        """Return the rows of a block by shape, in the order of their first rows."""
        found, shapes = np.flatnonzero(np.diff(bounds)), self.walk.register.shapes
        return [
            BlockPart((shapes[number],), order[bounds[number] : bounds[number + 1]])
            for number in sorted(found.tolist(), key=lambda number: int(order[bounds[number]]))
        ]

    def columns(self, part: BlockPart) -> tuple[Sequence[ImageColumn], npt.NDArray[np.uint32]]:
        """Return the columns of both images, and the cells of each. Shape (columns, rows)."""
        (shape,), walk = part.shapes, self.walk
        cells = cells_of(walk.cells, walk.rows.first_cells, part.rows, shape.width)
        return (*shape.before_columns, *shape.after_columns), cells

    def batch(self, part: BlockPart, chunk: EventChunk) -> RowBatch:
        """Return the rows of a shape."""
        (shape,) = part.shapes
        assert self.walk.commits is not None
        events, arrays = self.facts(part.rows, chunk)
        operations = np.full(len(part.rows), int(shape.operation), np.int8)
        arrays.append(pa.DictionaryArray.from_arrays(operations, OPERATIONS))
        fields = list(METADATA)
        columns, cells = self.columns(part)
        split = len(shape.before_columns)
        images = (
            ("before", shape.before, columns[:split], cells[:split]),
            ("after", shape.after, columns[split:], cells[split:]),
        )
        for name, present, chosen, of_image in images:
            if present is not None:
                arrays.append(_image(chosen, chunk, of_image, len(part.rows)))
                fields.append(pa.field(name, arrays[-1].type, nullable=False))
        names = shape.layout.names
        return RowBatch(
            database=shape.table_map.database,
            table=shape.table_map.table,
            operation=shape.operation,
            before=None if shape.before is None else tuple(names[ordinal] for ordinal in shape.before),
            after=None if shape.after is None else tuple(names[ordinal] for ordinal in shape.after),
            diffs=tuple(names[ordinal] for ordinal in shape.diffs),
            types=dict(zip(names, (wire.code for wire in shape.layout.types), strict=True)),
            layout=shape.layout,
            records=pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)),
            places=part.rows,
            signs_known=shape.signs_known,
            events=events,
            commits=self.walk.commits,
        )


def _image(columns: Sequence[ImageColumn], chunk: EventChunk, cells: npt.NDArray[np.uint32], rows: int) -> pa.Array:
    """Return the values of an image as a struct."""
    arrays = [column.array(chunk.data, chunk.base, chosen) for column, chosen in zip(columns, cells, strict=True)]
    fields = [pa.field(column.name, array.type) for column, array in zip(columns, arrays, strict=True)]
    # Only this way has a struct without fields a length.
    return pa.Array.from_buffers(pa.struct(fields), rows, [None], 0, children=arrays)
