"""
The model of a run: two clusters, their binlogs and tables, and the rows of mysql.ndb_replication.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from conflict.config.definitions import ClusterDefinitions
from conflict.rules.functions import FUNCTIONS, FunctionSpec
from conflict.rules.replication_table import ReplicationRow
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup, is_exceptions_table, set_up
from ndb_formats.rules.replica.conversions import TypeConversion
from ndb_formats.rules.update_format import ServerOptions
from ndb_formats.schema.tables import Schema

__all__ = ["ClusterConfiguration", "Configuration"]


@attrs.frozen
class ClusterConfiguration:
    """
    One cluster of a run.

    Attributes:
        name: The name that the user gives it.
        server_id: Server id of the MySQL server that logs and applies.
        files: Its binlog files, oldest first.
        role: ``ndb_applier_conflict_role``.
        options: Its logging options, which count for tables with binlog type 0.
        transaction_ids: Whether it logs transaction ids (``ndb_log_transaction_id``); None if unknown.
        schema: Its own tables, where they differ from those of the run; None if they do not.
        conversions: ``replica_type_conversions``.
    """

    name: str
    server_id: int
    files: tuple[Path, ...]
    role: Role = Role.NONE
    options: ServerOptions = attrs.field(factory=ServerOptions)
    transaction_ids: bool | None = None
    schema: Schema | None = attrs.field(default=None, repr=False)
    conversions: frozenset[TypeConversion] = frozenset()


@attrs.frozen
class Configuration:
    """
    A run: one use of the program on the binlogs of two clusters.

    Attributes:
        clusters: The two clusters.
        schema: All tables, including exceptions tables.
        replication: Rows of ``mysql.ndb_replication``, the same on both clusters.
        functions: The known conflict functions: the server's, and the user's own.
        skip_missing: Skip an operation that lacks the value to compare, instead of stopping its applier.
        schema_at_end: Whether `schema` says how tables stand at the end of the binlogs, not at their start.
        definitions: By cluster, its definitions over time, where they change or differ between the clusters (see
            `conflict.history.following`); empty if `schema` holds for all time. `schema` then has History tables.
        notes: What is to be said about the definitions.
    """

    clusters: tuple[ClusterConfiguration, ...]
    schema: Schema
    replication: tuple[ReplicationRow, ...]
    functions: tuple[FunctionSpec, ...] = FUNCTIONS
    skip_missing: bool = False
    schema_at_end: bool = False
    definitions: Mapping[str, ClusterDefinitions] = attrs.field(factory=dict, repr=False)
    notes: tuple[str, ...] = ()

    @property
    def data_schema(self) -> Schema:
        """The tables without the exceptions tables."""
        return Schema(tuple(table for table in self.schema.tables if not is_exceptions_table(table)))

    def setups(self) -> dict[str, dict[str, TableSetup]]:
        """Return, per cluster, how its server sets up each table; at the end of its binlogs, if that changes."""
        if self.definitions:
            return {name: known.setups for name, known in self.definitions.items()}
        return {
            cluster.name: set_up(self.schema, self.replication, cluster.server_id, cluster.options, self.functions)
            for cluster in self.clusters
        }

    def setups_at_start(self) -> dict[str, dict[str, TableSetup]]:
        """Return, per cluster, how its server sets up each table at the start of its binlogs."""
        if not self.definitions:
            return self.setups()
        return {name: known.start.setups for name, known in self.definitions.items()}

    def setups_over_time(self) -> dict[str, dict[str, list[TableSetup]]]:
        """Return, per cluster and table, every setup that it had, one after the other."""
        if not self.definitions:
            return {name: {table: [setup] for table, setup in setups.items()} for name, setups in self.setups().items()}
        return {name: known.setups_over_time for name, known in self.definitions.items()}

    @property
    def server_ids(self) -> dict[str, int]:
        """Server id of each cluster."""
        return {cluster.name: cluster.server_id for cluster in self.clusters}

    def peer(self, name: str) -> ClusterConfiguration:
        """Return the other cluster."""
        return next(cluster for cluster in self.clusters if cluster.name != name)
