"""
What became of the operations that one applier took, column by column.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["count_outcomes", "outcome_columns"]


@njit(cache=True)
def outcome_columns(
    applier, foreign_epochs, epochs, groups, side,
    take, source, verdict, cause, incoming, stored,
    row_key, row_operation, row_group, row_ordinal, row_file, row_position, row_number,
    log_key, log_operation, log_take, log_refresh,
):  # fmt: skip
    """
    Return the columns of `conflict.outputs.OUTCOMES` as numbers, of the operations that the applier `side` took.

    In order: foreign epoch, group, ordinal, own epoch, key, operation, refresh, verdict, cause, incoming, stored, file,
    position, row. What the other applier logged has no ordinal, file, position or row: -1, and 0 where unsigned.

    Args:
        applier: Of each take.
        foreign_epochs: Of each take.
        epochs: Own epoch of each take.
        groups: Group of each take.
        side: The applier.
        take: Of each decision; the next five are columns of `Decisions` too.
        source: See there.
        verdict: See there.
        cause: See there.
        incoming: See there.
        stored: See there.
        row_key: Of the rows of the other cluster; the next six are columns of `conflict.grid.CHANGES` too.
        row_operation: See there.
        row_group: See there.
        row_ordinal: See there.
        row_file: See there.
        row_position: See there.
        row_number: See there.
        log_key: Of what appliers logged; the next three are columns of `Logged` too.
        log_operation: See there.
        log_take: See there.
        log_refresh: See there.
    """
    count = 0
    for place in range(len(take)):
        count += applier[take[place]] == side
    o_source_epoch, o_group = np.empty(count, np.uint64), np.empty(count, np.int32)
    o_ordinal = np.empty(count, np.int32)
    o_epoch, o_key, o_operation = np.empty(count, np.uint64), np.empty(count, np.int32), np.empty(count, np.int8)
    o_refresh, o_verdict, o_cause = np.empty(count, np.bool_), np.empty(count, np.int8), np.empty(count, np.int8)
    o_incoming, o_stored = np.empty(count, np.uint64), np.empty(count, np.uint64)
    o_file, o_position, o_row = np.empty(count, np.int16), np.empty(count, np.uint64), np.empty(count, np.int32)
    out = 0
    for place in range(len(take)):
        number = take[place]
        if applier[number] != side:
            continue
        o_source_epoch[out], o_epoch[out] = foreign_epochs[number], epochs[number]
        o_verdict[out], o_cause[out] = verdict[place], cause[place]
        o_incoming[out], o_stored[out] = incoming[place], stored[place]
        row = source[place]
        if row >= 0:
            o_group[out], o_ordinal[out] = row_group[row], row_ordinal[row]
            o_key[out], o_operation[out], o_refresh[out] = row_key[row], row_operation[row], False
            o_file[out], o_position[out], o_row[out] = row_file[row], row_position[row], row_number[row]
        else:
            entry = -1 - row
            o_group[out], o_ordinal[out] = groups[log_take[entry]], -1
            o_key[out], o_operation[out], o_refresh[out] = log_key[entry], log_operation[entry], log_refresh[entry]
            o_file[out], o_position[out], o_row[out] = -1, 0, -1
        out += 1
    return (
        o_source_epoch, o_group, o_ordinal, o_epoch, o_key, o_operation, o_refresh, o_verdict, o_cause,
        o_incoming, o_stored, o_file, o_position, o_row,
    )  # fmt: skip


@njit(cache=True)
def count_outcomes(applier, table, operation, refresh, reflected, verdict, cause, counts):
    """
    Add up operations.

    Args:
        applier: Who took each.
        table: Its table.
        operation: Its operation.
        refresh: Whether the other applier sent the row again.
        reflected: Whether the other applier reflected its change.
        verdict: What was decided.
        cause: Why it was rejected.
        counts: What they are added to. Shape (appliers, tables, operations, 3, verdicts, causes): in the fourth place
            0 is a change of the other cluster, 1 a refresh, 2 reflected.
    """
    for place in range(len(applier)):
        kind = 1 if refresh[place] else 2 if reflected[place] else 0
        counts[applier[place], table[place], operation[place], kind, verdict[place], cause[place]] += 1
