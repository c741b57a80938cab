"""
Which rows of an untraced epoch tell where it was applied, or that it was not.

Of one that was surely applied, those do that its applier's cluster changed where it can have been. Of one after all
traces, mostly any row does: its operation would show wherever it was applied, so the epoch was not. So a few rows of it
are looked at first. Those come first that stop the applier, since it leaves no trace then, and those that were known
before and did not change meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conflict.engine.columnar.applier_stops import stopping_changes
from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.setups import ClusterSetup
from conflict.engine.kernels.arrays import Bool, Int32, Int64, UInt64
from conflict.runs.rows.row_spans import WantedRows
from conflict.runs.rows.row_times import last_before, next_epoch

# So many rows of each bucket are looked at first of an epoch that may not have been applied.
FEW = 32
_UNCHANGED, _CHANGED = 1, 2


def rows_that_place(
    bucket: Bucket, clusters: Sequence[ClusterSetup], applier: int, wanted: WantedRows, rows: Int64
) -> Int64:
    """
    Return those of some rows that are looked at, where `wanted` asks for the ones that changed, or for a few.

    Args:
        bucket: The bucket.
        clusters: Both clusters.
        applier: Number of the applying cluster.
        wanted: What it applied.
        rows: Key and epoch (place in `WantedRows.epochs`) of each. int64, shape (2, rows).
    """
    asked = np.flatnonzero((wanted.changing | wanted.few)[rows[1]])
    if not len(asked):
        return rows
    key, place = rows[:, asked]
    changed = _changed(bucket, applier, wanted, key, place)
    kept = np.ones(rows.shape[1], np.bool_)
    few = wanted.few[place]
    kept[asked[~few]] = changed[~few] == _CHANGED
    if few.any():
        rank = np.array([1, 0, 2])[changed[few]]
        own = bucket.rows[1 - applier]
        # What its applier logged comes last: much of it does not count here.
        rank[~_touched(own.key, own.epoch, wanted, rows[:, asked[few]])] = 3
        stopping = stopping_changes(bucket, clusters, applier)
        rank[_touched(own.key[stopping], own.epoch[stopping], wanted, rows[:, asked[few]])] = -1
        kept[asked[few]] = _first_ones(place[few], rank)
    return rows[:, kept]


def _first_ones(group: Int64, rank: Int64) -> Bool:
    """Return which rows are among the first `FEW` of their group, by rank."""
    order = np.lexsort((rank, group))
    ordered = group[order]
    kept = np.empty(len(group), np.bool_)
    kept[order] = np.arange(len(group)) - np.searchsorted(ordered, ordered) < FEW
    return kept


def _changed(bucket: Bucket, applier: int, wanted: WantedRows, key: Int64, place: Int64) -> Int64:
    """Return whether rows changed where their epochs can have been: `_CHANGED`, `_UNCHANGED`, 0 for never before."""
    found = np.zeros(len(key), np.int64)
    asked = np.zeros(len(bucket.key_table), np.bool_)
    asked[key] = True
    after = next_epoch(wanted.until[place])
    arrived, arrived_group = wanted.arrived[place], wanted.arrived_group[place]
    for columns in (bucket.changes[applier], bucket.consequences[applier]):
        if len(columns):
            rows = np.flatnonzero(asked[columns.array("key")])
            keys, epoch, group = (columns.of_rows(name, rows) for name in ("key", "epoch", "group"))
            last = last_before(keys, epoch, key, after)
            here = np.flatnonzero(last >= 0)
            at, in_group = epoch[last[here]], group[last[here]]
            later = (at > arrived[here]) | ((at == arrived[here]) & (in_group > arrived_group[here]))
            found[here] = np.maximum(found[here], np.where(later, _CHANGED, _UNCHANGED))
    return found


def _touched(key: Int32, epoch: UInt64, wanted: WantedRows, rows: Int64) -> Bool:
    """Return which of some rows, given as in `rows_that_place`, some changes in their epochs touch."""
    at = np.minimum(np.searchsorted(wanted.epochs, epoch), len(wanted.epochs) - 1)
    mine, width = wanted.epochs[at] == epoch, np.int64(len(wanted.epochs))
    return np.isin(rows[0] * width + rows[1], key[mine] * width + at[mine])
