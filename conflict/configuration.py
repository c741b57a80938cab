"""
What a run is about: two clusters, their binlogs and tables, and rows of mysql.ndb_replication.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from conflict.functions import FUNCTIONS, FunctionSpec
from conflict.history import Cluster, History, Role, Take, Transaction
from conflict.ingest import BinlogEpoch, EpochReader, read_epochs
from conflict.replication_table import ReplicationRow
from conflict.schedule import Hints, Summary, consistent_cut, place_takes, summarize, timeline_of
from conflict.setup import TableSetup, is_exceptions_table, set_up
from ndb_formats.errors import FormatError
from ndb_formats.row_image import RowLayout
from ndb_formats.schema import Schema
from ndb_formats.update_format import ServerOptions

__all__ = [
    "ClusterConfiguration",
    "ClusterHints",
    "Configuration",
    "Reading",
    "history_of",
    "read_cluster",
    "takes_of",
    "usable_epochs",
]


@attrs.frozen
class ClusterConfiguration:
    """
    One cluster of a run.

    Attributes:
        name: As the user calls it.
        server_id: Of its logging and applying server.
        files: Its binlog files, in the order in which they were written.
        role: ``ndb_applier_conflict_role``.
        options: Its logging options, which count for tables whose binlog type is 0.
        transaction_ids: Whether it logs transaction ids (``ndb_log_transaction_id``); None if that is not known.
    """

    name: str
    server_id: int
    files: tuple[Path, ...]
    role: Role = Role.NONE
    options: ServerOptions = attrs.field(factory=ServerOptions)
    transaction_ids: bool | None = None


@attrs.frozen
class Configuration:
    """
    A run.

    Attributes:
        clusters: The two clusters.
        schema: All tables, exceptions tables among them.
        replication: Rows of ``mysql.ndb_replication``, the same on both clusters.
        functions: The conflict functions that there are: the server's, and a user's own.
        skip_missing: Leave out operations that lack a value to compare, instead of stopping their applier.
    """

    clusters: tuple[ClusterConfiguration, ...]
    schema: Schema
    replication: tuple[ReplicationRow, ...]
    functions: tuple[FunctionSpec, ...] = FUNCTIONS
    skip_missing: bool = False

    @property
    def data_schema(self) -> Schema:
        """The tables without the exceptions tables."""
        return Schema(tuple(table for table in self.schema.tables if not is_exceptions_table(table)))

    def setups(self) -> dict[str, dict[str, TableSetup]]:
        """Return, per cluster, how its server sets up each table."""
        return {
            cluster.name: set_up(self.schema, self.replication, cluster.server_id, cluster.options, self.functions)
            for cluster in self.clusters
        }

    @property
    def server_ids(self) -> dict[str, int]:
        """Server id of each cluster."""
        return {cluster.name: cluster.server_id for cluster in self.clusters}

    def peer(self, name: str) -> ClusterConfiguration:
        """Return the other cluster."""
        return next(cluster for cluster in self.clusters if cluster.name != name)


ClusterHints = Mapping[str, Hints]


@attrs.define
class Reading:
    """
    What was read of one cluster's binlogs.

    Attributes:
        cluster: The cluster.
        epochs: Every complete epoch.
        layouts: Layout of each table met.
        error: Why reading ended before the end; None if it did not.
        left_out: Row operations of the epoch that was cut off.
    """

    cluster: ClusterConfiguration
    epochs: list[BinlogEpoch] = attrs.field(factory=list, repr=False)
    layouts: dict[str, RowLayout] = attrs.field(factory=dict, repr=False)
    error: FormatError | None = None
    left_out: int = 0


def read_cluster(cluster: ClusterConfiguration, schema: Schema) -> Reading:
    """Read a cluster's binlogs in this process; what comes before a fault is kept."""
    reader = EpochReader(cluster.server_id, schema)
    reading = Reading(cluster, layouts=reader.layouts)
    try:
        for epoch in read_epochs(cluster.files, reader):
            reading.epochs.append(epoch)
    except FormatError as error:
        reading.error, reading.left_out = error, reader.rows_pending
    return reading


def history_of(
    configuration: Configuration, readings: Mapping[str, Reading], hints: ClusterHints | None = None
) -> History:
    """Make a History, in memory, of what was read."""
    summaries = usable_epochs(configuration, readings)
    clusters, assumed = [], {}
    layouts: dict[str, RowLayout] = {}
    for cluster in configuration.clusters:
        reading = readings[cluster.name]
        cut = reading.error is not None or len(summaries[cluster.name]) < len(reading.epochs)
        takes, assumed[cluster.name] = takes_of(configuration, cluster, summaries, hints, cut=cut)
        transactions: list[Transaction] = [
            transaction
            for epoch in readings[cluster.name].epochs[: len(summaries[cluster.name])]
            for transaction in epoch.transactions
        ]
        clusters.append(Cluster(cluster.name, cluster.server_id, timeline_of(transactions, takes), cluster.role))
        layouts.update(readings[cluster.name].layouts)
    return History(tuple(clusters), layouts, assumed)


def usable_epochs(configuration: Configuration, readings: Mapping[str, Reading]) -> dict[str, list[Summary]]:
    """Return the epochs of each cluster that do not build on something that is not there."""
    summaries = {name: [summarize(epoch) for epoch in reading.epochs] for name, reading in readings.items()}
    return consistent_cut(summaries, configuration.server_ids)


def takes_of(
    configuration: Configuration,
    cluster: ClusterConfiguration,
    summaries: Mapping[str, list[Summary]],
    hints: ClusterHints | None,
    *,
    cut: bool,
) -> tuple[list[Take], int]:
    """Return when a cluster took the other's epochs, and how many places were assumed."""
    peer = configuration.peer(cluster.name)
    return place_takes(
        summaries[cluster.name],
        summaries[peer.name],
        source_name=peer.name,
        source_id=peer.server_id,
        applier_id=cluster.server_id,
        hints=(hints or {}).get(cluster.name, ()),
        cut=cut,
    )
