"""
What reaches which take: rows of its foreign epoch, and what the other applier logged in that epoch.
"""

from __future__ import annotations

from numba import njit

from ndb_formats.columnar.kernels.compiled import njit_uncounted

__all__ = ["queue_up", "start_applies"]


@njit(cache=True, nogil=True)
def start_applies(active, first_row, last_row, heard, hearers, split, epochs):
    """Mark the takes whose foreign epoch holds rows, and which ones; `epochs` are those of both clusters' rows."""
    offset = 0
    for side in range(2):
        mine = epochs[side]
        place = split if side == 0 else 0
        stop = len(hearers) if side == 0 else split
        row = 0
        while row < len(mine):
            epoch, first = mine[row], row
            while row < len(mine) and mine[row] == epoch:
                row += 1
            while place < stop and heard[place] < epoch:
                place += 1
            while place < stop and heard[place] == epoch:
                hearer = hearers[place]
                active[hearer], first_row[hearer], last_row[hearer] = True, offset + first, offset + row
                place += 1
        offset += len(mine)


@njit_uncounted(inline="always")
def queue_up(apply, hearers, queue, tail, first, stop, queue_start, queue_stop, active):
    """Put what an applier logged in a take, entries `first` to `stop`, where the takes that hear of it find it."""
    here = apply["applier"]
    queued = tail[here]
    for entry in range(first, stop):
        queue[here, tail[here]] = entry
        tail[here] += 1
    for place in range(apply["heard_start"], apply["heard_stop"] if stop > first else 0):
        hearer = hearers[place]
        if queue_start[hearer] == queue_stop[hearer]:
            queue_start[hearer] = queued
        queue_stop[hearer] = tail[here]
        active[hearer] = True
