"""
The state of rows before the log starts, as far as the first change or epoch apply of each row shows it.

An own change shows that the row existed, and its before image shows the values. For the first epoch apply with
operations on a row, every state that the row may have had is tried; those remain whose effect is the one in the
applier's binlog (`conflict.engine.inference.not_known` has the rule). If they lead to one decision, and the row is
known after it, the first of them is taken. Else the reference engine decides the row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conflict.engine.kernels.apply_order import LAST_EPOCH, PAST_ALL_GROUPS, arrival_of, reaches
from conflict.engine.kernels.arrays import Bool, Int8, Int32, Int64, UInt64
from conflict.engine.kernels.effects import effect_number
from conflict.engine.kernels.records import ROW_STATE, Records
from conflict.engine.kernels.rules import decide_operation, needs_refresh, reads_before
from conflict.history.shown_effects import NO_EFFECT, Effect
from conflict.rules.decision import Cause, Verdict
from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.events.rows_event import Operation

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
LAST_OPERATION = max(int(operation) for operation in Operation)
APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)
REFRESHED, REFRESHED_ABSENT = int(Effect.REFRESHED), int(Effect.REFRESHED_ABSENT)
# How a row of a cluster came to be known: by nothing yet, or not by its first event alone.
NEVER_MET, KNOWN, OPEN = 0, 1, 2
NOTHING, LARGEST, ONE = np.uint64(0), np.uint64(2**64 - 1), np.uint64(1)
# The states that are tried: last changed here; there, with one of four values; missing.
LOCAL, FIRST_VALUE, MISSING, STATES = 0, 1, 5, 6
# Decisions on several operations as one number.
OUTCOMES, MULTIPLIER = len(Cause) + 1, np.uint64((len(Cause) + 1) * (Verdict.CANNOT_TELL + 1) + 1)
# A state that is tried, after the operations so far, and a number that represents the decisions on them.
TRIED = np.dtype(
    [
        *[(name, ROW_STATE[name]) for name in ROW_STATE.names or ()],
        *[
            ("assumed", "u8"),
            ("decisions", "u8"),
            ("refreshed", "?"),
            ("applied", "?"),
            ("existed", "?"),
            ("given", "?"),
            ("possible", "?"),
        ],
    ],
    align=True,
)


class Limits(NamedTuple):
    """
    What rows can have been, by applier and table. Shape (clusters, tables).

    Attributes:
        newest: The newest epoch that a row can have been changed here in before the log starts, as a row stores it.
        least: The least value of the resolve column, as data nodes order values.
        greatest: Its greatest value, likewise.
        judged_by_epoch: Whether a decision can depend on that.
        role_matters: Whether a decision can depend on who changed it last, whatever the epoch.
        compares: Whether a decision can depend on the resolve column, of either applier.
        reflects: Whether it matters to what the applier logs whether the row was there.
        unique: Whether the table has unique keys: an epoch apply without a trace may have stopped the applier.
        with_transactions: Whether the applier rejects whole transactions, in any table.
    """

    newest: UInt64
    least: UInt64
    greatest: UInt64
    judged_by_epoch: Bool
    role_matters: Bool
    compares: Bool
    reflects: Bool
    unique: Bool
    with_transactions: Bool


class ShownEffects(NamedTuple):
    """
    What the binlogs show of the work of both appliers, the second one's after the first one's. Shape (rows,).

    Attributes:
        epoch: Own epoch, in order.
        group: Group of that epoch, in order.
        key: The row.
        effect: `Effect`.
        begin: First row of each applier.
        end: One past the last.
        any: Whether the binlog of each shows any effect, in all buckets.
    """

    epoch: UInt64
    group: Int32
    key: Int32
    effect: Int8
    begin: tuple[int, int]
    end: tuple[int, int]
    any: tuple[bool, bool]


class FirstEvents(NamedTuple):
    """
    What was found. Shape (keys, clusters).

    Attributes:
        states: The rows before the log starts. `ROW_STATE`.
        knowledge: `NEVER_MET`, `KNOWN` or `OPEN`.
        local_at: Epoch apply before which a row counts as last changed here before the log; -1 for none.
        own_at: Own change before which nothing had shown a row; -1 for none.
    """

    states: Records
    knowledge: Int8
    local_at: Int32
    own_at: Int32


class StateTrials(NamedTuple):
    """
    The rows that nothing has shown, of one epoch apply.

    Attributes:
        tried: `TRIED`, shape (rows, states).
        keys: The row. int32, shape (rows,).
        twice: Whether there is more than one operation on it. Shape (rows,), bool.
        place_of: By row of the bucket, its place among these. int32, shape (keys,).
        at: The last epoch apply in which it was one of these. int64, shape (keys,).
        effects: By row of the bucket, the last effect that a binlog shows. int8, shape (keys,).
        shown_at: Its epoch apply. int64, shape (keys,).
    """

    tried: Records
    keys: Int32
    twice: Bool
    place_of: Int32
    at: Int64
    effects: Int8
    shown_at: Int64


@kernel
def find_first_states(schedule, changes, work, rules, limits, shown, found):
    """
    Find what rows were before the log starts.

    Args:
        schedule: `Schedule`.
        changes: `Changes`.
        work: `Work`; its arrivals have the own changes that each epoch apply receives.
        rules: `Rules`.
        limits: `Limits`.
        shown: `ShownEffects`.
        found: `FirstEvents`; filled in. Its states have the table of each row.
    """
    keys, most = len(found.knowledge), 1
    for place in range(1, work.arrivals.used[0] + 1):
        arrival = work.arrivals.records[place]
        most = max(most, arrival["last"] - arrival["first"])
    trials = StateTrials(
        np.zeros((most, STATES), TRIED),
        np.empty(most, np.int32),
        np.zeros(most, np.bool_),
        np.zeros(keys, np.int32),
        np.full(keys, -1, np.int64),
        np.zeros(keys, np.int8),
        np.full(keys, -1, np.int64),
    )
    done = changes.begin[:-1].copy()
    passed = np.array([shown.begin[0], shown.begin[1]], np.int64)
    for number in range(len(schedule.applies)):
        if work.arrivals.places[number] == 0:
            continue
        apply = schedule.applies[number]
        here = apply["applier"]
        follows = np.int64(apply["group"]) + (not apply["traced"])
        done[here] = _meet_own(here, done[here], apply["epoch"], follows, changes, limits, found)
        passed[here] = _note_shown(number, apply, passed[here], shown, trials)
        used = _try_operations(number, schedule, arrival_of(number, work), changes, rules, limits, trials, found)
        for place in range(used):
            _settle(number, apply, place, limits, shown.any[here], trials, found)
    for side in range(2):
        _meet_own(side, done[side], LAST_EPOCH, PAST_ALL_GROUPS, changes, limits, found)


@kernel
def _meet_own(side, start, epoch, group, changes, limits, found):
    """Note what own changes before a group of an epoch show of their rows; return the first one after them."""
    number = start
    while number < changes.begin[side + 1] and not reaches(changes.rows[number], epoch, group):
        row, values = changes.rows[number], changes.values[number * changes.value_step]
        number += 1
        key, operation = row["key"], row["operation"]
        if operation > LAST_OPERATION or found.knowledge[key, side] != NEVER_MET:
            continue
        mine = found.states[key, side]
        # What was there may have been written once more.
        mine["exists"], found.own_at[key, side] = True, number - 1
        before_given = operation == UPDATE and row["before_given"]
        if before_given:
            mine["value"] = values["before"]
        is_known = operation == DELETE or before_given or row["after_given"] or not limits.compares[side, mine["table"]]
        found.knowledge[key, side] = KNOWN if is_known else OPEN
    return number


@kernel
def _note_shown(number, apply, start, shown, trials):
    """Note what the binlog shows of an epoch apply; return the first effect that is not before it."""
    place, stop = start, shown.end[apply["applier"]]
    while place < stop and (
        shown.epoch[place] < apply["epoch"]
        or (shown.epoch[place] == apply["epoch"] and shown.group[place] < apply["group"])
    ):
        place += 1
    first = place
    if apply["traced"]:
        while place < stop and shown.epoch[place] == apply["epoch"] and shown.group[place] == apply["group"]:
            key = shown.key[place]
            trials.effects[key], trials.shown_at[key] = shown.effect[place], number
            place += 1
    return first


@kernel
def _try_operations(number, schedule, arrival, changes, rules, limits, trials, found):
    """Try the operations of an epoch apply on the rows that nothing has shown; return how many rows there are."""
    apply = schedule.applies[number]
    here, used = apply["applier"], 0
    for place in range(arrival["first"], arrival["last"]):
        row = changes.rows[place]
        key = row["key"]
        if found.knowledge[key, here] != NEVER_MET or row["empty"]:
            continue
        table = found.states[key, here]["table"]
        if rules.tables[here, table]["drops"]:
            continue
        cell = rules.cells[here, table, row["operation"]]
        values = changes.values[place * changes.value_step]
        if trials.at[key] != number:
            trials.at[key], trials.place_of[key] = number, used
            trials.keys[used], trials.twice[used] = key, False
            with_before = reads_before(cell, row["operation"])
            brought = values["before"] if with_before else values["after"]
            _start_trials(trials.tried[used], apply, here, table, limits, brought)
            used += 1
        else:
            trials.twice[trials.place_of[key]] = True
        for state in range(STATES):
            tried = trials.tried[trials.place_of[key], state]
            if tried["possible"]:
                _try(tried, rules.tables[here, table], cell, row, values, apply)
    return used


@inlined
def _start_trials(tried, apply, here, table, limits, brought):
    """Put the states that a row may have had before the log in place."""
    compares = limits.compares[here, table]
    by_epoch = limits.judged_by_epoch[here, table] and apply["max_replicated"] < limits.newest[here, table]
    for state in range(STATES):
        each = tried[state]
        each["exists"], each["local"] = state != MISSING, state == LOCAL
        each["epoch"] = LAST_EPOCH if state == LOCAL else NOTHING
        each["given"], each["decisions"] = False, NOTHING
        each["refreshed"], each["applied"], each["existed"] = False, False, False
        each["possible"] = compares or state in (FIRST_VALUE, MISSING)
    tried[LOCAL]["possible"] = by_epoch or limits.role_matters[here, table]
    # These, and one between each two of them, represent all values that there are.
    tried[LOCAL]["assumed"], tried[MISSING]["assumed"] = NOTHING, NOTHING
    least, greatest = limits.least[here, table], limits.greatest[here, table]
    following = brought + ONE if brought < LARGEST else NOTHING
    tried[FIRST_VALUE]["assumed"], tried[FIRST_VALUE + 1]["assumed"] = least, brought
    tried[FIRST_VALUE + 2]["assumed"] = greatest if brought == greatest else following
    tried[FIRST_VALUE + 3]["assumed"] = greatest
    for state in range(STATES):
        tried[state]["value"] = tried[state]["assumed"]


@inlined
def _try(tried, rule, cell, row, values, apply):
    """Decide an operation on a row in a state that is tried, and apply it."""
    operation = row["operation"]
    brought = (
        operation,
        False,
        row["before_given"],
        values["before"],
        row["after_given"],
        values["after"],
        not row["incomplete"],
    )
    verdict, cause, _, _ = decide_operation(cell, rule, tried, brought, apply["max_replicated"])
    outcome = np.uint64(verdict * OUTCOMES + cause + 1)
    tried["decisions"] = tried["decisions"] * MULTIPLIER + outcome
    if verdict == REJECTED:
        tried["refreshed"] |= needs_refresh(rule["refreshes"], operation, cause)
    if verdict != APPLIED:
        return
    if not tried["applied"]:
        tried["applied"], tried["existed"] = True, tried["exists"]
    if operation == DELETE:
        tried["exists"] = False
    else:
        if not tried["exists"]:
            tried["exists"], tried["given"], tried["value"] = True, False, rule["unwritten"]
        if row["after_given"]:
            tried["given"], tried["value"] = True, values["after"]
    tried["local"], tried["epoch"] = False, apply["epoch"]


@inlined
def _effect(tried):
    """Return the effect of the operations on a row in a state that is tried."""
    return effect_number(tried["refreshed"], tried["applied"], tried["existed"], tried["exists"])


@kernel
def _settle(number, apply, place, limits, any_shown, trials, found):
    """Take the first state of a row that has the effect that the binlog shows, if it leaves nothing open."""
    key, tried, here = trials.keys[place], trials.tried[place], apply["applier"]
    mine = found.states[key, here]
    table = mine["table"]
    tells = any_shown and (apply["traced"] or not limits.unique[here, table])
    compares = limits.compares[here, table]
    effect = trials.effects[key] if trials.shown_at[key] == number else NO_EFFECT
    # A row of a transaction in conflict is refreshed, whatever its own operations would have done.
    rejected = tells and limits.with_transactions[here, table] and effect in (REFRESHED, REFRESHED_ABSENT)
    first, missing, there, one = -1, False, False, True
    for state in range(STATES):
        if not tried[state]["possible"]:
            continue
        if rejected:
            if (state == MISSING) != (effect == REFRESHED_ABSENT):
                continue
        elif tells and _effect(tried[state]) != effect:
            continue
        if first < 0:
            first = state
        one &= tried[state]["decisions"] == tried[first]["decisions"]
        one &= _effect(tried[state]) == _effect(tried[first])
        missing |= state == MISSING
        there |= state != MISSING
    is_known = first >= 0 and one and not (trials.twice[place] and (compares or rejected))
    if is_known and rejected:
        is_known = not compares
    elif is_known:
        after = tried[first]
        if _effect(after) == NO_EFFECT:
            is_known = not there
        elif missing and there and limits.reflects[here, table]:
            is_known = False
        elif after["exists"]:
            is_known = after["given"] or not compares
    found.knowledge[key, here] = KNOWN if is_known else OPEN
    if first >= 0 and first != MISSING:
        mine["exists"], mine["value"] = True, tried[first]["assumed"]
        if first == LOCAL:
            mine["local"], mine["epoch"], found.local_at[key, here] = True, LAST_EPOCH, number
