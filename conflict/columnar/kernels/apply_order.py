"""
The order of the epoch applies of two appliers, and the max replicated epoch before each.

Computes docs/concepts.md, "Max replicated epoch".
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import kernel

__all__ = ["NO_CLUSTER", "known_before", "order"]

NO_CLUSTER = -1


@kernel
def order(epochs, foreign):
    """
    Return applier and number of the epoch applies in order, and the cluster whose next one is never possible.

    Args:
        epochs: Per cluster, the own epoch in which each epoch apply commits. uint64, shape (applies of it,).
        foreign: Per cluster, the foreign epoch of each epoch apply. uint64, shape (applies of it,).

    Returns:
        int8 and int64, shape (applies,); `NO_CLUSTER` if all are possible.
    """
    total = len(foreign[0]) + len(foreign[1])
    applier, number = np.empty(total, np.int8), np.empty(total, np.int64)
    done = np.zeros(2, np.int64)
    count, moved = 0, True
    while moved:
        moved = False
        for side in range(2):
            mine, theirs = foreign[side], epochs[1 - side]
            following, other = done[side], done[1 - side]
            while following < len(mine) and (other == len(theirs) or theirs[other] > mine[following]):
                applier[count], number[count] = side, following
                following += 1
                count += 1
                moved = True
            done[side] = following
    stuck = NO_CLUSTER
    if done[0] < len(foreign[0]):
        stuck = 0
    elif done[1] < len(foreign[1]):
        stuck = 1
    return applier[:count], number[:count], stuck


@kernel
def known_before(applier, number, epochs, foreign, traced):
    """
    Return the max replicated epoch before each epoch apply. uint64, shape (applies,).

    Args:
        applier: Applier of each, in order. int8, shape (applies,).
        number: Its number among those of its applier. int64, shape (applies,).
        epochs: Per cluster, the own epoch in which each epoch apply commits. uint64.
        foreign: Per cluster, the foreign epoch of each epoch apply. uint64.
        traced: Per cluster, whether its binlog shows it; an epoch apply without a trace never comes back. bool.
    """
    known = np.zeros(len(applier), np.uint64)
    now = np.zeros(2, np.uint64)
    for apply in range(len(applier)):
        side = applier[apply]
        known[apply] = now[side]
        epoch = foreign[side][number[apply]]
        theirs = epochs[1 - side]
        other = np.searchsorted(theirs, epoch)
        while other < len(theirs) and theirs[other] == epoch:
            if traced[1 - side][other]:
                now[side] = max(now[side], foreign[1 - side][other])
            other += 1
    return known
