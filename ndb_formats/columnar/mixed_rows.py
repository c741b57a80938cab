"""
The row changes of all tables in a block, in the order of the file, with images as maps from column name to text.

One compiled loop writes the texts of numbers, dates, times and most character sets from the bytes of the events; others
are made column by column before. Where it cannot do that, the rows become batches: if a value cannot be decoded, and
where nothing says which integers are unsigned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.columnar.batches import BatchReader, RowBatch
from ndb_formats.columnar.block_reader import METADATA, BlockPart, BlockReader
from ndb_formats.columnar.column_arrays import ColumnFaultError, ColumnReader
from ndb_formats.columnar.commits import Commits
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.fast_columns import STRINGS, single_byte_table
from ndb_formats.columnar.kernel import read_only
from ndb_formats.columnar.kernels.images import Field, Image, Step, put_images
from ndb_formats.columnar.kernels.layout import by_kind
from ndb_formats.columnar.kernels.temporal import MAX_PRECISION, MAX_TEXT
from ndb_formats.columnar.kernels.values import SHORT_DIGITS
from ndb_formats.columnar.map_entries import ENTRY, MOST_BYTES, strings
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import BatchShape, Growing, ImageColumn
from ndb_formats.columnar.value_texts import texts_of, value_texts
from ndb_formats.constants import ColumnCode
from ndb_formats.types.decimals import decimal_groups

IMAGE = pa.map_(pa.string(), pa.string())
_SPARE = 8
_MOST_OF_A_CHARACTER = 4
_INTEGERS = {
    ColumnCode.TINY: 1,
    ColumnCode.SHORT: 2,
    ColumnCode.INT24: 3,
    ColumnCode.LONG: 4,
    ColumnCode.LONGLONG: 8,
}
_FLOATS = {ColumnCode.FLOAT: Step.FLOAT, ColumnCode.DOUBLE: Step.DOUBLE}
_TEMPORAL = {
    ColumnCode.DATE: Step.DATE,
    ColumnCode.NEWDATE: Step.DATE,
    ColumnCode.TIME2: Step.TIME,
    ColumnCode.DATETIME2: Step.DATETIME,
    ColumnCode.TIMESTAMP2: Step.TIMESTAMP,
}


@attrs.frozen(eq=False)
class MixedRows:
    """
    Row changes of a block, in the order of the file.

    Attributes:
        shapes: The shapes that they have.
        shape_of: Number of the shape of each row. Shape (rows,), int64.
        records: The columns of `METADATA` but for the operation, and the maps ``before`` and ``after``.
        events: Number of the event of each row among those of `commits`. Shape (rows,), int64.
        commits: The transactions that the rows are part of.
    """

    shapes: Sequence[BatchShape]
    shape_of: npt.NDArray[np.int64]
    records: pa.RecordBatch = attrs.field(repr=False)
    events: npt.NDArray[np.int64] = attrs.field(repr=False)
    commits: Commits = attrs.field(repr=False)

    def __len__(self) -> int:
        return int(self.records.num_rows)

    def where(self, kept: npt.NDArray[np.bool_]) -> MixedRows:
        """Return the rows that are kept. Shape (rows,)."""
        if kept.all():
            return self
        return attrs.evolve(
            self,
            shape_of=self.shape_of[kept],
            records=self.records.filter(pa.array(kept)),
            events=self.events[kept],
        )


class MixedReader(BlockReader[RowBatch | MixedRows]):
    """Makes maps of the rows of a block, or a batch of those that have the same table, operation and columns."""

    def __init__(self, walk: RowWalk) -> None:
        """Read what a walk finds."""
        super().__init__(walk)
        self._batches = BatchReader(walk)
        self._plans = (_Plan(0), _Plan(1))

    def parts(self, order: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64]) -> Sequence[BlockPart]:
        """Return the rows of a block by shape."""
        return self._batches.parts(order, bounds)

    def columns(self, part: BlockPart) -> tuple[Sequence[ImageColumn], npt.NDArray[np.uint32]]:
        """Return the columns of both images, and the cells of each. Shape (columns, rows)."""
        return self._batches.columns(part)

    def batch(self, part: BlockPart, chunk: EventChunk) -> RowBatch:
        """Return the rows of a shape."""
        return self._batches.batch(part, chunk)

    def _emit(self, chunk: EventChunk, count: int) -> Iterator[list[RowBatch | MixedRows]]:
        """Yield the first rows of a block, as maps if that can be done."""
        try:
            mixed = self._mixed(chunk, count) if count else None
        except ColumnFaultError:
            mixed = None
        if mixed is None:
            yield from super()._emit(chunk, count)
        else:
            yield [mixed]

    def _mixed(self, chunk: EventChunk, count: int) -> MixedRows | None:
        """
        Return the first rows of a block; None if they have another value than the loop can write.

        Raises:
            ColumnFaultError: Arrow cannot hold a value.
        """
        walk = self.walk
        shapes, shape_of = walk.register.shapes, walk.rows.batches[:count].copy()
        counts = np.bincount(shape_of, minlength=len(shapes))
        if not all(shapes[number].signs_known for number in np.flatnonzero(counts).tolist()):
            return None
        images = [plan.maps(walk, chunk, shape_of, counts) for plan in self._plans]
        if images[0] is None or images[1] is None:
            return None
        assert walk.commits is not None
        events, arrays = self.facts(np.arange(count), chunk)
        names = [*METADATA.names[: len(arrays)], "before", "after"]
        return MixedRows(shapes, shape_of, pa.record_batch([*arrays, *images], names), events, walk.commits)


class _Plan:
    """How one of the images of every shape is written; shapes are added as they are met."""

    def __init__(self, image: int) -> None:
        """Know no shape yet; `image` is 0 for before images and 1 for after images."""
        self._image = image
        self._images, self._steps = Growing(len(Image), np.int64), Growing(len(Field), np.int64)
        self._groups, self._names = Growing(None, np.int64), Growing(None, np.uint8)
        self._sizes, self._characters = Growing(256, np.uint8), Growing(256, np.uint32)
        self._tables: dict[str, int] = {}
        self._there, self._rooms, self._stretch = Growing(None, np.bool_), Growing(None, np.int64), 1
        self._given: dict[int, list[tuple[int, int, ImageColumn]]] = {}

    def maps(
        self, walk: RowWalk, chunk: EventChunk, shape_of: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
    ) -> pa.MapArray | None:
        """
        Return the images of rows, null where a row has none; None if one has a value that the loop cannot write.

        Args:
            walk: Where the values of the rows are.
            chunk: The events of the rows.
            shape_of: The shape of each row. Shape (rows,).
            counts: Rows of each shape. Shape (shapes,).

        Raises:
            ColumnFaultError: Arrow cannot hold a value.
        """
        for shape in walk.register.shapes[self._images.count :]:
            self._add(shape)
        given = self._given_texts(walk, chunk, shape_of, counts)
        images = self._images.array[: len(counts)]
        ends = np.cumsum(images[:, Image.STEPS].take(shape_of))
        entries, size = int(ends[-1]), int(counts @ images[:, Image.NAMES_SIZE])
        spans = walk.rows.offsets
        span = int(spans[len(shape_of) - 1, 2]) - int(spans[0, 0])
        room = int(counts @ self._rooms.array[: len(counts)]) + span * self._stretch + len(given[1])
        if max(room, size) > MOST_BYTES:
            return None
        name_offsets, offsets = np.empty(entries + 1, np.int32), np.empty(entries + 1, np.int32)
        names, out = np.empty(size + _SPARE, np.uint8), np.empty(room + _SPARE, np.uint8)
        there = np.ones(entries, np.bool_)
        good = put_images(
            read_only(chunk.data), chunk.base, (shape_of, walk.rows.first_cells[: len(shape_of)]), walk.cells,
            (images, *(each.array for each in (self._steps, self._groups, self._sizes, self._characters, self._names))),
            given, (name_offsets, names, offsets, out, there),
        )  # fmt: skip
        if not good:
            return None
        children = [strings(name_offsets, names, None), strings(offsets, out, None if there.all() else there)]
        entries_of_rows = pa.Array.from_buffers(ENTRY, entries, [None], 0, children=children)
        has_image = self._there.array.take(shape_of)
        missing = len(shape_of) - int(np.count_nonzero(has_image))
        validity = pa.py_buffer(np.packbits(has_image, bitorder="little")) if missing else None
        parts = [validity, pa.py_buffer(np.append(0, ends).astype(np.int32))]
        return pa.Array.from_buffers(IMAGE, len(shape_of), parts, missing, children=[entries_of_rows])

    def _given_texts(
        self, walk: RowWalk, chunk: EventChunk, shape_of: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """Make the texts of columns without a step of their own; return where they start, and their bytes."""
        starts, texts, end, first = [np.zeros(0, np.int64)], [], 0, 0
        wanted = [number for number in np.flatnonzero(counts).tolist() if self._given[number]]
        order, bounds = by_kind(shape_of, len(shape_of), len(counts)) if wanted else (shape_of, shape_of)
        for number in wanted:
            cells_at = walk.rows.first_cells.take(order[bounds[number] : bounds[number + 1]])
            for step, cell, column in self._given[number]:
                array = column.array(chunk.data, chunk.base, walk.cells.take(cells_at + cell))
                found = texts_of(value_texts(array, column.layout.types[column.ordinal].code))
                self._steps.array[step, Field.FIRST] = first
                starts.append(end + found.offsets.astype(np.int64))
                texts.append(found.data[: found.offsets[-1]])
                first, end = first + len(found.offsets), end + len(texts[-1])
        return np.concatenate(starts), np.concatenate([*texts, np.zeros(_SPARE, np.uint8)])

    def _add(self, shape: BatchShape) -> None:
        present = (shape.before, shape.after)[self._image]
        columns = (shape.before_columns, shape.after_columns)[self._image]
        first_cell = len(shape.before_columns) if self._image else 0
        readers = [column.reader for column in columns]
        texts = [column.name.encode() for column in columns]
        start, given, room = self._steps.count, [], 0
        for place, (column, name) in enumerate(zip(columns, texts, strict=True)):
            step = self._step(column, readers[place])
            if step[0] is Step.GIVEN:
                given.append((self._steps.count, first_cell + place, column))
            elif step[0] not in (Step.UTF8, Step.ONE_BYTE):
                room += MAX_TEXT
            self._steps.add((*step, len(name)))
        self._given[self._images.count] = given
        self._there.add(int(present is not None))
        self._rooms.add(room)
        self._images.add((start, len(columns), first_cell, self._names.add(b"".join(texts)), sum(map(len, texts))))

    def _step(self, column: ImageColumn, reader: ColumnReader) -> tuple[int, int, int, int]:
        """Return how values of a column become text, by `Field`."""
        codec = reader.codec
        meaning = codec.meaning
        if column.diff or meaning is None:
            return Step.GIVEN, 0, 0, 0
        wire, prefix = meaning.wire, codec.width if codec.prefixed else -1
        if wire.code in _INTEGERS:
            return Step.UNSIGNED if meaning.unsigned else Step.SIGNED, _INTEGERS[wire.code], 0, 0
        if wire.code in STRINGS and meaning.charset in ("utf8mb4", "utf8mb3"):
            return Step.UTF8, prefix, codec.width, 0
        if wire.code in STRINGS and meaning.charset is not None and single_byte_table(meaning.charset):
            return Step.ONE_BYTE, prefix, codec.width, self._table(meaning.charset)
        if wire.code is ColumnCode.NEWDECIMAL and 0 < wire.length <= SHORT_DIGITS and wire.scale >= 0:
            whole, part = decimal_groups(wire.length, wire.scale)
            first = self._groups.count
            self._groups.add(*whole, *part)
            return Step.DECIMAL, first, self._groups.count, wire.scale
        if wire.code in _FLOATS:
            return _FLOATS[wire.code], 0, 0, 0
        if wire.code in _TEMPORAL and wire.length <= MAX_PRECISION:
            return _TEMPORAL[wire.code], wire.length, 0, 0
        return Step.GIVEN, 0, 0, 0

    def _table(self, charset: str) -> int:
        """Return the number of a one-byte character set."""
        if charset not in self._tables:
            table = single_byte_table(charset)
            assert table is not None
            sizes, characters = table
            self._tables[charset] = self._sizes.add(sizes.tolist())
            self._characters.add(characters.tolist())
            self._stretch = _MOST_OF_A_CHARACTER
        return self._tables[charset]
