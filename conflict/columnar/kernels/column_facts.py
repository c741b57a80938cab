"""
What follows from the set of columns that an image carries, looked up for every row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["facts_of_rows"]


@njit(cache=True, nogil=True)
def facts_of_rows(facts, key_table, key, carried):
    """
    Return the fact of each row's image. Shape (rows,).

    Args:
        facts: By table and what the image carries. Shape (tables, sets).
        key_table: Table number of each key. Shape (keys,).
        key: Of each row. Shape (rows,).
        carried: Number of what its image carries. Shape (rows,).
    """
    found = np.empty(len(key), facts.dtype)
    if len(facts) == 1:  # one table, whose number need not be looked up
        for row in range(len(key)):
            found[row] = facts[0, np.uint32(carried[row])]
    else:
        for row in range(len(key)):
            found[row] = facts[key_table[key[row]], carried[row]]
    return found
