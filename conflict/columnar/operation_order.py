"""
The order of operations within their foreign epoch, over all buckets.

The order of an operation is a list of numbers, `_STEP` for each step from the operation to what caused it. Orders
compare as lists do.

* The other cluster's own change has no cause: its group, 0, its number among the own changes of its epoch, -1.
* What its applier logged: its group, 1, number of the epoch apply that logged it, 1 for a refresh and 0 for a reflected
  change; then the order of the operation that caused it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from conflict.columnar.kernels.arrays import BucketRows, Decisions, EpochApplies, Int64, Logged
from conflict.results.layout import OPERATION_ORDER

__all__ = ["LOGGED", "NO_CAUSE", "ORDER", "OWN", "operation_orders", "sorted_by_order"]

ORDER = OPERATION_ORDER.type
_STEP = 4
OWN, LOGGED, NO_CAUSE = 0, 1, -1


def operation_orders(
    chosen: Int64, decisions: Decisions, logged: Logged, applies: EpochApplies, rows: Sequence[BucketRows]
) -> pa.ListArray:
    """
    Return the order of the operations of some decisions.

    Args:
        chosen: Numbers of the decisions. Shape (operations,).
        decisions: All decisions of a bucket.
        logged: What the appliers logged in it.
        applies: All epoch applies.
        rows: The own changes of both clusters.

    Returns:
        `ORDER`, shape (operations,).
    """
    owners, steps = [np.zeros(0, np.int64)], [np.zeros((0, _STEP), np.int64)]
    owner, decision = np.arange(len(chosen)), chosen
    while len(decision):
        source, applier = decisions.source[decision], applies.applier[decisions.apply[decision]]
        step = np.empty((len(decision), _STEP), np.int64)
        for side in (0, 1):
            own = (source >= 0) & (applier == 1 - side)
            row = source[own]
            step[own] = _columns(rows[side].group[row], OWN, rows[side].ordinal[row], NO_CAUSE)
        caused = source < 0
        entry = -1 - source[caused]
        made_in = logged.apply[entry]
        step[caused] = _columns(applies.group[made_in], LOGGED, made_in, logged.refresh[entry])
        owners.append(owner)
        steps.append(step)
        owner, decision = owner[caused], logged.decision[entry]
    owner, step = np.concatenate(owners), np.concatenate(steps)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(chosen)))]) * _STEP
    numbers = step[np.argsort(owner, kind="stable")].ravel()
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(numbers))


def _columns(first: np.ndarray, kind: int, second: np.ndarray, third: np.ndarray | int) -> Int64:
    return np.stack(np.broadcast_arrays(first, kind, second, third), axis=1).astype(np.int64)


def sorted_by_order(keys: Int64, orders: pa.ListArray) -> Int64:
    """
    Return the numbers of operations, sorted by keys, then by order; the sort is stable.

    Args:
        keys: What comes before the order. Shape (operations, keys).
        orders: The order of each operation. `ORDER`, shape (operations,).
    """
    offsets = (orders.offsets.to_numpy() - orders.offsets[0].as_py()) // _STEP
    steps = orders.flatten().to_numpy().reshape(-1, _STEP)
    first, depth = offsets[:-1], np.diff(offsets)
    rank = _refined(np.zeros(len(keys), np.int64), keys)
    # Operations of one rank are equal up to here: either all of them have another step, or none has.
    for level in range(int(depth.max(initial=0))):
        deep = np.flatnonzero(depth > level)
        rank[deep] = _refined(rank[deep], steps[first[deep] + level])
    return np.argsort(rank, kind="stable")


def _refined(rank: Int64, keys: Int64) -> Int64:
    """
    Sort operations of equal rank by keys, and return the new ranks. Shape (operations,).

    Args:
        rank: How many operations come before each; equal for operations that are equal so far. Shape (operations,).
        keys: Shape (operations, keys).
    """
    order = np.lexsort((*keys.T[::-1], rank))
    ranks, sorted_keys, numbers = rank[order], keys[order], np.arange(len(order))
    other_rank = np.diff(ranks, prepend=-1) != 0
    other = other_rank | np.append(True, np.any(sorted_keys[1:] != sorted_keys[:-1], axis=1))[: len(order)]
    moved = ranks + numbers - np.maximum.accumulate(np.where(other_rank, numbers, 0))
    refined = np.empty_like(rank)
    refined[order] = moved[np.maximum.accumulate(np.where(other, numbers, 0))]
    return refined
