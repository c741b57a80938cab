"""
What became of the operations that appliers took: those that were applied, and how often each thing happened.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conflict.decision import Verdict

__all__ = ["applied_columns", "count_outcomes"]

APPLIED = int(Verdict.APPLIED)


@njit(cache=True)
def applied_columns(
    applier, foreign_epochs, epochs, side, take, source, verdict, row_group, row_ordinal,
):  # fmt: skip
    """
    Return the columns of `conflict.outputs.APPLIED`, of the changes that the applier `side` applied.

    And the numbers of its other decisions, among them those on what the other applier logged.

    Args:
        applier: Of each take.
        foreign_epochs: Of each take.
        epochs: Own epoch of each take.
        side: The applier.
        take: Of each decision; the next two are columns of `Decisions` too.
        source: See there.
        verdict: See there.
        row_group: Of the rows of the other cluster.
        row_ordinal: Of the rows of the other cluster.
    """
    count = len(take)
    foreign, group = np.empty(count, np.uint64), np.empty(count, np.int32)
    ordinal, epoch = np.empty(count, np.int32), np.empty(count, np.uint64)
    others = np.empty(count, np.int64)
    found, rest = 0, 0
    for place in range(len(take)):
        number, row = take[place], source[place]
        if applier[number] != side:
            continue
        if row >= 0 and verdict[place] == APPLIED:
            foreign[found], epoch[found] = foreign_epochs[number], epochs[number]
            group[found], ordinal[found] = row_group[row], row_ordinal[row]
            found += 1
        else:
            others[rest] = place
            rest += 1
    return foreign[:found], group[:found], ordinal[:found], epoch[:found], others[:rest]


@njit(cache=True)
def count_outcomes(applier, key_table, take, key, operation, kind, verdict, cause, counts):
    """
    Add up operations.

    Args:
        applier: Of each take.
        key_table: Table of each key.
        take: Of each decision; all that follow are columns of `Decisions` too.
        key: See there.
        operation: See there.
        kind: See there.
        verdict: See there.
        cause: See there.
        counts: What they are added to. Shape (appliers, tables, operations, kinds, verdicts, causes).
    """
    one_table, flat = counts.shape[1] == 1, counts.reshape(-1)
    _, tables, operations, kinds, verdicts, causes = counts.shape
    for place in range(len(take)):
        number = applier[take[place]] * tables + (0 if one_table else key_table[key[place]])
        number = (number * operations + operation[place]) * kinds + kind[place]
        flat[np.uint64((number * verdicts + verdict[place]) * causes + cause[place])] += 1
