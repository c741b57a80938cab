"""
Stretches of rows: which of a cluster's come before a take, which belong to an epoch, which decisions to a take.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ndb_formats.columnar.kernels.compiled import njit_uncounted

__all__ = ["HIGHEST", "LAST_EPOCH", "first_at_least", "open_start", "reaches", "seek", "stretches_of"]

# No group of an epoch is as high, and no epoch is later.
HIGHEST = np.int64(2**40)
LAST_EPOCH = np.uint64(2**64 - 1)


@njit(cache=True, nogil=True)
def stretches_of(numbers):
    """
    Return the numbers that stand in an array, stretch by stretch, and where each begins, and the length of it.

    Args:
        numbers: Integers, of which equal ones stand together. Shape (rows,).
    """
    count = min(len(numbers), 1)
    for row in range(1, len(numbers)):
        count += numbers[row] != numbers[row - 1]
    different, starts = np.empty(count, numbers.dtype), np.empty(count + 1, np.int32)
    found = 0
    for row in range(len(numbers)):
        if row == 0 or numbers[row] != numbers[row - 1]:
            different[found], starts[found] = numbers[row], row
            found += 1
    starts[found] = len(numbers)
    return different, starts


@njit_uncounted(inline="always")
def reaches(row, epoch, group):
    """Whether a row stands at or after (epoch, group)."""
    return row["epoch"] > epoch or (row["epoch"] == epoch and row["group"] >= group)


@njit_uncounted(inline="always")
def first_at_least(numbers, low, high, number):
    """Return the first place from `low` to `high` that holds no lower number; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@njit_uncounted()
def seek(rows, low, high, near, epoch, group):
    """Return the first row from `low` on at or after (epoch, group), `high` if there is none; it is likely `near`."""
    if near > low and reaches(rows[near - 1], epoch, group):
        high = near - 1
    else:
        low = max(low, near)
        step = 1
        while low < high:  # take longer and longer steps
            probe = min(low + step, high) - 1
            if reaches(rows[probe], epoch, group):
                high = probe
                break
            low = probe + 1
            step *= 2
    while low < high:
        middle = (low + high) // 2
        if reaches(rows[middle], epoch, group):
            high = middle
        else:
            low = middle + 1
    return low


@njit_uncounted()
def open_start(applies, number, rows, low, high, near):
    """Return the first own row from which on an applier may have begun with a take: after the last, once it arrived."""
    apply = applies[number]
    start = seek(rows, low, high, near, apply["arrived_epoch"], np.int64(apply["arrived_group"]) + 1)
    if apply["previous"] >= 0:
        before = applies[apply["previous"]]
        follows = np.int64(before["group"]) + (not before["traced"])
        start = max(start, seek(rows, low, high, near, before["epoch"], follows))
    return start
