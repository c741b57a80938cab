"""
Compiled: which key each change of a made History is of, what it does, and what follows from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.makers.history_members import (
    AWAY,
    CHURN,
    CLASH,
    CLUSTER,
    KIND,
    NEW,
    ORDINAL,
    SLOT,
    TRANSACTION,
    Array,
    mixed,
    njit,
    unit,
)

__all__ = ["NUMBER", "OPERATION", "PLACE", "Keys", "Times", "consequences_of", "make_rows"]

WRITE, UPDATE, DELETE = 1, 2, 3  # Operation
CHANGED, DELETED = 1, 2  # Effect
# Columns of what is known of keys while changes are made: number by the order of inserts, slot of the last insert, slot
# of the delete while the row is gone, and the last change of each cluster. All are -1 before.
NUMBER, INSERTED, GONE, LAST = 0, 1, 2, 3
# Columns of what changes are: place of the key, `Operation`, and the cluster's change of the same key before.
PLACE, OPERATION, PREVIOUS = 0, 1, 2


class Keys(NamedTuple):
    """
    The keys of a bucket: those whose home is A, then those of B, the hottest first.

    Attributes:
        first: Place of the first key of each home, and their total. Shape (3,).
        sums: How often each is changed, added up, per home from 0 to 1. Shape (keys,).
        guide: The key at which to start looking, for evenly spaced sums. Shape (keys,).
    """

    first: Array
    sums: Array
    guide: Array


class Times(NamedTuple):
    """
    What a cluster has taken, and the resolve column. Shape (2, slots) unless said otherwise.

    Attributes:
        before: Last slot of the other cluster that is taken before the takes of an epoch.
        after: The same after them.
        place: Own transaction before which the takes stand.
        pace: Resolve column at the start, how much it grows per slot, and per change. Shape (3,), uint64.
    """

    before: Array
    after: Array
    place: Array
    pace: Array


@njit
def choose(first: Array, sums: Array, guide: Array, home: int, chance: float) -> int:
    """Return a key of a home by number, hot ones more often."""
    start, stop = first[home], first[home + 1]
    place = start + guide[start + int(chance * (stop - start))]
    while sums[place] <= chance and place < stop - 1:
        place += 1
    return place - start


@njit
def free(members: Array, rows: Array, row: int, place: int) -> bool:
    """Whether the transaction of a change has not changed a key before: NDB logs one event for each."""
    other = row - 1
    while (
        other >= 0
        and members[other, TRANSACTION] == members[row, TRANSACTION]
        and members[other, SLOT] == members[row, SLOT]
        and members[other, CLUSTER] == members[row, CLUSTER]
    ):
        if rows[other, PLACE] == place:
            return False
        other -= 1
    return True


@njit
def existing(
    home: int, row: int, start: int, there: int, first: Array, state: Array, members: Array, rows: Array
) -> int:
    """Return a key of a home whose row is there, from one of those inserted on; -1 if there is none."""
    for step in range(there):
        place = first[home] + (start + step) % there
        if state[place, GONE] < 0 and free(members, rows, row, place):
            return place
    return -1


@njit
def in_flight(cluster: int, row: int, seen: int, chance: int, members: Array, rows: Array) -> int:
    """Return the key of one of the changes that a cluster made after a slot; -1 if there is none."""
    first, count = row, 0
    while first > 0 and members[first - 1, SLOT] > seen:
        first -= 1
        count += members[first, CLUSTER] == cluster
    if count == 0:
        return -1
    wanted = chance % np.uint64(count)
    while members[first, CLUSTER] != cluster or wanted > 0:
        wanted -= np.uint64(members[first, CLUSTER] == cluster)
        first += 1
    return rows[first, PLACE]


@njit
def has_come(place: int, home: int, seen: int, first: Array, state: Array) -> bool:
    """Whether a key is of a home, and its row has come from there and not yet gone."""
    if not first[home] <= place < first[home + 1]:
        return False
    return state[place, INSERTED] <= seen and (state[place, GONE] < 0 or state[place, GONE] > seen)


@njit
def next_key(home: int, there: Array, first: Array, state: Array) -> int:
    """Return the next new key of a home; -1 if there is none left."""
    place = first[home] + there[home]
    if place >= first[home + 1]:
        return -1
    state[place, NUMBER] = there[2]
    there[home] += 1
    there[2] += 1
    return place


@njit
def oldest_deleted(home: int, until: int, state: Array, queue: Array, ends: Array) -> int:
    """Return the key that was deleted first, if that was before a slot, and take it out of the queue; else -1."""
    start, stop = ends[home]
    if start < stop and state[queue[home, start], GONE] < until:
        ends[home, 0] += 1
        return queue[home, start]
    return -1


@njit
def newest(row: int, seen: int, members: Array, rows: Array, values: Array) -> int:
    """Return the resolve column of the newest change at or before one that was made in a slot up to `seen`; or 0."""
    while row >= 0 and members[row, SLOT] > seen:
        row = rows[row, PREVIOUS]
    return values[row, 0] if row >= 0 else np.uint64(0)


@njit
def note(place: int, operation: int, here: int, slot: int, state: Array, queue: Array, ends: Array) -> None:
    """Keep whether a row is there after a change."""
    if operation == WRITE:
        state[place, INSERTED], state[place, GONE] = slot, -1
    elif operation == DELETE:
        state[place, GONE] = slot
        queue[here, ends[here, 1]] = place
        ends[here, 1] += 1


@njit
def make_rows(members: Array, times: Times, seed: int, gap: int, keys: Keys) -> tuple[Array, Array, Array, bool]:
    """
    Decide the changes of both clusters in a bucket.

    Args:
        members: The changes (see `find_members`).
        times: See there.
        seed: Of what is chosen.
        gap: Slots between a delete and the next insert of the row.
        keys: The keys.

    Returns:
        What is known of the keys in the end, shape (keys, 5), int32. What the changes are, shape (changes, 3), int32.
        The resolve column after and before each, the latter as the cluster then saw the row, and 0 for a write; it
        decides all other columns; shape (changes, 2), uint64. Whether there were enough keys.
    """
    (first, sums, guide), (before, after, applies_at, pace) = keys, times
    count = len(members)
    state, rows = np.full((first[2], 5), -1, np.int32), np.empty((count, 3), np.int32)
    values, there = np.zeros((count, 2), np.uint64), np.zeros(3, np.int64)
    queue, ends = np.empty((2, count), np.int32), np.zeros((2, 2), np.int64)
    for row in range(count):
        here, slot, kind = members[row, CLUSTER], members[row, SLOT], members[row, KIND]
        home, place, operation = 1 - here, -1, UPDATE
        seen = after[here, slot] if members[row, TRANSACTION] >= applies_at[here, slot] else before[here, slot]
        chance = mixed(np.uint64(seed) + np.uint64(row))
        if kind == AWAY and there[home]:
            place = first[home] + choose(first, sums, guide, home, unit(chance)) % there[home]
        elif kind == CLASH:
            place = in_flight(home, row, seen, chance, members, rows)
        if not (has_come(place, home, seen, first, state) and free(members, rows, row, place)):
            place, operation = -1, WRITE
            if kind == NEW:
                place = next_key(here, there, first, state)
            elif kind == CHURN:
                place = oldest_deleted(here, slot - gap, state, queue, ends)
            if place < 0 and there[here]:
                operation = DELETE if kind == CHURN else UPDATE
                start = choose(first, sums, guide, here, unit(mixed(chance)))
                place = existing(here, row, start, there[here], first, state, members, rows)
            if place < 0:
                place, operation = next_key(here, there, first, state), WRITE
            if place < 0:
                return state, rows, values, False
        rows[row, PLACE], rows[row, OPERATION], rows[row, PREVIOUS] = place, operation, state[place, LAST + here]
        values[row, 0] = pace[0] + np.uint64(slot) * pace[1] + np.uint64(members[row, ORDINAL]) * pace[2]
        values[row, 0] += np.uint64(here)
        if operation != WRITE:
            own = newest(state[place, LAST + here], slot, members, rows, values)
            values[row, 1] = max(own, newest(state[place, LAST + home], seen, members, rows, values))
        state[place, LAST + here] = row
        note(place, operation, here, slot, state, queue, ends)
    return state, rows, values, True


@njit
def consequences_of(slots: Array, places: Array, operations: Array, keys: int, end: int) -> tuple[Array, ...]:
    """
    Return what the other cluster's binlog shows of a cluster's changes if it applied them all: one entry per take, row.

    Args:
        slots: When the changes were made. Shape (changes,).
        places: Their keys. Shape (changes,).
        operations: What they did. Shape (changes,).
        keys: How many keys the bucket has.
        end: Epochs before this slot are taken.

    Returns:
        Place of the key, slot of the epoch taken, `Effect`, and the last change. Shape (entries,) each.
    """
    count = len(slots)
    place, slot, effect = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int8)
    last = np.empty(count, np.int32)
    entry_of, first, made = np.full(keys, -1, np.int32), np.empty(count, np.int8), 0
    for row in range(count):
        if slots[row] >= end:
            break
        key, operation = places[row], operations[row]
        entry = entry_of[key]
        if entry < 0 or slot[entry] != slots[row]:
            entry = made
            made += 1
            entry_of[key], place[entry], slot[entry], first[entry] = entry, key, slots[row], operation
        effect[entry], last[entry] = DELETED if operation == DELETE else CHANGED, row
    kept = 0
    for entry in range(made):
        if not (first[entry] == WRITE and effect[entry] == DELETED):
            place[kept], slot[kept], effect[kept], last[kept] = place[entry], slot[entry], effect[entry], last[entry]
            kept += 1
    return place[:kept], slot[:kept], effect[:kept], last[:kept]
