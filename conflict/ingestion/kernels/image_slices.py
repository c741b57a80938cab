"""
Where the images of rows are, and how long.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import kernel

__all__ = ["image_slices"]


@kernel
def image_slices(offsets, base, batches, carries):
    """
    Return where the images of rows start, and their bytes, -1 for none. Each of shape (2, rows), int64: before, after.

    Args:
        offsets: See `ndb_formats.columnar.row_walk.Rows`. Shape (rows, 3), uint32.
        base: What they count from.
        batches: Number of the shape of each row. Shape (rows,), int64.
        carries: Whether rows of each shape have a before image, and an after image. Shape (2, shapes), bool.
    """
    starts, sizes = np.empty((2, len(batches)), np.int64), np.empty((2, len(batches)), np.int64)
    for row in range(len(batches)):
        for image in range(2):
            start, end = np.int64(offsets[row, image]), np.int64(offsets[row, image + 1])
            starts[image, row] = base + start
            sizes[image, row] = end - start if carries[image, batches[row]] else -1
    return starts, sizes
