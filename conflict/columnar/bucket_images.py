"""
The images of a bucket's rows, read on first use.

An image is numbered ``2 * row`` (before) or ``2 * row + 1`` (after), the second cluster's rows counted after the first
one's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.columnar.kernels.arrays import Bool, Int64
from conflict.grid.folder import Folder
from conflict.grid.schemas import IMAGES

__all__ = ["BucketImages", "in_order_of_columns"]

BEFORE, AFTER = IMAGES.names


@attrs.frozen(eq=False)
class BucketImages:
    """
    The images of a bucket's rows.

    Reading them costs more than deciding the bucket. So each column of each cluster is read on first use.

    Attributes:
        history: Folder of the History.
        parts: Per cluster, the paths of its parts below that folder, in order.
        kept: Per cluster, the first row of these that the bucket holds, and the number of rows; none for all.
        chosen: Per cluster, which of these rows the bucket holds; none for all. Shape of each (rows,).
    """

    history: Folder
    parts: Sequence[Sequence[str]]
    kept: Sequence[tuple[int, int]] = ()
    chosen: Sequence[Bool] = ()
    _columns: dict[tuple[int, str], pa.ChunkedArray] = attrs.field(factory=dict, repr=False)

    def of(self, chosen: Sequence[Bool]) -> BucketImages:
        """Return those of some of all rows, per cluster. Shape of each (rows,)."""
        return attrs.evolve(self, chosen=chosen, columns={})

    def column(self, side: int, which: str) -> pa.ChunkedArray:
        """Return the before or after images of a cluster, by row; NULL for no image."""
        if (side, which) not in self._columns:
            tables = [self.history.read_table(path, IMAGES, [which]) for path in self.parts[side]]
            chunks = [chunk for table in tables for chunk in table.column(0).chunks]
            images = pa.chunked_array(chunks, IMAGES.field(which).type)
            images = images.slice(*self.kept[side]) if self.kept else images
            self._columns[side, which] = images.filter(pa.array(self.chosen[side])) if self.chosen else images
        return self._columns[side, which]

    def pick(self, numbers: Int64, first: int) -> list[pa.Array]:
        """
        Return images by their numbers.

        Args:
            numbers: In the order of columns (see `in_order_of_columns`). Shape (images,).
            first: How many rows the first cluster has.

        Returns:
            Their bytes in that order, in chunks.
        """
        picked = []
        row, after = numbers >> 1, numbers & 1
        bounds = [0, *(np.flatnonzero(np.diff((row >= first) * 2 + after)) + 1).tolist(), len(numbers)]
        for start, stop in pairwise(bounds):
            if start == stop:
                continue
            side = int(row[start] >= first)
            chunks = self.column(side, AFTER if after[start] else BEFORE).chunks
            picked += _take(chunks, row[start:stop] - side * first)
        return picked


def _take(chunks: Sequence[pa.Array], rows: Int64) -> list[pa.Array]:
    """Return the values of some rows, whose numbers ascend, chunk by chunk."""
    ends = np.cumsum([len(chunk) for chunk in chunks])
    cuts = pairwise([0, *np.searchsorted(rows, ends).tolist()])
    return [
        pc.take(chunk, pa.array(rows[start:stop] - (end - len(chunk))))
        for chunk, end, (start, stop) in zip(chunks, ends.tolist(), cuts, strict=True)
        if start < stop
    ]


def in_order_of_columns(numbers: Int64, first: int) -> Int64:
    """Return ascending image numbers by cluster, before images before after images; `first` as for `pick`."""
    sides = np.split(numbers, [np.searchsorted(numbers, 2 * first)])
    return np.concatenate([side[side & 1 == after] for side in sides for after in (0, 1)])
