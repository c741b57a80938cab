"""
What became of the operations that appliers took: those that were applied, and how often each thing happened.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conflict.decision import Verdict
from ndb_formats.kernels.compiled import njit_uncounted

__all__ = ["applied_stretches", "count_outcomes"]

APPLIED = int(Verdict.APPLIED)


@njit(cache=True)
def applied_stretches(applier, side, taken, starts, source, verdict):
    """
    Return the stretches of changes that the applier `side` applied one after the other, of one take each.

    Args:
        applier: Of each take.
        side: The applier.
        taken: The takes of the decisions, in order.
        starts: The first decision of each, and how many there are.
        source: Of each decision; see `Decisions`.
        verdict: Of each decision.

    Returns:
        Of each stretch, its take, its first row of the other cluster and its last one; and the numbers of the applier's
        other decisions, among them those on what the other applier logged.
    """
    count = len(source)
    takes, others = np.empty(count, np.int32), np.empty(count, np.int32)
    first, last = np.empty(count, np.int32), np.empty(count, np.int32)
    found, rest = 0, 0
    for which in range(len(taken)):
        number, start, stop = taken[which], starts[which], starts[which + 1]
        if applier[number] != side:
            continue
        if _all_applied(start, stop, source, verdict):
            takes[found], first[found], last[found] = number, source[start], source[stop - 1]
            found += 1
            continue
        began = found
        for place in range(start, stop):
            row = source[place]
            if row < 0 or verdict[place] != APPLIED:
                others[rest] = place
                rest += 1
            elif found > began and last[found - 1] == row - 1:
                last[found - 1] = row
            else:
                takes[found], first[found], last[found] = number, row, row
                found += 1
    return takes[:found], first[:found], last[:found], others[:rest]


@njit_uncounted(inline="always")
def _all_applied(start, stop, source, verdict):
    """Whether a take applied rows that stand one after the other, and nothing else."""
    first = source[start]
    fine, from_start = first >= 0, np.uint64(start)
    for each in range(np.uint64(stop - start)):
        fine &= (verdict[from_start + each] == APPLIED) & (source[from_start + each] == first + np.int32(each))
    return fine


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
