"""
The row changes of one table in the order of the file, whatever they do and whichever columns their images carry.

The cells of all kinds of rows are laid side by side before anything is decoded, so that every column is decoded once
and nothing is sorted afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.columnar.block_reader import METADATA, OPERATIONS, BlockPart, BlockReader, DecodedRows, read_blocks
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.kernels.layout import cells_of_kinds
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import BatchShape, Columns, ImageColumn, TableRegister
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Schema

_NOT_CARRIED = -1


@attrs.frozen
class RowKind:
    """
    What rows do, and what their images carry.

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

    @classmethod
    def of(cls, shape: BatchShape) -> RowKind:
        """Return that of a shape."""
        names = shape.layout.names
        before, after = (
            None if present is None else tuple(names[ordinal] for ordinal in present)
            for present in (shape.before, shape.after)
        )
        return cls(shape.operation, before, after, tuple(names[ordinal] for ordinal in shape.diffs))


@attrs.frozen(eq=False, kw_only=True)
class TableRows(DecodedRows):
    """
    Row changes of one table in a block, in the order of the file.

    `records` has both structs, each with the decoded columns that some row carries. A struct is null where a row has no
    such image, and a field of it where it is NULL or not carried.

    Attributes:
        kinds: The kinds of the rows.
        kind_of: Number of the kind of each row. Shape (rows,), int64.
    """

    kinds: tuple[RowKind, ...]
    kind_of: npt.NDArray[np.int64]

    def _kept(self, kept: npt.NDArray[np.bool_]) -> dict[str, Any]:
        return {**super()._kept(kept), "kind_of": self.kind_of[kept]}


def read_table_rows(
    path: str | Path,
    start: int,
    stop: int | None,
    *,
    schema: Schema,
    tables: Collection[str],
    columns: Columns = None,
    moments: bool = False,
    batch_rows: int = 1 << 15,
) -> Iterator[TableRows]:
    """
    Yield the row changes of tables in a file; definitions that do not fit the log give way to it.

    Args:
        path: The binlog file.
        start: As for `ndb_formats.columnar.batches.read_batches`, as are the others.
        stop: See there.
        schema: See there.
        tables: See there.
        columns: See there.
        moments: See there.
        batch_rows: See there.

    Raises:
        FormatError: As there.
    """
    register = TableRegister(schema, frozenset(tables).__contains__, columns, text=True, moments=moments)
    reader = TableReader(RowWalk(register, batch_rows))
    yield from read_blocks(path, reader, start=start, stop=stop, verify=True, rows=batch_rows, span=1 << 26)


class TableReader(BlockReader[TableRows]):
    """Makes a batch of all rows of a table; rows with JSON diffs, and those of another definition, have their own."""

    def parts(self, order: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64]) -> Sequence[BlockPart]:
        """Return the rows of a block by table."""
        tables: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            shape = self.walk.register.shapes[number]
            tables.setdefault((id(shape.layout), shape.diffs), []).append(number)
        return [self._part(numbers, order, bounds) for numbers in tables.values()]

    def _part(self, numbers: list[int], order: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64]) -> BlockPart:
        rows = [order[bounds[number] : bounds[number + 1]] for number in numbers]
        shapes = tuple(self.walk.register.shapes[number] for number in numbers)
        if len(rows) == 1:
            return BlockPart(shapes, rows[0])
        every = sum(map(len, rows)) == len(order)
        return BlockPart(shapes, np.arange(len(order)) if every else np.sort(np.concatenate(rows)))

    def columns(self, part: BlockPart) -> tuple[Sequence[ImageColumn], npt.NDArray[np.uint32]]:
        """Return the columns of both images, and the cells of each; those that a row does not carry are NULL."""
        before, after = _columns_of_images(part)
        return (*before, *after), self._cells(part, before, after, self._kind_of(part))

    def batch(self, part: BlockPart, chunk: EventChunk) -> TableRows:
        """Return the rows of a table."""
        assert self.walk.commits is not None
        shape, kinds, kind_of = part.shapes[0], tuple(map(RowKind.of, part.shapes)), self._kind_of(part)
        events, arrays = self.facts(part.rows, chunk)
        operations = np.array([kind.operation for kind in kinds], np.int8)
        arrays.append(pa.DictionaryArray.from_arrays(operations.take(kind_of), OPERATIONS))
        images = _columns_of_images(part)
        cells = self._cells(part, *images, kind_of)
        for columns, chosen, has in (
            (images[0], cells[: len(images[0])], [kind.before is not None for kind in kinds]),
            (images[1], cells[len(images[0]) :], [kind.after is not None for kind in kinds]),
        ):
            values = [column.array(chunk.data, chunk.base, each) for column, each in zip(columns, chosen, strict=True)]
            arrays.append(_struct(columns, values, np.array(has), kind_of))
        fields = [*METADATA, *(pa.field(name, arrays[at].type) for name, at in (("before", -2), ("after", -1)))]
        return TableRows(
            database=shape.table_map.database,
            table=shape.table_map.table,
            kinds=kinds,
            kind_of=kind_of,
            types=dict(zip(shape.layout.names, (wire.code for wire in shape.layout.types), strict=True)),
            layout=shape.layout,
            records=pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)),
            places=part.rows,
            signs_known=all(each.signs_known for each in part.shapes),
            events=events,
            commits=self.walk.commits,
        )

    def _kind_of(self, part: BlockPart) -> npt.NDArray[np.int64]:
        """Return the number of the shape of each row among those of the part."""
        if len(part.shapes) == 1:
            return np.zeros(len(part.rows), np.int64)
        kinds = np.empty(len(self.walk.register.shapes), np.int64)
        numbers = {id(shape): number for number, shape in enumerate(self.walk.register.shapes)}
        kinds[[numbers[id(shape)] for shape in part.shapes]] = np.arange(len(part.shapes))
        return kinds.take(self.walk.rows.batches.take(part.rows))

    def _cells(
        self,
        part: BlockPart,
        before: Sequence[ImageColumn],
        after: Sequence[ImageColumn],
        kind_of: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.uint32]:
        places = np.full((len(part.shapes), len(before) + len(after)), _NOT_CARRIED, np.int64)
        for number, shape in enumerate(part.shapes):
            cell = 0
            for first, columns, carried in (
                (0, before, shape.before_columns),
                (len(before), after, shape.after_columns),
            ):
                at = {column.ordinal: place for place, column in enumerate(columns)}
                for column in carried:
                    places[number, first + at[column.ordinal]] = cell
                    cell += 1
        walk = self.walk
        found: npt.NDArray[np.uint32] = cells_of_kinds(walk.cells, walk.rows.first_cells, part.rows, kind_of, places)
        return found


def _columns_of_images(part: BlockPart) -> tuple[list[ImageColumn], list[ImageColumn]]:
    """Return the columns of both images that a row of the part carries, in the order of the table."""
    images: tuple[dict[int, ImageColumn], dict[int, ImageColumn]] = ({}, {})
    for shape in part.shapes:
        for image, columns in zip(images, (shape.before_columns, shape.after_columns), strict=True):
            image.update({column.ordinal: column for column in columns})
    before, after = ([image[ordinal] for ordinal in sorted(image)] for image in images)
    return before, after


def _struct(
    columns: Sequence[ImageColumn],
    values: Sequence[pa.Array],
    has_image: npt.NDArray[np.bool_],
    kind_of: npt.NDArray[np.int64],
) -> pa.StructArray:
    """Return an image, null where the kind of a row has none."""
    kind = pa.struct([pa.field(column.name, each.type) for column, each in zip(columns, values, strict=True)])
    validity, missing = None, 0
    if not has_image.all():
        there = has_image.take(kind_of)
        missing = len(there) - int(np.count_nonzero(there))
        validity = pa.py_buffer(np.packbits(there, bitorder="little"))
    # Only this way has a struct without fields a length.
    return pa.Array.from_buffers(kind, len(kind_of), [validity], missing, children=list(values))
