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

from ndb_formats.events.row_image import RowImage, put_image

__all__ = ["COLUMNS_SHIFT", "carried_by", "digest_of", "digests_of_columns", "other_values"]

COLUMNS_SHIFT = 32


def carried_by(image: RowImage) -> bytes:
    """Return the columns that an image carries, one bit each, as in `conflict.grid.schemas.CHANGES`."""
    return sum(1 << place for place in image.present).to_bytes((len(image.layout.codecs) + 7) // 8, "little")


def digest_of(image: RowImage) -> int:
    """Return the digest of an image."""
    return zlib.crc32(carried_by(image)) << COLUMNS_SHIFT | zlib.crc32(put_image(image))


def other_values(first: int, second: int) -> bool:
    """Whether two digests are of images with the same columns and other values."""
    return first != second and first >> COLUMNS_SHIFT == second >> COLUMNS_SHIFT


def digests_of_columns(carried: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    """Return the upper half of the digests of images by the columns that they carry. Shape (sets,)."""
    return np.array([zlib.crc32(each) << COLUMNS_SHIFT if each else 0 for each in carried], np.uint64)
