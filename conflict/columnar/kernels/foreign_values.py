"""
Which rows have a value that others refer to, and which refer to it, transaction by transaction.

Computes whether errors 1451 and 1452 of docs/functions.md, "Stops", can occur.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import kernel

__all__ = ["NO_TRANSACTION", "NO_VALUE", "first_broken"]

NO_VALUE, NO_TRANSACTION = -1, -1


@kernel
def first_broken(starts, own, rows, values, refers, row_count, value_count):
    """
    Return the first epoch apply that leaves a row that it touched without parent, or rows without one that it removed.

    What a cluster itself did stands, whatever it broke.

    Args:
        starts: First state of each transaction, and the number of states. Shape (transactions + 1,).
        own: Whether the cluster itself made the transaction. Shape (transactions,).
        rows: Row of each state; a transaction has one state of a row. Shape (states,).
        values: Its values, `NO_VALUE` for none. Shape (states, ends).
        refers: Whether each value refers to a row; else others may refer to it. Shape (states, ends).
        row_count: Number of rows.
        value_count: Number of values.

    Returns:
        Number of the transaction, `NO_TRANSACTION` if there is none.
    """
    parents, children = np.zeros(value_count, np.int64), np.zeros(value_count, np.int64)
    values_of = np.full((row_count, values.shape[1]), NO_VALUE, np.int64)
    before = np.empty_like(values)
    for transaction in range(len(own)):
        first, last = starts[transaction], starts[transaction + 1]
        for state in range(first, last):
            for end in range(values.shape[1]):
                count = children if refers[state, end] else parents
                gone, new = values_of[rows[state], end], values[state, end]
                before[state, end] = gone
                values_of[rows[state], end] = new
                if gone >= 0:
                    count[gone] -= 1
                if new >= 0:
                    count[new] += 1
        if own[transaction]:
            continue
        for state in range(first, last):
            for end in range(values.shape[1]):
                value = values[state, end] if refers[state, end] else before[state, end]
                if value >= 0 and parents[value] == 0 and (refers[state, end] or children[value] > 0):
                    return transaction
    return NO_TRANSACTION
