"""
The fold: decides every operation of a bucket in one pass.

Takes are walked in order. Before one, its applier catches up on what it did itself; then the operations of
the foreign epoch are decided, its own changes and what the other applier logged merged in the order of its log;
then those that a primary changed are reflected, and the rows in conflict refreshed. State is one entry per key
and cluster: exists, local, epoch, resolve column, whether the row has one, which required columns it lacks.

A take that holds transactions in conflict is decided twice, as the server does it: once as if there were none
(pass TRACK), which is undone, then with their operations rejected (pass APPLY). Which transactions those are
is an input; `conflict.transactions` finds them by folding until nothing changes.

The rules are those of `conflict.functions`, which property tests hold this to.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numba import njit

from conflict.decision import Cause, Verdict
from conflict.kernels.arrays import (
    BucketRows,
    Conflicts,
    Decisions,
    FunctionArrays,
    Int64,
    Logged,
    Presence,
    TakeArrays,
    read_only,
)
from conflict.kernels.bounds import bounds_of
from conflict.kernels.rules import decide_operation, needs_refresh
from ndb_formats.events.rows_event import Operation

__all__ = ["Folded", "fold"]

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
APPLIED, REJECTED, IGNORED = int(Verdict.APPLIED), int(Verdict.REJECTED), int(Verdict.IGNORED)
NO_CAUSE, TRANSACTION = int(Cause.NONE), int(Cause.TRANS_IN_CONFLICT)
PRESENT, NO_COLUMNS = int(Presence.PRESENT), int(Presence.NO_COLUMNS)
NOTHING = np.uint64(0)
_ROWS = (
    "key",
    "table",
    "operation",
    "epoch",
    "group",
    "before_presence",
    "before_value",
    "after_presence",
    "after_value",
    "before_lacks",
    "after_lacks",
)


@attrs.frozen
class Folded:
    """
    What `fold` returns.

    Attributes:
        decisions: One per operation taken, as it was decided in the end.
        tracked: One per operation of a take that holds transactions in conflict, as pass TRACK decided it.
        logged: One per row that an applier sent again or reflected.
        unexplained: Per cluster, own changes that do not fit the row they meet (see `ClusterResult`).
    """

    decisions: Decisions
    tracked: Decisions
    logged: Logged
    unexplained: Int64


def fold(
    takes: TakeArrays, rows: Sequence[BucketRows], functions: FunctionArrays, conflicts: Conflicts, keys: int
) -> Folded:
    """
    Decide every operation of a bucket.

    Args:
        takes: All takes, of every bucket alike.
        rows: What each of the two clusters did itself.
        functions: Which function each applier uses for each table.
        conflicts: Transactions in conflict, per take.
        keys: Number of keys in the bucket.
    """
    bounds = bounds_of(takes, rows)
    capacity = 2 * int((bounds.last - bounds.first).sum()) + 16
    while True:
        decisions, tracked, logged, lengths, unexplained = _fold(
            _frozen(takes.applier, takes.epoch, takes.group, takes.max_replicated_epoch),
            _frozen(*(getattr(bounds, field.name) for field in attrs.fields(type(bounds)))),
            tuple(_frozen(getattr(rows[0], name), getattr(rows[1], name)) for name in _ROWS),
            _frozen(*(getattr(functions, field.name) for field in attrs.fields(FunctionArrays))),
            _frozen(conflicts.offsets, conflicts.groups),
            keys,
            capacity,
        )
        if lengths[0] >= 0:
            break
        capacity *= 2  # two primaries can refresh each other's refreshes any number of times
    return Folded(
        Decisions(*(column[: lengths[0]] for column in decisions)),
        Decisions(*(column[: lengths[1]] for column in tracked)),
        Logged(*(column[: lengths[2]] for column in logged)),
        unexplained,
    )


def _frozen(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(read_only(array) for array in arrays)


@njit(cache=True)
def _catch_up(state, rows, required, side, start, stop, unexplained):
    """Do what a cluster did itself, rows `start` to `stop`."""
    exists, local, epoch, _, _, _ = state
    key_of, table_of, operation_of, epoch_of, _, before_in, before_of, after_in, after_of = rows[:9]
    before_lacks, after_lacks = rows[9], rows[10]
    for row in range(start, stop):
        key = key_of[side][row]
        unexplained[side] += not exists[side, key] and operation_of[side][row] != WRITE
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
def _tables_of_keys(rows, keys):
    table_of_key = np.zeros(keys, np.int16)
    for side in range(2):
        for row in range(len(rows[0][side])):
            table_of_key[rows[0][side][row]] = rows[1][side][row]
    return table_of_key


@njit(cache=True)
def _new_decisions(capacity):
    return (
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int8),
        np.empty(capacity, np.int8),
        np.empty(capacity, np.uint64),
        np.empty(capacity, np.uint64),
        np.empty(capacity, np.bool_),
    )


@njit(cache=True)
def _new_log(capacity):
    return (
        np.empty(capacity, np.int8),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int8),
        np.empty(capacity, np.bool_),
        np.empty(capacity, np.bool_),
        np.empty(capacity, np.uint64),
        np.empty(capacity, np.uint64),
        np.empty(capacity, np.int64),
    )


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
def _restore(saved, state, side, count):
    """Undo a pass."""
    keys, _, s_exists, s_local, s_epoch, s_value, s_given, s_lacks = saved
    exists, local, epoch, value, given, lacks = state
    for place in range(count):
        key = keys[place]
        exists[side, key], local[side, key], epoch[side, key] = s_exists[place], s_local[place], s_epoch[place]
        value[side, key], given[side, key], lacks[side, key] = s_value[place], s_given[place], s_lacks[place]


@njit(cache=True)
def _pass(take, where, takes, state, rows, functions, table_of_key, log, queue, rejected, decided, written, undo):
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
    key_of, _, operation_of, _, group_of, _, before_of, after_in, after_of, _, after_lacks = rows
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
        empty, reflected = False, False
        if entry >= 0 and (row >= last or own_group[l_take[entry]] < group_of[there][row]):
            queued += 1
            key, operation, group = l_key[entry], l_operation[entry], own_group[l_take[entry]]
            reflected = not l_refresh[entry]
            # The key is all that is known of the row before; a resolve column outside it stops the applier.
            before, given, after, lacks = value[here, key], l_given[entry], l_value[entry], l_lacks[entry]
            d_source[made] = -1 - entry
        else:
            key, operation, group = key_of[there][row], operation_of[there][row], group_of[there][row]
            before, lacks = before_of[there][row], after_lacks[there][row]
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
                before, after, lacks == 0, max_replicated[take],
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


@njit(cache=True)
def _put_entry(log, sent, here, key, take, operation, refresh, row, decision):
    l_cluster, l_key, l_take, l_operation, l_refresh, l_given, l_value, l_lacks, l_decision = log
    l_cluster[sent], l_key[sent], l_take[sent], l_operation[sent] = here, key, take, operation
    l_refresh[sent], l_given[sent], l_value[sent], l_lacks[sent] = refresh, row[0], row[1], row[2]
    l_decision[sent] = decision
    return sent + 1


@njit(cache=True)
def _log_rows(take, takes, state, rows, functions, table_of_key, log, sent, work, decisions, start, stop):
    """
    Log what the other side must hear of a take: one entry per row, reflected ones first.

    Returns the number of entries, or -1 if there is no room.
    """
    applier_of, own_epoch, _, _ = takes
    exists, local, epoch, value, given, lacks = state
    marked, pending, written = work
    l_key, l_operation = log[1], log[3]
    _, d_source, d_verdict, d_cause, _, _, d_existed = decisions
    here = applier_of[take]
    refreshes = 0
    for refreshing in (True, False):  # a refresh of a row wins over its reflected changes
        for decision in range(start, stop):
            if d_verdict[decision] != (REJECTED if refreshing else APPLIED):
                continue
            source = d_source[decision]
            key = rows[0][1 - here][source] if source >= 0 else l_key[-1 - source]
            table = table_of_key[key]
            if refreshing:
                operation = rows[2][1 - here][source] if source >= 0 else l_operation[-1 - source]
                wanted = needs_refresh(functions[2][here, table], operation, d_cause[decision])
            else:
                wanted = functions[4][here, table]
            if not wanted or marked[here, key] == take:
                continue
            marked[here, key] = take
            existed, stays = d_existed[decision], exists[here, key]
            if refreshing:
                pending[refreshes] = decision
                refreshes += 1
            elif existed or stays:
                if sent >= len(l_key):
                    return -1
                kind = (UPDATE if existed else WRITE) if stays else DELETE
                part = kind == UPDATE and not functions[5][here, table]
                row = (stays and given[here, key], value[here, key], written[1][key] if part else lacks[here, key])
                sent = _put_entry(log, sent, here, key, take, kind, False, row, decision)
    for place in range(refreshes):
        if sent >= len(l_key):
            return -1
        decision = pending[place]
        source = d_source[decision]
        key = rows[0][1 - here][source] if source >= 0 else l_key[-1 - source]
        stays = exists[here, key]
        row = (stays and given[here, key], value[here, key], lacks[here, key])
        sent = _put_entry(log, sent, here, key, take, WRITE if stays else DELETE, True, row, decision)
        if stays:
            local[here, key], epoch[here, key] = True, own_epoch[take]
    return sent


@njit(cache=True)
def _fold(takes, bounds, rows, functions, conflicts, keys, capacity):
    """Walk the takes; returns arrays and their lengths, -1 for the first length if `capacity` is too small."""
    applier_of = takes[0]
    local_end, first, last, first_cause, last_cause = bounds
    offsets, groups = conflicts
    state = (
        np.zeros((2, keys), np.bool_),
        np.zeros((2, keys), np.bool_),
        np.zeros((2, keys), np.uint64),
        np.zeros((2, keys), np.uint64),
        np.zeros((2, keys), np.bool_),
        np.zeros((2, keys), np.uint64),
    )
    saved = (
        np.empty(keys, np.int32),
        np.full(keys, -1, np.int64),
        np.empty(keys, np.bool_),
        np.empty(keys, np.bool_),
        np.empty(keys, np.uint64),
        np.empty(keys, np.uint64),
        np.empty(keys, np.bool_),
        np.empty(keys, np.uint64),
    )
    written = (np.full(keys, -1, np.int64), np.zeros(keys, np.uint64))  # the last pass, and what it has not written
    table_of_key = _tables_of_keys(rows, keys)
    marked = np.full((2, keys), -1, np.int64)  # the last take that logged a row
    decisions, tracked, log = _new_decisions(capacity), _new_decisions(capacity), _new_log(capacity)
    pending = np.empty(capacity, np.int64)
    work = (marked, pending, written)
    queue = np.empty((2, capacity), np.int64)  # what each cluster has logged, in order
    tail, done = np.zeros(2, np.int64), np.zeros(2, np.int64)
    queue_start, queue_stop = np.zeros(len(applier_of), np.int64), np.zeros(len(applier_of), np.int64)
    unexplained = np.zeros(2, np.int64)
    made, seen, sent = 0, 0, 0
    full = (-1, -1, -1)

    for take in range(len(applier_of)):
        here = applier_of[take]
        # 1. The applier's own changes that come before.
        _catch_up(state, rows, functions[6], here, done[here], local_end[take], unexplained)
        done[here] = max(done[here], local_end[take])

        # 2. The foreign epoch, in the order of its log.
        queued, queue_end = 0, 0
        if first_cause[take] >= 0:
            queued, queue_end = queue_start[first_cause[take]], queue_stop[last_cause[take]]
        where = (first[take], last[take], queued, queue_end)
        if offsets[take] < offsets[take + 1]:
            seen, kept = _pass(
                take, where, takes, state, rows, functions, table_of_key, log, queue,
                (groups, 0, 0), (tracked, seen), written, (True, saved),
            )  # fmt: skip
            if seen < 0:
                return decisions, tracked, log, full, unexplained
            _restore(saved, state, here, kept)
        started = made
        made, _ = _pass(
            take, where, takes, state, rows, functions, table_of_key, log, queue,
            (groups, offsets[take], offsets[take + 1]), (decisions, made), written, (False, saved),
        )  # fmt: skip
        if made < 0:
            return decisions, tracked, log, full, unexplained

        # 3. What the other side must hear of it.
        entries = sent
        sent = _log_rows(take, takes, state, rows, functions, table_of_key, log, sent, work, decisions, started, made)
        if sent < 0:
            return decisions, tracked, log, full, unexplained
        queue_start[take] = tail[here]
        for entry in range(entries, sent):
            queue[here, tail[here]] = entry
            tail[here] += 1
        queue_stop[take] = tail[here]
    for side in range(2):
        _catch_up(state, rows, functions[6], side, done[side], len(rows[0][side]), unexplained)
    return decisions, tracked, log, (made, seen, sent), unexplained
