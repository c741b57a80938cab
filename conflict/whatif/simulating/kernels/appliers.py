"""
What an applier does with an epoch of its source.

The decisions are those of `conflict.engine.kernels.passes`; here is what surrounds them in a simulation: the max
replicated epoch, transactions in conflict, data columns, and what goes on to a third cluster.
"""

from __future__ import annotations

import numpy as np

from conflict.engine.kernels.apply_order import activated, arrival_of
from conflict.engine.kernels.arrays import NO, YES
from conflict.engine.kernels.dependencies import find_dependent_groups
from conflict.engine.kernels.fold import log_rows
from conflict.engine.kernels.passes import FULL, Groups, decide_pass, restore
from conflict.engine.kernels.rules import is_comparing, is_delete_delete, marks_transaction, reads_before
from conflict.rules.decision import Verdict
from conflict.whatif.simulating.kernels.users import epoch_number, note_difference, put_change
from conflict.whatif.simulating.kernels.world import NEVER, RESOLVE_BIT, all_columns, column_bit
from ndb_formats.columnar.kernel import inlined, part, unsigned
from ndb_formats.events.rows_event import Operation

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)
STOPPED = -2  # in place of a number of decisions, as `FULL`


@part
def apply_epoch(here, now, world):
    """
    Apply and commit the next epoch of its source; return whether there was room for what it did.

    Args:
        here: The applier's cluster.
        now: The time.
        world: `World`.
    """
    run, site, setting = world.run[0], world.site[here], world.settings[here]
    there = setting["source"]
    schedule, work, decisions = world.schedule, world.work, world.decisions
    foreign = world.epochs[there, site["next_foreign"]]
    number = run["applies"]
    if number == len(schedule.applies):
        return False
    _begin(here, foreign, site, setting, schedule.applies[number], activated(number, work))
    world.own_end[number] = site["stop"] - world.changes.begin[here]
    started = run["made"]
    made, content, answers = decide_epoch(number, world)
    if made == STOPPED:
        site["stop_epoch"], site["stop_group"] = epoch_number(setting, site["tick"]), site["groups"]
        site["stopped"], site["apply_at"] = True, NEVER
        return True
    if made == FULL:
        return False
    rows, states, tables = world.rows, work.state.rows, (world.tables, world.key_table)
    sides, places, room = (here, there), (started, made), True
    if setting["relays"]:
        brought = world.changes, world.made, world.entries
        _relay(number, sides, now, places, decisions, states, rows, tables, brought, site, schedule.applies[number])
        work.state.done[here] = site["stop"]
    sent = run["sent"]
    if answers:
        sent = log_rows(number, schedule, world.rules, work, decisions, places, sent)
        new = run["sent"], sent
        if sent == FULL or not _complete_entries(here, new, work.log, rows, tables, world.entries, site):
            return False
    for place in range(started, made):
        room &= note_difference(decisions.key[place], now, states, rows, run, world.stale)
    site["content"] |= content or sent > run["sent"]
    run["made"], run["sent"], run["applies"] = made, sent, number + 1
    _commit(number, sides, now, foreign["number"], site, world.learnt, world.taken)
    return room


@part
def decide_epoch(number, world):
    """
    Decide the operations of an epoch apply, and change the rows.

    Args:
        number: Of the epoch apply.
        world: `World`.

    Returns:
        The number of decisions, `FULL`, or `STOPPED` if an operation stops the applier; whether anything changed; and
        whether the applier may have to log something.
    """
    run, schedule, work, decisions = world.run[0], world.schedule, world.work, world.decisions
    apply, arrival = schedule.applies[number], arrival_of(number, work)
    here, there = np.int64(apply["applier"]), np.int64(apply["source"])
    logs = (world.changes.rows, work.log)
    if _stops(here, there, arrival, logs, world.key_table, world.rules.cells):
        return STOPPED, False, False
    rows, states, tables = world.rows, work.state.rows, (world.tables, world.key_table)
    setting, conflicts, touched = world.settings[here], world.conflicts, (rows.last_apply, rows.last_group, world.pairs)
    rejected, room = _transactions_in_conflict(
        number, schedule, world.changes, world.rules, work, world.tracked, setting, conflicts, tables, run, touched
    )
    if not room:
        return FULL, False, False
    started = run["made"]
    made, _, answers = decide_pass(number, schedule, world.changes, world.rules, rejected, work, decisions, started, NO)
    if made == FULL:
        return FULL, False, False
    brought = world.changes, world.made, world.entries
    content = _take_columns(number, (here, there), (started, made), decisions, states, rows, tables, brought)
    return made, content, answers


@part
def _begin(here, foreign, site, setting, apply, arrival):
    """Fill in the epoch apply and what it receives."""
    apply["epoch"], apply["group"] = epoch_number(setting, site["tick"]), site["groups"]
    apply["foreign_epoch"], apply["max_replicated"] = foreign["number"], site["known"]
    apply["applier"], apply["source"], apply["traced"] = here, setting["source"], True
    apply["acting"] = here
    apply["previous"] = site["last_apply"]
    arrival["first"], arrival["last"] = foreign["first"], foreign["last"]
    arrival["queue_start"], arrival["queue_stop"] = foreign["queue_start"], foreign["queue_stop"]


@part
def _stops(here, there, arrival, logs, key_table, cells):
    """Whether an operation lacks the value that its function compares; then the applier stops for good."""
    changes, log = logs
    for place in range(arrival["first"], arrival["last"]):
        change = changes[place]
        if change["relayed"] == here + 1:
            continue
        key, operation = change["key"], change["operation"]
        before, after = change["before_given"], change["after_given"]
        if _lacks_value(cells[here, key_table[key], operation], operation, before, after):
            return True
    for place in range(arrival["queue_start"], arrival["queue_stop"]):
        entry = log.entries[log.queue[there, place]]
        key, operation = entry["key"], entry["operation"]
        if _lacks_value(cells[here, key_table[key], operation], operation, False, entry["given"]):
            return True
    return False


@inlined
def _lacks_value(cell, operation, before_given, after_given):
    return is_comparing(cell) and not (before_given if reads_before(cell, operation) else after_given)


@part
def _commit(number, sides, now, epoch, site, learnt, taken):
    """Note what an epoch apply tells: own epochs came back with it, and its own epoch will say so."""
    (here, there), place, own = sides, site["next_foreign"], site["logged"]
    site["known"] = max(site["known"], learnt[there, place, here])
    learnt[here, own, there] = epoch
    for each in range(learnt.shape[2]):
        if each != here and learnt[there, place, each]:
            learnt[here, own, each] = learnt[there, place, each]
    taken[here, place]["begun"], taken[here, place]["applied"] = site["begun"], now
    site["last_apply"] = number
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
    here, there = schedule.applies[number]["applier"], schedule.applies[number]["source"]
    began, arrival = run["seen"], arrival_of(number, work)
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
        if tracked.verdict[place] != REJECTED:
            continue
        table = tables[0][here, tables[1][tracked.key[place]]]
        delete_delete = is_delete_delete(tracked.operation[place], tracked.cause[place])
        if marks_transaction(table["transactional"], delete_delete, table["delete_delete"]):
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
def _take_columns(number, sides, places, decisions, states, rows, tables, brought):
    """Give rows the data columns of the operations that were applied; return whether anything changed."""
    (changes, made, entries), (here, there) = brought, sides
    content = False
    for place in range(places[0], places[1]):
        source, key = decisions.source[place], decisions.key[place]
        origin = source + changes.begin[there] if source >= 0 else -1 - source
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
def _relay(number, sides, now, places, decisions, states, rows, tables, brought, site, apply):
    """
    Log the rows that an epoch apply changed for a third cluster.

    What it did to a row is one change, under the id of the cluster that made the last of its operations. No function
    that lets appliers log something else works with a third cluster, so each operation is a change.
    """
    (changes, made, _), (here, there) = brought, sides
    for place in range(places[0], places[1]):
        key, source = decisions.key[place], decisions.source[place] + changes.begin[there]
        if decisions.verdict[place] != APPLIED:
            continue
        if rows.sent[key] != number + 1:
            rows.sent[key], rows.wrote[key] = number + 1, 0
        relayed = changes.rows[source]["relayed"]
        rows.author[key] = relayed - 1 if relayed else there
        rows.wrote[key] |= made.carried[source]
    for place in range(places[0], places[1]):
        key, exists = decisions.key[place], states[decisions.key[place], here]["exists"]
        if decisions.verdict[place] != APPLIED or rows.sent[key] != number + 1:
            continue
        rows.sent[key] = 0
        old, value = rows.value[key, here], states[key, here]["value"]
        rows.value[key, here] = value
        if not (rows.before[key] or exists):
            continue
        operation = (UPDATE if exists else DELETE) if rows.before[key] else WRITE
        table, wrote = tables[0][here, tables[1][key]], rows.wrote[key]
        change, values = changes.rows[site["stop"]], changes.values[site["stop"]]
        change["epoch"], change["group"], change["relayed"] = apply["epoch"], apply["group"], rows.author[key] + 1
        given = put_change(change, key, operation, (wrote & RESOLVE_BIT) != 0, table)
        values["before"], values["after"] = old if rows.before[key] else unsigned(0), value
        every = all_columns(table)
        carried = every if operation == WRITE or table["whole"] else wrote & every
        if operation == DELETE:
            carried = unsigned(0)
        for column in range(table["columns"]):
            kept = carried & column_bit(column)
            made.columns[site["stop"], column] = rows.columns[key, here, column] if kept else unsigned(0)
        made.carried[site["stop"]] = carried | RESOLVE_BIT if given else carried
        made.at[site["stop"]] = now
        site["bytes"] += table["row_bytes"]
        site["stop"] += 1


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
