"""
The server options that count for `binlog_type` 0, by the images in a server's binlog.
"""

from __future__ import annotations

import attrs

from conflict.config.configuration import ClusterConfiguration
from conflict.discovery.logged_types import types_by_table
from conflict.history.run import Run
from conflict.rules.replication_table import AmbiguousMatch, best_match
from ndb_formats.rules.update_format import ServerOptions, UpdateFormat, effective_format
from ndb_formats.schema.tables import Table

__all__ = ["logged_options"]


def logged_options(run: Run, cluster: ClusterConfiguration) -> dict[str, bool]:
    """
    Return the options that were not at their defaults when a server logged the tables with `binlog_type` 0.

    They are the same for all these tables. Where several settings fit the images, it is the one with the fewest options
    that are not at their defaults.

    Args:
        run: The run.
        cluster: The cluster of the server.
    """
    fitting = [
        {*map(effective_format, types)}
        for table, types in types_by_table(run, cluster)
        if _by_options(run, cluster, table)
    ]
    common = set.intersection(*fitting) if fitting else set()
    return min((_unusual(each) for each in common), key=len, default={})


def _unusual(logged: UpdateFormat) -> dict[str, bool]:
    """Return the options that are not at their defaults where type 0 means a format."""
    options = ServerOptions(logged.updated_only, logged.as_write, logged.minimal)
    return {name: value for name, value in attrs.asdict(options).items() if value != getattr(ServerOptions(), name)}


def _by_options(run: Run, cluster: ClusterConfiguration, table: Table) -> bool:
    """Whether the server's options say how it logs a table."""
    row = best_match(run.configuration.replication_of(cluster), table.database, table.name, cluster.server_id)
    return row is None or (not isinstance(row, AmbiguousMatch) and row.binlog_type == 0)
