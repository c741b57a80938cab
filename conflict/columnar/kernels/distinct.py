"""
Which image numbers there are among many.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["distinct_numbers"]


@njit(cache=True)
def distinct_numbers(numbers, seen):
    """
    Return the different numbers that are not negative, in the order in which they turn up.

    Args:
        numbers: Shape (numbers,).
        seen: All False, and again so afterwards. Shape (more than the highest number,).
    """
    found = np.empty(len(numbers), np.int64)
    count = 0
    for number in numbers:
        if number >= 0 and not seen[number]:
            seen[number] = True
            found[count] = number
            count += 1
    for place in range(count):
        seen[found[place]] = False
    return found[:count].copy()
