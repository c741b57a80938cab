"""
Values by image number: decodes the bytes of a bucket's images to Arrow columns, without Python code per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.engine.columnar.bucket import NO_IMAGE, Bucket
from conflict.engine.columnar.bucket_images import in_order_of_columns
from conflict.engine.kernels.arrays import Int32, Int64
from conflict.engine.kernels.column_scans import distinct_numbers
from conflict.engine.kernels.provenance import ABSENT_IMAGE
from conflict.engine.kernels.provenance_records import ColumnSets
from conflict.engine.ledger.arrow_rows import arrow_array
from ndb_formats.columnar.column_arrays import ColumnFaultError, ColumnReader
from ndb_formats.columnar.fast_columns import bytes_reader
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.values import find_cells
from ndb_formats.columnar.keys import Slices, slices
from ndb_formats.cursor import Cursor
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowImage, RowLayout, take_image
from ndb_formats.types.values import Value

_ROWS = 1 << 17  # per batch
# Bytes of images per batch: decoded text can be longer, and an Arrow column holds at most 2 GiB.
_BYTES = 1 << 29


@attrs.frozen(eq=False)
class DecodedColumn:
    """
    One column of some rows.

    Attributes:
        values: A value per image; NULL also for an image that no row has this column from. Shape (images,).
        indices: The image that each row has the column from; `absent` where there is none. Shape of the numbers given.
        absent: The number of images.
    """

    values: pa.Array
    indices: Int32
    absent: int

    def extended(self, more: Sequence[Value]) -> DecodedColumn:
        """Return the column with more values; the first of them has the index `absent`."""
        values = pa.concat_arrays([self.values, arrow_array(more, self.values.type)])
        return DecodedColumn(values, self.indices, self.absent)

    def take(self, indices: Int32) -> pa.Array:
        """Return values by index."""
        return self.values.take(pa.array(indices))

    def all_rows(self) -> pa.Array:
        """Return the value of each row."""
        return self.take(self.indices)


@attrs.frozen(eq=False)
class ImageValues:
    """The images of some rows of one table."""

    _layout: RowLayout
    _images: pa.Array
    _chosen: Int32  # the column set of each
    _sets: ColumnSets
    _cells: npt.NDArray[np.uint32]
    _index: Int32  # index of each image number among the images

    def column(self, ordinal: int, numbers: Int64, kind: pa.DataType) -> DecodedColumn:
        """
        Decode one column.

        Args:
            ordinal: Position of the column.
            numbers: Number of the image that each row has the column from. `ABSENT_IMAGE` becomes the index `absent`,
                the next lower number the index after it, and so on.
            kind: Type of the values, that of `conflict.engine.ledger.arrow_rows.row_schema`.

        Raises:
            FormatError: A value cannot be decoded; the error names table and column.
        """
        reader = ColumnReader.of(self._layout.codecs[ordinal], text=True)
        return self._column(reader, ordinal, numbers, kind)

    def payloads(self, ordinal: int, numbers: Int64) -> DecodedColumn:
        """Return the bytes of one column without decoding them; arguments as for `column`."""
        codec = self._layout.codecs[ordinal]
        reader = ColumnReader(codec, pa.binary(), bytes, bytes_reader(codec, 0))
        return self._column(reader, ordinal, numbers, pa.binary())

    def slices(self, ordinal: int, numbers: Int64) -> tuple[Slices, Int32]:
        """Return the bytes of one column by image, and the image of each row; arguments as for `column`."""
        indices, cells = self._cells_of(ordinal, numbers)
        return slices(self._layout.codecs[ordinal], _content(self._images), 0, cells), indices

    def _column(self, reader: ColumnReader, ordinal: int, numbers: Int64, kind: pa.DataType) -> DecodedColumn:
        indices, cells = self._cells_of(ordinal, numbers)
        try:
            values = reader.array(_content(self._images), 0, cells)
        except ColumnFaultError as fault:
            raise self._fault(reader, ordinal, fault.row) from None
        return DecodedColumn(values if values.type == kind else values.cast(kind), indices, len(values))

    def _cells_of(self, ordinal: int, numbers: Int64) -> tuple[Int32, npt.NDArray[np.uint32]]:
        """Return the index of each row's image, and where the values of those images are."""
        indices = self._index[np.maximum(numbers, ABSENT_IMAGE)]
        used = np.zeros(self._cells.shape[1] + 1, np.bool_)
        used[indices] = True
        # A value that no row has may be damaged: it is not decoded.
        cells = np.where(used[:-1], self._cells[ordinal], np.uint32(NULL_CELL))
        return indices + np.maximum(ABSENT_IMAGE - numbers, 0).astype(np.int32), cells

    def _fault(self, reader: ColumnReader, ordinal: int, index: int) -> FormatError:
        """Return why a value of an image cannot be decoded."""
        payload = self.image(index).raw(ordinal)
        assert isinstance(payload, bytes)
        try:
            reader.check(payload)
        except FormatError as error:
            return error.located(table=self._layout.table, column=self._layout.names[ordinal])
        message = f"a value of {self._layout.table} could not be decoded, and now can"
        raise AssertionError(message)

    def image(self, index: int) -> RowImage:
        """
        Return one of the images.

        Raises:
            FormatError: It is cut off.
        """
        first, last = self._sets.offsets[self._chosen[index] : self._chosen[index] + 2].tolist()
        return take_image(
            Cursor(self._images[index].as_py()), self._layout, tuple(self._sets.columns[first:last].tolist())
        )


class ImageReader:
    """
    Reads images of a bucket.

    Attributes:
        bucket: The bucket.
    """

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket

    @cached_property
    def _sets(self) -> Int32:
        """Number of each image's column set, by image number."""
        _, carried = self.bucket.logged_sets
        standing = self.bucket.standing_sets
        pairs = [*((side.before, side.after) for side in carried), (np.full_like(standing, NO_IMAGE), standing)]
        return np.concatenate([np.stack(pair, axis=1).ravel() for pair in pairs])

    def in_batches(
        self, table: int, count: int, numbers: Callable[[slice], Int64]
    ) -> Iterator[tuple[slice, ImageValues]]:
        """
        Yield the images of rows, a batch of rows at a time.

        Args:
            table: Number of the rows' table.
            count: How many rows there are.
            numbers: Returns the numbers of all images of a batch of rows, in any shape.

        Raises:
            FormatError: An image is cut off.
        """
        batches = [slice(start, min(start + _ROWS, count)) for start in range(0, count, _ROWS)][::-1]
        while batches:
            batch = batches.pop()
            values = self._read(table, numbers(batch).ravel(), indivisible=batch.stop - batch.start == 1)
            if values is None:
                middle = (batch.start + batch.stop) // 2
                batches += [slice(middle, batch.stop), slice(batch.start, middle)]
            else:
                yield batch, values

    def _read(self, table: int, numbers: Int64, *, indivisible: bool) -> ImageValues | None:
        """Find the values in images; None if these are too large for one batch that can be divided."""
        layout, images = self.bucket.layouts[table], self.bucket.images
        assert layout is not None
        assert images is not None
        first = len(self.bucket.changes[0])
        seen = np.zeros(len(self._sets), np.bool_)
        ordered = in_order_of_columns(np.sort(distinct_numbers(numbers, seen)), first)
        picked = images.pick(ordered, first)
        if not indivisible and sum(part.nbytes for part in picked) > _BYTES:
            return None
        joined = pa.concat_arrays([pa.array([], pa.binary()), *picked])
        chosen, (sets, _) = self._sets[ordered], self.bucket.logged_sets
        widths = np.array([codec.width for codec in layout.codecs], np.int64)
        prefixed = np.array([codec.prefixed for codec in layout.codecs], np.bool_)
        cells, cut_off = find_cells(
            _content(joined),
            np.frombuffer(joined.buffers()[1], np.int32, len(joined) + 1),
            chosen,
            sets.offsets,
            sets.columns,
            np.where(prefixed, widths, -1),
            widths,
        )
        index = np.empty(len(self._sets) + 1, np.int32)
        index[ordered] = np.arange(len(ordered), dtype=np.int32)
        index[ABSENT_IMAGE] = len(ordered)
        values = ImageValues(layout, joined, chosen, sets, cells, index)
        if cut_off >= 0:
            values.image(cut_off)
        return values


def _content(images: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the bytes of all images; the first one starts at 0."""
    return np.frombuffer(images.buffers()[2] or b"", np.uint8)
