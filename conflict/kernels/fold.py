"""
The fold: decides every operation of a bucket in one pass.

Takes are walked in order. Before one, its applier catches up on what it did itself; then the operations of
the foreign epoch are decided, its own changes and refreshes merged in the order of its log; then
the rows in conflict are refreshed. State is one entry per key and cluster: exists, local, epoch, value.

The rules are those of `conflict.functions`, which property tests hold this to.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numba import njit

from conflict.decision import Cause, Verdict
from conflict.functions import FunctionCode
from conflict.kernels.arrays import (
    BucketRows,
    Decisions,
    FunctionArrays,
    Int64,
    Refreshes,
    TakeArrays,
    read_only,
)
from ndb_formats.events.rows_event import Operation
from ndb_formats.extra_row_info import ConflictFlag

__all__ = ["Bounds", "Folded", "bounds_of", "fold"]

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
READ = int(ConflictFlag.READ)
APPLIED, REJECTED, IGNORED = int(Verdict.APPLIED), int(Verdict.REJECTED), int(Verdict.IGNORED)
NO_CAUSE, MISSING = int(Cause.NONE), int(Cause.ROW_DOES_NOT_EXIST)
EXISTS, IN_CONFLICT = int(Cause.ROW_ALREADY_EXISTS), int(Cause.ROW_IN_CONFLICT)
NO_FUNCTION, MAX, EPOCH = int(FunctionCode.NONE), int(FunctionCode.MAX), int(FunctionCode.EPOCH)


@attrs.frozen
class Bounds:
    """
    Which rows belong to which take. Shape (takes,).

    Attributes:
        local_end: The applier's own rows before this number come before the take.
        first: First row of the source's epoch.
        last: One past its last row.
    """

    local_end: Int64
    first: Int64
    last: Int64


@attrs.frozen
class Folded:
    """
    What `fold` returns.

    Attributes:
        decisions: One per operation taken.
        refreshes: One per row sent again.
        unexplained: Per cluster, own changes that do not fit the row they meet (see `ClusterResult`).
    """

    decisions: Decisions
    refreshes: Refreshes
    unexplained: Int64


def bounds_of(takes: TakeArrays, rows: Sequence[BucketRows]) -> Bounds:
    """Find, for every take, the rows that come before it and the rows that it applies."""
    local_end, first, last = (np.zeros(len(takes), np.int64) for _ in range(3))
    for applier in (0, 1):
        mine = np.flatnonzero(takes.applier == applier)
        own, source = rows[applier], rows[1 - applier]
        # A take without a trace follows its group, one with a trace is its group.
        groups = takes.group[mine].astype(np.int64) + ~takes.traced[mine]
        local_end[mine] = _search(own, takes.epoch[mine], groups)
        first[mine] = np.searchsorted(source.epoch, takes.foreign_epoch[mine], "left")
        last[mine] = np.searchsorted(source.epoch, takes.foreign_epoch[mine], "right")
    return Bounds(local_end, first, last)


def _search(rows: BucketRows, epochs: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the number of the first row at or after each (epoch, group)."""
    known = np.unique(np.concatenate([rows.epoch, epochs]))
    # Groups start at -1 and an epoch holds far fewer than 2^32 of them.
    places = (np.searchsorted(known, rows.epoch) << 32) + rows.group + 1
    wanted = (np.searchsorted(known, epochs) << 32) + groups + 1
    return np.asarray(np.searchsorted(places, wanted, "left"))


def fold(takes: TakeArrays, rows: Sequence[BucketRows], functions: FunctionArrays, keys: int) -> Folded:
    """
    Decide every operation of a bucket.

    Args:
        takes: All takes, of every bucket alike.
        rows: What each of the two clusters did itself.
        functions: Which function each applier uses for each table.
        keys: Number of keys in the bucket.
    """
    bounds = bounds_of(takes, rows)
    capacity = 2 * int((bounds.last - bounds.first).sum()) + 16
    while True:
        folded = _fold(
            _frozen(takes.applier, takes.foreign_epoch, takes.epoch, takes.group, takes.max_replicated_epoch),
            _frozen(bounds.local_end, bounds.first, bounds.last),
            tuple(_frozen(*pair) for pair in _pairs(rows)),
            _frozen(functions.code, functions.gci_bits, functions.refreshes),
            keys,
            capacity,
        )
        decisions, refreshes, made, sent, unexplained = folded
        if made >= 0:
            break
        capacity *= 2  # two primaries can refresh each other's refreshes any number of times
    return Folded(
        Decisions(*(column[:made] for column in decisions)),
        Refreshes(*(column[:sent] for column in refreshes)),
        unexplained,
    )


def _pairs(rows: Sequence[BucketRows]) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    return tuple((getattr(rows[0], field.name), getattr(rows[1], field.name)) for field in attrs.fields(BucketRows))


def _frozen(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(read_only(array) for array in arrays)


@njit(cache=True, inline="always")
def _stored_precision(epoch, bits):
    """See `conflict.engine.row_store.stored_precision`."""
    low = epoch & np.uint64(0xFFFFFFFF)
    if low >= (np.uint64(1) << np.uint64(bits)) - np.uint64(1):
        return epoch | np.uint64(0xFFFFFFFF)
    return epoch


@njit(cache=True)
def _decide(function, bits, operation, exists, local, epoch, value, before, after, max_replicated):
    """Return (verdict, cause, incoming, stored); the rules of `conflict.functions`."""
    zero = np.uint64(0)
    if function == NO_FUNCTION:
        if not exists and operation != WRITE:
            return IGNORED, NO_CAUSE, zero, zero
        return APPLIED, NO_CAUSE, zero, zero
    if operation == WRITE:
        if exists:
            return REJECTED, EXISTS, zero, zero
        return APPLIED, NO_CAUSE, zero, zero
    if not exists:
        return REJECTED, MISSING, zero, zero
    if function == MAX:
        if operation == UPDATE:
            if after > value:
                return APPLIED, NO_CAUSE, zero, zero
            return REJECTED, IN_CONFLICT, after, value
        if before == value:
            return APPLIED, NO_CAUSE, zero, zero
        return REJECTED, IN_CONFLICT, before, value
    read_back = _stored_precision(epoch, bits)
    if local and read_back > max_replicated:
        return REJECTED, IN_CONFLICT, max_replicated, read_back
    return APPLIED, NO_CAUSE, zero, zero


@njit(cache=True)
def _catch_up(state, rows, side, start, stop, unexplained):
    """Do what a cluster did itself, rows `start` to `stop`."""
    exists, local, epoch, value = state
    key_of, _, operation_of, flags_of, epoch_of, _, _, before_in, before_of, after_in, after_of = rows
    for row in range(start, stop):
        if flags_of[side][row] & READ:
            continue
        key = key_of[side][row]
        unexplained[side] += not exists[side, key] and operation_of[side][row] != WRITE
        if operation_of[side][row] == DELETE:
            exists[side, key] = False
            continue
        if not exists[side, key]:
            value[side, key] = before_of[side][row] if before_in[side][row] else np.uint64(0)
            exists[side, key] = True
        if after_in[side][row]:
            value[side, key] = after_of[side][row]
        local[side, key] = True
        epoch[side, key] = epoch_of[side][row]


@njit(cache=True)
def _apply(state, side, key, operation, given, after, own_epoch):
    """Do what the applier of a cluster applies."""
    exists, local, epoch, value = state
    if operation == DELETE:
        exists[side, key] = False
        return
    if not exists[side, key]:
        value[side, key] = np.uint64(0)
        exists[side, key] = True
    if given:
        value[side, key] = after
    local[side, key] = False
    epoch[side, key] = own_epoch


@njit(cache=True)
def _tables_of_keys(rows, keys):
    table_of_key = np.zeros(keys, np.int16)
    for side in range(2):
        for row in range(len(rows[0][side])):
            table_of_key[rows[0][side][row]] = rows[1][side][row]
    return table_of_key


@njit(cache=True)
def _needs_refresh(functions, side, table, operation, cause):
    """Whether a rejected operation makes its row be sent again: a delete-delete is counted only."""
    return functions[2][side, table] and not (operation == DELETE and cause == MISSING)


@njit(cache=True)
def _fold(takes, bounds, rows, functions, keys, capacity):
    """Walk the takes; returns arrays, their lengths, or -1 for a length if `capacity` is too small."""
    applier_of, foreign_epoch, own_epoch, own_group, max_replicated = takes
    local_end, first, last = bounds
    key_of, _, operation_of, flags_of, _, group_of, _, _, before_of, after_in, after_of = rows
    state = (
        np.zeros((2, keys), np.bool_),
        np.zeros((2, keys), np.bool_),
        np.zeros((2, keys), np.uint64),
        np.zeros((2, keys), np.uint64),
    )
    exists, local, epoch, value = state
    table_of_key = _tables_of_keys(rows, keys)
    marked = np.full((2, keys), -1, np.int64)  # the last take that refreshed a row
    decisions = (
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int8),
        np.empty(capacity, np.int8),
        np.empty(capacity, np.uint64),
        np.empty(capacity, np.uint64),
        np.empty(capacity, np.bool_),
    )
    d_take, d_source, d_verdict, d_cause, d_incoming, d_stored, d_existed = decisions
    refreshes = (
        np.empty(capacity, np.int8),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.bool_),
        np.empty(capacity, np.uint64),
        np.empty(capacity, np.int64),
    )
    r_cluster, r_key, r_take, r_exists, r_value, r_decision = refreshes
    queue = np.empty((2, capacity), np.int64)  # refreshes that each cluster has logged, in order
    head, tail, done = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    unexplained = np.zeros(2, np.int64)
    made, sent = 0, 0

    for take in range(len(applier_of)):
        here = applier_of[take]
        there = 1 - here
        # 1. The applier's own changes that come before.
        _catch_up(state, rows, here, done[here], local_end[take], unexplained)
        done[here] = max(done[here], local_end[take])

        # 2. The foreign epoch: rows and refreshes in the order of its log.
        while head[there] < tail[there] and own_epoch[r_take[queue[there, head[there]]]] < foreign_epoch[take]:
            head[there] += 1  # of an epoch that was never taken
        started, row = made, first[take]
        while True:
            refresh = queue[there, head[there]] if head[there] < tail[there] else np.int64(-1)
            has_refresh = refresh >= 0 and own_epoch[r_take[refresh]] == foreign_epoch[take]
            has_row = row < last[take]
            if not has_row and not has_refresh:
                break
            if made >= capacity:
                return decisions, refreshes, -1, sent, unexplained
            before, given, reads = np.uint64(0), True, False
            if has_refresh and (not has_row or own_group[r_take[refresh]] < group_of[there][row]):
                head[there] += 1
                key, after = r_key[refresh], r_value[refresh]
                operation = WRITE if r_exists[refresh] else DELETE
                d_source[made] = -1 - refresh
            else:
                key, after, operation = key_of[there][row], after_of[there][row], operation_of[there][row]
                before, given = before_of[there][row], after_in[there][row] != 0
                reads = (flags_of[there][row] & READ) != 0
                d_source[made] = row
                row += 1
            table = table_of_key[key]
            d_take[made], d_existed[made] = take, exists[here, key]
            d_verdict[made], d_cause[made], d_incoming[made], d_stored[made] = _decide(
                functions[0][here, table], functions[1][here, table], operation,
                exists[here, key], local[here, key], epoch[here, key], value[here, key],
                before, after, max_replicated[take],
            )  # fmt: skip
            if d_verdict[made] == APPLIED and not reads:
                _apply(state, here, key, operation, given, after, own_epoch[take])
            made += 1

        # 3. Refreshes, one per row in conflict.
        for decision in range(started, made):
            if d_verdict[decision] != REJECTED:
                continue
            source = d_source[decision]
            key = key_of[there][source] if source >= 0 else r_key[-1 - source]
            operation = operation_of[there][source] if source >= 0 else (WRITE if r_exists[-1 - source] else DELETE)
            if marked[here, key] == take:
                continue
            if not _needs_refresh(functions, here, table_of_key[key], operation, d_cause[decision]):
                continue
            if sent >= capacity:
                return decisions, refreshes, -1, sent, unexplained
            marked[here, key] = take
            r_cluster[sent], r_key[sent], r_take[sent], r_decision[sent] = here, key, take, decision
            r_exists[sent], r_value[sent] = exists[here, key], value[here, key]
            if exists[here, key]:
                local[here, key], epoch[here, key] = True, own_epoch[take]
            queue[here, tail[here]] = sent
            tail[here] += 1
            sent += 1
    for side in range(2):
        _catch_up(state, rows, side, done[side], len(key_of[side]), unexplained)
    return decisions, refreshes, made, sent, unexplained
