"""
Rows that were walked over, sorted by batch.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import kernel

__all__ = ["by_kind", "cells_of"]


@kernel
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


@kernel
def cells_of(cells, row_cell, rows, width):
    """Return the cells of rows column by column. Shape (width, rows), uint32."""
    result = np.empty((width, len(rows)), np.uint32)
    for position in range(len(rows)):
        first = row_cell[rows[position]]
        for column in range(width):
            result[column, position] = cells[first + column]
    return result
