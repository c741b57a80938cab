"""
What each decision was about: its operation looked up among the rows and in the appliers' logs.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numba import njit

from conflict.kernels.arrays import (
    Bool,
    BucketRows,
    Decisions,
    Int8,
    Int16,
    Int32,
    Logged,
    Presence,
    TakeArrays,
    each_read_only,
    read_only,
)
from ndb_formats.events.rows_event import Operation

__all__ = ["Operations", "operations_of", "place_of", "unusable_rows"]

UPDATE = int(Operation.UPDATE_ROW)
PRESENT, NO_COLUMNS = int(Presence.PRESENT), int(Presence.NO_COLUMNS)


@attrs.frozen
class Operations:
    """
    One entry per decision. Shape (operations,).

    Attributes:
        applier: Number of the cluster that took it.
        key: Its row.
        table: Number of its table.
        operation: `Operation`.
        group: Group of the foreign epoch to which it belongs: its transaction.
        refresh: Whether the other applier sent the row again.
        reflected: Whether the other applier reflected its change.
        empty: Whether it is an update that writes no column, which has no effect whatever.
    """

    applier: Int8
    key: Int32
    table: Int16
    operation: Int8
    group: Int32
    refresh: Bool
    reflected: Bool
    empty: Bool


def operations_of(
    decisions: Decisions, logged: Logged, takes: TakeArrays, rows: Sequence[BucketRows], key_table: Int16
) -> Operations:
    """Look up the operation of each decision."""
    empty = [(side.operation == UPDATE) & (side.after_presence == Presence.NO_COLUMNS) for side in rows]
    arguments = [
        *each_read_only(decisions.take, decisions.source, takes.applier, takes.group),
        *each_read_only(logged.key, logged.operation, logged.take, logged.refresh),
        *(tuple(each_read_only(*(getattr(side, name) for side in rows))) for name in ("key", "operation", "group")),
        *(tuple(each_read_only(*empty)), read_only(key_table)),
    ]
    return Operations(*_operations(*arguments))


@njit(cache=True)
def _operations(
    take, source, applier_of_take, group_of_take, log_key, log_operation, log_take, log_refresh,
    keys, operations, groups, empties, key_table,
):  # fmt: skip
    count = len(take)
    applier, key, table = np.empty(count, np.int8), np.empty(count, np.int32), np.empty(count, np.int16)
    operation, group = np.empty(count, np.int8), np.empty(count, np.int32)
    refresh, reflected, empty = np.zeros(count, np.bool_), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    first_key, first_operation, first_group, first_empty = keys[0], operations[0], groups[0], empties[0]
    second_key, second_operation, second_group, second_empty = keys[1], operations[1], groups[1], empties[1]
    for place in range(count):
        here, row = applier_of_take[take[place]], source[place]
        if row < 0:
            entry = -1 - row
            key[place], operation[place], group[place] = (
                log_key[entry], log_operation[entry], group_of_take[log_take[entry]],
            )  # fmt: skip
            refresh[place], reflected[place] = log_refresh[entry], not log_refresh[entry]
        elif here == 1:
            key[place], operation[place] = first_key[row], first_operation[row]
            group[place], empty[place] = first_group[row], first_empty[row]
        else:
            key[place], operation[place] = second_key[row], second_operation[row]
            group[place], empty[place] = second_group[row], second_empty[row]
        applier[place], table[place] = here, key_table[key[place]]
    return applier, key, table, operation, group, refresh, reflected, empty


@njit(cache=True)
def unusable_rows(
    key_table, key, operation, before_presence, after_presence, unidentified, refused, no_role, identified, needs
):
    """
    Return the numbers of rows that an applier cannot handle.

    The first is of keys, the next five are of rows, the others the applier's rules by table; `needs` is whether the
    resolve column must be there, by table, operation, and image (before, after).
    """
    bad, found, one_table = np.empty(len(key), np.int64), 0, len(refused) == 1
    for row in range(len(key)):
        number, kind = 0 if one_table else key_table[key[row]], operation[row]
        if refused[number] or (
            (kind != UPDATE or after_presence[row] != NO_COLUMNS)
            and (
                no_role[number]
                or (identified[number] and unidentified[row])
                or (needs[number, kind, 0] and before_presence[row] != PRESENT)
                or (needs[number, kind, 1] and after_presence[row] != PRESENT)
            )
        ):
            bad[found] = row
            found += 1
    return bad[:found].copy()


def place_of(
    decision: int, decisions: Decisions, logged: Logged, takes: TakeArrays, rows: Sequence[BucketRows]
) -> tuple[int, ...]:
    """
    Return an operation's place in its foreign epoch, to compare with others of that epoch from any bucket.

    What an applier logged stands where its cause stood in the epoch that was taken then, reflected changes
    before refreshes.
    """
    place: list[int] = []
    while True:
        source, take = int(decisions.source[decision]), int(decisions.take[decision])
        if source >= 0:
            side = rows[1 - int(takes.applier[take])]
            return (*place, int(side.group[source]), 0, int(side.ordinal[source]))
        entry = -1 - source
        made_in = int(logged.take[entry])
        place += [int(takes.group[made_in]), 1, made_in, int(logged.refresh[entry])]
        decision = int(logged.decision[entry])
