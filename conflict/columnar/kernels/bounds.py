"""
Which rows and which entries of the other applier's log belong to which take.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numba import njit

from conflict.columnar.kernels.arrays import BucketRows, EpochApplies, Int64, read_only

__all__ = ["NO_APPLY", "Bounds", "bounds_of"]

NO_APPLY = -1


@attrs.frozen
class Bounds:
    """
    What belongs to which take. Shape (takes,).

    Attributes:
        local_end: The applier's own rows before this number come before the take.
        first: First row of the source's epoch.
        last: One past its last row.
        first_cause: First take that the source committed in that epoch; `NO_APPLY` if there is none.
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


def bounds_of(applies: EpochApplies, rows: Sequence[BucketRows]) -> Bounds:
    """Find, for every take, the rows that come before it, and the rows and takes that it applies."""
    names = ("applier", "epoch", "group", "traced", "foreign_epoch", "judged", "judged_epoch", "judged_group")
    columns = (read_only(getattr(applies, name)) for name in (*names, "arrived_epoch", "arrived_group"))
    sides = (read_only(array) for side in rows for array in (side.epoch, side.group))
    return Bounds(*_bounds(*columns, *sides))


@njit(cache=True)
def _seek(epochs, groups, place, epoch, group):
    """Return the number of the first row at or after (epoch, group), which is likely to be near `place`."""
    low, high = 0, len(epochs)
    if place > 0 and (epochs[place - 1] > epoch or (epochs[place - 1] == epoch and groups[place - 1] >= group)):
        high = place - 1
    else:
        low = place
        step = 1
        while low < high:  # take longer and longer steps
            probe = min(low + step, high) - 1
            if epochs[probe] > epoch or (epochs[probe] == epoch and groups[probe] >= group):
                high = probe
                break
            low = probe + 1
            step *= 2
    while low < high:
        middle = (low + high) // 2
        if epochs[middle] > epoch or (epochs[middle] == epoch and groups[middle] >= group):
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True)
def _bounds(
    applier, epoch, group, traced, foreign, judged, judged_epoch, judged_group, arrived_epoch, arrived_group,
    first_epochs, first_groups, second_epochs, second_groups,
):  # fmt: skip
    count = len(applier)
    local_end, first, last = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    judged_end, open_start = np.zeros(count, np.int64), np.zeros(count, np.int64)
    first_cause, last_cause = np.full(count, NO_APPLY, np.int64), np.full(count, NO_APPLY, np.int64)
    # Groups of an epoch lie between these.
    lowest, highest = np.int64(-(2**31)), np.int64(2**32)
    for side in range(2):
        epochs, groups = (first_epochs, first_groups) if side == 0 else (second_epochs, second_groups)
        own, source, arrived = 0, 0, 0
        for apply in range(count):
            if applier[apply] == side:
                # A take without a trace follows its group, one with a trace is its group.
                end = _seek(epochs, groups, own, epoch[apply], np.int64(group[apply]) + (not traced[apply]))
                arrived = _seek(epochs, groups, arrived, arrived_epoch[apply], np.int64(arrived_group[apply]) + 1)
                local_end[apply], judged_end[apply] = end, end
                if judged[apply]:
                    judged_end[apply] = _seek(
                        epochs, groups, own, judged_epoch[apply], np.int64(judged_group[apply]) + 1
                    )
                # The applier begins with a take after it has committed the one before, and once it has arrived.
                open_start[apply] = max(arrived, own)
                own = end
            else:
                source = _seek(epochs, groups, source, foreign[apply], lowest)
                first[apply] = source
                source = _seek(epochs, groups, source, foreign[apply], highest)
                last[apply] = source
        _causes(applier, epoch, foreign, side, first_cause, last_cause)
    return local_end, first, last, first_cause, last_cause, judged_end, open_start


@njit(cache=True)
def _causes(applier, epoch, foreign, side, first_cause, last_cause):
    """Find which takes of a cluster the other one's takes hear of."""
    mine = np.flatnonzero(applier == side)
    own = epoch[mine]
    nothing = np.zeros(len(mine), np.int64)
    place = 0
    for apply in range(len(applier)):
        if applier[apply] != side:
            place = _seek(own, nothing, place, foreign[apply], -1)
            if place < len(mine) and own[place] == foreign[apply]:
                first_cause[apply] = mine[place]
                place = _seek(own, nothing, place, foreign[apply], 1)
                last_cause[apply] = mine[place - 1]
