"""
The lower half of digests of row images; see `conflict.grid.image_digests`.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import kernel
from ndb_formats.columnar.kernels.checksums import crc32

__all__ = ["add_values"]


@kernel
def add_values(data, starts, sizes, digests):
    """
    Add the lower half to digests of images that have the upper half.

    Args:
        data: Bytes that hold images. uint8, shape (bytes,).
        starts: Where each image starts. int64, shape (rows,).
        sizes: Its bytes; -1 if there is none. int64, shape (rows,).
        digests: The digests. uint64, shape (rows,).
    """
    for place in range(len(digests)):
        if sizes[place] >= 0:
            digests[place] |= np.uint64(crc32(data, starts[place], starts[place] + sizes[place]))
