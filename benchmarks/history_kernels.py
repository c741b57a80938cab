"""
Compiled loops of the maker of Histories: who changes which key, how, and the bytes of the images.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["CHURN", "Members", "Zipf", "buckets_of", "consequences_of", "count_members", "find_members", "image_bytes"]

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
    """The changes of a cluster in one bucket: slot, number in the epoch, transaction, kind. Shape (changes,)."""

    slot: Array
    ordinal: Array
    transaction: Array
    kind: Array


@njit
def find_members(epochs: Epochs, choices: Array, bucket: int, count: int) -> Members:
    """Return the changes of a cluster in one bucket; arguments as in `count_members`."""
    members = Members(
        np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int8)
    )
    found = 0
    for slot in range(len(epochs.pattern)):
        pattern, last, kind = epochs.pattern[slot], -1, NEW
        for place in range(epochs.starts[slot + 1] - epochs.starts[slot]):
            transaction = epochs.patterns[pattern, place]
            if transaction != last:
                last, kind = transaction, kind_of(epochs, slot, transaction, epochs.singles[pattern, place])
            what, where = change_of(epochs, slot, place, kind, choices)
            if where == bucket:
                members.slot[found], members.ordinal[found] = slot, place
                members.transaction[found], members.kind[found] = transaction, what
                found += 1
    return members


class Zipf(NamedTuple):
    """The keys of one home in a bucket: how often each is chosen, added up; and where to start looking."""

    sums: Array
    guide: Array


@njit
def choose(zipf: Zipf, chance: float) -> int:
    """Return a key, hot ones more often."""
    wanted = chance * zipf.sums[-1]
    place = zipf.guide[int(chance * len(zipf.guide))]
    while zipf.sums[place] <= wanted and place < len(zipf.sums) - 1:
        place += 1
    return place


class State(NamedTuple):
    """
    The keys of a bucket while changes are made: those of cluster A, then those of cluster B.

    Attributes:
        first: Place of the first key of each home, and their number. Shape (3,).
        number: Number of each key, by the order in which they are inserted; -1 before that. Shape (keys,).
        inserted: Slot of the last insert. Shape (keys,).
        deleted: Slot of the delete; -1 while the row is there. Shape (keys,).
        last: The last change of each cluster. Shape (2, keys).
        there: How many keys of each home were inserted, and of all. Shape (3,).
        queue: Keys of each home that are deleted, the oldest first. Shape (2, changes).
        ends: Where each queue starts and stops. Shape (2, 2).
    """

    first: Array
    number: Array
    inserted: Array
    deleted: Array
    last: Array
    there: Array
    queue: tuple[Array, Array]
    ends: Array


class Rows(NamedTuple):
    """
    The changes of a cluster in a bucket. Shape (changes,).

    Attributes:
        place: Of the key in `State`.
        operation: `Operation`.
        value: Resolve column afterwards, which also decides all other columns.
        before: The same before, as the cluster then saw the row; 0 for a write.
        previous: Its change of the same key before; -1 if there is none.
    """

    place: Array
    operation: Array
    value: Array
    before: Array
    previous: Array


@njit
def new_rows(count: int) -> Rows:
    """Return room for changes."""
    return Rows(
        np.empty(count, np.int32),
        np.empty(count, np.int8),
        np.empty(count, np.uint64),
        np.zeros(count, np.uint64),
        np.empty(count, np.int32),
    )


@njit
def free(members: Members, rows: Rows, row: int, place: int) -> bool:
    """Whether the transaction of a change has not changed a key before: NDB logs one event for each."""
    other = row - 1
    while other >= 0 and members.slot[other] == members.slot[row]:
        if members.transaction[other] != members.transaction[row]:
            return True
        if rows.place[other] == place:
            return False
        other -= 1
    return True


@njit
def existing(state: State, zipf: Zipf, home: int, members: Members, rows: Rows, row: int, chance: float) -> int:
    """Return a key of a home whose row is there; -1 if there is none."""
    there = state.there[home]
    if there == 0:
        return -1
    start = choose(zipf, chance) % there
    for step in range(there):
        place = state.first[home] + (start + step) % there
        if state.deleted[place] < 0 and free(members, rows, row, place):
            return place
    return -1


@njit
def foreign(state: State, home: int, seen: int, place: int) -> bool:
    """Whether a key is the other cluster's, and its row has come here and not yet gone."""
    if not state.first[home] <= place < state.first[home + 1]:
        return False
    return state.inserted[place] <= seen and (state.deleted[place] < 0 or state.deleted[place] > seen)


@njit
def in_flight(members: Members, rows: Rows, done: int, seen: int, chance: int) -> int:
    """Return the key of one of the changes, of the `done` first, that were made after a slot; -1 if there is none."""
    row = done - 1
    while row >= 0 and members.slot[row] > seen:
        row -= 1
    count = done - 1 - row
    return rows.place[row + 1 + chance % np.uint64(count)] if count else -1


@njit
def newest(members: Members, rows: Rows, row: int, seen: int) -> int:
    """Return the resolve column of the newest change at or before one that was made in a slot up to `seen`; or 0."""
    while row >= 0 and members.slot[row] > seen:
        row = rows.previous[row]
    return rows.value[row] if row >= 0 else np.uint64(0)


@njit
def next_key(state: State, home: int) -> int:
    """Return the next new key of a home; -1 if there is none left."""
    place = state.first[home] + state.there[home]
    if place >= state.first[home + 1]:
        return -1
    state.number[place] = state.there[2]
    state.there[home] += 1
    state.there[2] += 1
    return place


@njit
def oldest_deleted(state: State, home: int, until: int) -> int:
    """Return the key that was deleted first, if that was before a slot, and take it out of the queue; else -1."""
    start, stop = state.ends[home]
    if start < stop and state.deleted[state.queue[home][start]] < until:
        state.ends[home, 0] += 1
        return state.queue[home][start]
    return -1


@njit
def away_key(
    here: int, row: int, seen: int, chance: int, done: int, state: State,
    zipfs: tuple[Zipf, Zipf], members: tuple[Members, Members], rows: tuple[Rows, Rows],
) -> int:  # fmt: skip
    """Return a key of the other cluster to update here; -1 if the one chosen will not do."""
    home, place = 1 - here, -1
    if members[here].kind[row] == CLASH:
        place = in_flight(members[home], rows[home], done, seen, chance)
    elif state.there[home]:
        place = state.first[home] + choose(zipfs[home], unit(chance)) % state.there[home]
    usable = place >= 0 and foreign(state, home, seen, place) and free(members[here], rows[here], row, place)
    return place if usable else -1


@njit
def home_key(
    here: int, row: int, chance: int, gap: int, state: State, zipfs: tuple[Zipf, Zipf], members: Members, rows: Rows
) -> tuple[int, int]:
    """Return a key of this cluster to change here, and the operation; -1 if no key will do."""
    kind, place = members.kind[row], -1
    if kind == NEW:
        place = next_key(state, here)
    elif kind == CHURN:
        place = oldest_deleted(state, here, members.slot[row] - gap)
    if place >= 0:
        return place, WRITE
    place = existing(state, zipfs[here], here, members, rows, row, unit(mixed(chance)))
    if place >= 0:
        return place, DELETE if kind == CHURN else UPDATE
    return next_key(state, here), WRITE


@njit
def make_rows(
    members: tuple[Members, Members],
    clocks: tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]],
    seed: int,
    gap: int,
    first: Array,
    zipfs: tuple[Zipf, Zipf],
    pace: tuple[int, int, int],
) -> tuple[State, tuple[Rows, Rows], bool]:
    """
    Make the changes of both clusters in a bucket.

    Args:
        members: Of each cluster.
        clocks: Per cluster and slot: last slot of the other one taken before the takes and after them, and the
            transaction before which they stand.
        seed: Of what is chosen.
        gap: Slots between a delete and the next insert of the row.
        first: See `State`.
        zipfs: The keys of each home.
        pace: Resolve column at the start, how much it grows per slot, and per change.

    Returns:
        The keys, the rows, and whether there were enough keys.
    """
    keys = first[2]
    state = State(
        first,
        np.full(keys, -1, np.int32),
        np.full(keys, -1, np.int32),
        np.full(keys, -1, np.int32),
        np.full((2, keys), -1, np.int32),
        np.zeros(3, np.int64),
        (np.empty(len(members[0].slot), np.int32), np.empty(len(members[1].slot), np.int32)),
        np.zeros((2, 2), np.int64),
    )
    rows = (new_rows(len(members[0].slot)), new_rows(len(members[1].slot)))
    done = np.zeros(2, np.int64)
    for slot in range(len(clocks[0][0])):
        for here in range(2):
            mine, theirs = members[here], members[1 - here]
            while done[here] < len(mine.slot) and mine.slot[done[here]] == slot:
                row = done[here]
                done[here] += 1
                seen_before, seen_after, takes_at = clocks[here]
                seen = (seen_after if mine.transaction[row] >= takes_at[slot] else seen_before)[slot]
                chance = mixed(np.uint64(seed) + np.uint64(2 * row + here))
                place, operation = -1, UPDATE
                if mine.kind[row] == AWAY or mine.kind[row] == CLASH:
                    place = away_key(here, row, seen, chance, done[1 - here], state, zipfs, members, rows)
                if place < 0:
                    place, operation = home_key(here, row, chance, gap, state, zipfs, mine, rows[here])
                if place < 0:
                    return state, rows, False
                made = rows[here]
                made.place[row], made.operation[row] = place, operation
                made.previous[row] = state.last[here, place]
                made.value[row] = pace[0] + slot * pace[1] + mine.ordinal[row] * pace[2] + here
                if operation != WRITE:
                    own = newest(mine, made, state.last[here, place], slot)
                    made.before[row] = max(own, newest(theirs, rows[1 - here], state.last[1 - here, place], seen))
                state.last[here, place] = row
                note(state, here, place, operation, slot)
    return state, rows, True


@njit
def note(state: State, here: int, place: int, operation: int, slot: int) -> None:
    """Keep whether a row is there."""
    if operation == WRITE:
        state.inserted[place], state.deleted[place] = slot, -1
    elif operation == DELETE:
        state.deleted[place] = slot
        state.queue[here][state.ends[here, 1]] = place
        state.ends[here, 1] += 1


@njit
def consequences_of(members: Members, rows: Rows, keys: int, slots: int) -> tuple[Array, Array, Array]:
    """
    Return what the other cluster's binlog shows of a cluster's changes if it applied them all: one entry per take, row.

    Args:
        members: Of the cluster that made them.
        rows: Of the same.
        keys: How many keys the bucket has.
        slots: Epochs before this slot are taken.

    Returns:
        Place of the key, slot of the epoch taken, and `Effect`. Shape (entries,) each.
    """
    count = len(members.slot)
    place, slot, effect = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int8)
    entry_of, first, made = np.full(keys, -1, np.int64), np.empty(count, np.int8), 0
    for row in range(count):
        if members.slot[row] >= slots:
            break
        key, operation = rows.place[row], rows.operation[row]
        entry = entry_of[key]
        if entry < 0 or slot[entry] != members.slot[row]:
            entry, made = made, made + 1
            entry_of[key], place[entry], slot[entry], first[entry] = entry, key, members.slot[row], operation
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
