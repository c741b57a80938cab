"""
What the rules look at: every table on every cluster, as its server sets it up and as its changes arrive elsewhere.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

import attrs

from conflict.checking.findings import Place
from conflict.compatibility.arriving_changes import ArrivingChange
from conflict.compatibility.deployment import Deployment, Policy, TableLogging
from conflict.compatibility.reasons import Reason, changes_of, reasons_of
from conflict.config.configuration import ClusterConfiguration, Configuration, Links
from conflict.errors import ConfigurationError
from conflict.rules.functions import ConflictFunction, parse_conflict_function
from conflict.rules.replication_table import AmbiguousMatch, ReplicationRow, best_match
from conflict.rules.table_setup import TableSetup, set_up
from ndb_formats.schema.tables import Table

__all__ = ["Arrival", "PlacedTable", "Subject", "place_of", "subject_of"]


@attrs.frozen
class PlacedTable:
    """
    A table on a cluster.

    Attributes:
        cluster: The cluster.
        table: Its definition there.
        setup: How the server sets it up.
        match: The row of ``mysql.ndb_replication`` that counts, or those that match equally well; None without one.
        function: Its conflict function, even if the server refuses it for the table; None without one.
        logging: How the server logs its changes.
    """

    cluster: ClusterConfiguration
    table: Table
    setup: TableSetup
    match: ReplicationRow | AmbiguousMatch | None
    function: ConflictFunction | None
    logging: TableLogging

    @property
    def place(self) -> Place:
        """Where it is."""
        return place_of(self.cluster, self.table)

    @property
    def row(self) -> ReplicationRow | None:
        """The row of ``mysql.ndb_replication`` that counts."""
        return self.match if isinstance(self.match, ReplicationRow) else None

    @property
    def rows(self) -> tuple[ReplicationRow, ...]:
        """The rows of ``mysql.ndb_replication`` that match best."""
        if isinstance(self.match, AmbiguousMatch):
            return self.match.rows
        return () if self.match is None else (self.match,)


@attrs.frozen
class Arrival:
    """
    The changes of one cluster as they arrive at a table with a function on another one.

    Attributes:
        here: The table that they arrive at.
        source: The table on the cluster that makes them.
        deployment: The function and the settings that decide what it can judge.
        changes: Each kind of change as it arrives.
        reasons: What speaks against the function.
    """

    here: PlacedTable
    source: PlacedTable
    deployment: Deployment = attrs.field(repr=False)
    changes: tuple[ArrivingChange, ...] = attrs.field(repr=False)
    reasons: tuple[Reason, ...] = attrs.field(repr=False)

    @property
    def function(self) -> ConflictFunction:
        """The function."""
        return self.deployment.function


@attrs.frozen(slots=False)
class Subject:
    """
    What is checked.

    Attributes:
        configuration: The run.
        policy: Whether what the manual advises against is found, too.
        tables: Every table on every cluster but the exceptions tables, cluster by cluster.
    """

    configuration: Configuration
    policy: Policy
    tables: tuple[PlacedTable, ...]

    @property
    def clusters(self) -> tuple[ClusterConfiguration, ...]:
        """The clusters."""
        return self.configuration.clusters

    @property
    def links(self) -> Links:
        """Which clusters replicate from which."""
        return self.configuration.links

    @cached_property
    def by_place(self) -> dict[Place, PlacedTable]:
        """Every table by cluster and name."""
        return {each.place: each for each in self.tables}

    def on(self, cluster: ClusterConfiguration, table: Table) -> PlacedTable | None:
        """Return a table as another cluster has it; None if it does not."""
        return self.by_place.get(place_of(cluster, table))

    @cached_property
    def arrivals(self) -> tuple[Arrival, ...]:
        """What arrives at each table with a function, from each source of its cluster that has the table."""
        return tuple(
            self._arrival(here, here.function, there)
            for here in self.tables
            if here.function is not None
            for source in self.links.sources(here.cluster.name)
            for there in [self.on(source, here.table)]
            if there is not None
        )

    @cached_property
    def _with_blobs(self) -> dict[str, tuple[Table, ...]]:
        """By cluster, the tables with blobs that it has."""
        return {
            cluster.name: tuple(
                each.table
                for each in self.tables
                if each.cluster.name == cluster.name
                and each.setup.refusal is None
                and any(column.is_blob for column in each.table.columns)
            )
            for cluster in self.clusters
        }

    def _arrival(self, here: PlacedTable, function: ConflictFunction, there: PlacedTable) -> Arrival:
        same_kind = there.function is not None and there.function.spec.argument is function.spec.argument
        deployment = Deployment(
            function,
            here.table,
            there.logging,
            here.logging,
            role=here.cluster.role,
            peer_role=there.cluster.role,
            on_both=same_kind,
            others=self._with_blobs[here.cluster.name],
        )
        return Arrival(here, there, deployment, changes_of(deployment), reasons_of(deployment, self.policy))


def place_of(cluster: ClusterConfiguration, table: Table) -> Place:
    """Return the place of a table on a cluster; without a database, it has its name alone."""
    return Place(cluster.name, table.full_name.removeprefix("."))


def subject_of(configuration: Configuration, policy: Policy) -> Subject:
    """Return what is to be checked of a run: its tables as they are declared, on each cluster."""
    return Subject(
        configuration,
        policy,
        tuple(placed for cluster in configuration.clusters for placed in _tables(configuration, cluster)),
    )


def _tables(configuration: Configuration, cluster: ClusterConfiguration) -> list[PlacedTable]:
    schema, rows = configuration.schema_of(cluster), configuration.replication_of(cluster)
    setups = set_up(schema, rows, cluster.server_id, cluster.options, configuration.functions)
    return [_placed(configuration, cluster, rows, setup) for setup in setups.values()]


def _placed(
    configuration: Configuration, cluster: ClusterConfiguration, rows: tuple[ReplicationRow, ...], setup: TableSetup
) -> PlacedTable:
    table = setup.table
    match = best_match(rows, table.database, table.name, cluster.server_id)
    row = match if isinstance(match, ReplicationRow) else None
    logging = TableLogging(None if row is None else row.binlog_type, cluster.options, cluster.transaction_ids)
    function = None
    if row is not None and row.conflict_fn is not None:
        with suppress(ConfigurationError):  # `TableSetup.refusal` says why
            function = parse_conflict_function(row.conflict_fn, configuration.functions)
    return PlacedTable(cluster, table, setup, match, function, logging)
