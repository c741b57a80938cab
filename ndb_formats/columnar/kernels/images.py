"""
The offsets of the values in row images that are not in events.

The images of one table are concatenated in one array of bytes. A *cell* is the offset of a value (of its length, if it
has one), as in `rows`. The columns that an image carries are given by the number of a set of columns.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import kernel
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import little_endian

__all__ = ["find_cells"]


@kernel
def find_cells(data, offsets, chosen, set_offsets, set_columns, prefixes, widths):
    """
    Return the cells of images.

    Args:
        data: The images. Shape (bytes,), uint8.
        offsets: Start of each image, and end of the last one. Shape (images + 1,), int32.
        chosen: Number of the set of columns that each image carries. Shape (images,).
        set_offsets: Set n is ``set_columns[set_offsets[n]:set_offsets[n + 1]]``. Shape (sets + 1,).
        set_columns: Positions of columns.
        prefixes: Bytes of the length before each value of a column; -1 for a fixed width. Shape (columns,).
        widths: That width. Shape (columns,).

    Returns:
        The cells, `NULL_CELL` for NULL and for what an image does not carry: shape (columns, images), uint32; and the
        first image that ends before its values do, or -1.
    """
    cells = np.full((len(prefixes), len(chosen)), NULL_CELL, np.uint32)
    for image in range(len(chosen)):
        nulls, end = np.int64(offsets[image]), np.int64(offsets[image + 1])
        first, count = set_offsets[chosen[image]], set_offsets[chosen[image] + 1] - set_offsets[chosen[image]]
        offset = nulls + ((count + 7) >> 3)
        if offset > end:
            return cells, image
        for number in range(count):
            if data[nulls + (number >> 3)] >> (number & 7) & 1:
                continue
            column = set_columns[first + number]
            cells[column, image] = offset
            prefix = prefixes[column]
            if prefix < 0:
                offset += widths[column]
            else:
                if offset + prefix > end:
                    return cells, image
                offset += prefix + np.int64(little_endian(data, offset, prefix))
            if offset > end:
                return cells, image
    return cells, -1
