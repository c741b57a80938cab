"""
Dependencies between transactions of one epoch: which transaction touches a row after which, and what follows from that.

Computes the dependencies of docs/functions.md, "Functions that judge transactions".
"""

from __future__ import annotations

import numpy as np

from conflict.engine.kernels.arrays import Int8, Int32, OperationKind
from ndb_formats.columnar.kernel import each_read_only, kernel

EMPTY = int(OperationKind.EMPTY)
NO_APPLY = -1


def dependent_groups(apply: Int32, key: Int32, group: Int32, kind: Int8, keys: int) -> Int32:
    """
    Return key, epoch apply and both groups wherever a group touched a row right after another one of that epoch apply.

    Empty operations do not count.

    Args:
        apply: Column of `Decisions`, like the next three. Shape (decisions,).
        key: Row.
        group: Transaction.
        kind: `OperationKind`.
        keys: Number of rows.

    Returns:
        int32, shape (pairs, 4).
    """
    columns, capacity = each_read_only(apply, key, group, kind), len(apply) // 16 + 1024
    while True:
        pairs = np.empty((capacity, 4), np.int32)
        rows = np.full(keys, NO_APPLY, np.int32), np.zeros(keys, np.int32)
        found = find_dependent_groups(*(*columns, *rows, pairs))
        if found <= capacity:
            return pairs[:found]
        capacity = int(found)


@kernel
def find_dependent_groups(apply, key, group, kind, last_apply, last_group, pairs):
    """
    Fill in pairs up to the capacity; return how many there are.

    Args:
        apply: See `dependent_groups`, as for the next three.
        key: See there.
        group: See there.
        kind: See there.
        last_apply: The last epoch apply that touched each row, `NO_APPLY` before the first. int32, shape (keys,).
        last_group: The group that did. int32, shape (keys,).
        pairs: Filled in. int32, shape (capacity, 4).
    """
    found = 0
    for place in range(len(apply)):
        if kind[place] == EMPTY:
            continue
        row = key[place]
        if last_apply[row] == apply[place] and last_group[row] != group[place]:
            if found < len(pairs):
                pairs[found, 0], pairs[found, 1] = row, apply[place]
                pairs[found, 2], pairs[found, 3] = last_group[row], group[place]
            found += 1
        last_apply[row], last_group[row] = apply[place], group[place]
    return found


@kernel
def reachable(start, offsets, successors, count):
    """
    Return which nodes of a graph can be reached from some of them, these included. bool, shape (count,).

    Args:
        start: The nodes to start from.
        offsets: The successors of node n are ``successors[offsets[n]:offsets[n + 1]]``. Shape (count + 1,).
        successors: Node numbers.
        count: Number of nodes.
    """
    reached = np.zeros(count, np.bool_)
    waiting = np.empty(count, np.int64)
    length = 0
    for number in start:
        reached[number], waiting[length] = True, number
        length += 1
    while length:
        length -= 1
        number = waiting[length]
        for place in range(offsets[number], offsets[number + 1]):
            after = successors[place]
            if not reached[after]:
                reached[after], waiting[length] = True, after
                length += 1
    return reached
