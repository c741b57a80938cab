"""
Binary searches: which of a cluster's changes come before an epoch apply, and stretches of equal numbers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["HIGHEST", "LAST_EPOCH", "boundaries_of", "first_at_least", "open_start", "reaches"]

# No group of an epoch is as high, and no epoch is later.
HIGHEST = np.int64(2**40)
LAST_EPOCH = np.uint64(2**64 - 1)


@njit(cache=True, nogil=True)
def boundaries_of(numbers):
    """
    Return the numbers that stand in an array, each once, and where each begins; last, the length of the array.

    Args:
        numbers: Integers, of which equal ones stand together. Shape (rows,).
    """
    starts = np.empty(len(numbers) + 1, np.int32)
    found = 0
    for row in range(len(numbers)):
        if row == 0 or numbers[row] != numbers[row - 1]:
            starts[found] = row
            found += 1
    starts[found] = len(numbers)
    return numbers[starts[:found]], starts[: found + 1].copy()


@njit(inline="always")
def reaches(row, epoch, group):
    """Whether a change stands at or after (epoch, group)."""
    return row["epoch"] > epoch or (row["epoch"] == epoch and row["group"] >= group)


@njit(inline="always")
def first_at_least(numbers, low, high, number):
    """Return the first place from `low` to `high` that holds no lower number; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _seek(rows, low, high, epoch, group):
    """Return the first change from `low` to `high` at or after (epoch, group); `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if reaches(rows[middle], epoch, group):
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def open_start(number, schedule, changes):
    """Return the first own change from which on an applier may have begun with an epoch."""
    apply = schedule.applies[number]
    low, high = changes.begin[apply["applier"]], changes.end[apply["applier"]]
    start = _seek(changes.rows, low, high, apply["arrived_epoch"], np.int64(apply["arrived_group"]) + 1)
    if apply["previous"] >= 0:
        before = schedule.applies[apply["previous"]]
        follows = np.int64(before["group"]) + (not before["traced"])
        start = max(start, _seek(changes.rows, low, high, before["epoch"], follows))
    return start
