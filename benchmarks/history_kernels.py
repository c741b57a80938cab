"""
Compiled loops of the maker of Histories: who changes which key, how, and the bytes of the images.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt

__all__ = [
    "Epochs",
    "Keys",
    "Members",
    "Times",
    "buckets_of",
    "consequences_of",
    "count_members",
    "find_members",
    "image_bytes",
    "make_rows",
]

Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

NEW, HOME, AWAY, CLASH, CHURN = 0, 1, 2, 3, 4
WRITE, UPDATE, DELETE = 1, 2, 3
CHANGED, DELETED = 1, 2


def njit(function: Function) -> Function:
    """Compile a function, with its types kept for readers."""
    return numba.njit(cache=True)(function)  # type: ignore[no-any-return]


@njit
def mixed(number: int) -> int:
    """Return 64 bits that look like chance (splitmix64)."""
    number = np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@njit
def unit(number: int) -> float:
    """Return chance as a number from 0 to below 1."""
    return float(number >> np.uint64(11)) / 9007199254740992.0


@njit
def buckets_of(first: int, count: int, start: int, table: Array, buckets: int) -> Array:
    """
    Return the bucket of keys with consecutive 64-bit ids: their CRC32 modulo the number of buckets. Shape (count,).

    Args:
        first: The first id.
        count: How many.
        start: CRC32 of what stands before the id.
        table: CRC32's own table. Shape (256,), uint32.
        buckets: Their number.
    """
    found = np.empty(count, np.uint16)
    for place in range(count):
        state, rest = np.uint32(start) ^ np.uint32(0xFFFFFFFF), np.uint64(first + place)
        for _ in range(8):
            state = table[(state ^ np.uint32(rest)) & np.uint32(0xFF)] ^ (state >> np.uint32(8))
            rest >>= np.uint64(8)
        found[place] = (state ^ np.uint32(0xFFFFFFFF)) % np.uint32(buckets)
    return found


class Epochs(NamedTuple):
    """
    What the loops need of a cluster's epochs.

    Attributes:
        chance: Where the chance of its changes begins, and that of its transactions.
        starts: See `Clock`.
        pattern: See `Clock`.
        patterns: See `Clock`.
        singles: See `Clock`.
        load_end: See `Clock`.
        inserts: See `Clock`.
        away: See `Shape`.
        clashes: See `Shape`.
        churn: See `Shape`.
    """

    chance: tuple[int, int]
    starts: Array
    pattern: Array
    patterns: Array
    singles: Array
    load_end: int
    inserts: float
    away: float
    clashes: float
    churn: float


@njit
def kind_of(epochs: Epochs, slot: int, transaction: int, single: bool) -> int:
    """Return what a transaction does: NEW, CHURN, or HOME for updates."""
    if slot < epochs.load_end:
        return NEW
    number = mixed(np.uint64(epochs.chance[1]) + np.uint64(slot) * np.uint64(4096) + np.uint64(transaction))
    if unit(number) < epochs.inserts:
        return NEW
    return CHURN if single and unit(mixed(number)) < epochs.churn else HOME


@njit
def change_of(epochs: Epochs, slot: int, place: int, kind: int, choices: Array) -> tuple[int, int]:
    """Return the kind of a change and its bucket."""
    number = mixed(np.uint64(epochs.chance[0]) + np.uint64(epochs.starts[slot] + place))
    if kind == HOME:
        chance = float(number & np.uint64(0xFFFFFF)) / 16777216.0
        if chance < epochs.away + epochs.clashes:
            kind = AWAY if chance < epochs.away else CLASH
    return kind, choices[kind, number >> np.uint64(48)]


@njit
def count_members(epochs: Epochs, choices: Array, buckets: int) -> Array:
    """
    Return how many changes of a cluster fall into each bucket. Shape (buckets,).

    Args:
        epochs: Of the cluster.
        choices: Bucket of a change of each kind, by chance. Shape (kinds, 65536).
        buckets: Their number.
    """
    counts = np.zeros(buckets, np.int64)
    for slot in range(len(epochs.pattern)):
        pattern, last, kind = epochs.pattern[slot], -1, NEW
        for place in range(epochs.starts[slot + 1] - epochs.starts[slot]):
            transaction = epochs.patterns[pattern, place]
            if transaction != last:
                last, kind = transaction, kind_of(epochs, slot, transaction, epochs.singles[pattern, place])
            counts[change_of(epochs, slot, place, kind, choices)[1]] += 1
    return counts


class Members(NamedTuple):
    """
    Changes of both clusters in a bucket, by slot, then by cluster. Shape (changes,).

    Attributes:
        cluster: Who makes it.
        slot: When.
        ordinal: Number among the changes of the epoch.
        transaction: Number of its transaction in the epoch.
        kind: NEW, HOME, AWAY, CLASH or CHURN.
    """

    cluster: Array
    slot: Array
    ordinal: Array
    transaction: Array
    kind: Array


@njit
def find_members(epochs: tuple[Epochs, Epochs], choices: Array, first: int, offsets: Array) -> Members:
    """
    Return the changes in consecutive buckets, bucket after bucket.

    Args:
        epochs: Of both clusters.
        choices: Per cluster, as in `count_members`. Shape (2, kinds, 65536).
        first: The first bucket.
        offsets: Where the changes of each bucket begin, and their total. Shape (buckets + 1,).
    """
    total, found = offsets[-1], offsets[:-1].copy()
    members = Members(
        np.empty(total, np.int8),
        np.empty(total, np.int32),
        np.empty(total, np.int16),
        np.empty(total, np.int16),
        np.empty(total, np.int8),
    )
    for slot in range(len(epochs[0].pattern)):
        for cluster in range(2):
            put_members(epochs[cluster], choices[cluster], cluster, slot, first, found, members)
    return members


@njit
def put_members(
    epochs: Epochs, choices: Array, cluster: int, slot: int, first: int, found: Array, members: Members
) -> None:
    """Put the changes of an epoch where they belong."""
    pattern, last, kind = epochs.pattern[slot], -1, NEW
    for place in range(epochs.starts[slot + 1] - epochs.starts[slot]):
        transaction = epochs.patterns[pattern, place]
        if transaction != last:
            last, kind = transaction, kind_of(epochs, slot, transaction, epochs.singles[pattern, place])
        what, bucket = change_of(epochs, slot, place, kind, choices)
        bucket -= first
        if 0 <= bucket < len(found):
            row = found[bucket]
            found[bucket] = row + 1
            members.cluster[row], members.slot[row], members.ordinal[row] = cluster, slot, place
            members.transaction[row], members.kind[row] = transaction, what


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


@njit
def put(data: Array, place: int, number: int, size: int) -> int:
    """Write a number of so many bytes, lowest first."""
    for _ in range(size):
        data[place] = number & np.uint64(0xFF)
        number >>= np.uint64(8)
        place += 1
    return place


NOTE = 20
KEY, CUSTOMER, STATUS, UPDATED, TEXT = 1, 2, 4, 8, 16


@njit
def image_bytes(ids: Array, values: Array, sets: Array) -> tuple[Array, Array]:
    """
    Return images: null bits, then values of the columns.

    Args:
        ids: Primary keys. Shape (images,), uint64.
        values: Resolve columns, which decide all other columns. Shape (images,), uint64.
        sets: Columns of each image, one bit each; 0 for no image. Shape (images,), uint8.

    Returns:
        Offsets of the images, and their bytes.
    """
    offsets, data = np.zeros(len(ids) + 1, np.int32), np.empty(len(ids) * (23 + NOTE), np.uint8)
    place = 0
    for row in range(len(ids)):
        columns = sets[row]
        if columns:
            place = put_image(data, place, ids[row], values[row], columns)
        offsets[row + 1] = place
    return offsets, data[:place]


@njit
def put_image(data: Array, place: int, key: int, value: int, columns: int) -> int:
    """Write one image."""
    chance = mixed(value ^ (key << np.uint64(20)))
    nulls, bit, start = 0, 1, place
    place += 1
    for column in (KEY, CUSTOMER, STATUS, UPDATED, TEXT):
        if not columns & column:
            continue
        if column == KEY:
            place = put(data, place, key, 8)
        elif column == CUSTOMER:
            place = put(data, place, mixed(key) % np.uint64(1_000_000), 4)
        elif column == STATUS:
            place = put(data, place, chance & np.uint64(7), 1)
        elif column == UPDATED:
            place = put(data, place, value, 8)
        elif chance & np.uint64(0xF0) == 0:
            nulls |= bit
        else:
            length = (chance >> np.uint64(8)) % np.uint64(NOTE + 1)
            place = put(data, place, length, 1)
            for letter in range(length):
                data[place] = 97 + ((chance >> np.uint64(3 * (letter % 16) + 8)) & np.uint64(15))
                place += 1
        bit <<= 1
    data[start] = nulls
    return place
