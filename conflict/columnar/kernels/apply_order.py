"""
The order of two appliers' takes, and what had come back to each before each of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["known_before", "order"]


@njit(cache=True)
def order(begins, foreign):
    """
    Return applier and number of the takes in order, and the cluster that cannot go on, -1 if both are through.

    Args:
        begins: Per cluster, the own epoch in which each take begins.
        foreign: Per cluster, the foreign epoch of each take.
    """
    total = len(foreign[0]) + len(foreign[1])
    applier, number = np.empty(total, np.int8), np.empty(total, np.int64)
    places = np.zeros(2, np.int64)
    count, moved = 0, True
    while moved:
        moved = False
        for side in range(2):
            mine, theirs = foreign[side], begins[1 - side]
            place, other = places[side], places[1 - side]
            while place < len(mine) and (other == len(theirs) or theirs[other] > mine[place]):
                applier[count], number[count] = side, place
                place += 1
                count += 1
                moved = True
            places[side] = place
    stuck = -1
    if places[0] < len(foreign[0]):
        stuck = 0
    elif places[1] < len(foreign[1]):
        stuck = 1
    return applier[:count], number[:count], stuck


@njit(cache=True)
def known_before(applier, number, epochs, foreign, traced):
    """
    Return the max replicated epoch before each take.

    Args:
        applier: Of the takes in order.
        number: Among those of the applier.
        epochs: Per cluster, the own epoch in which each take commits.
        foreign: Per cluster, the foreign epoch of each take.
        traced: Per cluster, whether the binlog shows it; otherwise it never comes back.
    """
    known = np.zeros(len(applier), np.uint64)
    now = np.zeros(2, np.uint64)
    for apply in range(len(applier)):
        side = applier[apply]
        known[apply] = now[side]
        epoch = foreign[side][number[apply]]
        theirs = epochs[1 - side]
        place = np.searchsorted(theirs, epoch)
        while place < len(theirs) and theirs[place] == epoch:
            if traced[1 - side][place]:
                now[side] = max(now[side], foreign[1 - side][place])
            place += 1
    return known
