"""
The rows of a block by shape, and by the values of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.kernels.row_order import by_kind, cells_of
from ndb_formats.columnar.records import value_texts
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import BatchShape, reader_of
from ndb_formats.events.row_image import RowLayout

__all__ = ["Part", "has_key", "parts_of"]

Int64 = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class Part:
    """
    Rows of one shape.

    Attributes:
        number: Number of the shape in the register.
        shape: The shape.
        rows: Their numbers in the block. Shape (rows,), int64.
        events: The event of each. Shape (rows,), int64.
        cells: The cells of each column of both images. Shape (columns, rows), uint32.
    """

    number: int
    shape: BatchShape
    rows: Int64
    events: Int64
    cells: npt.NDArray[np.uint32]

    def where(self, kept: npt.NDArray[np.bool_]) -> Part:
        """Return the rows that are kept."""
        if kept.all():
            return self
        return Part(self.number, self.shape, self.rows[kept], self.events[kept], self.cells[:, kept])


def parts_of(walk: RowWalk, count: int) -> Iterator[Part]:
    """Yield the first rows of a block by shape."""
    shapes = walk.register.shapes
    order, bounds = by_kind(walk.rows.batches, count, len(shapes))
    for number in np.flatnonzero(np.diff(bounds)).tolist():
        rows = order[bounds[number] : bounds[number + 1]]
        cells = cells_of(walk.cells, walk.rows.first_cells, rows, shapes[number].width)
        yield Part(number, shapes[number], rows, walk.rows.events[rows], cells)


def has_key(part: Part, chunk: EventChunk, layout: RowLayout, key: Sequence[tuple[str, str]]) -> npt.NDArray[np.bool_]:
    """
    Return which rows have an image that gives each of these columns its value. Shape (rows,).

    Args:
        part: The rows.
        chunk: Where they are.
        layout: How they are read, with the names of the columns.
        key: Names of columns and their values as text.
    """
    kept = np.ones(len(part.rows), np.bool_)
    columns = (*part.shape.before_columns, *part.shape.after_columns)
    for name, value in key:
        found = np.zeros(len(part.rows), np.bool_)
        for column, cells in zip(columns, part.cells, strict=True):
            if layout.names[column.ordinal] == name and not column.diff:
                array = reader_of(layout, column.ordinal, text=True).array(chunk.data, chunk.base, cells)
                texts = value_texts(array, layout.types[column.ordinal].code)
                found |= np.array(texts.to_numpy(zero_copy_only=False) == value, np.bool_)
        kept &= found
    return kept
