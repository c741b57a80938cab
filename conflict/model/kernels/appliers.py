"""
What an applier does with an epoch of the other cluster.

The decisions are those of `conflict.columnar.kernels.passes`; here is what surrounds them in a simulation: the max
replicated epoch, transactions in conflict, data columns, and which changes of users are lost.
"""

from __future__ import annotations

import numpy as np

from conflict.columnar.kernels.dependencies import find_dependent_groups
from conflict.columnar.kernels.fold import log_rows
from conflict.columnar.kernels.passes import FULL, Groups, decide_pass, restore
from conflict.columnar.kernels.plain_values import NO, YES
from conflict.model.kernels.users import epoch_number, note_difference
from conflict.model.kernels.world import NEVER, RESOLVE_BIT, Loss, author_of
from conflict.rules.decision import Cause, Verdict
from conflict.rules.functions import Cell
from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.events.rows_event import Operation

__all__ = ["apply_epoch"]

UPDATE, DELETE = int(Operation.UPDATE_ROW), int(Operation.DELETE_ROW)
APPLIED, REJECTED, MISSING = int(Verdict.APPLIED), int(Verdict.REJECTED), int(Cause.ROW_DOES_NOT_EXIST)
EQUAL, LESS = int(Cell.EQUAL), int(Cell.LESS)
LOST_REJECTED, LOST_OVERWRITTEN = int(Loss.REJECTED), int(Loss.OVERWRITTEN)


@kernel
def apply_epoch(here, now, world):
    """
    Apply and commit the next epoch of the other cluster; return whether there was room for what it did.

    Args:
        here: The applier's cluster.
        now: The time.
        world: `World`.
    """
    there, run, site = 1 - here, world.run[0], world.site[here]
    schedule, work, decisions = world.schedule, world.work, world.passes.final
    foreign = world.epochs[there, site["next_foreign"]]
    number = run["applies"]
    if number == len(schedule.applies):
        return False
    _begin(number, here, foreign, world)
    if _stops(number, here, work.arrivals, work.log, world.changes.rows, world.key_table, world.rules.cells, site):
        site["stop_epoch"], site["stop_group"] = epoch_number(world.settings[here], site["tick"]), site["groups"]
        return True
    rejected, room = _transactions_in_conflict(number, here, world)
    if not room:
        return False
    started = run["made"]
    made, _, answers = decide_pass(number, schedule, world.changes, world.rules, rejected, work, decisions, started, NO)
    if made == FULL:
        return False
    content = _take_columns(number, here, started, made, world)
    sent = run["sent"]
    if answers:
        sent = log_rows(number, schedule, world.rules, work, decisions, (started, made), sent)
        if sent == FULL or not _complete_entries(here, run["sent"], sent, world):
            return False
    for place in range(started, made):
        room &= note_difference(decisions.key[place], now, work.state.rows, world.rows, run, world.stale)
    site["content"] |= content or sent > run["sent"]
    run["made"], run["sent"] = made, sent
    _commit(number, here, now, foreign, world)
    return room


@inlined
def _begin(number, here, foreign, world):
    """Fill in the epoch apply and what it receives."""
    site, apply, arrival = world.site[here], world.schedule.applies[number], world.work.arrivals[number]
    apply["epoch"], apply["group"] = epoch_number(world.settings[here], site["tick"]), site["groups"]
    apply["foreign_epoch"], apply["max_replicated"] = foreign["number"], site["known"]
    apply["applier"], apply["traced"], apply["previous"] = here, True, site["last_apply"]
    arrival["active"], arrival["first"], arrival["last"] = True, foreign["first"], foreign["last"]
    arrival["queue_start"], arrival["queue_stop"] = foreign["queue_start"], foreign["queue_stop"]


@kernel
def _stops(number, here, arrivals, log, changes, key_table, cells, site):
    """Whether an operation lacks the value that its function compares; then the applier stops for good."""
    arrival, lacks = arrivals[number], False
    for place in range(arrival["first"], arrival["last"]):
        change = changes[place]
        key, operation = change["key"], change["operation"]
        before, after = change["before_given"], change["after_given"]
        if _lacks_value(cells[here, key_table[key], operation], operation, before, after):
            lacks = True
            break
    if not lacks:
        for place in range(arrival["queue_start"], arrival["queue_stop"]):
            entry = log.entries[log.queue[1 - here, place]]
            key, operation = entry["key"], entry["operation"]
            if _lacks_value(cells[here, key_table[key], operation], operation, False, entry["given"]):
                lacks = True
                break
    if lacks:
        site["stopped"], site["stop_table"], site["stop_operation"] = True, key_table[key], operation
        site["apply_at"] = NEVER
    return lacks


@inlined
def _lacks_value(cell, operation, before_given, after_given):
    return EQUAL <= cell <= LESS and not (before_given if cell == EQUAL or operation == DELETE else after_given)


@inlined
def _commit(number, here, now, foreign, world):
    """Note what an epoch apply tells: own epochs came back with it, and its own epoch will say so."""
    site, run = world.site[here], world.run[0]
    site["known"] = max(site["known"], foreign["relayed"])
    own = world.epochs[here]
    while site["back"] < site["logged"] and own[site["back"]]["number"] <= site["known"]:
        own[site["back"]]["back"] = now
        site["back"] += 1
    foreign["begun"], foreign["applied"] = site["begun"], now
    site["relayed"], site["last_apply"] = foreign["number"], number
    site["groups"] += 1
    site["next_foreign"] += 1
    site["free_at"], site["apply_at"] = now, NEVER
    run["applies"] = number + 1


@kernel
def _mark(arrival, queue, entries, changes, marks, marked):
    """Mark all rows that an epoch apply receives, or none of them; `queue` is that of the other cluster."""
    for place in range(arrival["first"], arrival["last"]):
        marks[changes[place]["key"]] = marked
    for place in range(arrival["queue_start"], arrival["queue_stop"]):
        marks[entries[queue[place]]["key"]] = marked


@kernel
def _transactions_in_conflict(number, here, world):
    """
    Return the transactions that an epoch apply rejects, as `Groups`, and whether there was room.

    Pass TRACK finds those with a row in conflict; those that depend on them follow (docs/functions.md, "Functions that
    judge transactions").
    """
    run, (offsets, groups) = world.run[0], world.conflicts
    start = run["groups"]
    offsets[number] = offsets[number + 1] = start
    nothing = Groups(groups, start, start)
    if not world.settings[here]["transactional"]:
        return nothing, True
    tracked, began, work, changes = world.passes.tracked, run["seen"], world.work, world.changes
    arrival, queue, entries = work.arrivals[number], work.log.queue[1 - here], work.log.entries
    _mark(arrival, queue, entries, changes.rows, work.marks, YES)
    seen, saved, _ = decide_pass(number, world.schedule, changes, world.rules, nothing, work, tracked, began, YES)
    if seen == FULL:
        return nothing, False
    restore(here, saved, work)
    _mark(arrival, queue, entries, changes.rows, work.marks, NO)
    highest = -1
    for place in range(began, seen):
        highest = max(highest, tracked.group[place])
    conflicting = np.zeros(highest + 1, np.bool_)
    found = False
    for place in range(began, seen):
        table = world.tables[here, world.key_table[tracked.key[place]]]
        if tracked.verdict[place] == REJECTED and table["transactional"]:
            delete_delete = tracked.operation[place] == DELETE and tracked.cause[place] == MISSING
            if table["delete_delete"] or not delete_delete:
                conflicting[tracked.group[place]] = found = True
    if not found:
        return nothing, True
    pairs = find_dependent_groups(
        tracked.apply[began:seen],
        tracked.key[began:seen],
        tracked.group[began:seen],
        tracked.kind[began:seen],
        world.rows.last_apply,
        world.rows.last_group,
        world.pairs,
    )
    if pairs > len(world.pairs) or start + highest + 1 > len(groups):
        return nothing, False
    grows = True
    while grows:
        grows = False
        for pair in range(pairs):
            if conflicting[world.pairs[pair, 2]] and not conflicting[world.pairs[pair, 3]]:
                conflicting[world.pairs[pair, 3]] = grows = True
    stop = start
    for group in range(highest + 1):
        if conflicting[group]:
            groups[stop] = group
            stop += 1
    offsets[number + 1] = run["groups"] = stop
    run["seen"] = seen
    return Groups(groups, start, stop), True


@inlined
def _take_columns(number, here, started, made, world):
    """Give rows the data columns of the operations that were applied; return whether anything changed."""
    rows, decisions, state = world.rows, world.passes.final, world.work.state
    content = False
    for place in range(started, made):
        source, key = decisions.source[place], decisions.key[place]
        if decisions.verdict[place] == REJECTED and source >= 0:
            world.made.loss[source + world.changes.begin[1 - here]] = LOST_REJECTED
        if decisions.verdict[place] != APPLIED:
            continue
        if rows.passed[key] != number + 1:
            rows.passed[key], rows.before[key], rows.carried[key] = number + 1, decisions.existed[place], 0
        _take_operation(here, key, decisions.operation[place], source, decisions.existed[place], world)
        rows.version[key, here] += 1
        content |= rows.before[key] or state.rows[key, here]["exists"]
    return content


@inlined
def _take_operation(here, key, operation, source, existed, world):
    """Give a row the data columns of one operation; `source` as in `Decisions`."""
    rows, there = world.rows, 1 - here
    count = world.tables[here, world.key_table[key]]["columns"]
    every = (np.uint64(1) << np.uint64(count)) - np.uint64(1)
    if source >= 0:
        change = source + world.changes.begin[there]
        carried, values = world.made.carried[change], world.made.columns[change]
    else:
        carried, values = world.entries.carried[-1 - source], world.entries.columns[-1 - source]
    taken = every if operation == DELETE else carried & every
    rows.carried[key] |= taken | (carried & RESOLVE_BIT)
    for column in range(count):
        if taken & (np.uint64(1) << np.uint64(column)):
            old = rows.columns[key, here, column]
            new = np.uint64(0) if operation == DELETE else values[column]
            if source >= 0 and old and old != new:
                _note_loss(here, old, world.made.seen[change], world)
            rows.columns[key, here, column] = new
        elif not existed:
            rows.columns[key, here, column] = 0


@inlined
def _note_loss(here, value, seen, world):
    """Note that a value was overwritten by a change of the other cluster, which had applied `seen` epochs of here."""
    side, number = author_of(value)
    if side != here:
        return
    change = number + world.changes.begin[here]
    known = seen > 0 and world.changes.rows[change]["epoch"] <= world.epochs[here, seen - 1]["number"]
    if not known and world.made.loss[change] != LOST_REJECTED:
        world.made.loss[change] = LOST_OVERWRITTEN


@inlined
def _complete_entries(here, first, stop, world):
    """Queue what an applier logged, with the data columns of the rows; return whether there was room."""
    log, rows = world.work.log, world.rows
    for number in range(first, stop):
        entry = log.entries[number]
        key = entry["key"]
        if log.tail[here] == log.queue.shape[1]:
            return False
        log.queue[here, log.tail[here]] = number
        log.tail[here] += 1
        table = world.tables[here, world.key_table[key]]
        carried = (np.uint64(1) << np.uint64(table["columns"])) - np.uint64(1)
        if not entry["refresh"] and entry["operation"] == UPDATE and not table["whole"]:
            carried &= rows.carried[key]
        world.entries.carried[number] = carried
        world.entries.columns[number] = rows.columns[key, here]
        world.site[here]["bytes"] += table["row_bytes"]
    return True
