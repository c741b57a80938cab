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
    "CLUSTER",
    "HOME",
    "KIND",
    "NEW",
    "ORDINAL",
    "SLOT",
    "TRANSACTION",
    "Array",
    "Epochs",
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
    return numba.njit(cache=True)(function)  # type: ignore[no-any-return]  # numba gives it no type


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
    What the loops need of a cluster's epochs; they take it apart at once, as arrays in a tuple are slow to reach.

    Attributes:
        chance: Where the chance of its changes begins, and that of its transactions. Shape (2,), uint64.
        starts: See `Clock`.
        pattern: See `Clock`.
        patterns: See `Clock`.
        singles: See `Clock`.
        load_end: See `Clock`.
        parts: `Clock.inserts`, then away, clashes and churn of `Shape`. Shape (4,).
    """

    chance: Array
    starts: Array
    pattern: Array
    patterns: Array
    singles: Array
    load_end: int
    parts: Array


@njit
def kind_of(chance: Array, parts: Array, slot: int, transaction: int, single: bool) -> int:
    """Return what a transaction after the load does: NEW, CHURN, or HOME for updates."""
    number = mixed(chance[1] + np.uint64(slot) * np.uint64(4096) + np.uint64(transaction))
    if unit(number) < parts[0]:
        return NEW
    return CHURN if single and unit(mixed(number)) < parts[3] else HOME


@njit
def kinds_and_buckets(epochs: Epochs, choices: Array, slot: int, kinds: Array, buckets: Array) -> int:
    """
    Fill in the kind and the bucket of each change of an epoch, and return how many there are.

    Args:
        epochs: Of the cluster.
        choices: Bucket of a change of each kind, by chance. Shape (kinds, 65536).
        slot: Of the epoch.
        kinds: Room for the kinds.
        buckets: Room for the buckets.
    """
    chance, starts, pattern, patterns, singles, load_end, parts = epochs
    transactions, alone = patterns[pattern[slot]], singles[pattern[slot]]
    first, last, kind = starts[slot], -1, NEW
    count = starts[slot + 1] - first
    for place in range(count):
        transaction = transactions[place]
        if transaction != last and slot >= load_end:
            last, kind = transaction, kind_of(chance, parts, slot, transaction, alone[place])
        number, what = mixed(chance[0] + np.uint64(first + place)), kind
        if kind == HOME:
            away = float(number & np.uint64(0xFFFFFF)) / 16777216.0
            if away < parts[1] + parts[2]:
                what = AWAY if away < parts[1] else CLASH
        kinds[place], buckets[place] = what, choices[what, number >> np.uint64(48)]
    return count


@njit
def count_members(epochs: Epochs, choices: Array, buckets: int) -> Array:
    """Return how many changes of a cluster fall into each of so many buckets; arguments as in `kinds_and_buckets`."""
    counts, longest = np.zeros(buckets, np.int64), epochs.patterns.shape[1]
    kinds, found = np.empty(longest, np.int8), np.empty(longest, np.int32)
    for slot in range(len(epochs.pattern)):
        for place in range(kinds_and_buckets(epochs, choices, slot, kinds, found)):
            counts[found[place]] += 1
    return counts


# Columns of the changes of both clusters in a bucket, which stand by slot, then by cluster: who makes it, when, its
# number among the changes of the epoch, that of its transaction in the epoch, and NEW, HOME, AWAY, CLASH or CHURN.
CLUSTER, SLOT, ORDINAL, TRANSACTION, KIND = 0, 1, 2, 3, 4


@njit
def find_members(epochs: tuple[Epochs, Epochs], choices: Array, first: int, offsets: Array) -> Array:
    """
    Return the changes in consecutive buckets, bucket after bucket. Shape (changes, 5), int32.

    Args:
        epochs: Of both clusters.
        choices: Per cluster, as in `kinds_and_buckets`. Shape (2, kinds, 65536).
        first: The first bucket.
        offsets: Where the changes of each bucket begin, and their total. Shape (buckets + 1,).
    """
    members, found = np.empty((offsets[-1], 5), np.int32), offsets[:-1].copy()
    longest = max(epochs[0].patterns.shape[1], epochs[1].patterns.shape[1])
    kinds, buckets = np.empty(longest, np.int8), np.empty(longest, np.int32)
    for slot in range(len(epochs[0].pattern)):
        for cluster in range(2):
            mine = epochs[cluster]
            count = kinds_and_buckets(mine, choices[cluster], slot, kinds, buckets)
            transactions = mine.patterns[mine.pattern[slot]]
            for place in range(count):
                bucket = buckets[place] - first
                if 0 <= bucket < len(found):
                    row = found[bucket]
                    found[bucket] = row + 1
                    members[row, CLUSTER], members[row, SLOT], members[row, ORDINAL] = cluster, slot, place
                    members[row, TRANSACTION], members[row, KIND] = transactions[place], kinds[place]
    return members
