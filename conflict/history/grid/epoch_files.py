"""
Epochs and the schedule as Parquet. Every ingest derives the schedule again, from the summaries of all epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pyarrow as pa

from conflict.config.configuration import Links
from conflict.history.epochs import AppliedEpoch
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import SCHEDULE, table_of_rows
from conflict.history.model import START, EpochApply, Window
from conflict.history.scheduling.schedule import Summary
from conflict.history.scheduling.servers import of_clusters
from conflict.rules.replication_table import Role

__all__ = [
    "EPOCHS",
    "applies_of",
    "epochs_part",
    "epochs_table",
    "read_all_summaries",
    "read_commit_times",
    "read_epoch_sizes",
    "read_summaries",
    "schedule_table",
    "summaries_of",
]

_GIVEN = Window(START)  # represents no window: the place is given
# One row per own epoch; the lists `applied_...` of a row belong together.
EPOCHS = pa.schema(
    [
        ("number", pa.uint64()),
        ("changes", pa.int64()),
        ("committed", pa.int64()),
        ("unread", pa.bool_()),
        ("transactions", pa.list_(pa.int32())),
        ("applied_group", pa.list_(pa.int32())),
        ("applied_server_id", pa.list_(pa.uint64())),
        ("applied_epoch", pa.list_(pa.uint64())),
    ]
)


def epochs_part(cluster: str, segment: int) -> str:
    """Return the path of the epochs of one segment below the History."""
    return f"epochs/cluster={cluster}/segment={segment:05d}.parquet"


def epochs_table(summaries: Sequence[Summary]) -> pa.Table:
    """Return summaries as `EPOCHS`."""
    rows = [
        (
            summary.number,
            summary.changes,
            summary.committed,
            summary.unread,
            summary.transactions,
            [each.group for each in summary.applied],
            [each.server_id for each in summary.applied],
            [each.epoch for each in summary.applied],
        )
        for summary in summaries
    ]
    return table_of_rows(rows, EPOCHS)


def read_summaries(history: Folder, cluster: str, segments: int) -> list[Summary]:
    """Return the summaries of the first `segments` segments of a cluster, in order."""
    return summaries_of(history.read_tables((epochs_part(cluster, each) for each in range(segments)), EPOCHS))


def read_all_summaries(history: Folder, links: Links, segments: Mapping[str, int]) -> dict[str, list[Summary]]:
    """Return, per cluster, the summaries of its first segments, with foreign epochs by the ids of their clusters."""
    return of_clusters(links, {name: read_summaries(history, name, count) for name, count in segments.items()})


def read_epoch_sizes(history: Folder, cluster: str, segments: int) -> dict[int, int]:
    """Return how many row changes each epoch in the first `segments` segments of a cluster has."""
    epochs = history.read_tables((epochs_part(cluster, each) for each in range(segments)), EPOCHS)
    return dict(zip(epochs.column("number").to_pylist(), epochs.column("changes").to_pylist(), strict=True))


def read_commit_times(history: Folder, cluster: str, segments: int) -> dict[int, int]:
    """Return the microsecond since 1970 at which each of these epochs committed; 0 where the log does not tell."""
    epochs = history.read_tables((epochs_part(cluster, each) for each in range(segments)), EPOCHS)
    return dict(zip(epochs.column("number").to_pylist(), epochs.column("committed").to_pylist(), strict=True))


def summaries_of(epochs: pa.Table) -> list[Summary]:
    """Return the summaries of a table `EPOCHS`."""
    table = epochs.combine_chunks()
    plain = (table.column(name).to_pylist() for name in ("number", "changes", "committed", "unread"))
    transactions = _lists(table, "transactions")
    applied = zip(*(_lists(table, f"applied_{name}") for name in ("group", "server_id", "epoch")), strict=True)
    return [
        Summary(number, tuple(own), tuple(map(AppliedEpoch, *foreign)), changes, committed, unread)
        for number, changes, committed, unread, own, foreign in zip(*plain, transactions, applied, strict=True)
    ]


def _lists(table: pa.Table, name: str) -> list[list[int]]:
    """Return a column of lists, of one chunk at most, as Python lists; much faster than `to_pylist`."""
    chunks = [chunk for chunk in table.column(name).chunks if len(chunk)]
    if not chunks:
        return []
    (whole,) = chunks
    flat = whole.flatten().to_pylist()
    start = whole.offsets[0].as_py()
    return [flat[first - start : last - start] for first, last in pairwise(whole.offsets.to_pylist())]


def schedule_table(applies: Sequence[tuple[str, EpochApply]]) -> pa.Table:
    """Return epoch applies, each with the name of its applier, as `SCHEDULE`."""
    rows = []
    for applier, apply in applies:
        window = apply.window or _GIVEN
        rows.append(
            (
                applier,
                apply.source,
                apply.foreign_epoch,
                apply.epoch,
                apply.group,
                apply.traced,
                apply.restarted,
                *apply.arrived,
                *window.before,
                window.certain,
                apply.applied,
                apply.period,
                apply.role,
                apply.committed,
                apply.server,
                apply.source_server,
            )
        )
    return table_of_rows(rows, SCHEDULE)


def applies_of(schedule: pa.Table) -> dict[str, list[EpochApply]]:
    """Return the epoch applies of a table `SCHEDULE`, by applier; the inverse of `schedule_table`."""
    found: dict[str, list[EpochApply]] = {}
    for row in schedule.to_pylist():
        applier = row.pop("applier")
        arrived, before = ((row.pop(f"{name}_epoch"), row.pop(f"{name}_group")) for name in ("arrived", "before"))
        window = Window(before, row.pop("certain"))
        role = row.pop("role")
        row["role"] = None if role is None else Role(role)
        apply = EpochApply(**row, arrived=arrived, window=None if window == _GIVEN else window)
        found.setdefault(applier, []).append(apply)
    return found
