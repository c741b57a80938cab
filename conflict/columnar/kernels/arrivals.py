"""
What arrives with which epoch apply: changes of its foreign epoch, and what the other applier logged in that epoch.
"""

from __future__ import annotations

from numba import njit

__all__ = ["queue_up", "start_arrivals"]


@njit(cache=True, nogil=True)
def start_arrivals(schedule, changes, arrivals):
    """Fill in which changes belong to which epoch apply; `Schedule`, `Changes` and `Arrivals`."""
    rows = changes.rows
    for side in range(2):
        place = schedule.second if side == 0 else 0
        stop = len(schedule.by_epoch) if side == 0 else schedule.second
        row, end = changes.begin[side], changes.end[side]
        while row < end:
            epoch, first = rows[row]["epoch"], row
            while row < end and rows[row]["epoch"] == epoch:
                row += 1
            while place < stop and schedule.epochs[place] < epoch:
                place += 1
            while place < stop and schedule.epochs[place] == epoch:
                number = schedule.by_epoch[place]
                arrivals.active[number], arrivals.first[number], arrivals.last[number] = True, first, row
                place += 1


@njit(inline="always")
def queue_up(number, schedule, first, stop, work):
    """Put what an applier logged in an epoch apply, entries `first` to `stop`, where the other applier finds it."""
    apply, arrivals, log = schedule.applies[number], work.arrivals, work.log
    here = apply["applier"]
    queued = log.tail[here]
    for entry in range(first, stop):
        log.queue[here, log.tail[here]] = entry
        log.tail[here] += 1
    for place in range(apply["received_start"], apply["received_stop"] if stop > first else 0):
        receiver = schedule.by_epoch[place]
        if arrivals.queue_start[receiver] == arrivals.queue_stop[receiver]:
            arrivals.queue_start[receiver] = queued
        arrivals.queue_stop[receiver] = log.tail[here]
        arrivals.active[receiver] = True
