"""
The buckets of a made History as arrays: which keys and changes fall into each, and what the changes are.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from benchmarks.makers.history_members import (
    CLUSTER,
    ORDINAL,
    SLOT,
    TRANSACTION,
    Epochs,
    buckets_of,
    count_members,
    find_members,
)
from benchmarks.makers.history_rows import NUMBER, OPERATION, PLACE, Keys, Times, make_rows
from benchmarks.makers.history_shape import Clock, Shape

__all__ = ["IDENTITY", "MadeBucket", "Plan", "Side", "made_buckets", "plan_of"]

IDENTITY = bytes(2) + b"\1" + (8).to_bytes(4, "little")  # of a key, before its eight bytes: table, not NULL, length
PIECES = 65536
FIRST_MICROSECOND, SLOT_MICROSECONDS = 1_700_000_000_000_000, 100_000

Array = npt.NDArray[Any]


@attrs.frozen
class Plan:
    """
    What all buckets share.

    Attributes:
        shape: Of the History.
        clocks: Of both clusters.
        bucket_of: Bucket of each key, by id from 1 on; odd ids have their home on A. Shape (keys,).
        choices: See `find_members`.
        counts: How many changes fall into each bucket. Shape (buckets,).
    """

    shape: Shape
    clocks: tuple[Clock, Clock]
    bucket_of: Array
    choices: Array
    counts: Array


@cache
def plan_of(shape: Shape) -> Plan:
    """Return what all buckets of a History share; computed once per process."""
    clocks = (Clock.make(shape, 0), Clock.make(shape, 1))
    table = np.array([_crc_entry(number) for number in range(256)], np.uint32)
    bucket_of = buckets_of(1, shape.keys, zlib.crc32(IDENTITY), table, shape.buckets)
    new, hot = [], []
    for home in (0, 1):
        mine = bucket_of[home::2]
        new.append(_choices(np.bincount(mine, minlength=shape.buckets).astype(np.float64)))
        hot.append(_choices(np.bincount(mine, _weights(shape, np.arange(len(mine))), shape.buckets)))
    choices = np.stack([np.stack([new[here], hot[here], hot[1 - here], hot[1 - here], hot[here]]) for here in (0, 1)])
    counts = sum(count_members(_epochs(clock), choices[clock.cluster], shape.buckets) for clock in clocks)
    return Plan(shape, clocks, bucket_of, choices, np.asarray(counts))


def _crc_entry(number: int) -> int:
    for _ in range(8):
        number = (number >> 1) ^ (0xEDB88320 if number & 1 else 0)
    return number


def _weights(shape: Shape, hotter: Array) -> Array:
    """Return how often keys are changed that so many of their home are hotter than."""
    return np.asarray((hotter + float(1 + shape.flat)) ** -shape.skew)


def _choices(weights: Array) -> Array:
    """Return a bucket per piece of chance, in proportion to weights."""
    ends = np.cumsum(weights) / weights.sum() * PIECES
    return np.searchsorted(ends, np.arange(PIECES) + 0.5).astype(np.uint16)


def _epochs(clock: Clock) -> Epochs:
    shape = clock.shape
    return Epochs(
        shape.chance(clock.cluster, 5).integers(0, 2**62, 2).astype(np.uint64),
        clock.starts,
        clock.pattern,
        clock.patterns,
        clock.singles,
        clock.load_end,
        np.array([clock.inserts, shape.away, shape.clashes, shape.churn]),
    )


@attrs.frozen
class Side:
    """
    What one cluster does itself in a bucket. Shape (changes,) each.

    Attributes:
        slot: When.
        ordinal: Number among the changes of the epoch.
        transaction: Number of its transaction in the epoch.
        place: Of the key in the bucket.
        operation: `Operation`.
        value: Resolve column afterwards.
        before: The same before; 0 for a write.
    """

    slot: Array
    ordinal: Array
    transaction: Array
    place: Array
    operation: Array
    value: Array
    before: Array


@attrs.frozen
class MadeBucket:
    """
    One bucket.

    Attributes:
        number: Its number.
        ids: Primary key of each key. Shape (keys,).
        numbers: Number of each key, in the order in which they are inserted; -1 if it never is. Shape (keys,).
        sides: What each cluster does.
    """

    number: int
    ids: Array
    numbers: Array
    sides: tuple[Side, Side]


def made_buckets(plan: Plan, first: int, count: int) -> Iterator[MadeBucket]:
    """
    Yield consecutive buckets.

    Raises:
        ValueError: A bucket has too few keys.
    """
    stop = min(first + count, plan.shape.buckets)
    offsets = np.concatenate([[0], np.cumsum(plan.counts[first:stop])]).astype(np.int64)
    epochs = (_epochs(plan.clocks[0]), _epochs(plan.clocks[1]))
    members = find_members(epochs, plan.choices, first, offsets)
    times = _times(plan)
    for number in range(first, stop):
        rows = slice(offsets[number - first], offsets[number - first + 1])
        yield _made(plan, number, members[rows], times)


def _times(plan: Plan) -> Times:
    pairs = (plan.clocks, plan.clocks[::-1])
    longest = max(int(np.diff(clock.starts).max()) for clock in plan.clocks)
    return Times(
        np.stack([own.seen(other, after=False) for own, other in pairs]),
        np.stack([own.seen(other, after=True) for own, other in pairs]),
        np.stack([clock.place for clock in plan.clocks]),
        np.array([FIRST_MICROSECOND, SLOT_MICROSECONDS, SLOT_MICROSECONDS // longest], np.uint64),
    )


def _made(plan: Plan, number: int, members: Array, times: Times) -> MadeBucket:
    shape = plan.shape
    places = [np.flatnonzero(plan.bucket_of[home::2] == number) for home in (0, 1)]
    ids = np.concatenate([2 * place + home + 1 for home, place in enumerate(places)]).astype(np.uint64)
    seed = int(shape.chance(2, number).integers(2**62))
    state, rows, values, enough = make_rows(members, times, seed, shape.window[1], _keys(shape, places))
    if not enough:
        message = f"bucket {number} has too few keys for its changes"
        raise ValueError(message)
    sides = []
    for cluster in (0, 1):
        mine = np.flatnonzero(members[:, CLUSTER] == cluster)
        times_of = (members[mine, column] for column in (SLOT, ORDINAL, TRANSACTION))
        operation = rows[mine, OPERATION].astype(np.int8)
        sides.append(Side(*times_of, rows[mine, PLACE], operation, values[mine, 0], values[mine, 1]))
    return MadeBucket(number, ids, state[:, NUMBER], (sides[0], sides[1]))


def _keys(shape: Shape, places: list[Array]) -> Keys:
    sums, guides, first = [], [], [0]
    for place in places:
        weights = np.cumsum(_weights(shape, place))
        sums.append(weights / weights[-1])
        guides.append(np.searchsorted(sums[-1], np.arange(len(place)) / len(place), "right").clip(0, len(place) - 1))
        first.append(first[-1] + len(place))
    return Keys(np.array(first), np.concatenate(sums), np.concatenate(guides))
