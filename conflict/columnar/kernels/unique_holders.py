"""
Who holds which unique value, transaction by transaction.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["first_duplicate"]

NOBODY = -1


@njit(cache=True)
def first_duplicate(starts, own, rows, entries, row_count, entry_count):
    """
    Return the first transaction of an applier after which two rows hold one value, and who holds which one before it.

    What a cluster did itself cannot stop anything; where it could not be done it is not taken over.

    Args:
        starts: Where the states of each transaction start, and their total. Shape (transactions + 1,).
        own: Whether the cluster did it itself. Shape (transactions,).
        rows: The row of each state, once per transaction. Shape (states,).
        entries: Its values; -1 for none. Shape (states, unique keys).
        row_count: How many rows there are.
        entry_count: How many values there are.

    Returns:
        The number of the transaction, -1 if there is none, and the row that holds each value, -1 for none.
    """
    holders = np.full(entry_count, NOBODY, np.int64)
    held = np.full((row_count, entries.shape[1]), -1, np.int64)
    moved, wanted = np.full(row_count, -1, np.int64), np.full(entry_count, -1, np.int64)
    for transaction in range(len(own)):
        first, last = starts[transaction], starts[transaction + 1]
        for state in range(first, last):
            moved[rows[state]] = transaction
        duplicate = False
        for state in range(first, last):
            for entry in entries[state]:
                if entry < 0:
                    continue
                holder = holders[entry]
                if wanted[entry] == transaction or (holder >= 0 and moved[holder] != transaction):
                    duplicate = True
                wanted[entry] = transaction
        if duplicate:
            if own[transaction]:
                continue
            return transaction, holders
        for state in range(first, last):
            for entry in held[rows[state]]:
                if entry >= 0 and holders[entry] == rows[state]:
                    holders[entry] = NOBODY
        for state in range(first, last):
            held[rows[state]] = entries[state]
            for entry in entries[state]:
                if entry >= 0:
                    holders[entry] = rows[state]
    return -1, holders
