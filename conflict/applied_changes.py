"""
What an applier simply applied, change by change, put together from a result and the History it was found in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from conflict.grid import CHANGES, Folder, part
from conflict.kernels.arrays import Int64
from conflict.manifest import Manifest
from conflict.outputs import APPLIED, applied_path

__all__ = ["applied_changes"]


def applied_changes(out: Folder, history: Folder, applier: str, columns: Sequence[str] = CHANGES.names) -> pa.Table:
    """
    Return the changes of the other cluster that one applier simply applied.

    Args:
        out: Folder of a result of the Spark engine.
        history: The History that was resolved.
        applier: The cluster that applied them.
        columns: Which columns of `conflict.grid.CHANGES` are wanted.

    Returns:
        Those columns, and `applied_in`, the applier's own epoch; bucket by bucket, in the order in which they were
        applied.
    """
    manifest = Manifest.from_json(history.read_json("history.json"))
    (source,) = (name for name in manifest.clusters if name != applier)
    wanted = pa.schema([CHANGES.field(name) for name in columns])
    found = [wanted.append(pa.field("applied_in", pa.uint64())).empty_table()]
    for bucket in range(manifest.buckets):
        stretches = out.read_table(applied_path(applier, bucket), APPLIED)
        changes = history.read_tables(
            (part("changes", source, run, bucket) for run in range(len(manifest.runs[source]))), CHANGES
        )
        counts = stretches["changes"].to_numpy()
        rows = _rows(changes, stretches)
        applied_in = np.repeat(stretches["epoch"].to_numpy(), counts)
        found.append(changes.select(columns).take(pa.array(rows)).append_column("applied_in", pa.array(applied_in)))
    return pa.concat_tables(found, promote_options="permissive")


def _rows(changes: pa.Table, stretches: pa.Table) -> Int64:
    """Return the numbers of the rows that stretches are made of. Shape (changes of all stretches,)."""
    epochs, number = np.unique(changes["epoch"].to_numpy(), return_inverse=True)
    # Rows are in the order of epoch and ordinal.
    places = (number.astype(np.int64) << 32) | changes["ordinal"].to_numpy()
    of_epoch = np.searchsorted(epochs, stretches["source_epoch"].to_numpy()).astype(np.int64)
    first = np.searchsorted(places, (of_epoch << 32) | stretches["first"].to_numpy())
    counts = stretches["changes"].to_numpy().astype(np.int64)
    before = np.cumsum(counts) - counts
    return np.repeat(first - before, counts) + np.arange(counts.sum())
