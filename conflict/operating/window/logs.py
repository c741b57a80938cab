"""
The epochs of clusters, with their times, sizes and the foreign epochs that were applied in them.

A cluster with several SQL nodes has every epoch in each of their logs. The first log that holds an epoch counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.configuration import ClusterConfiguration, Configuration, Links
from conflict.errors import ConfigurationError
from conflict.history.ingestion.epoch_table import EpochTable, scan_epoch_table
from conflict.history.scheduling.servers import columns_of_clusters
from conflict.history.scheduling.summaries import Lists, SummaryColumns

Bool = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

SECOND = 1_000_000  # microseconds


@attrs.frozen(eq=False)
class ClusterLog:
    """
    The own epochs of a cluster, in order, and the foreign epochs that its log shows as applied.

    Attributes:
        name: The cluster.
        number: The epochs. Shape (epochs,).
        committed: Microsecond since 1970 at which each was logged, by the clock of its server. Shape (epochs,).
        size: Bytes that the server kept of each before it logged it. Shape (epochs,).
        rows: Row changes in each, those of appliers among them. Shape (epochs,).
        own: Row changes that the cluster itself made in each. Shape (epochs,).
        applied: Per source, the foreign epochs, and per foreign epoch the place of the own epoch that shows it.
        exact: Whether times are microseconds; else whole seconds, which are cut off.
        whole: Whether all files could be read to their ends.
    """

    name: str
    number: UInt64
    committed: Int64
    size: Int64
    rows: Int64
    own: Int64
    applied: Mapping[str, tuple[UInt64, Int64]]
    exact: bool = True
    whole: bool = True

    def __len__(self) -> int:
        return len(self.number)

    @property
    def imprecision(self) -> int:
        """By how many microseconds a time can be earlier than what happened."""
        return 0 if self.exact else SECOND


def places_of(number: UInt64, epochs: UInt64) -> tuple[Int64, Bool]:
    """Return where some epochs stand among others, which rise, and which of them do."""
    if not len(number):
        return np.zeros(len(epochs), np.int64), np.zeros(len(epochs), np.bool_)
    place = np.minimum(np.searchsorted(number, epochs), len(number) - 1)
    return place.astype(np.int64), number[place] == epochs


def cluster_logs(configuration: Configuration, progress: StageProgress = no_progress) -> dict[str, ClusterLog]:
    """
    Return the log of each cluster, as far as it can be read.

    Args:
        configuration: The clusters and their binlogs.
        progress: Called with the name of a stage, the logs that are read, and their number.

    Raises:
        ConfigurationError: The log of a cluster holds no epoch, or its epochs do not rise.
    """
    total = sum(len(cluster.servers) for cluster in configuration.clusters)
    tables: dict[str, list[EpochTable]] = {}
    for cluster in configuration.clusters:
        for server in cluster.servers:
            progress("reading binlogs", sum(map(len, tables.values())), total)
            tables.setdefault(cluster.name, []).append(scan_epoch_table(server.server_id, server.files))
    return _united(configuration.clusters, tables)


def _united(
    clusters: Sequence[ClusterConfiguration], tables: Mapping[str, Sequence[EpochTable]]
) -> dict[str, ClusterLog]:
    epochs = {name: _columns(name, own) for name, own in tables.items()}
    links = Links(tuple(clusters))
    named = columns_of_clusters(links, {name: each for name, (each, _) in epochs.items()})
    return {
        name: _log(name, columns, epochs[name][1], tables[name], {each: one for one, each in links.server_ids.items()})
        for name, columns in named.items()
    }


def _columns(name: str, tables: Sequence[EpochTable]) -> tuple[SummaryColumns, Int64]:
    """
    Return the epochs of a cluster, each of the first log that holds it, and where each is in all tables.

    Raises:
        ConfigurationError: They are none, or do not rise.
    """
    for table in tables:
        if (np.diff(table.log.number.astype(np.int64)) <= 0).any():
            message = f"the epochs in the log of server {table.log.server_id} do not rise: its files are not one log"
            raise ConfigurationError(message)
    every = np.concatenate([table.log.number for table in tables])
    if not len(every):
        message = f"the log of cluster {name} holds no epoch; give binlogs of a server with ndb_log_bin"
        raise ConfigurationError(message)
    number, chosen = np.unique(every, return_index=True)
    starts = np.cumsum([0, *(len(table.log) for table in tables)])
    place = np.concatenate([start + table.applied.place for start, table in zip(starts, tables, strict=False)])
    to_number = np.full(len(every), -1, np.int64)
    to_number[chosen] = np.arange(len(number))
    order = np.argsort(to_number[place], kind="stable")
    order = order[to_number[place][order] >= 0]
    server, foreign = (
        np.concatenate([getattr(table.applied, each) for table in tables])[order] for each in ("server_id", "epoch")
    )
    offsets = np.searchsorted(to_number[place][order], np.arange(len(number) + 1)).astype(np.int64)
    none = np.zeros(len(number), np.int64)
    columns = SummaryColumns(
        number,
        none,
        np.concatenate([table.committed for table in tables])[chosen],
        none.astype(np.bool_),
        Lists(np.zeros(len(number) + 1, np.int64), np.zeros(0, np.int32)),
        Lists(offsets, np.concatenate([table.applied.group for table in tables])[order]),
        server,
        foreign,
        server,
    )
    return columns, chosen.astype(np.int64)


def _log(
    name: str, columns: SummaryColumns, chosen: Int64, tables: Sequence[EpochTable], names: Mapping[int, str]
) -> ClusterLog:
    rows, own = (np.concatenate([_rows(table, own=each) for table in tables])[chosen] for each in (False, True))
    place = np.repeat(np.arange(len(columns)), np.diff(columns.applied.offsets))
    return ClusterLog(
        name,
        columns.number,
        columns.committed,
        np.concatenate([table.size for table in tables])[chosen],
        rows,
        own,
        {
            source: (columns.epoch[mine], place[mine])
            for server, source in names.items()
            if source != name
            for mine in [np.flatnonzero(columns.of_server(server))]
        },
        bool((columns.committed % SECOND).any()),
        all(table.log.whole for table in tables),
    )


def _rows(table: EpochTable, *, own: bool) -> Int64:
    """Return the row changes in each epoch of a log: all, or those that name its own server."""
    changed = table.changed
    mine = changed.server_id == np.uint64(table.log.server_id) if own else np.ones(len(changed.place), np.bool_)
    counts = np.bincount(changed.place[mine], changed.rows[mine].sum(axis=1), len(table.log))
    return counts.astype(np.int64)
