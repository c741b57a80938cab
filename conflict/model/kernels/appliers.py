"""
What an applier does with an epoch of the other cluster.

The decisions are those of `conflict.columnar.kernels.passes`; here is what surrounds them in a simulation: the max
replicated epoch, transactions in conflict, and data columns.
"""

from __future__ import annotations

import numpy as np

from conflict.columnar.kernels.dependencies import find_dependent_groups
from conflict.columnar.kernels.fold import log_rows
from conflict.columnar.kernels.passes import FULL, Groups, decide_pass, restore
from conflict.columnar.kernels.plain_values import NO, YES
from conflict.columnar.kernels.rules import is_delete_delete, reads_before
from conflict.model.kernels.users import epoch_number, note_difference
from conflict.model.kernels.world import NEVER, RESOLVE_BIT, all_columns, column_bit
from conflict.rules.decision import Verdict
from conflict.rules.functions import Cell
from ndb_formats.columnar.kernel import inlined, part, unsigned
from ndb_formats.events.rows_event import Operation

__all__ = ["apply_epoch"]

UPDATE, DELETE = int(Operation.UPDATE_ROW), int(Operation.DELETE_ROW)
APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)
EQUAL, LESS = int(Cell.EQUAL), int(Cell.LESS)


@part
def apply_epoch(here, now, world):
    """
    Apply and commit the next epoch of the other cluster; return whether there was room for what it did.

    Args:
        here: The applier's cluster.
        now: The time.
        world: `World`.
    """
    there, run, site, setting = 1 - here, world.run[0], world.site[here], world.settings[here]
    schedule, work, decisions, epochs = world.schedule, world.work, world.decisions, world.epochs
    foreign = epochs[there, site["next_foreign"]]
    number = run["applies"]
    if number == len(schedule.applies):
        return False
    _begin(here, foreign, site, setting, schedule.applies[number], work.arrivals[number])
    work.arrivals[number]["own_end"] = site["stop"] - world.changes.begin[here]
    if _stops(number, here, work.arrivals, work.log, world.changes.rows, world.key_table, world.rules.cells, site):
        site["stop_epoch"], site["stop_group"] = epoch_number(setting, site["tick"]), site["groups"]
        return True
    rows, states, tables = world.rows, work.state.rows, (world.tables, world.key_table)
    conflicts, touched = world.conflicts, (rows.last_apply, rows.last_group, world.pairs)
    rejected, room = _transactions_in_conflict(
        number, schedule, world.changes, world.rules, work, world.tracked, setting, conflicts, tables, run, touched
    )
    if not room:
        return False
    started = run["made"]
    made, _, answers = decide_pass(number, schedule, world.changes, world.rules, rejected, work, decisions, started, NO)
    if made == FULL:
        return False
    brought = world.changes, world.made, world.entries
    content = _take_columns(number, here, (started, made), decisions, states, rows, tables, brought)
    sent = run["sent"]
    if answers:
        sent = log_rows(number, schedule, world.rules, work, decisions, (started, made), sent)
        new = run["sent"], sent
        if sent == FULL or not _complete_entries(here, new, work.log, rows, tables, world.entries, site):
            return False
    for place in range(started, made):
        room &= note_difference(decisions.key[place], now, states, rows, run, world.stale)
    site["content"] |= content or sent > run["sent"]
    run["made"], run["sent"], run["applies"] = made, sent, number + 1
    _commit(number, here, now, foreign, site, epochs)
    return room


@part
def _begin(here, foreign, site, setting, apply, arrival):
    """Fill in the epoch apply and what it receives."""
    apply["epoch"], apply["group"] = epoch_number(setting, site["tick"]), site["groups"]
    apply["foreign_epoch"], apply["max_replicated"] = foreign["number"], site["known"]
    apply["applier"], apply["traced"], apply["previous"] = here, True, site["last_apply"]
    arrival["active"], arrival["first"], arrival["last"] = True, foreign["first"], foreign["last"]
    arrival["queue_start"], arrival["queue_stop"] = foreign["queue_start"], foreign["queue_stop"]


@part
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
    return EQUAL <= cell <= LESS and not (before_given if reads_before(cell, operation) else after_given)


@part
def _commit(number, here, now, foreign, site, epochs):
    """Note what an epoch apply tells: own epochs came back with it, and its own epoch will say so."""
    site["known"] = max(site["known"], foreign["relayed"])
    while site["back"] < site["logged"]:
        own = epochs[here, site["back"]]
        if own["number"] > site["known"]:
            break
        own["back"] = now
        site["back"] += 1
    foreign["begun"], foreign["applied"] = site["begun"], now
    site["relayed"], site["last_apply"] = foreign["number"], number
    site["groups"] += 1
    site["next_foreign"] += 1
    site["free_at"], site["apply_at"] = now, NEVER


@part
def _mark(arrival, log, there, changes, marks, marked):
    """Mark all rows that an epoch apply receives from the other cluster, or none of them."""
    for place in range(arrival["first"], arrival["last"]):
        marks[changes[place]["key"]] = marked
    for place in range(arrival["queue_start"], arrival["queue_stop"]):
        marks[log.entries[log.queue[there, place]]["key"]] = marked


@part
def _transactions_in_conflict(
    number, schedule, changes, rules, work, tracked, setting, conflicts, tables, run, touched
):
    """
    Return the transactions that an epoch apply rejects, as `Groups`, and whether there was room.

    Pass TRACK finds those with a row in conflict; those that depend on them follow (docs/functions.md, "Functions that
    judge transactions").
    """
    (offsets, groups), start, pairs = conflicts, run["groups"], touched[2]
    offsets[number] = offsets[number + 1] = start
    nothing = Groups(groups, start, start)
    if not setting["transactional"]:
        return nothing, True
    here, began, arrival = schedule.applies[number]["applier"], run["seen"], work.arrivals[number]
    there = 1 - here
    _mark(arrival, work.log, there, changes.rows, work.marks, YES)
    seen, saved, _ = decide_pass(number, schedule, changes, rules, nothing, work, tracked, began, YES)
    if seen == FULL:
        return nothing, False
    restore(here, saved, work)
    _mark(arrival, work.log, there, changes.rows, work.marks, NO)
    highest = -1
    for place in range(began, seen):
        highest = max(highest, tracked.group[place])
    conflicting = np.zeros(highest + 1, np.bool_)
    found = False
    for place in range(began, seen):
        table = tables[0][here, tables[1][tracked.key[place]]]
        if tracked.verdict[place] == REJECTED and table["transactional"]:
            delete_delete = is_delete_delete(tracked.operation[place], tracked.cause[place])
            if table["delete_delete"] or not delete_delete:
                conflicting[tracked.group[place]] = found = True
    if not found:
        return nothing, True
    found_pairs = find_dependent_groups(
        tracked.apply[began:seen],
        tracked.key[began:seen],
        tracked.group[began:seen],
        tracked.kind[began:seen],
        *touched,
    )
    if found_pairs > len(pairs) or start + highest + 1 > len(groups):
        return nothing, False
    grows = True
    while grows:
        grows = False
        for pair in range(found_pairs):
            if conflicting[pairs[pair, 2]] and not conflicting[pairs[pair, 3]]:
                conflicting[pairs[pair, 3]] = grows = True
    stop = start
    for group in range(highest + 1):
        if conflicting[group]:
            groups[stop] = group
            stop += 1
    offsets[number + 1] = run["groups"] = stop
    run["seen"] = seen
    return Groups(groups, start, stop), True


@part
def _take_columns(number, here, places, decisions, states, rows, tables, brought):
    """Give rows the data columns of the operations that were applied; return whether anything changed."""
    changes, made, entries = brought
    content = False
    for place in range(places[0], places[1]):
        source, key = decisions.source[place], decisions.key[place]
        origin = source + changes.begin[1 - here] if source >= 0 else -1 - source
        if decisions.verdict[place] != APPLIED:
            continue
        if rows.passed[key] != number + 1:
            rows.passed[key], rows.before[key], rows.carried[key] = number + 1, decisions.existed[place], 0
        table = tables[0][here, tables[1][key]]
        carried, values = made.carried, made.columns
        if source < 0:
            carried, values = entries.carried, entries.columns
        deletes = decisions.operation[place] == DELETE
        taken = all_columns(table) if deletes else carried[origin] & all_columns(table)
        rows.carried[key] |= taken | (carried[origin] & RESOLVE_BIT)
        for column in range(table["columns"]):
            if taken & column_bit(column):
                rows.columns[key, here, column] = unsigned(0) if deletes else values[origin, column]
            elif not decisions.existed[place]:
                rows.columns[key, here, column] = 0
        rows.version[key, here] += 1
        content |= rows.before[key] or states[key, here]["exists"]
    return content


@part
def _complete_entries(here, new, log, rows, tables, entries, site):
    """Queue what an applier logged, with the data columns of the rows; return whether there was room."""
    for number in range(new[0], new[1]):
        entry = log.entries[number]
        key = entry["key"]
        if log.tail[here] == log.queue.shape[1]:
            return False
        log.queue[here, log.tail[here]] = number
        log.tail[here] += 1
        table = tables[0][here, tables[1][key]]
        carried = all_columns(table)
        if not entry["refresh"] and entry["operation"] == UPDATE and not table["whole"]:
            carried &= rows.carried[key]
        entries.carried[number] = carried
        for column in range(rows.columns.shape[2]):
            entries.columns[number, column] = rows.columns[key, here, column]
        site["bytes"] += table["row_bytes"]
    return True
