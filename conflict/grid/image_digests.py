"""
Digests of row images: they tell whether two images carry the same columns, and if so, whether with the same values.

The upper half of a digest is the CRC32 of the set of columns, the lower half that of the image's bytes. No image has
the digest 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["COLUMNS_SHIFT", "digest_of", "digests_of_columns"]

COLUMNS_SHIFT = 32


def digest_of(carried: bytes, image: bytes) -> int:
    """
    Return the digest of an image.

    Args:
        carried: The columns that it carries, one bit each, as in `conflict.grid.schemas.CHANGES`.
        image: Its bytes.
    """
    return zlib.crc32(carried) << COLUMNS_SHIFT | zlib.crc32(image)


def digests_of_columns(carried: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    """Return the upper half of the digests of images by the columns that they carry. Shape (sets,)."""
    return np.array([zlib.crc32(each) << COLUMNS_SHIFT if each else 0 for each in carried], np.uint64)
