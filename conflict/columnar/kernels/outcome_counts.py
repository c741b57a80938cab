"""
How often each thing happened to the operations that appliers took.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["count_outcomes"]


@njit(cache=True)
def count_outcomes(applier, key_table, apply, key, operation, kind, verdict, cause, counts):
    """
    Add up operations.

    Args:
        applier: Of each take.
        key_table: Table of each key.
        apply: Of each decision; all that follow are columns of `Decisions` too.
        key: See there.
        operation: See there.
        kind: See there.
        verdict: See there.
        cause: See there.
        counts: What they are added to. Shape (appliers, tables, operations, kinds, verdicts, causes).
    """
    one_table, flat = counts.shape[1] == 1, counts.reshape(-1)
    _, tables, operations, kinds, verdicts, causes = counts.shape
    for place in range(len(apply)):
        number = applier[apply[place]] * tables + (0 if one_table else key_table[key[place]])
        number = (number * operations + operation[place]) * kinds + kind[place]
        flat[np.uint64((number * verdicts + verdict[place]) * causes + cause[place])] += 1
