"""
What follows from the shape of an event (see `conflict.grid.event_shapes`), looked up for every row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["facts_of_rows"]


@njit(cache=True, nogil=True)
def facts_of_rows(facts, key_table, key, shape):
    """
    Return the fact of each row. Shape (rows,).

    Args:
        facts: By table and shape of its event; one line stands for all tables. Shape (tables, shapes) or (1, shapes).
        key_table: Table number of each key. Shape (keys,).
        key: Of each row. Shape (rows,).
        shape: Number of its shape. Shape (rows,).
    """
    found = np.empty(len(shape), facts.dtype)
    if len(facts) == 1:
        for row in range(len(shape)):
            found[row] = facts[0, np.uint32(shape[row])]
    else:
        for row in range(len(shape)):
            found[row] = facts[key_table[key[row]], shape[row]]
    return found
