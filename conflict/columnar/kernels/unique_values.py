"""
Which row has which value of a unique key, transaction by transaction.

Computes error 1022 of docs/functions.md, "Stops".
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import kernel

__all__ = ["first_duplicate"]

NO_ROW, NO_VALUE, NO_TRANSACTION = -1, -1, -1


@kernel
def first_duplicate(starts, own, rows, values, row_count, value_count):
    """
    Return the first epoch apply after which two rows have one value, and the row of each value before it.

    An own transaction of the cluster cannot stop anything. One that would make a duplicate is left out: the History is
    not complete.

    Args:
        starts: First state of each transaction, and the number of states. Shape (transactions + 1,).
        own: Whether the cluster itself made the transaction. Shape (transactions,).
        rows: Row of each state; a transaction has one state of a row. Shape (states,).
        values: Its values, `NO_VALUE` for none. Shape (states, unique keys).
        row_count: Number of rows.
        value_count: Number of values.

    Returns:
        Number of the transaction, `NO_TRANSACTION` if there is none; and the row of each value, `NO_ROW` if no row has
        it, int64, shape (values,).
    """
    row_of = np.full(value_count, NO_ROW, np.int64)
    values_of = np.full((row_count, values.shape[1]), NO_VALUE, np.int64)
    touched_by = np.full(row_count, NO_TRANSACTION, np.int64)  # by row, the last transaction
    claimed_by = np.full(value_count, NO_TRANSACTION, np.int64)  # by value, the last transaction
    for transaction in range(len(own)):
        first, last = starts[transaction], starts[transaction + 1]
        for state in range(first, last):
            touched_by[rows[state]] = transaction
        duplicate = False
        for state in range(first, last):
            for value in values[state]:
                if value < 0:
                    continue
                row = row_of[value]
                if claimed_by[value] == transaction or (row >= 0 and touched_by[row] != transaction):
                    duplicate = True
                claimed_by[value] = transaction
        if duplicate:
            if own[transaction]:
                continue
            return transaction, row_of
        for state in range(first, last):
            for value in values_of[rows[state]]:
                if value >= 0 and row_of[value] == rows[state]:
                    row_of[value] = NO_ROW
        for state in range(first, last):
            values_of[rows[state]] = values[state]
            for value in values[state]:
                if value >= 0:
                    row_of[value] = rows[state]
    return NO_TRANSACTION, row_of
