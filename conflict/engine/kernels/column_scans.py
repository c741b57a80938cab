"""
One loop each over the columns of a bucket: facts of rows, rows of keys, rows that stop an applier, counts of outcomes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conflict.engine.kernels.apply_order import first_at_least
from conflict.engine.kernels.arrays import Bool, Int8, Int16, Int32
from ndb_formats.columnar.kernel import kernel

# What a row does to the applier that applies it: a row without a transaction id adds 1 to its number.
NEVER_STOPS, NEEDS_TRANSACTION_ID, STOPS = 0, 1, 2


class CheckedRows(NamedTuple):
    """
    Rows that may stop an applier. Shape (rows,) except `key_table`.

    Attributes:
        key_table: Table number of each key. Shape (keys,).
        key: Key of each row.
        operation: `Operation`.
        before_presence: `Presence` of the resolve column in the before image.
        after_presence: The same of the after image.
        unidentified: Whether the row has no transaction id.
    """

    key_table: Int16
    key: Int32
    operation: Int8
    before_presence: Int8
    after_presence: Int8
    unidentified: Bool


class CountedDecisions(NamedTuple):
    """
    Decisions to count. Shape (decisions,) except `applier` and `key_table`.

    Attributes:
        applier: Applier of each epoch apply. Shape (applies,).
        key_table: Table number of each key. Shape (keys,).
        apply: See `Decisions` for this column and the next ones.
        key: Row.
        operation: `Operation`.
        kind: `OperationKind`.
        verdict: `Verdict`.
        cause: `Cause`.
    """

    applier: Int8
    key_table: Int16
    apply: Int32
    key: Int32
    operation: Int8
    kind: Int8
    verdict: Int8
    cause: Int8


@kernel
def facts_of_rows(facts, key_table, key, carried):
    """
    Return a fact about each row that follows from its table and the columns that its image carries.

    Args:
        facts: The fact by table and column set. Shape (tables, sets).
        key_table: Table number of each key. Shape (keys,).
        key: Key of each row. Shape (rows,).
        carried: Number of the column set of each row's image. Shape (rows,).

    Returns:
        Shape (rows,), dtype of `facts`.
    """
    found = np.empty(len(key), facts.dtype)
    if len(facts) == 1:  # one table, whose number need not be looked up
        for row in range(len(key)):
            found[row] = facts[0, np.uint32(carried[row])]
    else:
        for row in range(len(key)):
            found[row] = facts[key_table[key[row]], carried[row]]
    return found


@kernel
def epoch_of_rows(epochs, starts, rows):
    """
    Return the epoch of some rows.

    Args:
        epochs: The distinct epochs of all rows; see `conflict.engine.kernels.apply_order.boundaries_of`.
        starts: First row of each epoch. Shape (epochs + 1,).
        rows: Row numbers, ascending. Shape (chosen,).

    Returns:
        uint64, shape (chosen,).
    """
    found = np.empty(len(rows), np.uint64)
    epoch = 0
    for number in range(len(rows)):
        while starts[epoch + 1] <= rows[number]:
            epoch += 1
        found[number] = epochs[epoch]
    return found


@kernel
def row_numbers_of_keys(key, chosen):
    """
    Return the numbers of the rows of some keys, ascending. int32.

    Args:
        key: Key of each row. Shape (rows,).
        chosen: Whether a key is one of them. Shape (keys,).
    """
    found = np.empty(len(key), np.int32)
    count = 0
    for row in range(len(key)):
        found[count] = row
        count += chosen[key[row]]
    return found[:count].copy()


@kernel
def mark_keys(row_epochs, starts, row_group, key, epochs, groups, marked):
    """
    Mark the keys of the rows of some groups. Rows and groups are sorted by epoch and group.

    Args:
        row_epochs: The distinct epochs of the rows; see `conflict.engine.kernels.apply_order.boundaries_of`.
        starts: First row of each epoch. Shape (epochs + 1,).
        row_group: Group of each row. Shape (rows,).
        key: Key of each row. Shape (rows,).
        epochs: Epoch of each group to find. Shape (groups,).
        groups: Number of each group to find. Shape (groups,).
        marked: Set to True for the keys. Shape (keys,).
    """
    here = 0
    for number in range(len(epochs)):
        step = 1
        while here + step < len(row_epochs) and row_epochs[here + step] < epochs[number]:
            here += step  # steps double, so that both near and distant epochs are found soon
            step *= 2
        here = first_at_least(row_epochs, here, min(here + step, len(row_epochs)), epochs[number])
        if here == len(row_epochs):
            break
        if row_epochs[here] == epochs[number]:
            stop = starts[here + 1]
            row = first_at_least(row_group, starts[here], stop, groups[number])
            while row < stop and row_group[row] == groups[number]:
                marked[key[row]] = True
                row += 1


@kernel
def distinct_numbers(numbers, seen):
    """
    Return the distinct numbers that are not negative, in the order of their first occurrence. int64.

    Args:
        numbers: Integers. Shape (numbers,).
        seen: Scratch memory, False everywhere before and after. Shape (more than the highest number,).
    """
    found = np.empty(len(numbers), np.int64)
    count = 0
    for number in numbers:
        if number >= 0 and not seen[number]:
            seen[number] = True
            found[count] = number
            count += 1
    for place in range(count):
        seen[found[place]] = False
    return found[:count].copy()


@kernel
def stopping_rows(rows, stopping):
    """
    Return the numbers of the rows that stop an applier, ascending. int64. Computes docs/functions.md, "Stops".

    Args:
        rows: `CheckedRows`.
        stopping: `NEVER_STOPS`, `NEEDS_TRANSACTION_ID` or `STOPS`, by table (one line represents all), operation, and
            presence of the resolve column in both images. Shape (tables or 1, operations, presences, presences), int8.
    """
    found, count, one_table = np.empty(len(rows.key) + 1, np.int64), 0, len(stopping) == 1
    key_table, key, operation, unidentified = rows.key_table, rows.key, rows.operation, rows.unidentified
    before, after = rows.before_presence, rows.after_presence
    for row in range(len(key)):
        table = 0 if one_table else key_table[key[row]]
        found[count] = row
        count += stopping[table, operation[row], before[row], after[row]] + unidentified[row] >= STOPS
    return found[:count].copy()


@kernel
def count_outcomes(decisions, counts):
    """
    Count decisions. Computes what docs/functions.md, "Counters", is made of.

    Args:
        decisions: `CountedDecisions`.
        counts: Added to. int64, shape (appliers, tables, operations, kinds, verdicts, causes).
    """
    applier, key_table, apply, key = decisions.applier, decisions.key_table, decisions.apply, decisions.key
    operation, kind, verdict, cause = decisions.operation, decisions.kind, decisions.verdict, decisions.cause
    one_table, flat = counts.shape[1] == 1, counts.reshape(-1)
    _, tables, operations, kinds, verdicts, causes = counts.shape
    for decision in range(len(apply)):
        number = np.int64(applier[apply[decision]]) * tables + (0 if one_table else key_table[key[decision]])
        number = (number * operations + operation[decision]) * kinds + kind[decision]
        flat[np.uint64((number * verdicts + verdict[decision]) * causes + cause[decision])] += 1
