"""
Events of a cluster's binlog to its epochs: the rules of `conflict.history.epochs`, over arrays.

The loops notice *that* something is wrong; the scalar reader says what.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from conflict.history.ingestion.kernels.events import EventRole
from ndb_formats.columnar.kernel import inlined, kernel, wrapping_product

Bool = npt.NDArray[np.bool_]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


class EventEpochs(NamedTuple):
    """
    Where each event belongs. Shape (events,).

    Attributes:
        epoch: Index of its epoch among those of the segment; -1 for none. int64.
        group: Its group in that epoch. int32.
        own: Whether it holds changes of the cluster itself. bool.
    """

    epoch: Int64
    group: Int32
    own: Bool


class EpochArrays(NamedTuple):
    """
    The epochs of a segment. Shape (epochs,).

    Attributes:
        number: The epoch. uint64.
        groups: How many groups it has. int32.
        applied: How many of them are foreign epochs. int32.
        begin: The event with which its transaction begins. int64.
        unread: Whether it has rows of tables that are not read. bool.
    """

    number: UInt64
    groups: Int32
    applied: Int32
    begin: Int64
    unread: Bool


class AppliedArrays(NamedTuple):
    """
    The foreign epochs in a segment, in order. Shape (applied,).

    Attributes:
        group: Its group in the own epoch. int32.
        server_id: Server that it came from. uint64.
        epoch: Epoch of that server. uint64.
    """

    group: Int32
    server_id: UInt64
    epoch: UInt64


class GroupedEvents(NamedTuple):
    """
    The events of a segment, divided into epochs and groups.

    Attributes:
        events: Where each event belongs.
        epochs: The complete epochs.
        applied: The foreign epochs in them.
        pending: Rows of the transaction that is open at the end.
        settled: The last event after which no transaction was open; -1 for none.
        valid: Whether nothing is wrong. If it is False, the rest means nothing.
    """

    events: EventEpochs
    epochs: EpochArrays
    applied: AppliedArrays
    pending: int
    settled: int
    valid: bool


class OrderedRows(NamedTuple):
    """
    The rows of a segment by bucket, in order within each bucket.

    Attributes:
        changes: Rows that the cluster itself changed, by epoch, group and place. Shape (changes,), int64.
        consequences: All other rows, by place. Shape (consequences,), int64.
        bounds: Where each bucket starts among both, and the end. Shape (2, buckets + 1), int64.
        ordinals: Number of each own row among those of its epoch. Shape (rows,), int32.
        own_rows: Own rows of each group of all epochs. Shape (groups,), int64.
    """

    changes: Int64
    consequences: Int64
    bounds: Int64
    ordinals: Int32
    own_rows: Int64


class _GroupTable(NamedTuple):
    """
    A hash table of the groups of one transaction. All arrays have the same length, a power of two.

    Attributes:
        identity: Transaction id. uint64.
        transaction: Number of the transaction that used the slot last. int64.
        group: Its group. int32.
    """

    identity: UInt64
    transaction: Int64
    group: Int32


_, BEGIN, END, OTHER_ROWS, ROWS, STATUS, UNREADABLE = (int(role) for role in EventRole)
CONSEQUENCE = 3  # reflected or refresh
REFRESH = 2
# What came last of the groups without ids.
NOTHING, OWN, ARRIVING, STATED = 0, 1, 2, 3
LEAST_SLOTS = 16


@kernel
def _group_table(roles, status_bounds):
    """Return a table at least twice as large as the most groups that one transaction can have."""
    most = count = np.int64(0)
    for event in range(len(roles)):
        if roles[event] == BEGIN:
            count = np.int64(0)
        elif roles[event] == ROWS:
            count += 1
        elif roles[event] == STATUS:
            count += status_bounds[event + 1] - status_bounds[event]
        most = max(most, count)
    slots = LEAST_SLOTS
    while slots < 2 * most:
        slots *= 2
    return _GroupTable(np.empty(slots, np.uint64), np.zeros(slots, np.int64), np.empty(slots, np.int32))


@kernel
def _group_of(table, identity, transaction, groups):
    """Return the group of an identity; it is number `groups` if the identity is new in this transaction."""
    mask = len(table.identity) - 1
    slot = np.int64(wrapping_product(identity, np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while table.transaction[slot] == transaction:
        if table.identity[slot] == identity:
            return np.int64(table.group[slot])
        slot = (slot + 1) & mask
    table.identity[slot], table.transaction[slot] = identity, transaction
    table.group[slot] = groups
    return groups


@inlined
def _after(last, own, flags):
    """Return what came last after rows without id, and whether they go on with the group that was last."""
    if flags & REFRESH:
        goes_on = last >= ARRIVING
        return last if goes_on else ARRIVING, goes_on
    part = OWN if own and not flags & CONSEQUENCE else ARRIVING
    return part, last == part


@kernel
def group_events(events, status, status_bounds, server_id):
    """
    Divide events into epochs and groups, as `conflict.history.epochs.EpochReader` does.

    Args:
        events: `Events`.
        status: `StatusRows`.
        status_bounds: First row of `status` of each event, and the end. Shape (events + 1,), int64.
        server_id: The cluster's own, uint64.

    Returns:
        `GroupedEvents`.
    """
    roles = events.role
    count, rows = len(roles), len(status.event)
    table = _group_table(roles, status_bounds)
    of = EventEpochs(np.full(count, -1, np.int64), np.zeros(count, np.int32), np.zeros(count, np.bool_))
    epochs = EpochArrays(
        np.empty(count, np.uint64),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int64),
        np.empty(count, np.bool_),
    )
    applied = AppliedArrays(np.empty(rows, np.int32), np.empty(rows, np.uint64), np.empty(rows, np.uint64))
    applied_by = np.zeros(len(table.group), np.int64)  # by group, the last transaction in which it was a foreign epoch
    stated_by = np.zeros(len(table.group), np.int64)  # the same, for one that is of a statement
    # `found` epochs with `done` foreign epochs are complete; the open transaction has `here - done` more.
    found = done = here = first = pending = groups = transaction = without_id = np.int64(0)
    order = NOTHING
    settled = np.int64(-1)
    number, last = np.uint64(0), np.uint64(0)
    known, open_, valid, unread = False, False, True, False
    for event in range(count):
        role = roles[event]
        if role == BEGIN:
            open_, known, unread, first = True, False, False, np.int64(event)
            pending = groups = np.int64(0)
            order = NOTHING  # see `conflict.history.row_identities`
            here = done
            transaction += 1
        elif role >= OTHER_ROWS:
            if not open_ or role == UNREADABLE:
                valid = False
                break
            unread = unread or role == OTHER_ROWS
            if role == ROWS:
                if events.no_id[event]:
                    order, goes_on = _after(order, events.server_id[event] == server_id, events.flags[event])
                    without_id = group = without_id if goes_on else groups
                else:
                    group = _group_of(table, events.transaction_id[event], transaction, groups)
                groups = max(groups, group + 1)
                of.group[event] = group
                pending += events.rows[event]
            elif role == STATUS:
                for row in range(status_bounds[event], status_bounds[event + 1]):
                    if status.server_id[row] != server_id:
                        if events.no_id[event]:
                            without_id = group = without_id if order == ARRIVING else groups
                            order = STATED
                        else:
                            group = _group_of(table, events.transaction_id[event], transaction, groups)
                        groups = max(groups, group + 1)
                        if status.of_statement[row]:
                            stated_by[group] = transaction
                            continue
                        applied.group[here], applied.server_id[here] = group, status.server_id[row]
                        applied.epoch[here] = status.epoch[row]
                        here += 1
                    elif not status.has_log[row]:
                        number, known = status.epoch[row], True
        elif role == END:
            if open_ and (known or pending):
                if not known or (found and number <= last):
                    valid = False
                    break
                for place in range(done, here):
                    applied_by[applied.group[place]] = transaction
                for place in range(first, event):
                    if roles[place] == ROWS and stated_by[of.group[place]] != transaction:
                        of.epoch[place] = found
                        consequence = events.flags[place] & CONSEQUENCE or applied_by[of.group[place]] == transaction
                        of.own[place] = events.server_id[place] == server_id and not consequence
                epochs.number[found], epochs.groups[found], epochs.applied[found] = number, groups, here - done
                epochs.begin[found], epochs.unread[found] = first, unread
                found, done, last = found + 1, here, number
            open_ = False
        if not open_ and not events.committed[event]:  # a Gtid event belongs to the transaction that follows it
            settled = np.int64(event)
    return GroupedEvents(
        of,
        EpochArrays(
            epochs.number[:found],
            epochs.groups[:found],
            epochs.applied[:found],
            epochs.begin[:found],
            epochs.unread[:found],
        ),
        AppliedArrays(applied.group[:done], applied.server_id[:done], applied.epoch[:done]),
        int(pending) if open_ else 0,
        int(settled),
        valid,
    )


@kernel
def order_rows(row_event, row_bucket, buckets, events, first_group):
    """
    Find the order of rows in their buckets.

    Args:
        row_event: Event of each row. Shape (rows,), int64.
        row_bucket: Bucket of each row. Shape (rows,), int32.
        buckets: How many buckets there are.
        events: `EventEpochs`.
        first_group: First group of each epoch, all groups counted through, and the end. Shape (epochs + 1,), int64.

    Returns:
        `OrderedRows`.
    """
    bounds = np.zeros((2, buckets + 1), np.int64)
    own_rows = np.zeros(first_group[-1], np.int64)
    for row in range(len(row_event)):
        event = row_event[row]
        epoch = events.epoch[event]
        if epoch >= 0:
            bounds[0 if events.own[event] else 1, row_bucket[row] + 1] += 1
            if events.own[event]:
                own_rows[first_group[epoch] + events.group[event]] += 1
    for bucket in range(buckets):
        bounds[0, bucket + 1] += bounds[0, bucket]
        bounds[1, bucket + 1] += bounds[1, bucket]
    rank_of = np.zeros(len(own_rows) + 1, np.int64)  # of the next own row of each group, over all buckets
    for group in range(len(own_rows)):
        rank_of[group + 1] = rank_of[group] + own_rows[group]
    first_rank = rank_of[first_group]
    ranked = np.empty(bounds[0, -1], np.int64)
    ordinals = np.zeros(len(row_event), np.int32)
    free = bounds.copy()
    consequences = np.empty(bounds[1, -1], np.int64)
    for row in range(len(row_event)):
        event = row_event[row]
        epoch = events.epoch[event]
        if epoch < 0:
            continue
        if events.own[event]:
            group = first_group[epoch] + events.group[event]
            rank = rank_of[group]
            rank_of[group] += 1
            ranked[rank] = row
            ordinals[row] = rank - first_rank[epoch]
        else:
            bucket = row_bucket[row]
            consequences[free[1, bucket]] = row
            free[1, bucket] += 1
    changes = np.empty(len(ranked), np.int64)
    for rank in range(len(ranked)):
        bucket = row_bucket[ranked[rank]]
        changes[free[0, bucket]] = ranked[rank]
        free[0, bucket] += 1
    return OrderedRows(changes, consequences, bounds, ordinals, own_rows)
