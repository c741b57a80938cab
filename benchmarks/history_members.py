"""
Compiled: which changes of a made History fall into which bucket, and of what kind they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt

__all__ = [
    "AWAY",
    "CHURN",
    "CLASH",
    "HOME",
    "NEW",
    "Array",
    "Epochs",
    "Members",
    "buckets_of",
    "count_members",
    "find_members",
    "mixed",
    "njit",
    "unit",
]

Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

NEW, HOME, AWAY, CLASH, CHURN = 0, 1, 2, 3, 4


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
