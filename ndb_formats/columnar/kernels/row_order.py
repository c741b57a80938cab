"""
Rows that were walked over, brought into the order in which batches want them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["by_kind", "cells_of"]


@njit(cache=True, nogil=True)
def by_kind(row_batch, count, batches):
    """
    Sort rows by batch, in order within each.

    Returns:
        Row numbers, shape (count,), and where each batch starts among them, shape (batches + 1,).
    """
    bounds = np.zeros(batches + 1, np.int64)
    for row in range(count):
        bounds[row_batch[row] + 1] += 1
    for batch in range(batches):
        bounds[batch + 1] += bounds[batch]
    free = bounds.copy()
    order = np.empty(count, np.int64)
    for row in range(count):
        batch = row_batch[row]
        order[free[batch]] = row
        free[batch] += 1
    return order, bounds


@njit(cache=True, nogil=True)
def cells_of(cells, row_cell, rows, width):
    """Return the cells of rows column by column. Shape (width, rows), uint32."""
    result = np.empty((width, len(rows)), np.uint32)
    for place in range(len(rows)):
        first = row_cell[rows[place]]
        for column in range(width):
            result[column, place] = cells[first + column]
    return result
