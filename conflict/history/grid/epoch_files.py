"""
Epochs and the schedule as Parquet. Every ingest derives the schedule again, from the summaries of all epochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.configuration import Links
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import SCHEDULE, SCHEDULE_PART, log_part, table_of_rows
from conflict.history.scheduling.schedule_columns import COLUMNS, Column, ScheduleColumns, stored_once
from conflict.history.scheduling.servers import columns_of_clusters
from conflict.history.scheduling.start import Bounds
from conflict.history.scheduling.summaries import EpochSizes, Lists, Positions, Summary, SummaryColumns

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


def read_epochs_of(
    history: Folder, cluster: str, batches: Iterable[int], columns: Sequence[str] = EPOCHS.names
) -> pa.Table:
    """Return columns of `EPOCHS` of a cluster, in order."""
    schema = pa.schema([EPOCHS.field(name) for name in columns])
    return history.read_tables((log_part("epochs", cluster, batch) for batch in batches), schema)


def read_summaries(history: Folder, cluster: str, batches: Iterable[int]) -> SummaryColumns:
    """Return the summaries of the epochs of a cluster, in order."""
    return summaries_of(read_epochs_of(history, cluster, batches))


def read_all_summaries(history: Folder, links: Links, batches: Sequence[int]) -> dict[str, SummaryColumns]:
    """Return, per cluster, the summaries of its epochs, with foreign epochs by the ids of their clusters."""
    return columns_of_clusters(links, {name: read_summaries(history, name, batches) for name in links.server_ids})


def read_epoch_sizes(history: Folder, cluster: str, batches: Iterable[int]) -> EpochSizes:
    """Return how many row changes each epoch of a cluster has."""
    columns = ["number", "changes", "unread"]
    epochs = read_epochs_of(history, cluster, batches, columns)
    return EpochSizes(*(epochs.column(name).to_numpy() for name in columns))


def read_epoch_ends(history: Folder, cluster: str, batches: Iterable[int], bounds: Bounds) -> Positions:
    """Return the last group of each epoch of a cluster within bounds."""
    epochs = read_epochs_of(history, cluster, batches, ["number", "transactions", "applied_group"])
    number = epochs.column("number").to_numpy()
    last = np.maximum(*(_lists(epochs.column(name)).last for name in ("transactions", "applied_group")))
    within = np.flatnonzero((number >= np.uint64(bounds.first)) & (number <= np.uint64(bounds.last)))
    return Positions(number[within], last[within])


def read_commit_times(history: Folder, cluster: str, batches: Iterable[int]) -> dict[int, int]:
    """Return the microsecond since 1970 at which each epoch committed; 0 where the log does not tell."""
    epochs = read_epochs_of(history, cluster, batches, ["number", "committed"])
    return dict(zip(epochs.column("number").to_pylist(), epochs.column("committed").to_pylist(), strict=True))


def summaries_of(epochs: pa.Table) -> SummaryColumns:
    """Return the summaries of a table `EPOCHS`."""
    number, changes, unread = (epochs.column(name).to_numpy() for name in ("number", "changes", "unread"))
    committed = pc.fill_null(epochs.column("committed"), 0).to_numpy()
    transactions, applied = (_lists(epochs.column(name)) for name in ("transactions", "applied_group"))
    server_id, epoch = (pc.list_flatten(epochs.column(f"applied_{name}")).to_numpy() for name in ("server_id", "epoch"))
    return SummaryColumns(number, changes, committed, unread, transactions, applied, server_id, epoch, server_id)


def _lists(column: pa.ChunkedArray) -> Lists:
    counts = pc.list_value_length(column).to_numpy()
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    return Lists(offsets, pc.list_flatten(column).to_numpy())


def schedule_table(schedule: Mapping[str, ScheduleColumns]) -> pa.Table:
    """Return the epoch applies of each applier as `SCHEDULE`."""
    return pa.concat_tables([SCHEDULE.empty_table(), *(_table_of(*each) for each in schedule.items())])


def _table_of(applier: str, own: ScheduleColumns) -> pa.Table:
    names = [pa.repeat(name, len(own)) for name in (applier, own.source)]
    return pa.table([*names, *(_to_arrow(each, own[each.name]) for each in COLUMNS.values())], schema=SCHEDULE)


def _to_arrow(column: Column, numbers: npt.NDArray[Any]) -> pa.Array:
    missing = None if column.none is None else numbers == column.none
    values = pa.array(numbers, pa.from_numpy_dtype(column.kind), mask=missing)
    return pa.array(column.labels).take(values) if column.labels else values


def read_schedule(history: Folder, names: Sequence[str]) -> dict[str, ScheduleColumns]:
    """Return the epoch applies of each applier of a pair of clusters; columns are read one by one."""
    appliers = _column(history, "applier")
    rows = {name: np.flatnonzero(pc.equal(appliers, name).to_numpy()) for name in names}
    columns: dict[str, dict[str, Any]] = {name: {} for name in names}
    for column in COLUMNS.values():
        array = _of_arrow(column, _column(history, column.name))
        for name, own in columns.items():
            own[column.name] = stored_once(array[rows[name]])
    return {name: ScheduleColumns(source, columns[name]) for name, source in zip(names, reversed(names), strict=True)}


def _of_arrow(column: Column, values: pa.ChunkedArray) -> npt.NDArray[Any]:
    numbers = pc.index_in(values, value_set=pa.array(column.labels)) if column.labels else values
    if column.none is not None:
        numbers = pc.fill_null(numbers, column.none)
    return np.asarray(numbers.to_numpy(), column.kind)


def _column(history: Folder, name: str) -> pa.ChunkedArray:
    return history.read_table(SCHEDULE_PART, SCHEDULE, [name]).column(name)
