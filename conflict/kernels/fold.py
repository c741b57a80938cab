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
from conflict.kernels.open_decisions import try_others
from conflict.kernels.passes import catch_up, decide_pass, restore
from conflict.kernels.rules import needs_refresh
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
        tracked: One per operation of a take that holds transactions in conflict, or was judged before it
            commits, as pass TRACK decided it.
        candidates: What pass TRACK may have decided, one bit per outcome (see `outcome_bit`): more than was
            decided where the applier's own cluster changed the row meanwhile. Shape (tracked,).
        logged: One per row that an applier sent again or reflected.
        unexplained: Per cluster, own changes that do not fit the row they meet (see `ClusterResult`).
    """

    decisions: Decisions
    tracked: Decisions
    candidates: Int64
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
        decisions, tracked, candidates, logged, lengths, unexplained = _fold(
            _frozen(takes.applier, takes.epoch, takes.group, takes.max_replicated_epoch),
            _frozen(*(getattr(bounds, field.name) for field in attrs.fields(type(bounds)))),
            tuple(_frozen(getattr(rows[0], name), getattr(rows[1], name)) for name in _ROWS),
            _frozen(*(getattr(functions, field.name) for field in attrs.fields(FunctionArrays))),
            _frozen(conflicts.offsets, conflicts.groups, takes.judged),
            keys,
            capacity,
        )
        if lengths[0] >= 0:
            break
        capacity *= 2  # two primaries can refresh each other's refreshes any number of times
    return Folded(
        Decisions(*(column[: lengths[0]] for column in decisions)),
        Decisions(*(column[: lengths[1]] for column in tracked)),
        candidates[: lengths[1]],
        Logged(*(column[: lengths[2]] for column in logged)),
        unexplained,
    )


def _frozen(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(read_only(array) for array in arrays)


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
def _room_for_rows(rows, keys, keeping):
    """Return where `catch_up` keeps how each row was before its cluster's own changes, if that is wanted."""
    count = max(len(rows[0][0]), len(rows[0][1])) if keeping else 1
    return (
        keeping,
        np.full((2, keys if keeping else 1), -1, np.int64),
        np.empty((2, count), np.int64),
        np.empty((2, count), np.bool_),
        np.empty((2, count), np.bool_),
        np.empty((2, count), np.uint64),
        np.empty((2, count), np.uint64),
        np.empty((2, count), np.bool_),
        np.empty((2, count), np.uint64),
    )


@njit(cache=True)
def _room_for_keys(keys):
    return (
        np.empty(keys, np.int64),
        np.empty(keys, np.int64),
        np.full(keys, -1, np.int64),
        np.empty(keys, np.bool_),
        np.empty(keys, np.bool_),
        np.empty(keys, np.uint64),
        np.empty(keys, np.uint64),
        np.empty(keys, np.bool_),
        np.empty(keys, np.uint64),
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
    local_end, first, last, first_cause, last_cause, judged_end, open_start = bounds
    offsets, groups, judged = conflicts
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
    # Only where transactions are in conflict does it matter how rows were before their cluster's own changes.
    keeping = len(groups) > 0
    candidates, trial = np.zeros(capacity, np.int64), _new_decisions(capacity if keeping else 1)
    before = _room_for_rows(rows, keys, keeping)
    open_work = _room_for_keys(keys if keeping else 1)
    made, seen, sent = 0, 0, 0
    full = (-1, -1, -1)

    for take in range(len(applier_of)):
        here = applier_of[take]
        # 1. The applier's own changes that come before.
        catch_up(state, rows, functions[6], here, done[here], judged_end[take], unexplained, before)
        done[here] = max(done[here], judged_end[take])

        # 2. The foreign epoch, in the order of its log.
        queued, queue_end = 0, 0
        if first_cause[take] >= 0:
            queued, queue_end = queue_start[first_cause[take]], queue_stop[last_cause[take]]
        where = (first[take], last[take], queued, queue_end)
        started = seen
        if offsets[take] < offsets[take + 1] or judged[take]:
            seen, kept = decide_pass(
                take, where, takes, state, rows, functions, table_of_key, log, queue,
                (groups, 0, 0), (tracked, seen), written, (True, saved),
            )  # fmt: skip
            if seen < 0:
                return decisions, tracked, candidates, log, full, unexplained
            restore(saved, state, here, kept)
        catch_up(state, rows, functions[6], here, done[here], local_end[take], unexplained, before)
        done[here] = max(done[here], local_end[take])
        if offsets[take] < offsets[take + 1]:
            try_others(
                take, where, takes, state, rows, functions, table_of_key, log, queue, groups,
                (tracked, started, seen, candidates, open_start[take], judged[take], trial),
                written, saved, open_work, before,
            )  # fmt: skip
        started = made
        made, _ = decide_pass(
            take, where, takes, state, rows, functions, table_of_key, log, queue,
            (groups, offsets[take], offsets[take + 1]), (decisions, made), written, (False, saved),
        )  # fmt: skip
        if made < 0:
            return decisions, tracked, candidates, log, full, unexplained

        # 3. What the other side must hear of it.
        entries = sent
        sent = _log_rows(take, takes, state, rows, functions, table_of_key, log, sent, work, decisions, started, made)
        if sent < 0:
            return decisions, tracked, candidates, log, full, unexplained
        queue_start[take] = tail[here]
        for entry in range(entries, sent):
            queue[here, tail[here]] = entry
            tail[here] += 1
        queue_stop[take] = tail[here]
    for side in range(2):
        catch_up(state, rows, functions[6], side, done[side], len(rows[0][side]), unexplained, before)
    return decisions, tracked, candidates, log, (made, seen, sent), unexplained
