"""
Whether a History changes rows that are older than its logs.

Computes docs/run-file.md, "A log that starts in the middle".
"""

from __future__ import annotations

import numpy as np

from conflict.columnar.kernels.arrays import Int64
from conflict.grid.columns import GridColumns
from conflict.grid.folder import Folder
from conflict.grid.manifest import Manifest
from conflict.grid.ranges import ranges_of_bucket
from conflict.grid.schemas import CHANGES, CONSEQUENCES, SCHEDULE, part
from ndb_formats.events.rows_event import Operation

__all__ = ["applies_older_epochs", "changes_older_rows"]


def applies_older_epochs(history: Folder, manifest: Manifest) -> bool:
    """Whether an applier applied an epoch that is older than the other cluster's log."""
    schedule = history.read_table("schedule.parquet", SCHEDULE)
    source = schedule.column("source").to_numpy(zero_copy_only=False)
    epochs, traced = schedule.column("foreign_epoch").to_numpy(), schedule.column("traced").to_numpy(False)
    return any(
        bool((epochs[traced & (source == name)] < segments[0].first_epoch).any())
        for name, segments in manifest.segments.items()
        if segments
    )


def changes_older_rows(history: Folder, manifest: Manifest) -> bool:
    """Whether a cluster's first change of a row in its log is an update or a delete: the row was there before."""
    return any(
        _changes_older_rows(history, manifest, cluster, bucket)
        for cluster in manifest.clusters
        for bucket in range(manifest.buckets)
    )


def _changes_older_rows(history: Folder, manifest: Manifest, cluster: str, bucket: int) -> bool:
    segments = range(len(manifest.segments[cluster]))
    own, shown = (
        GridColumns(
            history,
            [part(kind, cluster, segment, bucket) for segment in segments],
            schema,
            ranges=ranges_of_bucket(history, manifest, bucket, cluster),
        )
        for kind, schema in (("changes", CHANGES), ("consequences", CONSEQUENCES))
    )
    keys = 1 + max(int(each.array("key").max(initial=-1)) for each in (own, shown))
    first, other = _first_rows(own, keys), _first_rows(shown, keys)
    older = np.flatnonzero(first >= 0)
    older = older[own.array("operation")[first[older]] != Operation.WRITE_ROW]
    mine, theirs = first[older], other[older]
    epoch, group = own.array("epoch")[mine], own.array("group")[mine]
    seen = theirs >= 0
    applied = np.zeros(len(older), np.bool_)
    shown_epoch, shown_group = shown.array("epoch")[theirs[seen]], shown.array("group")[theirs[seen]]
    applied[seen] = (shown_epoch < epoch[seen]) | ((shown_epoch == epoch[seen]) & (shown_group < group[seen]))
    return bool((~applied).any())


def _first_rows(rows: GridColumns, keys: int) -> Int64:
    """Return the first row of each key; -1 for none. Shape (keys,)."""
    key = rows.array("key")
    first = np.full(keys, -1, np.int64)
    first[key[::-1]] = np.arange(len(key) - 1, -1, -1)
    return first
