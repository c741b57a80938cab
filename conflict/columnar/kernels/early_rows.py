"""
Rows that appliers judged some time before the commit, in the form in which the fold reads them.

The fold keeps such a row when it comes by its moment, and decides by that state until an operation is applied: that
locks the row. Computes docs/functions.md, "One pass over an epoch".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from conflict.columnar.kernels.arrays import Bool, Int8, Int64, RowMoments

__all__ = ["Early"]

Records = npt.NDArray[np.void]
# A row that an epoch apply judged some time before its commit: after that group of that own epoch. `locked` is the
# pass that applied an operation to it, which locks the row; -1 is none.
MOMENT = np.dtype([("epoch", "u8"), ("locked", "i8"), ("key", "i4"), ("group", "i4")], align=True)


class Early(NamedTuple):
    """
    Rows that appliers judged some time before the commit.

    Attributes:
        moments: By epoch apply. `MOMENT`, shape (moments,).
        states: The rows as they were then, once the fold came by. `ROW_STATE`, shape (moments,).
        order: The moments by own position, those of the first cluster before those of the second. Shape (moments,).
        passed: Per cluster, the first of `order` that the fold did not come by yet. Shape (clusters,), int64.
        stop: Per cluster, one past its last. Shape (clusters,), int64.
        ignored: Whether rows are judged as they are all the same. Shape (1,), bool.
    """

    moments: Records
    states: Records
    order: Int64
    passed: Int64
    stop: Int64
    ignored: Bool

    @classmethod
    def of(cls, moments: RowMoments, applier: Int8, arrivals: Records, states: Records) -> Early:
        """
        Return the moments of a bucket, none passed; `arrivals` are told theirs.

        Args:
            moments: The moments.
            applier: Applier of each epoch apply. Shape (applies,).
            arrivals: `ARRIVAL`, shape (applies,).
            states: `ROW_STATE`, shape (moments,).
        """
        moments = moments.chosen(np.argsort(moments.apply, kind="stable"))
        records = np.zeros(len(moments), MOMENT)
        for name in ("epoch", "key", "group"):
            records[name] = getattr(moments, name)
        records["locked"] = -1
        if len(moments):
            each = np.arange(len(arrivals))
            arrivals["early_start"] = np.searchsorted(moments.apply, each, "left")
            arrivals["early_stop"] = np.searchsorted(moments.apply, each, "right")
        side = applier[moments.apply]
        order = np.lexsort((moments.group, moments.epoch, side))
        first = int((side == 0).sum())
        passed, stop = np.array([0, first], np.int64), np.array([first, len(moments)], np.int64)
        return cls(records, states, order, passed, stop, np.zeros(1, np.bool_))
