"""
What each decision was about: its operation looked up among the rows and in the appliers' logs.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

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
)
from ndb_formats.events.rows_event import Operation

__all__ = ["Operations", "operations_of", "place_of"]


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
    source, applier = decisions.source, takes.applier[decisions.take]
    made = source < 0
    entry = -1 - source[made]
    key, group = np.zeros(len(source), np.int32), np.zeros(len(source), np.int32)
    operation, empty = np.zeros(len(source), np.int8), np.zeros(len(source), np.bool_)
    refresh = np.zeros(len(source), np.bool_)
    key[made], operation[made], refresh[made] = logged.key[entry], logged.operation[entry], logged.refresh[entry]
    group[made] = takes.group[logged.take[entry]]
    for side in (0, 1):
        mine = ~made & (applier == 1 - side)
        row = source[mine]
        key[mine], operation[mine], group[mine] = (
            rows[side].key[row],
            rows[side].operation[row],
            rows[side].group[row],
        )
        no_columns = rows[side].after_presence[row] == Presence.NO_COLUMNS
        empty[mine] = no_columns & (operation[mine] == Operation.UPDATE_ROW)
    return Operations(applier, key, key_table[key], operation, group, refresh, made & ~refresh, empty)


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
