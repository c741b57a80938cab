"""
Which rows and which entries of the other applier's log belong to which take.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.kernels.arrays import BucketRows, Int64, TakeArrays

__all__ = ["NO_TAKE", "Bounds", "bounds_of"]

NO_TAKE = -1


@attrs.frozen
class Bounds:
    """
    What belongs to which take. Shape (takes,).

    Attributes:
        local_end: The applier's own rows before this number come before the take.
        first: First row of the source's epoch.
        last: One past its last row.
        first_cause: First take that the source committed in that epoch; `NO_TAKE` if there is none.
        last_cause: The last one.
        judged_end: The applier's own rows before this number come before the take is judged.
        open_start: From this own row of the applier on, it may have begun with the take already.
    """

    local_end: Int64
    first: Int64
    last: Int64
    first_cause: Int64
    last_cause: Int64
    judged_end: Int64
    open_start: Int64


def bounds_of(takes: TakeArrays, rows: Sequence[BucketRows]) -> Bounds:
    """Find, for every take, the rows that come before it, and the rows and takes that it applies."""
    local_end, first, last, judged_end, open_start = (np.zeros(len(takes), np.int64) for _ in range(5))
    first_cause, last_cause = (np.full(len(takes), NO_TAKE, np.int64) for _ in range(2))
    for applier in (0, 1):
        mine, theirs = np.flatnonzero(takes.applier == applier), np.flatnonzero(takes.applier != applier)
        own, source = rows[applier], rows[1 - applier]
        # A take without a trace follows its group, one with a trace is its group.
        groups = takes.group[mine].astype(np.int64) + ~takes.traced[mine]
        wanted = takes.foreign_epoch[mine]
        local_end[mine] = _search(own, takes.epoch[mine], groups)
        judged = _search(own, takes.judged_epoch[mine], takes.judged_group[mine].astype(np.int64) + 1)
        judged_end[mine] = np.where(takes.judged[mine], judged, local_end[mine])
        # The applier begins with a take after it has committed the one before, and once it has arrived.
        arrived = _search(own, takes.arrived_epoch[mine], takes.arrived_group[mine].astype(np.int64) + 1)
        open_start[mine] = np.maximum(arrived, np.append(0, local_end[mine[:-1]])[: len(mine)])
        first[mine] = np.searchsorted(source.epoch, wanted, "left")
        last[mine] = np.searchsorted(source.epoch, wanted, "right")
        start = np.searchsorted(takes.epoch[theirs], wanted, "left")
        stop = np.searchsorted(takes.epoch[theirs], wanted, "right")
        some = start < stop
        first_cause[mine[some]] = theirs[start[some]]
        last_cause[mine[some]] = theirs[stop[some] - 1]
    return Bounds(local_end, first, last, first_cause, last_cause, judged_end, open_start)


def _search(rows: BucketRows, epochs: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the number of the first row at or after each (epoch, group)."""
    known = np.unique(np.concatenate([rows.epoch, epochs]))
    # Groups start at -1 and an epoch holds far fewer than 2^32 of them.
    places = (np.searchsorted(known, rows.epoch) << 32) + rows.group + 1
    wanted = (np.searchsorted(known, epochs) << 32) + groups + 1
    return np.asarray(np.searchsorted(places, wanted, "left"))
