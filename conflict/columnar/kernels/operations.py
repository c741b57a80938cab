"""
Single operations: those that an applier cannot handle, and their places in their epochs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from conflict.columnar.kernels.arrays import BucketRows, Decisions, EpochApplies, Logged

__all__ = ["place_of", "stopping_rows"]


@njit(cache=True, nogil=True)
def stopping_rows(key_table, key, operation, before_presence, after_presence, unidentified, stopping):
    """
    Return the numbers of rows that an applier cannot handle.

    The first is of keys, the next five are of rows. `unusable` is 2 for those it cannot, 1 for those it cannot if they
    are unidentified, by table, operation, and presence of the resolve column in the before and in the after image.
    """
    bad, found, one_table = np.empty(len(key) + 1, np.int64), 0, len(stopping) == 1
    for row in range(len(key)):
        table = 0 if one_table else key_table[key[row]]
        bad[found] = row
        found += stopping[table, operation[row], before_presence[row], after_presence[row]] + unidentified[row] > 1
    return bad[:found].copy()


def place_of(
    decision: int, decisions: Decisions, logged: Logged, applies: EpochApplies, rows: Sequence[BucketRows]
) -> tuple[int, ...]:
    """
    Return an operation's place in its foreign epoch, to compare with others of that epoch from any bucket.

    What an applier logged stands where its cause stood in the epoch that was taken then, reflected changes
    before refreshes.
    """
    place: list[int] = []
    while True:
        source, apply = int(decisions.source[decision]), int(decisions.apply[decision])
        if source >= 0:
            side = rows[1 - int(applies.applier[apply])]
            return (*place, int(side.group[source]), 0, int(side.ordinal[source]))
        entry = -1 - source
        made_in = int(logged.apply[entry])
        place += [int(applies.group[made_in]), 1, made_in, int(logged.refresh[entry])]
        decision = int(logged.decision[entry])
