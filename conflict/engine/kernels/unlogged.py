"""
Rows of which a log may show that its cluster changed them without it; `conflict.history.unlogged_changes` tells surely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conflict.engine.kernels.arrays import Bool, Int32, UInt64
from ndb_formats.columnar.kernel import inlined, kernel

__all__ = ["BREAK", "UNTOLD", "RowStates", "suspected_rows"]

# In place of digests (0: values that are not known): no row, a state that is not told, a statement that changes the
# table.
MISSING, UNTOLD, BREAK = np.uint64(1), np.uint64(2), np.uint64(3)
HALF, NEVER = np.uint64(32), np.uint64(0)


class RowStates(NamedTuple):
    """
    What a log says of rows, in the order of own epochs. Shape (events,).

    Attributes:
        key: The row. int32.
        epoch: Own epoch. uint64.
        before: Digest of the row as it was found; `UNTOLD` where the log does not tell. uint64.
        after: Digest of the row from then on; `BREAK` for a statement that changes the table. uint64.
    """

    key: Int32
    epoch: UInt64
    before: UInt64
    after: UInt64


@inlined
def fits(before, state):
    """Whether a row that was given an image last can be the one before a change."""
    if before == MISSING:
        return state == MISSING
    alike = before >> HALF == state >> HALF  # else they carry other columns; ANY carries none
    return state != MISSING and (not alike or before == state)


@kernel
def suspected_rows(own: RowStates, applied: RowStates, rows: int) -> Bool:
    """
    Return the rows whose last state in an earlier epoch is not the one that a change finds.

    Args:
        own: The own changes.
        applied: What the applier did; `before` is told of refreshes.
        rows: How many rows there are.

    Returns:
        Which rows they are. Shape (rows,).
    """
    found = np.zeros(rows, np.bool_)
    state, at = np.zeros((2, rows), np.uint64), np.zeros((2, rows), np.uint64)
    first, second = 0, 0
    while first < len(own.key) or second < len(applied.key):
        mine = second == len(applied.key) or (first < len(own.key) and own.epoch[first] <= applied.epoch[second])
        if mine:
            key, epoch, before, after = own.key[first], own.epoch[first], own.before[first], own.after[first]
            first += 1
        else:
            key, epoch = applied.key[second], applied.epoch[second]
            before, after = applied.before[second], applied.after[second]
            second += 1
        if after == BREAK:
            at[0, key], at[1, key] = NEVER, NEVER
            continue
        newest = max(at[0, key], at[1, key])
        if before != UNTOLD and newest != NEVER:
            here = at[0, key] == newest and fits(before, state[0, key])
            there = at[1, key] == newest and fits(before, state[1, key])
            if not here and not there:
                found[key] = True
        side = 0 if mine else 1
        state[side, key], at[side, key] = after, epoch
    return found
