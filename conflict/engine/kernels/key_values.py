"""
Values of unique and foreign keys, transaction by transaction: which rows have one, and which refer to it.

Computes whether errors 1022, 1451 and 1452 of docs/functions.md, "Stops", can occur, or a foreign key changes rows.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import kernel, part

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

    Returns:
        A number for each row, the same for rows that have to do with each other in that way. int64, shape (rows,).

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
        above[row] = _top(above, row)
        marked[row] = linked[above[row]]
    return above[:count]


@part
def _top(above, place):
    """Return the top of a tree, and shorten the way to it."""
    while above[place] != place:
        above[place] = above[above[place]]
        place = above[place]
    return place


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
