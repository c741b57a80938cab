"""
Compiled: which key each change of a made History is of, what it does, and what follows from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.history_members import AWAY, CHURN, CLASH, NEW, Array, Members, mixed, njit, unit

__all__ = ["Keys", "Rows", "State", "Times", "consequences_of", "make_rows"]

WRITE, UPDATE, DELETE = 1, 2, 3  # Operation
CHANGED, DELETED = 1, 2  # Effect


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


class State(NamedTuple):
    """
    What is known of the keys of a bucket while changes are made.

    Attributes:
        number: Number of each key, by the order in which they are inserted; -1 before that. Shape (keys,).
        inserted: Slot of the last insert. Shape (keys,).
        deleted: Slot of the delete; -1 while the row is there. Shape (keys,).
        last: The last change of each cluster. Shape (keys, 2).
        there: How many keys of each home were inserted, and of all. Shape (3,).
        queue: Keys of each home that are deleted, the oldest first. Shape (2, changes).
        ends: Where each queue starts and stops. Shape (2, 2).
    """

    number: Array
    inserted: Array
    deleted: Array
    last: Array
    there: Array
    queue: Array
    ends: Array


class Rows(NamedTuple):
    """
    What the changes in a bucket are. Shape (changes,).

    Attributes:
        place: Of the key in `Keys`.
        operation: `Operation`.
        value: Resolve column afterwards, which also decides all other columns.
        before: The same before, as the cluster then saw the row; 0 for a write.
        previous: The same cluster's change of the same key before; -1 if there is none.
    """

    place: Array
    operation: Array
    value: Array
    before: Array
    previous: Array


@njit
def choose(keys: Keys, home: int, chance: float) -> int:
    """Return a key of a home by number, hot ones more often."""
    first, stop = keys.first[home], keys.first[home + 1]
    place = first + keys.guide[first + int(chance * (stop - first))]
    while keys.sums[place] <= chance and place < stop - 1:
        place += 1
    return place - first


@njit
def free(members: Members, rows: Rows, row: int, place: int) -> bool:
    """Whether the transaction of a change has not changed a key before: NDB logs one event for each."""
    other = row - 1
    while (
        other >= 0
        and members.transaction[other] == members.transaction[row]
        and members.slot[other] == members.slot[row]
        and members.cluster[other] == members.cluster[row]
    ):
        if rows.place[other] == place:
            return False
        other -= 1
    return True


@njit
def existing(home: int, row: int, chance: float, keys: Keys, state: State, members: Members, rows: Rows) -> int:
    """Return a key of a home whose row is there; -1 if there is none."""
    there = state.there[home]
    if there == 0:
        return -1
    start = choose(keys, home, chance) % there
    for step in range(there):
        place = keys.first[home] + (start + step) % there
        if state.deleted[place] < 0 and free(members, rows, row, place):
            return place
    return -1


@njit
def in_flight(cluster: int, row: int, seen: int, chance: int, members: Members, rows: Rows) -> int:
    """Return the key of one of the changes that a cluster made after a slot; -1 if there is none."""
    first, count = row, 0
    while first > 0 and members.slot[first - 1] > seen:
        first -= 1
        count += members.cluster[first] == cluster
    if count == 0:
        return -1
    wanted = chance % np.uint64(count)
    while members.cluster[first] != cluster or wanted > 0:
        wanted -= np.uint64(members.cluster[first] == cluster)
        first += 1
    return rows.place[first]


@njit
def away_key(row: int, seen: int, chance: int, keys: Keys, state: State, members: Members, rows: Rows) -> int:
    """Return a key of the other cluster to update; -1 if the one chosen has not come, or has gone, as is seen here."""
    home, place = 1 - members.cluster[row], -1
    if members.kind[row] == CLASH:
        place = in_flight(home, row, seen, chance, members, rows)
    elif state.there[home]:
        place = keys.first[home] + choose(keys, home, unit(chance)) % state.there[home]
    if not keys.first[home] <= place < keys.first[home + 1]:
        return -1
    here = state.inserted[place] <= seen and (state.deleted[place] < 0 or state.deleted[place] > seen)
    return place if here and free(members, rows, row, place) else -1


@njit
def next_key(home: int, keys: Keys, state: State) -> int:
    """Return the next new key of a home; -1 if there is none left."""
    place = keys.first[home] + state.there[home]
    if place >= keys.first[home + 1]:
        return -1
    state.number[place] = state.there[2]
    state.there[home] += 1
    state.there[2] += 1
    return place


@njit
def oldest_deleted(home: int, until: int, state: State) -> int:
    """Return the key that was deleted first, if that was before a slot, and take it out of the queue; else -1."""
    start, stop = state.ends[home]
    if start < stop and state.deleted[state.queue[home, start]] < until:
        state.ends[home, 0] += 1
        return state.queue[home, start]
    return -1


@njit
def home_key(
    row: int, chance: int, gap: int, keys: Keys, state: State, members: Members, rows: Rows
) -> tuple[int, int]:
    """Return a key of the cluster's own to change, and the operation; -1 if no key will do."""
    kind, home, place = members.kind[row], members.cluster[row], -1
    if kind == NEW:
        place = next_key(home, keys, state)
    elif kind == CHURN:
        place = oldest_deleted(home, members.slot[row] - gap, state)
    if place >= 0:
        return place, WRITE
    place = existing(home, row, unit(chance), keys, state, members, rows)
    if place >= 0:
        return place, DELETE if kind == CHURN else UPDATE
    return next_key(home, keys, state), WRITE


@njit
def newest(row: int, seen: int, members: Members, rows: Rows) -> int:
    """Return the resolve column of the newest change at or before one that was made in a slot up to `seen`; or 0."""
    while row >= 0 and members.slot[row] > seen:
        row = rows.previous[row]
    return rows.value[row] if row >= 0 else np.uint64(0)


class Times(NamedTuple):
    """
    What a cluster has taken, and the resolve column. Shape (2, slots) unless said otherwise.

    Attributes:
        before: Last slot of the other cluster that is taken before the takes of an epoch.
        after: The same after them.
        place: Own transaction before which the takes stand.
        start: Resolve column at the start; not an array.
        pace: How much it grows per slot, and per change. Shape (2,).
    """

    before: Array
    after: Array
    place: Array
    start: int
    pace: Array


@njit
def make_rows(members: Members, times: Times, seed: int, gap: int, keys: Keys) -> tuple[State, Rows, bool]:
    """
    Decide the changes of both clusters in a bucket.

    Args:
        members: The changes.
        times: See there.
        seed: Of what is chosen.
        gap: Slots between a delete and the next insert of the row.
        keys: The keys.

    Returns:
        The keys, the rows, and whether there were enough keys.
    """
    size, count = keys.first[2], len(members.slot)
    state = State(
        np.full(size, -1, np.int32),
        np.full(size, -1, np.int32),
        np.full(size, -1, np.int32),
        np.full((size, 2), -1, np.int32),
        np.zeros(3, np.int64),
        np.empty((2, count), np.int32),
        np.zeros((2, 2), np.int64),
    )
    rows = Rows(
        np.empty(count, np.int32),
        np.empty(count, np.int8),
        np.empty(count, np.uint64),
        np.zeros(count, np.uint64),
        np.empty(count, np.int32),
    )
    for row in range(count):
        here, slot = members.cluster[row], members.slot[row]
        taken = times.after if members.transaction[row] >= times.place[here, slot] else times.before
        seen = taken[here, slot]
        chance = mixed(np.uint64(seed) + np.uint64(row))
        place, operation = -1, UPDATE
        if members.kind[row] == AWAY or members.kind[row] == CLASH:
            place = away_key(row, seen, chance, keys, state, members, rows)
        if place < 0:
            place, operation = home_key(row, mixed(chance), gap, keys, state, members, rows)
        if place < 0:
            return state, rows, False
        rows.place[row], rows.operation[row], rows.previous[row] = place, operation, state.last[place, here]
        since = np.uint64(slot * times.pace[0] + members.ordinal[row] * times.pace[1] + here)
        rows.value[row] = np.uint64(times.start) + since
        if operation != WRITE:
            own = newest(state.last[place, here], slot, members, rows)
            rows.before[row] = max(own, newest(state.last[place, 1 - here], seen, members, rows))
        note(row, place, operation, state, members)
    return state, rows, True


@njit
def note(row: int, place: int, operation: int, state: State, members: Members) -> None:
    """Keep what a change does to a row."""
    here, slot = members.cluster[row], members.slot[row]
    state.last[place, here] = row
    if operation == WRITE:
        state.inserted[place], state.deleted[place] = slot, -1
    elif operation == DELETE:
        state.deleted[place] = slot
        state.queue[here, state.ends[here, 1]] = place
        state.ends[here, 1] += 1


@njit
def consequences_of(slots: Array, places: Array, operations: Array, keys: int, end: int) -> tuple[Array, Array, Array]:
    """
    Return what the other cluster's binlog shows of a cluster's changes if it applied them all: one entry per take, row.

    Args:
        slots: When the changes were made. Shape (changes,).
        places: Their keys. Shape (changes,).
        operations: What they did. Shape (changes,).
        keys: How many keys the bucket has.
        end: Epochs before this slot are taken.

    Returns:
        Place of the key, slot of the epoch taken, and `Effect`. Shape (entries,) each.
    """
    count = len(slots)
    place, slot, effect = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int8)
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
        effect[entry] = DELETED if operation == DELETE else CHANGED
    kept = 0
    for entry in range(made):
        if not (first[entry] == WRITE and effect[entry] == DELETED):
            place[kept], slot[kept], effect[kept] = place[entry], slot[entry], effect[entry]
            kept += 1
    return place[:kept], slot[:kept], effect[:kept]
