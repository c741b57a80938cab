"""
What the rules look at: every table on every cluster, as its server sets it up and as its changes arrive elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial

import attrs

from conflict.checking.deployment import ArrivingChange, Deployment, TableLogging
from conflict.checking.findings import Finding, Fix, TablePlace, insert_row, update_rows
from conflict.checking.read_logs import ReadLog, Travel, travels_of
from conflict.checking.reasons import reasons_of
from conflict.config.arguments import DeploymentPolicy
from conflict.config.configuration import ClusterConfiguration, Configuration, Links
from conflict.config.server_settings import ServerVariables
from conflict.errors import ConfigurationError
from conflict.rules.functions import ConflictFunction, parse_conflict_function
from conflict.rules.replication_table import AmbiguousMatch, ReplicationRow, best_match
from conflict.rules.server_variables import VARIABLE_OF, Release
from conflict.rules.table_setup import TableSetup, set_up
from ndb_formats.rules.update_format import switch
from ndb_formats.schema.tables import Table

_FILTERS_OF_LOGS = ("binlog_do_db", "binlog_ignore_db")


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
    def place(self) -> TablePlace:
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

    def set_in_row(self, column: str, value: str) -> Fix:
        """Return the statement that sets a column of the row that counts, or gives the table such a row."""
        if self.row is not None:
            return update_rows(column, value, self.row)
        return insert_row(self.table, self.cluster.server_id, column, value)


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
    reasons: tuple[Finding, ...] = attrs.field(repr=False)

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
        release: The release of all servers, if what differs by release is found, too.
        logs: What their binlogs show, as far as these were read.
    """

    configuration: Configuration
    policy: DeploymentPolicy
    tables: tuple[PlacedTable, ...]
    release: Release | None = None
    logs: tuple[ReadLog, ...] = ()

    @property
    def clusters(self) -> tuple[ClusterConfiguration, ...]:
        """The clusters."""
        return self.configuration.clusters

    @property
    def links(self) -> Links:
        """Which clusters replicate from which."""
        return self.configuration.links

    def value(self, cluster: ClusterConfiguration, name: str) -> str | None:
        """Return the value of a variable of a cluster's server; None if it is not known."""
        return None if cluster.variables is None else self.value_of(cluster.variables, name)

    def value_of(self, given: ServerVariables, name: str) -> str | None:
        """Return the value of a variable of a server; None if it is not known."""
        if name in given:
            return given[name]
        if name in _FILTERS_OF_LOGS and (given.complete or given.are_all):
            return ""
        return VARIABLE_OF[name].default_in(self.release) if given.complete else None

    def is_on(self, cluster: ClusterConfiguration, name: str) -> bool | None:
        """Return whether a variable of a cluster's server is on; None if that is not known."""
        value = self.value(cluster, name)
        return None if value is None else switch(name, value)

    @cached_property
    def travels(self) -> tuple[Travel, ...]:
        """How long epochs took along each channel, as far as binlogs show it."""
        return tuple(travels_of(self.logs, self.configuration.links)) if self.logs else ()

    @cached_property
    def by_place(self) -> dict[TablePlace, PlacedTable]:
        """Every table by cluster and name."""
        return {each.place: each for each in self.tables}

    def on(self, cluster: ClusterConfiguration, placed: PlacedTable) -> PlacedTable | None:
        """Return a table as another cluster has it; None if it does not."""
        return self.by_place.get(self.place_on(cluster, placed))

    def place_on(self, cluster: ClusterConfiguration, placed: PlacedTable) -> TablePlace:
        """Return where another cluster has a table, or would have it."""
        return place_of(cluster, self.configuration.databases.own_table(cluster.name, self.run_table(placed)))

    def run_table(self, placed: PlacedTable) -> Table:
        """Return a table under the one name that a run gives it, whatever clusters call its database."""
        return self.configuration.databases.run_table(placed.cluster.name, placed.table)

    @cached_property
    def arrivals(self) -> tuple[Arrival, ...]:
        """What arrives at each table with a function, from each source of its cluster that has the table."""
        return tuple(
            self._arrival(here, here.function, there)
            for here in self.tables
            if here.function is not None
            for source in self.links.sources(here.cluster.name)
            for there in [self.on(source, here)]
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
        return Arrival(here, there, deployment, deployment.changes, reasons_of(deployment, self.policy))


def place_of(cluster: ClusterConfiguration, table: Table) -> TablePlace:
    """Return the place of a table on a cluster; without a database, it has its name alone."""
    return TablePlace(cluster.name, table.full_name.removeprefix("."))


def subject_of(
    configuration: Configuration, policy: DeploymentPolicy, setups: Mapping[str, Mapping[str, TableSetup]] | None = None
) -> Subject:
    """
    Return what is to be checked of a run.

    Args:
        configuration: The run.
        policy: Whether what the manual advises against is found, too.
        setups: By cluster, how its server sets up each table; None for the tables as they are declared.
    """
    own_table = configuration.databases.own_table
    placed = [
        _placed(configuration, cluster, setup)
        for cluster in configuration.clusters
        for setup in (
            _declared(configuration, cluster)
            if setups is None
            else (each.named(partial(own_table, cluster.name)) for each in setups[cluster.name].values())
        )
    ]
    return Subject(configuration, policy, tuple(placed))


def _declared(configuration: Configuration, cluster: ClusterConfiguration) -> Iterable[TableSetup]:
    schema, rows = configuration.schema_of(cluster), configuration.replication_of(cluster)
    return set_up(schema, rows, cluster.server_id, cluster.options, configuration.functions).values()


def _placed(configuration: Configuration, cluster: ClusterConfiguration, setup: TableSetup) -> PlacedTable:
    table, rows = setup.table, configuration.replication_of(cluster)
    match = best_match(rows, table.database, table.name, cluster.server_id)
    row = match if isinstance(match, ReplicationRow) else None
    logging = TableLogging(None if row is None else row.binlog_type, cluster.options, cluster.transaction_ids)
    function = None
    if row is not None and row.conflict_fn is not None:
        with suppress(ConfigurationError):  # `TableSetup.refusal` says why
            function = parse_conflict_function(row.conflict_fn, configuration.functions)
    return PlacedTable(cluster, table, setup, match, function, logging)
