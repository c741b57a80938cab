"""
What a run is about: two clusters, their binlogs and tables, and rows of mysql.ndb_replication.
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
