"""
The images of one bucket, by number; each column of them is read on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.engine.kernels.arrays import Int64
from conflict.history.grid.columns import GridColumns
from conflict.history.grid.schemas import IMAGES

BEFORE, AFTER = IMAGES.names


@attrs.frozen(eq=False)
class BucketImages:
    """
    The images of a bucket's rows.

    Reading them costs more than deciding the bucket. So each column of each cluster is read on first use.

    Attributes:
        changes: Per cluster, the rows.
        standing: The images of rows that stood before these.
    """

    changes: Sequence[GridColumns]
    standing: pa.BinaryArray | None = None
    _columns: dict[tuple[int, str], pa.ChunkedArray] = attrs.field(factory=dict, repr=False)

    def column(self, side: int, which: str) -> pa.ChunkedArray:
        """
        Return the before or after images of a cluster, by row; NULL for no image.

        The standing images follow the last after images.
        """
        if (side, which) not in self._columns:
            found = self.changes[side].beside("images", pa.schema([IMAGES.field(which)])).column(0)
            if self.standing is not None and (side, which) == (len(self.changes) - 1, AFTER):
                found = pa.chunked_array([*found.chunks, self.standing])
            self._columns[side, which] = found
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
