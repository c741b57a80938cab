"""
Summaries of epochs as Parquet: what the schedule is worked out of, again at every ingest.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa

from conflict.grid.folder import Folder
from conflict.history.epochs import AppliedEpoch
from conflict.history.schedule import Summary

__all__ = ["EPOCHS", "epochs_part", "epochs_table", "read_summaries"]

# One row per own epoch; lists of the same length belong together.
EPOCHS = pa.schema(
    [
        ("number", pa.uint64()),
        ("changes", pa.int64()),
        ("transactions", pa.list_(pa.int32())),
        ("applied_group", pa.list_(pa.int32())),
        ("applied_server_id", pa.list_(pa.uint64())),
        ("applied_epoch", pa.list_(pa.uint64())),
    ]
)


def epochs_part(cluster: str, segment: int) -> str:
    """Return the path of the epochs of one run below the History."""
    return f"epochs/cluster={cluster}/segment={segment:05d}.parquet"


def epochs_table(summaries: Sequence[Summary]) -> pa.Table:
    """Return summaries as `EPOCHS`."""
    rows = [
        (
            summary.number,
            summary.changes,
            summary.transactions,
            [each.group for each in summary.applied],
            [each.server_id for each in summary.applied],
            [each.epoch for each in summary.applied],
        )
        for summary in summaries
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(EPOCHS)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, EPOCHS, strict=True)], schema=EPOCHS
    )


def read_summaries(history: Folder, cluster: str, segments: int) -> list[Summary]:
    """Return the summaries of a cluster's runs, in order."""
    table = history.read_tables((epochs_part(cluster, segment) for segment in range(segments)), EPOCHS).combine_chunks()
    transactions = _slices(table, "transactions")
    applied = zip(*(_slices(table, f"applied_{name}") for name in ("group", "server_id", "epoch")), strict=True)
    return [
        Summary(number, tuple(own), tuple(map(AppliedEpoch, *foreign)), changes)
        for number, changes, own, foreign in zip(
            table.column("number").to_pylist(), table.column("changes").to_pylist(), transactions, applied, strict=True
        )
    ]


def _slices(table: pa.Table, name: str) -> list[list[int]]:
    """Return a column of lists as lists."""
    lists = [chunk for chunk in table.column(name).chunks if len(chunk)]
    if not lists:
        return []
    (whole,) = lists
    flat = whole.flatten().to_pylist()
    start = whole.offsets[0].as_py()
    return [flat[first - start : last - start] for first, last in pairwise(whole.offsets.to_pylist())]
