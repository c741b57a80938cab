"""
Binary searches in sorted columns: which changes of a cluster come before an epoch apply, where each epoch begins.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel

__all__ = ["LAST_EPOCH", "PAST_ALL_GROUPS", "boundaries_of", "first_at_least", "open_start", "open_starts", "reaches"]

# Higher than the group of any epoch, and the highest epoch.
PAST_ALL_GROUPS = np.int64(2**40)
LAST_EPOCH = np.uint64(2**64 - 1)


@kernel
def boundaries_of(numbers):
    """
    Return the distinct numbers of an array, and where each begins.

    Args:
        numbers: Integers, equal ones next to each other. Shape (rows,).

    Returns:
        The distinct numbers, shape (distinct,); and the first row of each and the number of rows, int32, shape
        (distinct + 1,).
    """
    starts = np.empty(len(numbers) + 1, np.int32)
    found = 0
    for row in range(len(numbers)):
        if row == 0 or numbers[row] != numbers[row - 1]:
            starts[found] = row
            found += 1
    starts[found] = len(numbers)
    return numbers[starts[:found]], starts[: found + 1].copy()


@inlined
def reaches(row, epoch, group):
    """Whether a change (`CHANGE`) belongs to a group of an epoch, or to a later one."""
    return row["epoch"] > epoch or (row["epoch"] == epoch and row["group"] >= group)


@inlined
def first_at_least(numbers, low, high, number):
    """Return the first index from `low` to `high` of an element that is not lower than `number`; `high` for none."""
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _seek(rows, low, high, epoch, group):
    """Return the first change from `low` to `high` of (epoch, group) or later; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if reaches(rows[middle], epoch, group):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def open_start(number, schedule, changes):
    """
    Return the first own change that may have come after the applier began with an epoch.

    Computes docs/concepts.md, "What binlogs leave open".

    Args:
        number: Of the epoch apply.
        schedule: `Schedule`.
        changes: `Changes`.
    """
    apply = schedule.applies[number]
    here = np.int64(apply["applier"])
    low, high = changes.begin[here], changes.begin[here + 1]
    start = _seek(changes.rows, low, high, apply["arrived_epoch"], np.int64(apply["arrived_group"]) + 1)
    if apply["previous"] >= 0:
        before = schedule.applies[apply["previous"]]
        follows = np.int64(before["group"]) + (not before["traced"])
        start = max(start, _seek(changes.rows, low, high, before["epoch"], follows))
    return start


@kernel
def open_starts(applies, schedule, changes):
    """
    Return `open_start` of several epoch applies. int64, shape (applies,).

    Args:
        applies: Their numbers. int64, shape (applies,).
        schedule: `Schedule`.
        changes: `Changes`.
    """
    found = np.empty(len(applies), np.int64)
    for place in range(len(applies)):
        found[place] = open_start(applies[place], schedule, changes)
    return found
