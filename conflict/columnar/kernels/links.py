"""
What the rounds of transaction passes look up: which rows transactions touch, and what hangs together.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conflict.columnar.kernels.arrays import Int8, Int32, OperationKind, each_read_only
from conflict.columnar.kernels.search import first_at_least
from ndb_formats.columnar.kernels.compiled import njit_uncounted

__all__ = ["epoch_of_rows", "linked", "mark_keys", "reach", "rows_of_keys"]

EMPTY = int(OperationKind.EMPTY)


@njit(cache=True, nogil=True)
def epoch_of_rows(epochs, starts, rows):
    """Return the epoch of some rows, whose numbers are in order; see `boundaries_of`."""
    found = np.empty(len(rows), np.uint64)
    place = 0
    for number in range(len(rows)):
        while starts[place + 1] <= rows[number]:
            place += 1
        found[number] = epochs[place]
    return found


@njit(cache=True, nogil=True)
def mark_keys(row_epochs, starts, row_group, key, epochs, groups, affected):
    """
    Mark the keys of rows that stand in one of some groups; both are in the order of epoch and group.

    Args:
        row_epochs: The different epochs of the rows; see `conflict.columnar.kernels.search.boundaries_of`.
        starts: Where the rows of each begin.
        row_group: Group of each row.
        key: Key of each row.
        epochs: Of each group that is looked for.
        groups: Its number.
        affected: What is marked. Shape (keys,).
    """
    here = 0
    for place in range(len(epochs)):
        step = 1
        while here + step < len(row_epochs) and row_epochs[here + step] < epochs[place]:
            here += step  # longer and longer steps
            step *= 2
        here = first_at_least(row_epochs, here, min(here + step, len(row_epochs)), epochs[place])
        if here == len(row_epochs):
            break
        if row_epochs[here] == epochs[place]:
            stop = starts[here + 1]
            row = first_at_least(row_group, starts[here], stop, groups[place])
            while row < stop and row_group[row] == groups[place]:
                affected[key[row]] = True
                row += 1


@njit(cache=True, nogil=True)
def rows_of_keys(key, wanted):
    """
    Return the numbers of the rows of some keys.

    Args:
        key: Of each row.
        wanted: Whether a key is one of them. Shape (keys,).
    """
    found = np.empty(len(key), np.int32)
    count = 0
    for row in range(len(key)):
        found[count] = row
        count += wanted[key[row]]
    return found[:count].copy()


def linked(apply: Int32, key: Int32, group: Int32, kind: Int8, keys: int) -> Int32:
    """
    Return key, take and both groups wherever a group touched a row right after another one of the same take.

    Operations that are empty do not count. Shape of the result (pairs, 4).
    """
    columns, room = each_read_only(apply, key, group, kind), len(apply) // 16 + 1024
    while True:
        pairs = np.empty((room, 4), np.int32)
        found = _linked(*columns, np.full(keys, -1, np.int32), np.zeros(keys, np.int32), pairs)
        if found <= room:
            return pairs[:found]
        room = int(found)


@njit_uncounted()
def _linked(apply, key, group, kind, last_apply, last_group, pairs):
    """Fill in the pairs as far as there is room; returns how many there are."""
    found = 0
    for place in range(len(apply)):
        if kind[place] == EMPTY:
            continue
        row = key[place]
        if last_apply[row] == apply[place] and last_group[row] != group[place]:
            if found < len(pairs):
                pairs[found, 0], pairs[found, 1] = row, apply[place]
                pairs[found, 2], pairs[found, 3] = last_group[row], group[place]
            found += 1
        last_apply[row], last_group[row] = apply[place], group[place]
    return found


@njit(cache=True, nogil=True)
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
