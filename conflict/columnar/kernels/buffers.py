"""
Where a fold writes to.
"""

from __future__ import annotations

from typing import NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from conflict.columnar.kernels.arrays import Bool, Int8, Int32, Int64
from conflict.columnar.kernels.records import COMPARED, EARLIER, ENTRY, Records

__all__ = ["MARKS", "DecisionRoom", "Room"]

# A power of two, far more than there are rows of transactions in conflict in an epoch.
MARKS = 1024


class DecisionRoom(NamedTuple):
    """The columns of `Decisions`, but for `compared`. A tuple, so that compiled code can take them as one argument."""

    apply: Int32
    source: Int32
    key: Int32
    group: Int32
    operation: Int8
    kind: Int8
    verdict: Int8
    cause: Int8
    existed: Bool

    @classmethod
    def of(cls, capacity: int) -> DecisionRoom:
        """Return room for so many decisions."""
        kinds: list[npt.DTypeLike] = [*[np.int32] * 4, *[np.int8] * 4, np.bool_]
        return cls._make(np.empty(capacity, kind) for kind in kinds)


@attrs.frozen
class Room:
    """
    Arrays for one fold, in the order in which the compiled code takes them.

    Attributes:
        active: Whether a take applies anything here. Shape (takes,).
        first_row: Which row of its source comes first in its foreign epoch, where it is active. Shape (takes,).
        last_row: One past the last. Shape (takes,).
        queue_start: Where in the queue of the other applier begins what the take applies. Shape (takes,).
        queue_stop: One past the last. Shape (takes,).
        decisions: What was decided in the end. Shape (capacity,).
        compared: The values that were compared, where some were. `COMPARED`, shape (capacity,).
        tracked: What pass TRACK decided. Shape (capacity,).
        unused: The values that were compared by other passes. `COMPARED`, shape (capacity,).
        trial: What it would have decided at another time. Shape (capacity,).
        marks: Which rows pass TRACK is gone over for (see `passes.mark_rejected`). Shape (marks,).
        candidates: See `conflict.columnar.kernels.fold.Folded`. Shape (capacity,).
        log: What appliers logged. `ENTRY`, shape (capacity,).
        queue: Per cluster, which entries it logged, in order. Shape (clusters, capacity).
        pending: Decisions whose rows are sent again, of one take. Shape (capacity,).
        saved: Rows as they were before a pass that is undone. `EARLIER`, shape (keys,).
        earlier: Rows as they were before an own change. `EARLIER`, shape (rows,).
        moved: Rows that were set back, as they were. `EARLIER`, shape (keys,).
    """

    active: Bool
    first_row: Int32
    last_row: Int32
    queue_start: Int32
    queue_stop: Int32
    decisions: DecisionRoom
    compared: Records
    tracked: DecisionRoom
    unused: Records
    trial: DecisionRoom
    marks: Bool
    candidates: Int64
    log: Records
    queue: Int64
    pending: Int64
    saved: Records
    earlier: Records
    moved: Records

    @classmethod
    def of(cls, capacity: int, keys: int, rows: int, applies: int, *, keeping: bool) -> Room:
        """
        Return new arrays; memory that is not written to is not taken.

        Args:
            capacity: How many decisions there is room for.
            keys: How many keys there are.
            rows: How many own changes there are.
            applies: How many takes there are.
            keeping: Whether transactions are in conflict: only then it matters how rows were before their cluster's
                own changes.
        """
        return cls(
            active=np.zeros(applies, np.bool_),
            first_row=np.zeros(applies, np.int32),
            last_row=np.zeros(applies, np.int32),
            queue_start=np.zeros(applies, np.int32),
            queue_stop=np.zeros(applies, np.int32),
            decisions=DecisionRoom.of(capacity),
            compared=np.empty(capacity, COMPARED),
            tracked=DecisionRoom.of(capacity),
            unused=np.empty(capacity, COMPARED),
            trial=DecisionRoom.of(capacity if keeping else 1),
            marks=np.zeros(MARKS, np.bool_),
            candidates=np.empty(capacity, np.int64),
            log=np.empty(capacity, ENTRY),
            queue=np.empty((2, capacity), np.int64),
            pending=np.empty(capacity, np.int64),
            saved=np.empty(keys, EARLIER),
            earlier=np.empty(rows if keeping else 1, EARLIER),
            moved=np.empty(keys if keeping else 1, EARLIER),
        )
