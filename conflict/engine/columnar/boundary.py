"""
A place in the order of epoch applies up to which a run has been decided, and what later epochs need of it.

What rows need is with the rows (`conflict.engine.columnar.standing_rows`). The rest concerns all of them: which
transactions were in conflict, as rows that were on their way are decided again, and how far exceptions tables have
been numbered. The max replicated epoch follows from the epoch applies, which are all known. Computes docs/windows.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from conflict.engine.kernels.arrays import Bool, Conflicts, EpochApplies, Int64

# By cluster and exceptions table; see `ExceptionsNumbers`.
Counted = Mapping[tuple[str, str], Mapping[tuple[int, int, int], int]]


@attrs.frozen(eq=False)
class Boundary:
    """
    Such a place.

    Attributes:
        applied: Per cluster, how many epochs its applier had applied.
        conflicts: The transactions in conflict before: number of the applier, number of the epoch apply among its own,
            and group. Sorted; shape (transactions, 3).
        counted: By cluster and exceptions table, for each series of numbers (how often counting had started again, SQL
            node, restarts of that), the last number that was used.
    """

    applied: tuple[int, int]
    conflicts: Int64
    counted: Counted

    def later(self, applies: EpochApplies) -> Bool:
        """Return which epoch applies come after it. Shape (applies,)."""
        return np.asarray(applies.number >= np.array(self.applied, np.int32)[applies.applier])

    def conflicts_in(self, applies: EpochApplies) -> Int64:
        """Return the transactions in conflict before it, as epoch apply and group, sorted. Shape (transactions, 2)."""
        found = np.zeros((len(self.conflicts), 2), np.int64)
        for side in (0, 1):
            mine, own = self.conflicts[:, 0] == side, np.flatnonzero(applies.applier == side)
            found[mine, 0] = own[self.conflicts[mine, 1]]
        found[:, 1] = self.conflicts[:, 2]
        return found[np.lexsort((found[:, 1], found[:, 0]))]


def conflicts_before(applies: EpochApplies, conflicts: Conflicts, before: int) -> Int64:
    """Return the transactions in conflict in the first epoch applies as `Boundary.conflicts`."""
    groups = np.diff(conflicts.offsets)[:before]
    apply = np.repeat(np.arange(before), groups)
    columns = applies.applier[apply], applies.number[apply], conflicts.groups[: len(apply)]
    found = np.stack([each.astype(np.int64) for each in columns], axis=1)
    return found[np.lexsort(found.T[::-1])]
