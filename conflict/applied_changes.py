"""
What an applier simply applied, change by change, put together from a result and the History it was found in.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from conflict.errors import HistoryError
from conflict.grid import CHANGES, KEYS, Folder, keys_part, part
from conflict.kernels.arrays import Int64
from conflict.manifest import Manifest
from conflict.outputs import APPLIED, OUTCOMES, applied_path, labelled
from ndb_formats.events.rows_event import Operation

__all__ = ["applied_changes"]

_READ = pa.schema([CHANGES.field(name) for name in ("key", "table", "operation", "epoch", "group", "ordinal")])
_ORIGIN = pa.schema([CHANGES.field(name) for name in ("file", "position", "row")])


def applied_changes(out: Folder, history: Folder, applier: str) -> Iterator[pa.Table]:
    """
    Yield the changes of the other cluster that one applier applied as they stood, bucket by bucket.

    Together with its `conflict.outputs.OUTCOMES` of the other cluster's own changes, whose ordinal is not negative,
    they are all that it took; changes in neither were not taken.

    Args:
        out: Folder of a result of the Spark engine.
        history: The History that was resolved.
        applier: The cluster that applied them.

    Yields:
        The columns of `conflict.outputs.OUTCOMES` that the two share, from `source_epoch` to `row`: all but `source`,
        `refresh`, `verdict`, `cause`, `incoming` and `stored`. In the order in which they were applied.

    Raises:
        HistoryError: The result is not of that History.
    """
    manifest = Manifest.from_json(history.read_json("history.json"))
    (source,) = (name for name in manifest.clusters if name != applier)
    for bucket in range(manifest.buckets):
        stretches = out.read_table(applied_path(applier, bucket), APPLIED)
        parts = [part("changes", source, run, bucket) for run in range(len(manifest.runs[source]))]
        changes = history.read_tables(parts, pa.schema([*_READ, *_ORIGIN]))
        rows = _rows(changes, stretches)
        if rows is None:
            message = (
                f"{out.uri} is not a result of the History {history.uri}: its bucket {bucket} has no such changes as "
                f"{applier} applied; give the History that the Spark engine resolved"
            )
            raise HistoryError(message)
        keys = history.read_tables([keys_part(bucket, batch) for batch in range(manifest.batches)], KEYS)
        yield _named(changes.take(pa.array(rows)), stretches, keys, manifest, source)


def _rows(changes: pa.Table, stretches: pa.Table) -> Int64 | None:
    """Return the numbers of the rows that stretches are made of, None if they are not there. Shape (changes,)."""
    epochs, number = np.unique(changes["epoch"].to_numpy(), return_inverse=True)
    # Rows are in the order of epoch and ordinal.
    places = (number.astype(np.int64) << 32) | changes["ordinal"].to_numpy()
    source_epoch, counts = stretches["source_epoch"].to_numpy(), stretches["changes"].to_numpy().astype(np.int64)
    epoch = np.searchsorted(epochs, source_epoch).astype(np.int64) << 32
    ends = [epoch | stretches[name].to_numpy() for name in ("first", "last")]
    first, last = (np.searchsorted(places, each) for each in ends)
    known = np.isin(source_epoch, epochs).all() and np.isin(ends, places).all()
    if not (known and (last - first + 1 == counts).all()):
        return None
    before = np.cumsum(counts) - counts
    return np.repeat(first - before, counts) + np.arange(counts.sum())


def _named(taken: pa.Table, stretches: pa.Table, keys: pa.Table, manifest: Manifest, source: str) -> pa.Table:
    number = {name: taken[name].to_numpy() for name in ("table", "operation", "file")}
    columns = {
        "source_epoch": taken["epoch"],
        "group": taken["group"],
        "ordinal": taken["ordinal"],
        "epoch": np.repeat(stretches["epoch"].to_numpy(), stretches["changes"].to_numpy()),
        "table": labelled(number["table"], list(manifest.tables)).cast(pa.string()),
        "key": keys["text"].take(taken["key"]),
        "operation": labelled(number["operation"] - 1, [each.name for each in Operation]).cast(pa.string()),
        "file": labelled(number["file"], manifest.files[source]).cast(pa.string()),
        "position": taken["position"],
        "row": taken["row"],
    }
    return pa.table(columns, schema=pa.schema([OUTCOMES.field(name) for name in columns]))
