"""
What the rounds of transaction passes look up: which rows transactions touch, and what hangs together.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["by_key", "linked", "mark_keys", "reach", "rows_of_keys"]


@njit(cache=True, inline="always")
def _before(row_epoch, row_group, row, epoch, group):
    """Whether a row comes before a group."""
    return row_epoch[row] < epoch or (row_epoch[row] == epoch and row_group[row] < group)


@njit(cache=True)
def mark_keys(row_epoch, row_group, key, epochs, groups, affected):
    """Mark the keys of rows that stand in one of some groups; rows and groups are in the order of epoch and group."""
    row, count = 0, len(row_epoch)
    for place in range(len(epochs)):
        epoch, group = epochs[place], groups[place]
        low, step = row, 1
        while low + step <= count and _before(row_epoch, row_group, low + step - 1, epoch, group):
            low += step  # longer and longer steps
            step *= 2
        high = min(low + step - 1, count)
        while low < high:
            middle = (low + high) // 2
            if _before(row_epoch, row_group, middle, epoch, group):
                low = middle + 1
            else:
                high = middle
        row = low
        while row < count and row_epoch[row] == epoch and row_group[row] == group:
            affected[key[row]] = True
            row += 1


@njit(cache=True)
def by_key(key, keys):
    """Return the numbers of rows by key, in order, and where each key's begin."""
    offsets = np.zeros(keys + 1, np.int32)
    for row in range(len(key)):
        offsets[key[row] + 1] += 1
    for number in range(keys):
        offsets[number + 1] += offsets[number]
    place = offsets.copy()
    order = np.empty(len(key), np.int32)
    for row in range(len(key)):
        order[place[key[row]]] = row
        place[key[row]] += 1
    return order, offsets


@njit(cache=True)
def rows_of_keys(order, offsets, keys):
    """Return the numbers of the rows of some keys, key by key; see `by_key`."""
    count = 0
    for key in keys:
        count += offsets[key + 1] - offsets[key]
    rows = np.empty(count, np.int32)
    count = 0
    for key in keys:
        for place in range(offsets[key], offsets[key + 1]):
            rows[count] = order[place]
            count += 1
    return rows


@njit(cache=True)
def linked(take, key, group, empty, keys):
    """
    Return key, take and both groups wherever a group touched a row right after another one of the same take.

    Operations that are empty do not count. Shape of the result (pairs, 4).
    """
    last_take, last_group = np.full(keys, -1, np.int32), np.zeros(keys, np.int32)
    pairs = np.empty((0, 4), np.int32)
    for writing in range(2):
        found = 0
        for place in range(len(take)):
            if empty[place]:
                continue
            row = key[place]
            if last_take[row] == take[place] and last_group[row] != group[place]:
                if writing:
                    pairs[found, 0], pairs[found, 1] = row, take[place]
                    pairs[found, 2], pairs[found, 3] = last_group[row], group[place]
                found += 1
            last_take[row], last_group[row] = take[place], group[place]
        if not writing:
            pairs = np.empty((found, 4), np.int32)
            last_take[:] = -1
    return pairs


@njit(cache=True)
def reach(start, offsets, successors, count):
    """Return which numbers can be reached from some; those of n are `successors[offsets[n]:offsets[n + 1]]`."""
    reached = np.zeros(count, np.bool_)
    waiting = np.empty(count, np.int64)
    length = 0
    for number in start:
        reached[number], waiting[length] = True, number
        length += 1
    while length:
        length -= 1
        number = waiting[length]
        for place in range(offsets[number], offsets[number + 1]):
            after = successors[place]
            if not reached[after]:
                reached[after], waiting[length] = True, after
                length += 1
    return reached
