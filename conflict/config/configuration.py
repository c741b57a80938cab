"""
What a user writes of a run: its clusters, their binlogs and tables, and the rows of mysql.ndb_replication.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

import attrs

from conflict.config.counter_reads import CounterReads
from conflict.config.database_names import DatabaseNames, names_of_databases
from conflict.config.replica_status import ReplicaChannel
from conflict.config.schema_file import in_databases, named_as
from conflict.config.server_settings import EpochTimes, ServerVariables, as_server_variables
from conflict.rules.functions import FUNCTIONS, FunctionSpec
from conflict.rules.replication_filter import ReplicationFilter
from conflict.rules.replication_table import ReplicationRow, Role
from conflict.rules.table_setup import TableSetup, is_exceptions_table, set_up
from ndb_formats.rules.replica.conversions import TypeConversion
from ndb_formats.rules.update_format import ServerOptions, switch
from ndb_formats.schema.row_keys import with_inexact_keys
from ndb_formats.schema.tables import Schema


@attrs.frozen
class LoggingServer:
    """
    A server of a cluster that logs. Its log has every epoch of the cluster, and own changes in it carry its server id.

    Attributes:
        server_id: Its server id.
        files: Its binlog files, oldest first.
    """

    server_id: int
    files: tuple[Path, ...] = ()


@attrs.frozen
class LogPiece:
    """
    A piece of a file of one SQL node.

    Attributes:
        server_id: Server id of the SQL node: its cluster's own changes in this piece carry it.
        file: The file.
        start: Position of the first event to read; 0 for the first one of the file.
        stop: Position after the last one; None for the end of the file.
    """

    server_id: int
    file: Path
    start: int = 0
    stop: int | None = None


@attrs.frozen
class ClusterConfiguration:
    """
    One cluster of a run.

    Attributes:
        name: The name that the user gives it.
        servers: Its SQL nodes that log, and those that apply; the first one is the one by which the cluster is known.
        role: ``ndb_applier_conflict_role``.
        options: Its logging options, which count for tables with binlog type 0.
        transaction_ids: Whether it logs transaction ids (``ndb_log_transaction_id``); None if unknown.
        rows: Files with the rows that its tables held when its log starts.
        rows_of: The other cluster, if its rows represent this one's as well.
        replicates_from: The clusters whose binlogs its applier applies; None for the other one of two.
        ignored: Per such cluster, the server ids that its applier leaves out (``IGNORE_SERVER_IDS``).
        replication: Its own rows of ``mysql.ndb_replication``; None for those of the run.
        variables: Its first SQL node's variables, by name; None if they are not given.
        other_nodes: The variables of its other SQL nodes, as far as they are given.
        epoch_times: How long its epochs and global checkpoints last; None if that is not given.
        schema: Its own tables, where they differ from those of the run; None if they do not.
        conversions: ``replica_type_conversions``.
        filter: Which tables' changes its applier drops, and which databases it renames.
        channel_filters: By source, the filters of the channel from it, where they are not `filter`.
        channels: By source, what its SQL node says of the channel from it, as far as that is given.
        has_channels: Whether its servers have a channel; None if that is not given.
        clock: How far the clock of its first SQL node is ahead of this machine's, in microseconds, at least and at
            most; None if no server was asked.
        counted: The counters of conflicts of its first SQL node; None if no server was asked twice.
    """

    name: str
    servers: tuple[LoggingServer, ...]
    role: Role = Role.NONE
    options: ServerOptions = attrs.field(factory=ServerOptions)
    transaction_ids: bool | None = None
    rows: tuple[Path, ...] = ()
    rows_of: str | None = None
    schema: Schema | None = attrs.field(default=None, repr=False)
    conversions: frozenset[TypeConversion] = frozenset()
    replicates_from: tuple[str, ...] | None = None
    ignored: Mapping[str, frozenset[int]] = attrs.field(factory=dict)
    replication: tuple[ReplicationRow, ...] | None = None
    variables: ServerVariables | None = attrs.field(
        default=None, repr=False, converter=attrs.converters.optional(as_server_variables)
    )
    other_nodes: tuple[ServerVariables, ...] = attrs.field(default=(), repr=False)
    epoch_times: EpochTimes | None = None
    filter: ReplicationFilter = attrs.field(factory=ReplicationFilter)
    channel_filters: Mapping[str, ReplicationFilter] = attrs.field(factory=dict)
    channels: Mapping[str, ReplicaChannel] = attrs.field(factory=dict, repr=False)
    has_channels: bool | None = None
    clock: tuple[int, int] | None = None
    counted: CounterReads | None = None

    def filter_of(self, source: str) -> ReplicationFilter:
        """Return the filters of the channel from a source."""
        return self.channel_filters.get(source, self.filter)

    @property
    def given_variables(self) -> Mapping[str, str]:
        """Its server's variables, by name; none if they are not given."""
        return {} if self.variables is None else self.variables

    @property
    def server_id_bits(self) -> int:
        """
        How many of the lowest bits of a row event's server id are that of a server (``server_id_bits``, 7 to 32).

        The others are the application's. Those of its first SQL node count: the manual has it the same on all servers.
        """
        given = self.given_variables.get("server_id_bits", "")
        return int(given) if given.isdecimal() and 7 <= int(given) <= 32 else 32

    @property
    def log(self) -> LoggingServer:
        """The SQL node whose log is read first."""
        return self.servers[0]

    @property
    def server_ids(self) -> frozenset[int]:
        """Server ids of all its SQL nodes."""
        return frozenset(server.server_id for server in self.servers)

    @property
    def files(self) -> tuple[Path, ...]:
        """The binlog files of all its SQL nodes."""
        return tuple(file for server in self.servers for file in server.files)

    @property
    def server_id(self) -> int:
        """Server id by which the cluster is known: that of its first SQL node."""
        return self.log.server_id

    @property
    def applies_singly(self) -> bool:
        """Whether its applier is known to send operations one by one, not in batches."""
        name = "replica_allow_batching"
        return not switch(name, self.given_variables.get(name, "ON"))


@attrs.frozen
class Links:
    """
    Which clusters replicate from which.

    Attributes:
        clusters: All clusters of a run.
    """

    clusters: tuple[ClusterConfiguration, ...]

    @property
    def server_ids(self) -> dict[str, int]:
        """Server id of each cluster."""
        return {cluster.name: cluster.server_id for cluster in self.clusters}

    @property
    def is_pair(self) -> bool:
        """Whether there are two clusters that replicate to each other."""
        return len(self.clusters) == 2 and all(self.sources(cluster.name) for cluster in self.clusters)

    def peer(self, name: str) -> ClusterConfiguration:
        """Return the other cluster of a pair."""
        return next(cluster for cluster in self.clusters if cluster.name != name)

    def sources(self, name: str) -> tuple[ClusterConfiguration, ...]:
        """Return the clusters from which a cluster replicates."""
        clusters = {cluster.name: cluster for cluster in self.clusters}
        given = clusters[name].replicates_from
        return (self.peer(name),) if given is None else tuple(clusters[source] for source in given)

    def replicas(self, name: str) -> tuple[ClusterConfiguration, ...]:
        """Return the clusters that replicate from a cluster."""
        return tuple(applier for applier, source in self.channels() if source.name == name)

    @property
    def filters(self) -> dict[tuple[str, str], ReplicationFilter]:
        """By applying cluster and source, the filters and rewrite rules."""
        return {(applier.name, source.name): applier.filter_of(source.name) for applier, source in self.channels()}

    def channels(self) -> Iterator[tuple[ClusterConfiguration, ClusterConfiguration]]:
        """Yield each applying cluster with each of its sources."""
        for applier in self.clusters:
            for source in self.sources(applier.name):
                yield applier, source


@attrs.frozen
class Span:
    """
    Which part of the logs a run reads, and what was before it.

    Attributes:
        empty: Whether all tables were empty before the logs; None if the logs have to show it.
        first: By cluster, the first own epoch to read. Tables were not empty before it.
        last: By cluster, the last own epoch to read.
        first_time: The first cluster is read from its first epoch of this second since 1970 on.
        stop_time: Both clusters are read up to the last epoch before this second since 1970.
    """

    empty: bool | None = True
    first: Mapping[str, int] = attrs.field(factory=dict)
    last: Mapping[str, int] = attrs.field(factory=dict)
    first_time: int | None = None
    stop_time: int | None = None

    @property
    def cuts(self) -> bool:
        """Whether epochs that the logs hold are not to be read."""
        return bool(self.first or self.last) or self.first_time is not None or self.stop_time is not None


@attrs.frozen
class Configuration:
    """
    What a user asks for: the binlogs of some clusters, and how these are set up.

    What can be resolved is a `conflict.history.run.Run`; `make_run` makes it of this (see
    `conflict.history.preparing.definitions_over_time`).

    Attributes:
        clusters: Two clusters that replicate to each other, or any number that replicate from one another.
        schema: All tables, including exceptions tables, in databases as the run names them.
        replication: Rows of ``mysql.ndb_replication``, for clusters that have no rows of their own.
        functions: The known conflict functions: the server's, and the user's own.
        skip_missing: Skip an operation that lacks the value to compare, instead of stopping its applier.
        span: Which part of the logs it reads, and what was before it.
        schema_at_end: Whether `schema` says how tables stand at the end of the binlogs, not at their start.
        databases: Databases that have other names on some clusters, because appliers rename them; see
            `with_database_names`.
    """

    clusters: tuple[ClusterConfiguration, ...]
    schema: Schema
    replication: tuple[ReplicationRow, ...]
    functions: tuple[FunctionSpec, ...] = FUNCTIONS
    skip_missing: bool = False
    span: Span = Span()
    schema_at_end: bool = False
    databases: DatabaseNames = attrs.field(factory=DatabaseNames)

    @property
    def links(self) -> Links:
        """Which clusters replicate from which."""
        return Links(self.clusters)

    @property
    def data_schema(self) -> Schema:
        """The tables without the exceptions tables."""
        return Schema(tuple(table for table in self.schema.tables if not is_exceptions_table(table)))

    @property
    def files(self) -> tuple[Path, ...]:
        """The binlog files of all servers."""
        return tuple(file for cluster in self.clusters for file in cluster.files)

    def replication_of(self, cluster: ClusterConfiguration) -> tuple[ReplicationRow, ...]:
        """Return the rows of ``mysql.ndb_replication`` of a cluster."""
        return self.replication if cluster.replication is None else cluster.replication

    def schema_of(self, cluster: ClusterConfiguration) -> Schema:
        """Return the tables of a cluster as they are declared and as it names them, exceptions tables among them."""
        return self.databases.own_schema(cluster.name, self.schema) if cluster.schema is None else cluster.schema

    def setups(self) -> dict[str, dict[str, TableSetup]]:
        """Return, per cluster, how its server sets up each table as it is declared."""
        return {
            cluster.name: self.set_up(cluster, self.databases.own_schema(cluster.name, self.schema))
            for cluster in self.clusters
        }

    def set_up(self, cluster: ClusterConfiguration, schema: Schema) -> dict[str, TableSetup]:
        """
        Return how the server of a cluster sets up each table, by the run's ``database.table``.

        Args:
            cluster: The cluster.
            schema: Its tables, exceptions tables among them, as it names them.
        """
        rows, names = self.replication_of(cluster), partial(self.databases.run_table, cluster.name)
        own = set_up(schema, rows, cluster.server_id, cluster.options, self.functions)
        named = (setup.named(names) for setup in own.values()) if self.databases else own.values()
        return {setup.table.full_name: setup for setup in named}

    def with_database_names(self, logged: Mapping[str, Collection[tuple[str, str]]]) -> Configuration:
        """
        Return the run with one name for each database that appliers rename (`conflict.config.database_names`).

        Args:
            logged: By cluster, database and name of the tables of its log; empty without logs.

        Raises:
            ConfigurationError: Two databases of one cluster would be one.
        """
        tables = _names(self.schema)
        own = {each.name: {*logged.get(each.name, ()), *_names(each.schema or Schema())} for each in self.clusters}
        databases = names_of_databases(
            [each.name for each in self.clusters],
            self.links.filters,
            {database for database, _ in tables},
            {cluster: {database for database, _ in each} for cluster, each in own.items()},
            {table for each in (tables, *own.values()) for _, table in each},
        )
        return attrs.evolve(self, databases=databases, schema=databases.run_schema(self.schema)) if databases else self

    def with_inexact_keys(self) -> Configuration:
        """Return the run with all columns allowed in keys, also those of tables that the binlogs create."""
        return self._with_schemas(with_inexact_keys)

    def named_as(self, known: Collection[tuple[str, str]]) -> Configuration:
        """Return the run with tables named as logs have them; see `conflict.config.schema_file.named_as`."""
        return self._with_schemas(lambda schema: named_as(schema, known))

    def in_databases(self, known: Collection[tuple[str, str]]) -> Configuration:
        """Return the run with databases for tables that name none; see `conflict.config.schema_file.in_databases`."""
        return self._with_schemas(lambda schema: in_databases(schema, known))

    def _with_schemas(self, changed: Callable[[Schema], Schema]) -> Configuration:
        clusters = tuple(
            cluster if cluster.schema is None else attrs.evolve(cluster, schema=changed(cluster.schema))
            for cluster in self.clusters
        )
        return attrs.evolve(self, clusters=clusters, schema=changed(self.schema))


def _names(schema: Schema) -> set[tuple[str, str]]:
    return {(table.database, table.name) for table in schema.tables}
