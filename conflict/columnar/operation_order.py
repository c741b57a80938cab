"""
Places of operations in their foreign epochs, to put those of all buckets in order.

A place is a list of numbers, four for each step from an operation to what caused it (see `place_of`): group, 0, number
among the changes of the epoch and -1 for what a cluster did itself, which has no cause; group, 1, take and whether it
is a refresh for what an applier logged. Places compare as lists do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from conflict.columnar.kernels.arrays import BucketRows, Decisions, EpochApplies, Int64, Logged

__all__ = ["PLACES", "order_of", "places_of"]

PLACES = pa.list_(pa.int64())
_STEP = 4


def places_of(
    chosen: Int64, decisions: Decisions, logged: Logged, applies: EpochApplies, rows: Sequence[BucketRows]
) -> pa.ListArray:
    """
    Return the places of the operations of some decisions.

    Args:
        chosen: Numbers of the decisions. Shape (operations,).
        decisions: All decisions of a bucket.
        logged: What its appliers logged.
        applies: All takes.
        rows: What the clusters did themselves.
    """
    owners, steps = [np.zeros(0, np.int64)], [np.zeros((0, _STEP), np.int64)]
    owner, decision = np.arange(len(chosen)), chosen
    while len(decision):
        source, applier = decisions.source[decision], applies.applier[decisions.apply[decision]]
        step = np.empty((len(decision), _STEP), np.int64)
        for side in (0, 1):
            own = (source >= 0) & (applier == 1 - side)
            row = source[own]
            step[own] = _columns(rows[side].group[row], 0, rows[side].ordinal[row], -1)
        caused = source < 0
        entry = -1 - source[caused]
        made_in = logged.apply[entry]
        step[caused] = _columns(applies.group[made_in], 1, made_in, logged.refresh[entry])
        owners.append(owner)
        steps.append(step)
        owner, decision = owner[caused], logged.decision[entry]
    owner, step = np.concatenate(owners), np.concatenate(steps)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(chosen)))]) * _STEP
    numbers = step[np.argsort(owner, kind="stable")].ravel()
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(numbers))


def _columns(first: np.ndarray, kind: int, second: np.ndarray, third: np.ndarray | int) -> Int64:
    return np.stack(np.broadcast_arrays(first, kind, second, third), axis=1).astype(np.int64)


def order_of(keys: Int64, places: pa.ListArray) -> Int64:
    """
    Return the order of operations: by keys, then by place; in the order given where those are equal.

    Args:
        keys: What comes before the place. Shape (operations, keys).
        places: Place of each.
    """
    offsets = (places.offsets.to_numpy() - places.offsets[0].as_py()) // _STEP
    steps = places.flatten().to_numpy().reshape(-1, _STEP)
    first, depth = offsets[:-1], np.diff(offsets)
    rank = _refined(np.zeros(len(keys), np.int64), keys)
    # Operations of one rank all go on or all end, for a step says which.
    for level in range(int(depth.max(initial=0))):
        deep = np.flatnonzero(depth > level)
        rank[deep] = _refined(rank[deep], steps[first[deep] + level])
    return np.argsort(rank, kind="stable")


def _refined(rank: Int64, keys: Int64) -> Int64:
    """
    Put those of one rank in order by keys.

    Args:
        rank: How many come before; those that are equal so far have the same. Shape (operations,).
        keys: Shape (operations, keys).

    Returns:
        The new ranks.
    """
    order = np.lexsort((*keys.T[::-1], rank))
    ranks, sorted_keys, numbers = rank[order], keys[order], np.arange(len(order))
    other_rank = np.diff(ranks, prepend=-1) != 0
    other = other_rank | np.append(True, np.any(sorted_keys[1:] != sorted_keys[:-1], axis=1))[: len(order)]
    places = ranks + numbers - np.maximum.accumulate(np.where(other_rank, numbers, 0))
    refined = np.empty_like(rank)
    refined[order] = places[np.maximum.accumulate(np.where(other, numbers, 0))]
    return refined
