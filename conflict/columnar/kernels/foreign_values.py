"""
Which rows have a value that others refer to, and which refer to it, transaction by transaction.

Computes whether errors 1451 and 1452 of docs/functions.md, "Stops", can occur, or a foreign key changes rows.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import kernel, part

__all__ = ["NO_VALUE", "broken_rows", "mark_linked"]

NO_VALUE = -1


@kernel
def broken_rows(starts, own, rows, values, refers, row_count, value_count):
    """
    Return the rows that an epoch apply touched and left without parent, or removed while others referred to them.

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
        Whether each row is one of them. bool, shape (rows,).
    """
    broken = np.zeros(row_count, np.bool_)
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
                    broken[rows[state]] = True
    return broken


@kernel
def mark_linked(rows, values, value_count, marked):
    """
    Mark all rows that had, at some time, a value that a marked row had, and those that had one of theirs, and so on.

    Args:
        rows: Row of each state. Shape (states,).
        values: Its values, `NO_VALUE` for none. Shape (states, ends).
        value_count: Number of values.
        marked: Whether each row is marked. bool, shape (rows,).
    """
    count = len(marked)
    above = np.arange(count + value_count)
    for state in range(len(rows)):
        for end in range(values.shape[1]):
            if values[state, end] >= 0:
                above[_top(above, count + values[state, end])] = _top(above, rows[state])
    linked = np.zeros(count + value_count, np.bool_)
    for row in range(count):
        if marked[row]:
            linked[_top(above, row)] = True
    for row in range(count):
        marked[row] = linked[_top(above, row)]


@part
def _top(above, place):
    """Return the top of a tree, and shorten the way to it."""
    while above[place] != place:
        above[place] = above[above[place]]
        place = above[place]
    return place
