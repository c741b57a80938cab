"""
Events of a cluster's binlog to its epochs: what `conflict.history.epochs` does event by event, over arrays.

The loops notice *that* something is wrong; what it is, the scalar reader says.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numba import njit

from ndb_formats.columnar.kernels.words import little_endian, load16
from ndb_formats.constants import EventType

__all__ = ["EventRole", "count_grouped", "group_events", "order_rows", "read_numbers", "roles_of"]


class EventRole(IntEnum):
    """What an event is to the epochs."""

    NONE = 0
    BEGIN = 1
    END = 2
    OTHER_ROWS = 3  # rows of a table that nobody asked for
    ROWS = 4
    STATUS = 5  # rows of ndb_apply_status
    UNREADABLE = 6


NONE, BEGIN, END, OTHER_ROWS, ROWS, STATUS, UNREADABLE = (int(role) for role in EventRole)
QUERY, XID = int(EventType.QUERY_EVENT), int(EventType.XID_EVENT)
FIRST_V1, LAST_V1 = int(EventType.WRITE_ROWS_EVENT_V1), int(EventType.DELETE_ROWS_EVENT_V1)
FIRST_V2, LAST_V2 = int(EventType.WRITE_ROWS_EVENT), int(EventType.DELETE_ROWS_EVENT)
PARTIAL = int(EventType.PARTIAL_UPDATE_ROWS_EVENT)
BEGIN_TEXT, COMMIT_TEXT = (np.frombuffer(text, np.uint8) for text in (b"BEGIN", b"COMMIT"))
QUERY_HEAD = 13
CONSEQUENCE = 3  # reflected or refresh
BY_ID, WITHOUT_ID, BY_EPOCH = 0, 1, 2


@njit(cache=True, inline="always")
def _is(data, place, end, text):
    if end - place != len(text):
        return False
    for byte in range(len(text)):
        if data[place + byte] != text[byte]:
            return False
    return True


@njit(cache=True)
def roles_of(data, types, starts, ends, batches, of_status, roles):
    """
    Find out what events are to the epochs.

    Args:
        data: What the events stand in. Shape (bytes,), uint8.
        types: Type codes. Shape (events,), uint8, as all that follow have this shape.
        starts: Where each body starts. int64.
        ends: Where it ends. int64.
        batches: Batch of a rows event; -1 for one of a table that nobody asked for. int32.
        of_status: Whether a batch is of ndb_apply_status. Shape (batches,), bool.
        roles: Filled in. uint8.
    """
    for event in range(len(types)):
        code = types[event]
        role = NONE
        if code == QUERY:
            start = starts[event]
            place = start + QUERY_HEAD + np.int64(data[start + 8]) + np.int64(load16(data, start + 11)) + 1
            if _is(data, place, ends[event], BEGIN_TEXT):
                role = BEGIN
            elif _is(data, place, ends[event], COMMIT_TEXT):
                role = END
        elif code == XID:
            role = END
        elif code == PARTIAL:
            role = UNREADABLE
        elif FIRST_V2 <= code <= LAST_V2 or FIRST_V1 <= code <= LAST_V1:
            role = OTHER_ROWS
            if batches[event] >= 0:
                role = STATUS if of_status[batches[event]] else ROWS
        roles[event] = role


@njit(cache=True)
def read_numbers(data, starts, lengths, out):
    """Read numbers of up to 8 bytes, the lowest first; NULL is 0. Return whether none is longer."""
    for row in range(len(out)):
        if lengths[row] > 8:
            return False
        out[row] = little_endian(data, starts[row], lengths[row]) if lengths[row] > 0 else np.uint64(0)
    return True


@njit(cache=True)
def count_grouped(roles, status_bounds):
    """Return the most events and rows of ndb_apply_status of one transaction that can begin a group."""
    most = count = np.int64(0)
    for event in range(len(roles)):
        if roles[event] == BEGIN:
            count = np.int64(0)
        elif roles[event] == ROWS:
            count += 1
        elif roles[event] == STATUS:
            count += status_bounds[event + 1] - status_bounds[event]
        most = max(most, count)
    return most


@njit(cache=True)
def _group(value, kind, stamp, groups, table):
    """Return the group of an identity, and how many groups there are then; a new identity is a new group."""
    values, kinds, stamps, numbers = table
    mask = len(values) - 1
    place = np.int64((value * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) + kind & mask
    while stamps[place] == stamp:
        if values[place] == value and kinds[place] == kind:
            return np.int64(numbers[place]), groups
        place = (place + 1) & mask
    values[place], kinds[place], stamps[place], numbers[place] = value, kind, stamp, groups
    return groups, groups + 1


@njit(cache=True)
def group_events(events, status, server_id, table, group_of, epoch_of, own, epochs, applied):
    """
    Divide events into epochs and groups, as `conflict.history.epochs.EpochReader` does.

    Args:
        events: Per event its `EventRole`, transaction id, whether it has none, server id, conflict flags, how many rows
            it has. Each of shape (events,).
        status: First row of ndb_apply_status of each event, shape (events + 1,), int64; then of those rows
            server id and epoch, uint64, and whether they name a log. Each of shape (rows,).
        server_id: The cluster's own.
        table: Room for the groups of a transaction, a power of two at least twice their number: value (uint64), kind
            (int8), transaction (int64, zero before) and number (int32).
        group_of: Group of each event; filled in. Shape (events,), int32.
        epoch_of: Place of its epoch among all; filled in, -1 before and for events without one. Shape (events,), int64.
        own: Whether it holds the cluster's own changes; filled in, False before. Shape (events,), bool.
        epochs: Number (uint64), how many groups and how many applied epochs (int32) of each epoch; filled in.
        applied: Group (int32), server id and epoch (uint64) of each applied epoch; filled in.

    Returns:
        How many epochs and applied epochs there are, rows of the transaction that is still open, the last event after
        which none was open (-1 for none), and whether nothing is wrong.
    """
    roles, ids, no_id, servers, flags, rows = events
    bounds, status_servers, status_epochs, status_logs = status
    numbers, group_counts, applied_counts = epochs
    applied_groups, applied_servers, applied_epochs = applied
    of_applier = np.zeros(len(table[0]), np.int64)
    found = done = count = first = pending = groups = stamp = np.int64(0)
    settled = np.int64(-1)
    number, last = np.uint64(0), np.uint64(0)
    known, open_ = False, False
    for event in range(len(roles)):
        role = roles[event]
        if role == BEGIN:
            open_, known, first = True, False, np.int64(event)
            pending = groups = np.int64(0)
            count = done
            stamp += 1
        elif role >= OTHER_ROWS:
            if not open_ or role == UNREADABLE:
                return found, done, pending, settled, False
            if role == ROWS:
                value, kind = (np.uint64(0), WITHOUT_ID) if no_id[event] else (ids[event], BY_ID)
                group_of[event], groups = _group(value, kind, stamp, groups, table)
                pending += rows[event]
            elif role == STATUS:
                for row in range(bounds[event], bounds[event + 1]):
                    if status_servers[row] != server_id:
                        value, kind = (status_epochs[row], BY_EPOCH) if no_id[event] else (ids[event], BY_ID)
                        group, groups = _group(value, kind, stamp, groups, table)
                        applied_groups[count] = group
                        applied_servers[count], applied_epochs[count] = status_servers[row], status_epochs[row]
                        count += 1
                    elif not status_logs[row]:
                        number, known = status_epochs[row], True
        elif role == END:
            if open_ and (known or pending):
                if not known or (found and number <= last):
                    return found, done, pending, settled, False
                for place in range(done, count):
                    of_applier[applied_groups[place]] = stamp
                for place in range(first, event):
                    if roles[place] == ROWS:
                        epoch_of[place] = found
                        by_applier = of_applier[group_of[place]] == stamp
                        own[place] = servers[place] == server_id and not flags[place] & CONSEQUENCE and not by_applier
                numbers[found], group_counts[found], applied_counts[found] = number, groups, count - done
                found, done, last = found + 1, count, number
            open_ = False
        if not open_:
            settled = np.int64(event)
    return found, done, pending if open_ else np.int64(0), settled, True


@njit(cache=True)
def order_rows(row_event, row_bucket, epoch_of, group_of, own, first_group, own_rows, ordinals, places):
    """
    Find the order of rows in their buckets: a cluster's own changes by epoch, group and place; all others by place.

    Args:
        row_event: Event of each row. Shape (rows,), int64.
        row_bucket: Its bucket. Shape (rows,), int32.
        epoch_of: Epoch of each event; -1 for none. Shape (events,), int64.
        group_of: Group of each event in its epoch. Shape (events,), int32.
        own: Whether it holds the cluster's own changes. Shape (events,), bool.
        first_group: Of each epoch, counted through. Shape (epochs + 1,), int64.
        own_rows: Own rows of each group; filled in, zero before. Shape (groups + 1,), int64.
        ordinals: Number of each own row in its epoch; filled in. Shape (rows,), int32.
        places: Per kind of row (own, other) and bucket, how many there are; filled in, zero before. Shape (2, buckets).

    Returns:
        Own rows by bucket and order, and all others.
    """
    for row in range(len(row_event)):
        event = row_event[row]
        epoch = epoch_of[event]
        if epoch >= 0:
            places[0 if own[event] else 1, row_bucket[row]] += 1
            if own[event]:
                own_rows[first_group[epoch] + group_of[event]] += 1
    begins = np.zeros(len(own_rows) + 1, np.int64)
    for group in range(len(own_rows)):
        begins[group + 1] = begins[group] + own_rows[group]
    firsts = begins[first_group]
    ranked = np.empty(begins[-1], np.int64)
    free = np.zeros((2, places.shape[1] + 1), np.int64)
    for bucket in range(places.shape[1]):
        free[0, bucket + 1] = free[0, bucket] + places[0, bucket]
        free[1, bucket + 1] = free[1, bucket] + places[1, bucket]
    others = np.empty(free[1, -1], np.int64)
    for row in range(len(row_event)):
        event = row_event[row]
        epoch = epoch_of[event]
        if epoch < 0:
            continue
        if own[event]:
            group = first_group[epoch] + group_of[event]
            rank = begins[group]
            begins[group] += 1
            ranked[rank] = row
            ordinals[row] = rank - firsts[epoch]
        else:
            bucket = row_bucket[row]
            others[free[1, bucket]] = row
            free[1, bucket] += 1
    changes = np.empty(len(ranked), np.int64)
    for rank in range(len(ranked)):
        bucket = row_bucket[ranked[rank]]
        changes[free[0, bucket]] = ranked[rank]
        free[0, bucket] += 1
    return changes, others
