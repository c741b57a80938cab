"""
Row images outside of events: where every value of every column stands.

The images of one table stand one after the other in one array of bytes. A *cell* is where a value starts (at its
length, if it has one), as in `rows`. Which columns an image carries is known beforehand, as the number of a set.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import little_endian

__all__ = ["find_cells"]


@njit(cache=True, nogil=True)
def find_cells(data, offsets, chosen, set_offsets, set_columns, prefixes, widths):
    """
    Find the values of images.

    Args:
        data: What the images stand in. Shape (bytes,), uint8.
        offsets: Where each image starts, and the last one ends. Shape (images + 1,), int32.
        chosen: Which set of columns each image carries. Shape (images,).
        set_offsets: Set n is ``set_columns[set_offsets[n]:set_offsets[n + 1]]``. Shape (sets + 1,).
        set_columns: Positions of columns.
        prefixes: Bytes of the length before each value of a column; -1 for a fixed width. Shape (columns,).
        widths: That width. Shape (columns,).

    Returns:
        The cells, `NULL_CELL` for NULL and for what an image does not carry: shape (columns, images), uint32; and the
        first image that ends before its values do, -1 if there is none.
    """
    cells = np.full((len(prefixes), len(chosen)), NULL_CELL, np.uint32)
    for image in range(len(chosen)):
        nulls, end = np.int64(offsets[image]), np.int64(offsets[image + 1])
        first, count = set_offsets[chosen[image]], set_offsets[chosen[image] + 1] - set_offsets[chosen[image]]
        place = nulls + ((count + 7) >> 3)
        if place > end:
            return cells, image
        for number in range(count):
            if data[nulls + (number >> 3)] >> (number & 7) & 1:
                continue
            column = set_columns[first + number]
            cells[column, image] = place
            prefix = prefixes[column]
            if prefix < 0:
                place += widths[column]
            else:
                if place + prefix > end:
                    return cells, image
                place += prefix + np.int64(little_endian(data, place, prefix))
            if place > end:
                return cells, image
    return cells, -1
