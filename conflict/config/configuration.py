"""
The model of a run: two clusters, their binlogs and tables, and the rows of mysql.ndb_replication.
"""

from __future__ import annotations

from pathlib import Path

import attrs

from conflict.rules.functions import FUNCTIONS, FunctionSpec
from conflict.rules.replication_table import ReplicationRow
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup, is_exceptions_table, set_up
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
    A run: one use of the program on the binlogs of two clusters.

    Attributes:
        clusters: The two clusters.
        schema: All tables, including exceptions tables.
        replication: Rows of ``mysql.ndb_replication``, the same on both clusters.
        functions: The known conflict functions: the server's, and the user's own.
        skip_missing: Skip an operation that lacks the value to compare, instead of stopping its applier.
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
