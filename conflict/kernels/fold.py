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
def _stored_precision(epoch, bits):  # type: ignore[no-untyped-def]  # compiled
    """See `conflict.engine.row_store.stored_precision`."""
    low = epoch & np.uint64(0xFFFFFFFF)
    if low >= (np.uint64(1) << np.uint64(bits)) - np.uint64(1):
        return epoch | np.uint64(0xFFFFFFFF)
    return epoch


@njit(cache=True)
def _decide(function, bits, operation, exists, local, epoch, value, before, after, max_replicated):  # type: ignore[no-untyped-def]  # compiled
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
def _fold(takes, bounds, rows, functions, keys, capacity):  # type: ignore[no-untyped-def]  # compiled
    """Walk the takes; returns arrays, their lengths, or -1 for a length if `capacity` is too small."""
    applier_of, foreign_epoch, own_epoch, own_group, max_replicated = takes
    local_end, first, last = bounds
    key_of, table_of, operation_of, flags_of, epoch_of, group_of, _, before_in, before_of, after_in, after_of = rows
    code, gci_bits, does_refresh = functions

    exists = np.zeros((2, keys), np.bool_)
    local = np.zeros((2, keys), np.bool_)
    epoch = np.zeros((2, keys), np.uint64)
    value = np.zeros((2, keys), np.uint64)
    marked = np.full((2, keys), -1, np.int64)
    table_of_key = np.zeros(keys, np.int16)
    for side in range(2):
        for row in range(len(key_of[side])):
            table_of_key[key_of[side][row]] = table_of[side][row]

    d_take = np.empty(capacity, np.int64)
    d_source = np.empty(capacity, np.int64)
    d_verdict = np.empty(capacity, np.int8)
    d_cause = np.empty(capacity, np.int8)
    d_incoming = np.empty(capacity, np.uint64)
    d_stored = np.empty(capacity, np.uint64)
    d_existed = np.empty(capacity, np.bool_)
    unexplained = np.zeros(2, np.int64)
    r_cluster = np.empty(capacity, np.int8)
    r_key = np.empty(capacity, np.int32)
    r_take = np.empty(capacity, np.int64)
    r_exists = np.empty(capacity, np.bool_)
    r_value = np.empty(capacity, np.uint64)
    r_decision = np.empty(capacity, np.int64)
    decisions_out = (d_take, d_source, d_verdict, d_cause, d_incoming, d_stored, d_existed)
    refreshes_out = (r_cluster, r_key, r_take, r_exists, r_value, r_decision)
    made, sent = 0, 0
    queue = np.empty((2, capacity), np.int64)  # refreshes each cluster has logged, in order
    queue_head = np.zeros(2, np.int64)
    queue_tail = np.zeros(2, np.int64)
    done = np.zeros(2, np.int64)

    for take in range(len(applier_of)):
        here = applier_of[take]
        there = 1 - here
        # 1. The applier's own changes that come before.
        for row in range(done[here], local_end[take]):
            if flags_of[here][row] & READ:
                continue
            key = key_of[here][row]
            unexplained[here] += not exists[here, key] and operation_of[here][row] != WRITE
            if operation_of[here][row] == DELETE:
                exists[here, key] = False
                continue
            if not exists[here, key]:
                value[here, key] = before_of[here][row] if before_in[here][row] else np.uint64(0)
                exists[here, key] = True
            if after_in[here][row]:
                value[here, key] = after_of[here][row]
            local[here, key] = True
            epoch[here, key] = epoch_of[here][row]
        done[here] = max(done[here], local_end[take])

        # 2. The foreign epoch: rows and refreshes in the order of its log.
        while queue_head[there] < queue_tail[there]:
            made_in = r_take[queue[there, queue_head[there]]]
            if own_epoch[made_in] >= foreign_epoch[take]:
                break
            queue_head[there] += 1  # of an epoch that was never taken
        started = made
        row = first[take]
        while True:
            has_row = row < last[take]
            has_refresh = False
            refresh = np.int64(-1)
            if queue_head[there] < queue_tail[there]:
                refresh = queue[there, queue_head[there]]
                has_refresh = own_epoch[r_take[refresh]] == foreign_epoch[take]
            if not has_row and not has_refresh:
                break
            if made >= capacity:
                return decisions_out, refreshes_out, -1, sent, unexplained
            before, after, after_given = np.uint64(0), np.uint64(0), True
            if has_refresh and (not has_row or own_group[r_take[refresh]] < group_of[there][row]):
                queue_head[there] += 1
                key = r_key[refresh]
                table = table_of_key[key]
                operation = WRITE if r_exists[refresh] else DELETE
                after = r_value[refresh]
                reads = False
                d_source[made] = -1 - refresh
            else:
                key = key_of[there][row]
                table = table_of[there][row]
                operation = operation_of[there][row]
                before, after = before_of[there][row], after_of[there][row]
                after_given = after_in[there][row] != 0
                reads = (flags_of[there][row] & READ) != 0
                d_source[made] = row
                row += 1
            verdict, cause, incoming, stored = _decide(
                code[here, table],
                gci_bits[here, table],
                operation,
                exists[here, key],
                local[here, key],
                epoch[here, key],
                value[here, key],
                before,
                after,
                max_replicated[take],
            )
            d_take[made] = take
            d_verdict[made] = verdict
            d_cause[made] = cause
            d_incoming[made] = incoming
            d_stored[made] = stored
            d_existed[made] = exists[here, key]
            made += 1
            if verdict == APPLIED and not reads:
                if operation == DELETE:
                    exists[here, key] = False
                else:
                    if not exists[here, key]:
                        value[here, key] = np.uint64(0)
                        exists[here, key] = True
                    if after_given:
                        value[here, key] = after
                    local[here, key] = False
                    epoch[here, key] = own_epoch[take]

        # 3. Refreshes, one per row in conflict.
        for decision in range(started, made):
            if d_verdict[decision] != REJECTED:
                continue
            source = d_source[decision]
            if source >= 0:
                key, operation = key_of[there][source], operation_of[there][source]
            else:
                key = r_key[-1 - source]
                operation = WRITE if r_exists[-1 - source] else DELETE
            if not does_refresh[here, table_of_key[key]] or marked[here, key] == take:
                continue
            if operation == DELETE and d_cause[decision] == MISSING:
                continue  # delete-delete is counted, not refreshed
            if sent >= capacity:
                return decisions_out, refreshes_out, -1, sent, unexplained
            marked[here, key] = take
            r_cluster[sent] = here
            r_key[sent] = key
            r_take[sent] = take
            r_exists[sent] = exists[here, key]
            r_value[sent] = value[here, key]
            r_decision[sent] = decision
            if exists[here, key]:
                local[here, key] = True
                epoch[here, key] = own_epoch[take]
            queue[here, queue_tail[here]] = sent
            queue_tail[here] += 1
            sent += 1
    for side in range(2):
        for row in range(done[side], len(key_of[side])):
            key = key_of[side][row]
            if not flags_of[side][row] & READ:
                unexplained[side] += not exists[side, key] and operation_of[side][row] != WRITE
                exists[side, key] = operation_of[side][row] != DELETE
    return decisions_out, refreshes_out, made, sent, unexplained
