"""
One pass of an applier over a foreign epoch, and what a cluster did itself, over state arrays.

State is one entry per key and cluster: exists, local, epoch, value of the resolve column, whether the row has one,
and which of the columns that a row has to have it lacks.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conflict.decision import Cause, Verdict
from conflict.kernels.arrays import Presence
from conflict.kernels.rules import decide_operation
from ndb_formats.events.rows_event import Operation

__all__ = ["catch_up", "decide_pass", "restore"]

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
APPLIED, REJECTED, IGNORED = int(Verdict.APPLIED), int(Verdict.REJECTED), int(Verdict.IGNORED)
NO_CAUSE, TRANSACTION = int(Cause.NONE), int(Cause.TRANS_IN_CONFLICT)
PRESENT, NO_COLUMNS = int(Presence.PRESENT), int(Presence.NO_COLUMNS)
NOTHING = np.uint64(0)


@njit(cache=True)
def catch_up(state, rows, required, side, start, stop, unexplained, kept):
    """Do what a cluster did itself, rows `start` to `stop`; `kept` is how each row was before, if that is wanted."""
    exists, local, epoch, value, given, lacks = state
    keeping, last_row, before_row, b_exists, b_local, b_epoch, b_value, b_given, b_lacks = kept
    key_of, table_of, operation_of, epoch_of, _, before_in, before_of, after_in, after_of = rows[:9]
    before_lacks, after_lacks = rows[9], rows[10]
    for row in range(start, stop):
        key = key_of[side][row]
        unexplained[side] += not exists[side, key] and operation_of[side][row] != WRITE
        if keeping:
            before_row[side, row], last_row[side, key] = last_row[side, key], row
            b_exists[side, row], b_local[side, row], b_epoch[side, row] = (
                exists[side, key], local[side, key], epoch[side, key],
            )  # fmt: skip
            b_value[side, row], b_given[side, row], b_lacks[side, row] = (
                value[side, key], given[side, key], lacks[side, key],
            )  # fmt: skip
        if operation_of[side][row] == UPDATE and not exists[side, key]:
            _start(state, side, key, before_in[side][row] == PRESENT, before_of[side][row], before_lacks[side][row])
        _change(
            state, side, key, operation_of[side][row], required[side, table_of[side][row]],
            after_in[side][row] == PRESENT, after_of[side][row], after_lacks[side][row],
        )  # fmt: skip
        if exists[side, key]:
            local[side, key], epoch[side, key] = True, epoch_of[side][row]


@njit(cache=True)
def _start(state, side, key, given_here, resolve, lacking):
    """Make a row of one image."""
    exists, _, _, value, given, lacks = state
    exists[side, key], given[side, key], lacks[side, key] = True, given_here, lacking
    value[side, key] = resolve if given_here else NOTHING


@njit(cache=True)
def _change(state, side, key, operation, required, given_here, resolve, lacking):
    """Write the after image of an operation over a row; author and epoch are the caller's."""
    exists, _, _, value, given, lacks = state
    if operation == DELETE:
        exists[side, key] = False
        return
    if not exists[side, key]:
        _start(state, side, key, False, NOTHING, required)
    lacks[side, key] &= lacking
    if given_here:
        value[side, key], given[side, key] = resolve, True


@njit(cache=True)
def _contains(groups, start, stop, group):
    """Whether a group is in a sorted stretch."""
    place = start + np.searchsorted(groups[start:stop], group)
    return place < stop and groups[place] == group


@njit(cache=True)
def _save(saved, state, side, key, take, count):
    """Keep a row as it was before this take, unless that is done; returns how many rows are kept."""
    keys, kept_in, s_exists, s_local, s_epoch, s_value, s_given, s_lacks = saved
    if kept_in[key] == take:
        return count
    exists, local, epoch, value, given, lacks = state
    keys[count], kept_in[key] = key, take
    s_exists[count], s_local[count], s_epoch[count] = exists[side, key], local[side, key], epoch[side, key]
    s_value[count], s_given[count], s_lacks[count] = value[side, key], given[side, key], lacks[side, key]
    return count + 1


@njit(cache=True)
def restore(saved, state, side, count):
    """Undo a pass."""
    keys, kept_in, s_exists, s_local, s_epoch, s_value, s_given, s_lacks = saved
    exists, local, epoch, value, given, lacks = state
    for place in range(count):
        key = keys[place]
        kept_in[key] = -1
        exists[side, key], local[side, key], epoch[side, key] = s_exists[place], s_local[place], s_epoch[place]
        value[side, key], given[side, key], lacks[side, key] = s_value[place], s_given[place], s_lacks[place]


@njit(cache=True)
def decide_pass(take, where, takes, state, rows, functions, table_of_key, log, queue, rejected, decided, written, undo):
    """
    Decide the operations of one take, and do those that are applied.

    `where` holds the stretches of the source's rows and of its queue; `rejected` the groups in conflict and
    which stretch of them counts; `written` keeps which required columns no operation of the take has written
    to a row; `undo` says whether rows are kept as they were, and where.
    Returns the number of decisions, or -1 if there is no room, and how many rows were kept.
    """
    applier_of, own_epoch, own_group, max_replicated = takes
    first, last, queued, queue_end = where
    exists, local, epoch, value, _, _ = state
    key_of, _, operation_of, _, group_of, before_in, before_of, after_in, after_of, _, after_lacks = rows
    _, l_key, l_take, l_operation, l_refresh, l_given, l_value, l_lacks, _ = log
    decisions, made = decided
    d_take, d_source, d_verdict, d_cause, d_incoming, d_stored, d_existed = decisions
    groups, groups_start, groups_stop = rejected
    undoing, saved = undo
    number = 2 * take + undoing  # of the pass
    here = applier_of[take]
    there = 1 - here
    kept, row = 0, first
    while True:
        entry = queue[there, queued] if queued < queue_end else np.int64(-1)
        if row >= last and entry < 0:
            return made, kept
        if made >= len(d_take):
            return -1, kept
        empty, reflected, before_given = False, False, False
        if entry >= 0 and (row >= last or own_group[l_take[entry]] < group_of[there][row]):
            queued += 1
            key, operation, group = l_key[entry], l_operation[entry], own_group[l_take[entry]]
            reflected = not l_refresh[entry]
            # The key is all that is known of the row before; a resolve column outside it stops the applier.
            before, given, after, lacks = value[here, key], l_given[entry], l_value[entry], l_lacks[entry]
            d_source[made] = -1 - entry
        else:
            key, operation, group = key_of[there][row], operation_of[there][row], group_of[there][row]
            before_given, before = before_in[there][row] == PRESENT, before_of[there][row]
            lacks = after_lacks[there][row]
            given, after = after_in[there][row] == PRESENT, after_of[there][row]
            empty = operation == UPDATE and after_in[there][row] == NO_COLUMNS
            d_source[made] = row
            row += 1
        table = table_of_key[key]
        d_take[made], d_existed[made] = take, exists[here, key]
        if empty:
            decision = (IGNORED, NO_CAUSE, NOTHING, NOTHING)
        elif groups_start < groups_stop and _contains(groups, groups_start, groups_stop, group):
            decision = (REJECTED, TRANSACTION, NOTHING, NOTHING)
        else:
            decision = decide_operation(
                functions[0][here, table], functions[1][here, table], functions[3][here, table], operation, reflected,
                exists[here, key], local[here, key], epoch[here, key], value[here, key],
                before_given, before, given, after, lacks == 0,
                functions[7][here, table, operation], functions[8][here, table, operation], max_replicated[take],
            )  # fmt: skip
        d_verdict[made], d_cause[made], d_incoming[made], d_stored[made] = decision
        made += 1
        if decision[0] == APPLIED:
            if undoing:
                kept = _save(saved, state, here, key, take, kept)
            if written[0][key] != number:
                written[0][key], written[1][key] = number, functions[6][here, table]
            written[1][key] &= lacks
            _change(state, here, key, operation, functions[6][here, table], given, after, lacks)
            local[here, key], epoch[here, key] = False, own_epoch[take]
