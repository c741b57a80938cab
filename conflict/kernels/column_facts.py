"""
What follows from the set of columns that an image carries, looked up for every row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["facts_of_rows"]


@njit(cache=True)
def facts_of_rows(facts, key_table, key, column_set):
    """
    Return the fact of each row's image. Shape (rows,).

    Args:
        facts: By table and set of columns; the last set is no image. Shape (tables, sets + 1).
        key_table: Table number of each key. Shape (keys,).
        key: Of each row. Shape (rows,).
        column_set: Which columns its image carries; -1 for no image. Shape (rows,).
    """
    found = np.empty(len(key), facts.dtype)
    for row in range(len(key)):
        found[row] = facts[key_table[key[row]], column_set[row]]
    return found
