"""
Rows that their cluster may have changed without logging it; `conflict.history.reading.unlogged_changes` decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conflict.engine.kernels.arrays import Bool, Int32, UInt64
from ndb_formats.columnar.kernel import inlined, kernel

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


class _Known(NamedTuple):
    """
    What is known of rows, of what the cluster did itself and of what its applier did. uint64, shape (2, rows).

    Attributes:
        state: Digest of the row afterwards.
        at: The last own epoch before that says something; `NEVER` for none.
        now: Digest after the last event of this epoch.
        seen: The last own epoch that says something, this one too.
    """

    state: UInt64
    at: UInt64
    now: UInt64
    seen: UInt64


@inlined
def fits_known(before, key, known):
    """Whether a change can follow what earlier epochs say of its row; so it can if they say nothing."""
    newest = max(known.at[0, key], known.at[1, key])
    here = known.at[0, key] == newest and fits(before, known.state[0, key])
    there = known.at[1, key] == newest and fits(before, known.state[1, key])
    return newest == NEVER or here or there


@inlined
def look_at_own(own, events, epoch, known, found):
    """Look at the own changes of an epoch, given what the applier did in it."""
    for event in range(events[0], events[1]):
        key, before = own.key[event], own.before[event]
        if own.after[event] == BREAK:
            known.at[0, key], known.at[1, key], known.seen[0, key] = NEVER, NEVER, NEVER
            continue
        follows = fits(before, known.now[0, key]) if known.seen[0, key] == epoch else fits_known(before, key, known)
        beside = known.seen[1, key] == epoch and fits(before, known.now[1, key])
        if before != UNTOLD and not follows and not beside:
            found[key] = True
        known.now[0, key], known.seen[0, key] = own.after[event], epoch


@kernel
def suspected_rows(own: RowStates, applied: RowStates, rows: int) -> Bool:
    """
    Return the rows with a change that does not follow from what the log says of them before.

    They are more than those that were changed without a log: of several operations that an epoch apply had on a row,
    the last one is looked at alone, and it is not known how many the other cluster sent.

    Args:
        own: The own changes.
        applied: What the applier did; `before` is told of refreshes.
        rows: How many rows there are.

    Returns:
        Which rows they are. Shape (rows,).
    """
    found, times = np.zeros(rows, np.bool_), np.zeros(rows, np.int32)
    shape = (2, rows)
    known = _Known(
        np.zeros(shape, np.uint64), np.zeros(shape, np.uint64), np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
    )
    first, second = 0, 0
    while first < len(own.key) or second < len(applied.key):
        mine = second == len(applied.key) or (first < len(own.key) and own.epoch[first] <= applied.epoch[second])
        epoch = own.epoch[first] if mine else applied.epoch[second]
        begun = first, second
        while second < len(applied.key) and applied.epoch[second] == epoch:
            key = applied.key[second]
            times[key] = times[key] + 1 if known.seen[1, key] == epoch else 1
            known.now[1, key], known.seen[1, key] = applied.after[second], epoch
            second += 1
        while first < len(own.key) and own.epoch[first] == epoch:
            first += 1
        look_at_own(own, (begun[0], first), epoch, known, found)
        for event in range(begun[1], second):
            key, before = applied.key[event], applied.before[event]
            alone = times[key] == 1 and known.seen[0, key] != epoch
            if alone and before != UNTOLD and not fits_known(before, key, known):
                found[key] = True
        for event in range(begun[0], first):
            key = own.key[event]
            if known.seen[0, key] == epoch:
                known.state[0, key], known.at[0, key] = known.now[0, key], epoch
        for event in range(begun[1], second):
            key = applied.key[event]
            known.state[1, key], known.at[1, key] = known.now[1, key], epoch
    return found
