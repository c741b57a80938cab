"""
Follows the definitions of tables through the binlogs of a run. Computes docs/definitions.md.

The schema defines the tables at the start, statements in the log change them, and every Table_map event has to agree
with the definition in force. Where it does not agree, the run stops reading the log, and keeps everything before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from types import MappingProxyType

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, LogPiece
from conflict.config.database_names import possible_renames
from conflict.config.schema_file import what_to_give
from conflict.errors import ConfigurationError
from conflict.history.grid.kept_outlines import OutlinesOf
from conflict.history.preparing.definitions_in_log import (
    ClusterLog,
    NoteKind,
    sentences_of,
    sentences_on_rows,
    some_of,
)
from conflict.history.preparing.log_pieces import ClusterPieces, pieces_of
from conflict.history.preparing.restarts_in_logs import find_disconnects, find_restarts
from conflict.history.preparing.versions_of_tables import with_history_tables
from conflict.history.run import Run
from conflict.history.scheduling.schedule import HintsOf
from conflict.history.statement_places import StatementPlaces
from conflict.rules.functions import what_was_meant
from conflict.rules.replication_table import ReplicationRow, best_match
from conflict.rules.table_setup import Refusal, RefusalKind, TableSetup, refusal_of_column
from ndb_formats.columnar.file_outline import FileOutline, items_of_log, outlines_of
from ndb_formats.columnar.log_remarks import remarks_on
from ndb_formats.columnar.log_scan import LoggedIncident, LoggedTable, LogItem
from ndb_formats.errors import did_you_mean
from ndb_formats.findings import LogRemark
from ndb_formats.schema.tables import Schema, Table
from ndb_formats.types.column_types import WireType

Name = tuple[str, str]
_OF_FUNCTIONS = {RefusalKind.PARSE, RefusalKind.NO_COLUMN, RefusalKind.WRONG_TYPE}


def make_run(
    configuration: Configuration,
    hints_of: HintsOf | None = None,
    outlines_of: OutlinesOf = outlines_of,
    earlier: Mapping[str, Sequence[FileOutline]] = MappingProxyType({}),
) -> Run:
    """
    Return the run of a configuration, with the definitions that are in force over the time of its binlogs.

    Args:
        configuration: What the user asks for.
        hints_of: What is known from other sources of when epochs were applied; None if nothing is.
        outlines_of: Returns the outline of each of some files.
        earlier: By cluster, the outlines of files before those that are given.

    Raises:
        ConfigurationError: No table of the binlogs is known, or a table that a server refuses because of its function
            is in the server's binlog.
        SchemaError: The definitions at the end cannot be taken back to the start.
    """
    read = {cluster.name: pieces_of(cluster) for cluster in configuration.clusters}
    # Files that were read earlier need not be there.
    outlines = {each.file: each for each in outlines_of([file for file in configuration.files if file.exists()])}
    outlines |= {each.file: each for own in earlier.values() for each in own}
    scans = {
        cluster.name: list(
            items_of_log(outlines, [*(each.file for each in earlier.get(cluster.name, ())), *cluster.log.files])
            if len(cluster.servers) == 1
            else _scanned(outlines, read[cluster.name].pieces)
        )
        for cluster in configuration.clusters
    }
    logged = _logged_tables(item for scan in scans.values() for item in scan)
    configuration = configuration.in_databases(logged).named_as(logged)
    configuration = configuration.with_database_names({name: _logged_tables(scan) for name, scan in scans.items()})
    logs = [ClusterLog.read(configuration, cluster, scans[cluster.name]) for cluster in configuration.clusters]
    for log in logs:
        _refuse_joined_logs(log, read[log.cluster.name])
    notes = sentences_of(note for log in logs for note in log.notes)
    if configuration.databases:
        renamed = f"appliers rename databases (replicate_rewrite_db): {configuration.databases.renamed}"
        notes = (*notes, f"{renamed}; what is told of one cluster alone has its own names")
    added = [configuration.databases.run_table(log.cluster.name, table) for log in logs for table in log.added]
    _check_known(configuration, logs, logged)
    configuration = _without_other_engines(configuration, logs)
    if any(log.steps or log.error or log.own for log in logs):
        run = with_history_tables(configuration, logs)
    else:
        run = Run(_with_tables(configuration, added))
    for log in logs:
        _refuse_functions_without_tables(run, log)
    resolved = _with_function(run.setups.at_end) | _with_function(configuration.setups())
    remarks = tuple(
        remark
        for name, scan in scans.items()
        for remark in remarks_on(
            _without_filled(read[name], scan), {configuration.databases.own_name(name, each) for each in resolved}
        )
    )
    remarks += tuple(LogRemark(said, log.run_name(table) in resolved) for log in logs for table, said in log.unfollowed)
    remarks += tuple(remark for each in read.values() for remark in each.remarks)
    notes += tuple(note for each in read.values() for note in each.notes)
    notes += tuple(note for name, scan in scans.items() for note in _filled(read[name], scan))
    restarts = tuple(
        restart
        for each in configuration.clusters
        for restart in find_restarts(each, read[each.name].logs, partial(items_of_log, outlines))
    )
    disconnects = tuple(
        disconnect
        for each in configuration.clusters
        for disconnect in find_disconnects(each, read[each.name].logs, partial(items_of_log, outlines))
        if read[each.name].filled_at(disconnect.file, disconnect.position) is None
    )
    pieces = {each.name: read[each.name].pieces for each in configuration.clusters if len(each.servers) > 1}
    return attrs.evolve(
        run,
        notes=(*notes, *sentences_on_rows(run)),
        remarks=remarks,
        hints_of=hints_of,
        pieces=pieces,
        restarts=restarts,
        disconnects=disconnects,
        outlines=outlines,
        undefined_tables={log.cluster.name: log.undefined_tables for log in logs},
        logged_tables={log.cluster.name: log.logged_tables for log in logs},
        statements=reduce(or_, (_statements(each, scans[each.name]) for each in configuration.clusters)),
        renames=possible_renames(
            configuration.links.filters, {name: _column_types(scan) for name, scan in scans.items()}
        ),
        compressed=frozenset(
            name
            for name, scan in scans.items()
            if any(isinstance(item, LoggedTable) and item.packed and item.of_ndb for item in scan)
        ),
    )


def _refuse_joined_logs(log: ClusterLog, read: ClusterPieces) -> None:
    """
    Refuse a log that is put together from those of several SQL nodes, if definitions change in it.

    Which of them is in force is found by the place in one log.

    Raises:
        ConfigurationError: They change.
    """
    servers = list(dict.fromkeys(piece.server_id for piece in read.pieces))
    if len(servers) > 1 and log.steps:
        first = log.steps[0].logged
        shown = " and ".join(map(str, servers))
        message = (
            f"cluster {log.cluster.name}: definitions change ({first.file}, position {first.position}), and no log of "
            f"its SQL nodes holds all epochs, so that those of servers {shown} are put together; that is "
            "not followed: give the files of one server from after the change on, or all of them"
        )
        raise ConfigurationError(message)


def _without_filled(read: ClusterPieces, scan: Iterable[LogItem]) -> list[LogItem]:
    """Leave out the incidents at which the log of another SQL node lacks nothing."""
    return [
        each
        for each in scan
        if not (isinstance(each, LoggedIncident) and read.filled_at(each.file, each.position) is not None)
    ]


def _filled(read: ClusterPieces, scan: Iterable[LogItem]) -> Iterator[str]:
    """Yield the incidents at which the log of another SQL node lacks nothing, without a full stop."""
    for each in scan:
        if isinstance(each, LoggedIncident) and (server := read.filled_at(each.file, each.position)) is not None:
            yield (
                f"{each.file}, position {each.position}: incident {each.incident.name} ({each.incident.message}); the "
                f"log of server {server} has all epochs around it, so nothing is missing"
            )


def _scanned(outlines: Mapping[str, FileOutline], pieces: Sequence[LogPiece]) -> Iterator[LogItem]:
    """
    Yield what the pieces hold besides rows.

    Table_map events and incidents of their files count wherever they stand: an event like one before it is not found
    again, and an incident stands where another log is read.
    """
    known = set[tuple[str, int]]()
    for piece in pieces:
        for item in items_of_log(outlines, [piece.file]):
            inside = piece.start <= item.position and (piece.stop is None or item.position < piece.stop)
            if isinstance(item, LoggedIncident):
                inside = (item.file, item.position) not in known
                known.add((item.file, item.position))
            if inside or isinstance(item, LoggedTable):
                yield item


def _statements(cluster: ClusterConfiguration, scan: Iterable[LogItem]) -> StatementPlaces:
    """Return where the statements in the log of a cluster stand in those of its servers."""
    server_ids = {str(file): server.server_id for server in cluster.servers for file in server.files}
    return StatementPlaces.of(scan, server_ids, cluster.server_id)


def _with_tables(configuration: Configuration, added: Sequence[Table]) -> Configuration:
    """Return a configuration with the tables that the binlogs define and its schema does not."""
    names = {table.full_name for table in configuration.schema.tables}
    new = {table.full_name: table for table in added if table.full_name not in names}
    if not new:
        return configuration
    return attrs.evolve(configuration, schema=configuration.schema + Schema(tuple(new.values())))


def _with_function(setups: Mapping[str, Mapping[str, TableSetup]]) -> set[str]:
    """Return the full names of the tables that have a conflict function on any cluster."""
    known = (setup for tables in setups.values() for setup in tables.values())
    return {setup.table.full_name for setup in known if setup.function is not None}


def _without_other_engines(configuration: Configuration, logs: Sequence[ClusterLog]) -> Configuration:
    """Return a run without the tables of its schema that are of NDB in none of its logs."""
    tables = configuration.schema.tables

    def is_other(log: ClusterLog, table: Table) -> bool:
        return log.is_other(configuration.databases.own_table(log.cluster.name, table))

    kept = tuple(table for table in tables if not all(is_other(log, table) for log in logs))
    for log in logs:
        log.own |= any(is_other(log, table) for table in kept)
    schema = attrs.evolve(configuration.schema, tables=kept)
    return configuration if len(kept) == len(tables) else attrs.evolve(configuration, schema=schema)


def _check_known(configuration: Configuration, logs: Sequence[ClusterLog], logged: Iterable[Name]) -> None:
    if not configuration.schema.tables and not any(log.known for log in logs):
        message = (
            "the definition of no table is known: no schema is given, and the binlogs neither create tables nor name "
            "their columns (binlog_row_metadata=FULL does); "
        )
        message += what_to_give(configuration.files, [name for _, name in logged])
        raise ConfigurationError(message)
    unknown = {note.table for log in logs for note in log.notes if note.what is NoteKind.NOT_READ}
    if unknown and not any(log.reads for log in logs):
        defined = {table.full_name for table in configuration.schema.tables}
        message = (
            f"the schema defines {some_of(defined)}, but the binlogs change "
            f"{some_of(unknown)}; give the CREATE TABLE statements of these"
        )
        raise ConfigurationError(message)


def _refuse_functions_without_tables(run: Run, log: ClusterLog) -> None:
    """
    Refuse functions with which a server can have had no table, where its binlog shows the table at some time.

    A table that it does not create is in its binlog at no time, whatever the function: none is in any recording.
    """
    rows = run.configuration.replication_of(log.cluster)
    for over_time in run.setups.over_time[log.cluster.name].values():
        refusals = [setup.refusal for setup in over_time]
        table, refusal = run.shown_on(log.cluster.name, over_time[-1]), refusals[-1]
        if refusal is None or any(each is None or each.kind not in _OF_FUNCTIONS for each in refusals):
            continue
        row = best_match(rows, table.database, table.name, log.cluster.server_id)
        if (table.database, table.name) in log.logged and isinstance(row, ReplicationRow):
            message = (
                f"conflict_fn {row.conflict_fn} of {table.full_name}: {refusal.message.rstrip('.')}"
                f"{_remedy(refusal, table, row.conflict_fn or '')}. A server does not create such a table, and the "
                f"binlog of {log.cluster.name} changes it: another function was in force, or none (leave it out)"
            )
            raise ConfigurationError(message)


def _remedy(refusal: Refusal, table: Table, function: str) -> str:
    """Return, for a message, what a function may be meant for that its server refuses."""
    if refusal.kind is RefusalKind.PARSE:
        return what_was_meant(function)
    columns = [column for column in table.columns if refusal_of_column(table, column.name) is None]
    names = [column.name for column in columns]
    meant = did_you_mean(refusal.column or "", names)
    fit = f"columns that it can compare are {', '.join(names)}" if names else "it has no column that can be compared"
    return f"{meant}; {fit}, of {', '.join(column.name for column in table.columns)}"


def _column_types(items: Iterable[LogItem]) -> dict[Name, tuple[WireType, ...]]:
    """Return the types of the columns of each table that the binlogs change."""
    maps = (item.table_map for item in items if isinstance(item, LoggedTable))
    return {(each.database, each.table): each.types for each in maps}


def _logged_tables(items: Iterable[LogItem]) -> set[Name]:
    """Return database and name of each table that the binlogs change."""
    maps = (item.table_map for item in items if isinstance(item, LoggedTable))
    return {(each.database, each.table) for each in maps if each.database != "mysql"}
