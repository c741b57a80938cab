"""
The operations that each epoch apply receives: own changes of its foreign epoch, and what the source's applier logged.

Computes docs/concepts.md, "Refresh, reflect, read".
"""

from __future__ import annotations

from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.events.rows_event import Operation

__all__ = ["queue_up", "start_arrivals"]

LAST_OPERATION = max(int(operation) for operation in Operation)


@kernel
def start_arrivals(schedule, changes, arrivals):
    """
    Fill in the own changes that each epoch apply receives.

    Args:
        schedule: `Schedule`.
        changes: `Changes`.
        arrivals: `Work.arrivals`; filled in.
    """
    rows = changes.rows
    for side in range(2):
        place = schedule.second if side == 0 else 0
        stop = len(schedule.by_epoch) if side == 0 else schedule.second
        row, end = changes.begin[side], changes.begin[side + 1]
        while row < end:
            # The other cluster does not receive what a statement did to rows.
            if rows[row]["operation"] > LAST_OPERATION:
                row += 1
                continue
            epoch, first = rows[row]["epoch"], row
            while row < end and rows[row]["epoch"] == epoch and rows[row]["operation"] <= LAST_OPERATION:
                row += 1
            while place < stop and schedule.epochs[place] < epoch:
                place += 1
            while place < stop and schedule.epochs[place] == epoch:
                number = schedule.by_epoch[place]
                arrival = arrivals[number]
                arrival["active"], arrival["first"], arrival["last"] = True, first, row
                place += 1


@inlined
def queue_up(number, schedule, first, stop, work):
    """
    Queue what an applier logged in an epoch apply for the epoch applies of the other applier that receive it.

    Args:
        number: Of the epoch apply.
        schedule: `Schedule`.
        first: The first entry that it logged.
        stop: One past the last.
        work: `Work`; its log and arrivals move on.
    """
    apply, log = schedule.applies[number], work.log
    here = apply["applier"]
    queued = log.tail[here]
    for entry in range(first, stop):
        log.queue[here, log.tail[here]] = entry
        log.tail[here] += 1
    for place in range(apply["received_start"], apply["received_stop"] if stop > first else 0):
        receiver = work.arrivals[schedule.by_epoch[place]]
        if receiver["queue_start"] == receiver["queue_stop"]:
            receiver["queue_start"] = queued
        receiver["queue_stop"], receiver["active"] = log.tail[here], True
