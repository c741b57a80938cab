"""
Under which binlog types and server options a server may have logged its tables, by the images in its binlog.

The options count for `binlog_type` 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import attrs

from conflict.config.configuration import ClusterConfiguration, LoggingServer
from conflict.history.run import Run
from conflict.rules.replication_table import AmbiguousMatch, best_match
from ndb_formats.binlog_reader import Event, locate, read_events, unpacked
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.rows_event import ROWS_EVENTS, decode_rows_event
from ndb_formats.events.table_map import decode_table_map
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.rules.update_format import ServerOptions, UpdateFormat, effective_format, fitting_types
from ndb_formats.schema.tables import Table

_SAMPLE = 20_000  # events that are read of each binlog
_PREFERENCE = (7, 3, 9, 6, 2, 8)  # of the types that fit, the one that tells most of a row is taken

Name = tuple[str, str]


def logged_types(run: Run, cluster: ClusterConfiguration) -> dict[str, int | None]:
    """
    Return the binlog type of each table that a server changed itself, by full name; None if no type fits.

    Args:
        run: The run.
        cluster: The cluster of the server.
    """
    return {table.full_name: _preferred(types) for table, types in types_by_table(run, cluster)}


def types_by_table(run: Run, cluster: ClusterConfiguration) -> Iterator[tuple[Table, tuple[int, ...]]]:
    """
    Yield the tables that a server changed itself, as defined last, with the binlog types that fit all its images.

    Args:
        run: The run.
        cluster: The cluster of the server.
    """
    found: dict[str, list[tuple[Table, set[EventColumns]]]] = {}
    for table, columns in itertools.islice(_logged(run, cluster), _SAMPLE):
        versions = found.setdefault(table.full_name, [])
        if not versions or versions[-1][0] != table:
            versions.append((table, set()))
        versions[-1][1].add(columns)
    for versions in found.values():
        fitting = [fitting_types((table,), events) for table, events in versions]
        yield versions[-1][0], tuple(each for each in fitting[0] if all(each in types for types in fitting))


def _preferred(types: tuple[int, ...]) -> int | None:
    return next((number for number in (*_PREFERENCE, *types) if number in types), None)


def _logged(run: Run, cluster: ClusterConfiguration) -> Iterator[tuple[Table, EventColumns]]:
    """Yield the table and the columns of each event of users' changes; they end where the log cannot be read."""
    tables: dict[int, Table | None] = {}
    find = _finder(run, cluster)
    try:
        for event in _events(cluster.log):
            kind = event.type
            if kind is EventType.TABLE_MAP_EVENT:
                with locate(event):
                    table_map = decode_table_map(event.body, event.server)
                tables[table_map.table_id] = find(event, (table_map.database, table_map.table))
            elif kind in ROWS_EVENTS and event.header.server_id == cluster.log.server_id:
                with locate(event):
                    rows = decode_rows_event(kind, event.body)
                table = tables.get(rows.table_id)
                # Refreshes and reads have images of their own.
                plain = rows.extra is None or not rows.extra.flags
                if plain and table is not None and len(table.columns) == rows.column_count:
                    yield table, EventColumns(rows.operation, rows.before, rows.after)
    except FormatError:
        return  # whoever reads the rows says why


def _events(server: LoggingServer) -> Iterator[Event]:
    for file in server.files:
        for event in read_events(file, verify=False):
            yield from unpacked(event)


def _finder(run: Run, cluster: ClusterConfiguration) -> Callable[[Event, Name], Table | None]:
    """Return what finds the definition of a table where an event stands, if it is one of the run's."""
    if not run.definitions:
        own = ((run.databases.own_table(cluster.name, table), table) for table in run.data_schema.tables)
        tables = {(named.database, named.name): table for named, table in own}
        return lambda event, name: tables.get(name)
    definitions, files = run.definitions[cluster.name], tuple(str(file) for file in cluster.log.files)

    def find(event: Event, name: Name) -> Table | None:
        version = definitions.at(event.file, event.position, files).find(*name)
        return None if version is None else version.table

    return find


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
