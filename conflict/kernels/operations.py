"""
Single operations: those that an applier cannot handle, and their places in their epochs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from conflict.kernels.arrays import BucketRows, Decisions, Logged, Presence, TakeArrays
from ndb_formats.events.rows_event import Operation

__all__ = ["place_of", "unusable_rows"]

UPDATE = int(Operation.UPDATE_ROW)
PRESENT, NO_COLUMNS = int(Presence.PRESENT), int(Presence.NO_COLUMNS)


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
