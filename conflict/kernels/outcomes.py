"""
What became of the operations that appliers took: those that were applied, and how often each thing happened.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conflict.decision import Verdict
from ndb_formats.kernels.compiled import njit_uncounted

__all__ = ["applied_columns", "count_outcomes"]

APPLIED = int(Verdict.APPLIED)


@njit(cache=True)
def applied_columns(
    applier, foreign_epochs, epochs, side, taken, starts, source, verdict, row_group, row_ordinal,
):  # fmt: skip
    """
    Return the columns of `conflict.outputs.APPLIED`, of the changes that the applier `side` applied.

    And the numbers of its other decisions, among them those on what the other applier logged.

    Args:
        applier: Of each take.
        foreign_epochs: Of each take.
        epochs: Own epoch of each take.
        side: The applier.
        taken: The takes of the decisions, in order.
        starts: The first decision of each, and how many there are.
        source: Of each decision; see `Decisions`.
        verdict: Of each decision.
        row_group: Of the rows of the other cluster.
        row_ordinal: Of the rows of the other cluster.
    """
    count = 0
    for which in range(len(taken)):
        count += starts[which + 1] - starts[which] if applier[taken[which]] == side else 0
    foreign, group = np.empty(count, np.uint64), np.empty(count, np.int32)
    ordinal, epoch = np.empty(count, np.int32), np.empty(count, np.uint64)
    others = np.empty(count, np.int64)
    found, rest = 0, 0
    for which in range(len(taken)):
        number = taken[which]
        if applier[number] != side:
            continue
        began = found
        if _all_applied(starts[which], starts[which + 1], source, verdict):
            # Loops over few columns and without a sign are compiled to work on several rows at once.
            to, row = np.uint64(found), np.uint64(source[starts[which]])
            found += starts[which + 1] - starts[which]
            for each in range(np.uint64(found - began)):
                group[to + each] = row_group[row + each]
            for each in range(np.uint64(found - began)):
                ordinal[to + each] = row_ordinal[row + each]
        else:
            for place in range(starts[which], starts[which + 1]):
                if source[place] >= 0 and verdict[place] == APPLIED:
                    group[found], ordinal[found] = row_group[source[place]], row_ordinal[source[place]]
                    found += 1
                else:
                    others[rest] = place
                    rest += 1
        for place in range(np.uint64(began), np.uint64(found)):
            foreign[place], epoch[place] = foreign_epochs[number], epochs[number]
    return foreign[:found], group[:found], ordinal[:found], epoch[:found], others[:rest]


@njit_uncounted(inline="always")
def _all_applied(start, stop, source, verdict):
    """Whether a take applied rows that stand one after the other, and nothing else."""
    fine, first = True, source[start]
    for place in range(np.uint64(start), np.uint64(stop)):
        fine &= verdict[place] == APPLIED
    for place in range(np.uint64(start), np.uint64(stop)):
        fine &= source[place] == first + np.int64(place - np.uint64(start))
    return fine and first >= 0


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
