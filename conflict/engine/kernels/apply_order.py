"""
Places in the order of epoch applies: the order itself, what each epoch apply receives, and searches in sorted columns.

Computes docs/concepts.md, "Refresh, reflect, read". Rows that an applier judged some time before the commit are kept
by the fold when it comes by their moment: it decides by that state until an operation is applied, which locks the row
(docs/functions.md, "One pass over an epoch").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from conflict.engine.kernels.arrays import Bool, Int8, Int64, RowMoments
from ndb_formats.columnar.kernel import inlined, kernel, part
from ndb_formats.events.rows_event import Operation

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
def seek(rows, low, high, epoch, group):
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
    start = seek(changes.rows, low, high, apply["arrived_epoch"], np.int64(apply["arrived_group"]) + 1)
    if apply["previous"] >= 0:
        before = schedule.applies[apply["previous"]]
        follows = np.int64(before["group"]) + (not before["traced"])
        start = max(start, seek(changes.rows, low, high, before["epoch"], follows))
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


Records = npt.NDArray[np.void]
# A row that an epoch apply judged some time before its commit: after that group of that own epoch. `locked` is the
# pass that applied an operation to it, which locks the row; -1 is none.
MOMENT = np.dtype([("epoch", "u8"), ("locked", "i8"), ("key", "i4"), ("group", "i4")], align=True)


class Early(NamedTuple):
    """
    Rows that appliers judged some time before the commit.

    Attributes:
        applies: The epoch apply of each, in order. Shape (moments,), int64.
        moments: By epoch apply. `MOMENT`, shape (moments,).
        states: The rows as they were then, once the fold came by. `ROW_STATE`, shape (moments,).
        order: The moments by own position, those of the first cluster before those of the second. Shape (moments,).
        passed: Per cluster, the first of `order` that the fold did not come by yet. Shape (clusters,), int64.
        stop: Per cluster, one past its last. Shape (clusters,), int64.
        ignored: Whether rows are judged as they are all the same. Shape (1,), bool.
    """

    applies: Int64
    moments: Records
    states: Records
    order: Int64
    passed: Int64
    stop: Int64
    ignored: Bool

    @classmethod
    def of(cls, moments: RowMoments, applier: Int8, states: Records) -> Early:
        """
        Return the moments of a bucket, none passed.

        Args:
            moments: The moments.
            applier: Applier of each epoch apply. Shape (applies,).
            states: `ROW_STATE`, shape (moments,).
        """
        moments = moments.chosen(np.argsort(moments.apply, kind="stable"))
        records = np.zeros(len(moments), MOMENT)
        for name in ("epoch", "key", "group"):
            records[name] = getattr(moments, name)
        records["locked"] = -1
        side = applier[moments.apply]
        order = np.lexsort((moments.group, moments.epoch, side))
        first = int((side == 0).sum())
        passed, stop = np.array([0, first], np.int64), np.array([first, len(moments)], np.int64)
        return cls(moments.apply.astype(np.int64), records, states, order, passed, stop, np.zeros(1, np.bool_))


LAST_OPERATION = max(int(operation) for operation in Operation)


@inlined
def arrival_of(number, work):
    """Return what an epoch apply applies (`ARRIVAL`), of one that applies nothing an empty record."""
    return work.arrivals.records[work.arrivals.places[number]]


@part
def activated(number, work):
    """Return what an epoch apply applies (`ARRIVAL`), and let it have a record if it has none."""
    arrivals, early = work.arrivals, work.early.applies
    if arrivals.places[number] == 0:
        arrivals.used[0] += 1
        arrivals.places[number] = arrivals.used[0]
        arrival = arrivals.records[arrivals.used[0]]
        arrival["early_start"] = first_at_least(early, 0, len(early), number)
        arrival["early_stop"] = first_at_least(early, 0, len(early), number + 1)
    return arrivals.records[arrivals.places[number]]


@part
def _first_of_epoch(schedule, low, stop, epoch):
    """Return the first place in `Schedule.by_epoch` from `low` to `stop` of an epoch or a later one."""
    step = 1  # mostly it is near; else twice as far each time
    while low + step < stop and schedule.applies[schedule.by_epoch[low + step]]["foreign_epoch"] < epoch:
        low += step
        step *= 2
    high = min(low + step, stop)
    while low < high:
        middle = (low + high) // 2
        if schedule.applies[schedule.by_epoch[middle]]["foreign_epoch"] < epoch:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def start_arrivals(schedule, changes, work):
    """
    Fill in the own changes that each epoch apply receives.

    Args:
        schedule: `Schedule`.
        changes: `Changes`.
        work: `Work`; its arrivals are filled in.
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
            place = _first_of_epoch(schedule, place, stop, epoch)
            while place < stop and schedule.applies[schedule.by_epoch[place]]["foreign_epoch"] == epoch:
                arrival = activated(schedule.by_epoch[place], work)
                arrival["first"], arrival["last"] = first, row
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
    here, epoch = apply["applier"], apply["epoch"]
    queued = log.tail[here]
    for entry in range(first, stop):
        log.queue[here, log.tail[here]] = entry
        log.tail[here] += 1
    place, end = np.int64(apply["received_start"]), schedule.second if here else len(schedule.by_epoch)
    end = end if stop > first else 0
    while place < end and schedule.applies[schedule.by_epoch[place]]["foreign_epoch"] == epoch:
        receiver = activated(schedule.by_epoch[place], work)
        place += 1
        if receiver["queue_start"] == receiver["queue_stop"]:
            receiver["queue_start"] = queued
        receiver["queue_stop"] = log.tail[here]


NO_CLUSTER = -1


@kernel
def order(epochs, foreign):
    """
    Return applier and number of the epoch applies in order, and the cluster whose next one is never possible.

    Args:
        epochs: Per cluster, the own epoch in which each epoch apply commits. uint64, shape (applies of it,).
        foreign: Per cluster, the foreign epoch of each epoch apply. uint64, shape (applies of it,).

    Returns:
        int8 and int32, shape (applies,); `NO_CLUSTER` if all are possible.
    """
    total = len(foreign[0]) + len(foreign[1])
    applier, number = np.empty(total, np.int8), np.empty(total, np.int32)
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
