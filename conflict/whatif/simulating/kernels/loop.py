"""
The loop over events in simulated time: users start and commit transactions, epochs end, appliers commit epochs.

Of events at one time, the end of an epoch comes first, then appliers, then users, and earlier clusters before later
ones.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from conflict.whatif.simulating.kernels.appliers import apply_epoch
from conflict.whatif.simulating.kernels.users import commit_transaction, epoch_number, read_wanted
from conflict.whatif.simulating.kernels.world import FOREVER, NEVER
from ndb_formats.columnar.kernel import inlined, kernel, part, with_python_values


class End(IntEnum):
    """Why the loop ends."""

    TIME = 0
    QUIET = 1  # nothing is left to happen, but for what waits for ever
    FULL = 2  # a buffer is too small; begin again with larger ones


TIME, QUIET, FULL = (int(each) for each in End)
CLOSE, APPLY, USER = range(3)
# Not a literal: of a function that is called with one, another version would be compiled.
FIRST: Any = np.int64(0)
THINKING, RETRYING = range(2)
ENDS, THINKS, AT_ONCE = range(3)


@with_python_values
@kernel
def run_until(until, world):
    """
    Let everything happen up to a time.

    Args:
        until: The time.
        world: `World`.

    Returns:
        `End`.
    """
    # Parts of the world by themselves: each function that is inlined would copy all of it, which takes long to compile.
    sites, settings, queues = world.site, world.settings, world.queues
    wishes, ticks, clusters = world.intentions, world.latency.shape[1], len(world.site)
    while True:
        time, kind, side = NEVER, CLOSE, FIRST
        for each in range(clusters):
            closes = _closing_time(sites[each], settings[each], ticks)
            if closes < time:
                time, kind, side = closes, CLOSE, each
        for each in range(clusters):
            if sites[each]["apply_at"] < time:
                time, kind, side = sites[each]["apply_at"], APPLY, each
        for each in range(clusters):
            begins = _user_time(each, sites[each], wishes.begin, wishes.start, queues[1])
            if begins < time:
                time, kind, side = begins, USER, each
        if kind == CLOSE and _is_quiet(sites, settings, wishes.begin, wishes.start, queues[1]):
            return QUIET
        if time >= until:
            world.run[0]["now"] = until
            return TIME
        world.run[0]["now"] = time
        room = True
        if kind == USER:
            number, stage = _next_transaction(side, time, sites[side], settings[side], queues)
            if stage != ENDS and settings[side]["optimistic"]:
                read_wanted(side, number, wishes, world.rows.version, world.read)
            if stage != THINKS:
                committed, room = commit_transaction(side, number, time, world)
                if not committed:
                    _try_again(side, number, time, sites[side], settings[side], world.totals[side], world.tries, queues)
        elif kind == APPLY:
            room = apply_epoch(side, time, world)
            if room:
                _plan_apply(side, world)
        else:
            log = world.work.log.tail, world.epochs, world.learnt, world.schedule.applies
            room = _close_epoch(side, time, sites[side], settings[side], log, world.latency, world.outages)
            for each in range(clusters):
                if room and settings[each]["source"] == side:
                    _plan_apply(each, world)
        if not room:
            return FULL


@inlined
def _closing_time(site, setting, ticks):
    if site["tick"] == ticks:
        return NEVER
    return setting["phase"] + (site["tick"] + 1) * setting["epoch"]


@inlined
def _user_time(side, site, begin, starts, times):
    """Return when a user of a cluster does something next."""
    time = NEVER
    if site["next_start"] < begin[side + 1]:
        time = starts[site["next_start"]]
    if site["thinking"] < site["thought"]:
        time = min(time, times[side, THINKING, site["thinking"] % times.shape[2]])
    if site["retried"] < site["failed"]:
        time = min(time, times[side, RETRYING, site["retried"] % times.shape[2]])
    return time


@part
def _is_quiet(sites, settings, begin, starts, times):
    """Whether users are done and all clusters have applied everything that does not wait for ever."""
    quiet = True
    for side in range(len(sites)):
        site, source = sites[side], settings[side]["source"]
        quiet &= not site["content"] and _user_time(side, site, begin, starts, times) == NEVER
        quiet &= source < 0 or site["next_foreign"] == sites[source]["logged"] or site["apply_at"] >= FOREVER
    return quiet


@part
def _next_transaction(side, now, site, setting, queues):
    """
    Return the transaction that users of a cluster go on with at a time, and how.

    It `ENDS` after it has thought, it begins and `THINKS`, or it begins and ends `AT_ONCE`.
    """
    numbers, times = queues
    length = numbers.shape[2]
    at = site["thinking"] % length
    if site["thinking"] < site["thought"] and times[side, THINKING, at] == now:
        site["thinking"] += 1
        return numbers[side, THINKING, at], ENDS
    at = site["retried"] % length
    if site["retried"] < site["failed"] and times[side, RETRYING, at] == now:
        number = numbers[side, RETRYING, at]
        site["retried"] += 1
    else:
        number = site["next_start"]
        site["next_start"] += 1
    if not setting["think"]:
        return number, AT_ONCE
    at = site["thought"] % length
    numbers[side, THINKING, at], times[side, THINKING, at] = number, now + setting["think"]
    site["thought"] += 1
    return number, THINKS


@part
def _try_again(side, number, now, site, setting, totals, tries, queues):
    """Let a transaction that failed be tried again later, as often as its users do that."""
    numbers, times = queues
    if tries[number] >= setting["retries"]:
        totals["failed"] += 1
        return
    tries[number] += 1
    totals["again"] += 1
    at = site["failed"] % numbers.shape[2]
    numbers[side, RETRYING, at], times[side, RETRYING, at] = number, now + setting["retry_delay"]
    site["failed"] += 1


@inlined
def _outside(time, side, intervals):
    """Return the first time from `time` on that is in none of the intervals of a cluster."""
    for number in range(intervals.begin[side], intervals.begin[side + 1]):
        if intervals.start[number] <= time < intervals.end[number]:
            time = intervals.end[number]
    return time


@part
def _close_epoch(side, now, site, setting, log, latency, outages):
    """
    End the open epoch of a cluster: log and send it if it holds anything, and begin the next one.

    Return whether there was room for it.
    """
    tails, epochs, learnt, applies = log
    tail = tails[side]
    if site["content"]:
        if site["logged"] == epochs.shape[1]:
            return False
        epoch = epochs[side, site["logged"]]
        epoch["number"] = epoch_number(setting, site["tick"])
        epoch["first"], epoch["last"] = site["first_change"], site["stop"]
        epoch["queue_start"], epoch["queue_stop"] = site["queue_start"], tail
        epoch["closed"], epoch["bytes"] = now, site["bytes"]
        leaves = _outside(max(now, site["sent_at"]), side, outages)
        transmission = site["bytes"] * 1_000_000 // setting["bandwidth"] if setting["bandwidth"] else 0
        site["sent_at"] = leaves + transmission
        arrives = _outside(site["sent_at"] + latency[side, site["tick"]], side, outages)
        epoch["arrived"] = site["last_arrival"] = max(site["last_arrival"], arrives)
        site["logged"] += 1
    else:
        _leave_untraced(epoch_number(setting, site["tick"]), site["last_apply"], applies)
        for each in range(learnt.shape[2]):
            learnt[side, site["logged"], each] = 0
    site["first_change"], site["queue_start"] = site["stop"], tail
    site["groups"], site["content"], site["bytes"] = 0, False, 0
    site["tick"] += 1
    return True


@part
def _leave_untraced(epoch, number, applies):
    """An epoch in which only `ndb_apply_status` changed is not logged, so what was applied in it leaves no trace."""
    while number >= 0 and applies[number]["epoch"] == epoch:
        applies[number]["traced"], applies[number]["group"] = False, -1
        number = applies[number]["previous"]


@part
def _plan_apply(here, world):
    """Work out when an applier commits its next epoch, if it has one; epochs are committed in their order."""
    site, setting, place = world.site[here], world.settings[here], world.site[here]["next_foreign"]
    there = setting["source"]
    if site["stopped"] or site["apply_at"] != NEVER or place == world.site[there]["logged"]:
        return
    epoch, changes, free = world.epochs[there, place], world.changes.rows, site["free_at"]
    rows = epoch["last"] - epoch["first"] + epoch["queue_stop"] - epoch["queue_start"]
    if setting["relays"]:
        for number in range(epoch["first"], epoch["last"]):
            rows -= changes[number]["relayed"] == here + 1
    if setting["workers"] > 1:
        free = max(site["begun"], _worker_is_free(here, place, epoch, world))
    site["begun"] = _outside(max(epoch["arrived"], free), here, world.stops)
    site["apply_at"] = max(site["begun"] + setting["per_epoch"] + setting["per_row"] * rows, site["free_at"])


@part
def _worker_is_free(here, place, epoch, world):
    """
    Return from when on a worker can apply an epoch: the last earlier one that changed one of its rows is committed.

    A worker is busy until its epoch is committed, so the first that is free has that of as many epochs before.
    """
    changes, log, brought = world.changes.rows, world.work.log, world.rows.brought
    setting, waits = world.settings[here], 0  # number of the epoch from 1
    for number in range(epoch["first"], epoch["last"]):
        if changes[number]["relayed"] != here + 1:
            waits = _bring(here, place, changes[number]["key"], waits, brought)
    for number in range(epoch["queue_start"], epoch["queue_stop"]):
        key = log.entries[log.queue[setting["source"], number]]["key"]
        waits = _bring(here, place, key, waits, brought)
    waits = max(waits, place + 1 - setting["workers"])
    return world.taken[here, waits - 1]["applied"] if waits > 0 else 0


@inlined
def _bring(here, place, key, waits, brought):
    """Note that an epoch changes a row; return for which earlier one it waits, by number from 1."""
    if brought[key, here] <= place:
        waits = max(waits, brought[key, here])
    brought[key, here] = place + 1
    return waits
