"""
Epochs and the schedule as Parquet. Every ingest derives the schedule again, from the summaries of all epochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.configuration import Links
from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import SCHEDULE, SCHEDULE_PART, log_part, table_of_rows
from conflict.history.scheduling.schedule_columns import (
    COLUMNS,
    Column,
    ColumnsOnDemand,
    ScheduleColumns,
    narrowed,
    stored_once,
)
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


_AT_ONCE = 1 << 18  # rows that are written, or read, together: there can be very many


def read_epochs_of(
    history: Folder, cluster: str, batches: Iterable[int], columns: Sequence[str] = EPOCHS.names
) -> Iterator[pa.Table]:
    """Yield columns of `EPOCHS` of a cluster, in order, part by part."""
    schema = pa.schema([EPOCHS.field(name) for name in columns])
    for batch in batches:
        yield from history.read_groups(log_part("epochs", cluster, batch), schema)


def read_summaries(history: Folder, cluster: str, batches: Iterable[int]) -> SummaryColumns:
    """Return the summaries of the epochs of a cluster, in order."""
    return summaries_of(read_epochs_of(history, cluster, batches))


def read_all_summaries(history: Folder, links: Links, batches: Sequence[int]) -> dict[str, SummaryColumns]:
    """Return, per cluster, the summaries of its epochs, with foreign epochs by the ids of their clusters."""
    return columns_of_clusters(links, {name: read_summaries(history, name, batches) for name in links.server_ids})


def read_epoch_sizes(history: Folder, cluster: str, batches: Iterable[int]) -> EpochSizes:
    """Return how many row changes each epoch of a cluster has."""
    columns = "number", "changes", "unread"
    return EpochSizes(*_columns(read_epochs_of(history, cluster, batches, columns), columns))


def read_epoch_ends(history: Folder, cluster: str, batches: Iterable[int], bounds: Bounds) -> Positions:
    """Return the last group of each epoch of a cluster within bounds."""
    numbers, groups = [np.zeros(0, np.uint64)], [np.zeros(0, np.int32)]
    for part in read_epochs_of(history, cluster, batches, ["number", "transactions", "applied_group"]):
        number = part.column("number").to_numpy()
        within = (number >= np.uint64(bounds.first)) & (number <= np.uint64(bounds.last))
        numbers.append(number[within])
        groups.append(np.maximum(*(lists.last for lists in _lists(part)))[within])
    return Positions(np.concatenate(numbers), narrowed(np.concatenate(groups)))


def read_commit_times(
    history: Folder, cluster: str, batches: Iterable[int]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return epochs, and the microsecond since 1970 at which each committed; 0 where the log does not tell."""
    columns = "number", "committed"
    number, committed = _columns(read_epochs_of(history, cluster, batches, columns), columns)
    return number, committed


def summaries_of(epochs: Iterable[pa.Table]) -> SummaryColumns:
    """Return the summaries of parts of a table `EPOCHS`."""
    wanted = ("number", "changes", "committed", "unread", *_COUNTS, *_GROUPS, "applied_server_id", "applied_epoch")
    number, changes, committed, unread, *lists, server_id, epoch = _columns(map(_flat, epochs), wanted)
    counts, groups = lists[:2], lists[2:]
    transactions, applied = (Lists(_offsets(*each), each[1]) for each in zip(counts, groups, strict=True))
    return SummaryColumns(number, changes, committed, unread, transactions, applied, server_id, epoch, server_id)


_COUNTS, _GROUPS = ("transaction_count", "applied_count"), ("transactions", "applied_group")


def _flat(epochs: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns of a table `EPOCHS`; lists one after the other, and how long each of them is."""
    lists = [name for name in EPOCHS.names if pa.types.is_list(EPOCHS.field(name).type)]
    counts = {count: pc.list_value_length(epochs.column(name)) for count, name in zip(_COUNTS, _GROUPS, strict=True)}
    plain = {name: epochs.column(name) for name in epochs.column_names if name not in lists}
    return {**plain, **counts, **{name: pc.list_flatten(epochs.column(name)) for name in lists}}


def _lists(epochs: pa.Table) -> Iterator[Lists]:
    """Yield the transactions and the applied groups of a table `EPOCHS`."""
    for name in _GROUPS:
        counts = pc.list_value_length(epochs.column(name)).to_numpy()
        groups = pc.list_flatten(epochs.column(name)).to_numpy()
        yield Lists(_offsets(counts, groups), groups)


def _offsets(counts: npt.NDArray[Any], groups: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return where lists start, and the end of the last one; of so few bytes as their number needs."""
    offsets = np.zeros(len(counts) + 1, np.uint32 if len(groups) < 2**32 else np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _columns(parts: Iterable[Mapping[str, pa.ChunkedArray] | pa.Table], names: Sequence[str]) -> list[npt.NDArray[Any]]:
    """Return columns of which parts are given, in as little memory as their values need; NULL is 0."""
    found: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in names}
    for part in parts:
        for name in names:
            column = part[name]
            numbers = (pc.fill_null(column, pa.scalar(0).cast(column.type)) if column.null_count else column).to_numpy()
            found[name].append(narrowed(numbers) if name in _SMALL else stored_once(numbers))
    return [_joined(found.pop(name), name) for name in names]


_SMALL = ("changes", *_COUNTS, *_GROUPS)  # numbers that are mostly small
_KINDS = {
    "changes": np.int64,
    "committed": np.int64,
    "unread": np.bool_,
    "transactions": np.int32,
    **dict.fromkeys(_COUNTS, np.int32),
    "applied_group": np.int32,
}


def _joined(parts: Sequence[npt.NDArray[Any]], name: str) -> npt.NDArray[Any]:
    """Return a column of which parts are given; one with the same value everywhere takes the memory of one value."""
    filled = [each for each in parts if len(each)]
    if not filled:
        return np.zeros(0, _KINDS.get(name, np.uint64))
    if all(each.strides == (0,) and each[0] == filled[0][0] for each in filled):
        return np.broadcast_to(filled[0][0], sum(map(len, filled)))
    return filled[0] if len(filled) == 1 else np.concatenate(filled)


def write_schedule(history: Folder, schedule: Iterable[tuple[str, ScheduleColumns]]) -> None:
    """
    Write the epoch applies of each applier.

    Args:
        history: Folder of the History.
        schedule: Per applier its epoch applies, which are made when those before them are written.
    """
    parts = chain.from_iterable(starmap(schedule_tables, schedule))  # which holds nothing of the applier before
    history.write_rows(SCHEDULE_PART, chain([SCHEDULE.empty_table()], parts))


def schedule_tables(applier: str, own: ScheduleColumns) -> Iterator[pa.Table]:
    """Yield the epoch applies of an applier as `SCHEDULE`, part by part."""
    for first in range(0, len(own), _AT_ONCE):
        part = own.chosen(slice(first, first + _AT_ONCE))
        names = [pa.repeat(name, len(part)) for name in (applier, own.source)]
        yield pa.table([*names, *(_to_arrow(each, part[each.name]) for each in COLUMNS.values())], schema=SCHEDULE)


def _to_arrow(column: Column, numbers: npt.NDArray[Any]) -> pa.Array:
    missing = None if column.none is None else numbers == column.none
    values = pa.array(numbers, pa.from_numpy_dtype(column.kind), mask=missing)
    return pa.array(column.labels).take(values) if column.labels else values


def read_schedule(history: Folder, names: Sequence[str]) -> dict[str, ScheduleColumns]:
    """
    Return the epoch applies of each applier of a pair of clusters.

    A column is read when it is asked for, of very many epoch applies each time.

    Raises:
        HistoryError: The file is damaged.
    """
    rows, few = _rows_by_applier(history), history.rows(SCHEDULE_PART) <= _AT_ONCE
    columns = {name: _StoredColumns(history, rows.get(name, range(0)), few) for name in names}
    return {name: ScheduleColumns(source, columns[name]) for name, source in zip(names, reversed(names), strict=True)}


def _rows_by_applier(history: Folder) -> dict[str, range]:
    """Return which rows of the schedule each applier has."""
    found: dict[str, range] = {}
    for column in _parts_of(history, "applier", range(history.rows(SCHEDULE_PART))):
        for each in column.chunks:
            runs, last = pc.run_end_encode(each), 0
            for name, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
                before = max((own.stop for own in found.values()), default=0)
                known = found.get(name, range(before, before))
                if known.stop != before:
                    message = (
                        f"{history.uri}/{SCHEDULE_PART} is damaged (rows of {name} are apart); make the folder again"
                    )
                    raise HistoryError(message)
                found[name], last = range(known.start, before + end - last), end
    return found


def _parts_of(history: Folder, name: str, rows: range) -> Iterator[pa.ChunkedArray]:
    """Yield some rows of a column of the schedule, part by part."""
    for part in history.read_groups(SCHEDULE_PART, pa.schema([SCHEDULE.field(name)]), rows):
        yield part.column(0)


@attrs.frozen(eq=False)
class _StoredColumns(ColumnsOnDemand):
    """
    The columns of some rows of the schedule of a History.

    Attributes:
        history: Its folder.
        rows: The rows.
        few: Whether they are so few that columns are kept once they were read.
    """

    history: Folder
    rows: range
    few: bool
    _kept: dict[str, npt.NDArray[Any]] = attrs.field(factory=dict, repr=False)

    @property
    def length(self) -> int:
        """How many rows they are."""
        return len(self.rows)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name in self._kept:
            return self._kept[name]
        column, place = COLUMNS[name], 0
        found = np.empty(len(self.rows), column.kind)
        for part in _parts_of(self.history, name, self.rows):
            found[place : place + len(part)] = _of_arrow(column, part)
            place += len(part)
        found = stored_once(found)
        if self.few:
            self._kept[name] = found
        return found

    def at(self, name: str, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return a column of some rows; of very many, only the parts are read that have one of them."""
        if self.few:
            return self[name][numbers]
        part, found = numbers // _AT_ONCE, np.empty(len(numbers), COLUMNS[name].kind)
        for each in np.unique(part).tolist():
            first = self.rows.start + each * _AT_ONCE
            parts = _parts_of(self.history, name, range(first, min(first + _AT_ONCE, self.rows.stop)))
            values = np.concatenate([_of_arrow(COLUMNS[name], column) for column in parts])
            chosen = part == each
            found[chosen] = values[numbers[chosen] - each * _AT_ONCE]
        return found


def _of_arrow(column: Column, values: pa.ChunkedArray) -> npt.NDArray[Any]:
    numbers = pc.index_in(values, value_set=pa.array(column.labels)) if column.labels else values
    if column.none is not None:
        numbers = pc.fill_null(numbers, column.none)
    return np.asarray(numbers.to_numpy(), column.kind)
