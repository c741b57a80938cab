"""
What a log says besides rows: statements that change definitions or rows, different Table_map events, and incidents.

Only event headers and a few bytes of each event are read. Events inside compressed transactions are not seen: NDB does
not compress statements, and whoever reads the rows meets the Table_map events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from ndb_formats.binlog_reader import Event, event_at, first_event
from ndb_formats.columnar.event_index import EventIndex, map_bytes, recent_index
from ndb_formats.columnar.kernels.definition_events import definition_events
from ndb_formats.constants import APPLY_STATUS, EVENT_HEADER_SIZE, EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.changing_statement import changed_tables, changes_rows
from ndb_formats.events.header import FormatDescription, decode_format_description
from ndb_formats.events.incident_event import IncidentEvent, decode_incident
from ndb_formats.events.logged_statement import statement_of
from ndb_formats.events.mariadb import uncompressed_query
from ndb_formats.events.query_event import decode_query, session_of
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.definitions import Statement

__all__ = ["LogItem", "LoggedChange", "LoggedIncident", "LoggedStatement", "LoggedTable", "scan_log"]


_MOST_KEPT = 200  # characters of a statement that changes rows: a log can have very many


@attrs.frozen
class LoggedStatement:
    """
    A statement that may change definitions.

    Attributes:
        file: Path of its file.
        position: Position of its event.
        server_id: Server on which it was run.
        statement: The statement.
    """

    file: str
    position: int
    server_id: int
    statement: Statement


@attrs.frozen
class LoggedTable:
    """
    A Table_map event that differs from those before it in its file.

    Attributes:
        file: Path of its file.
        position: Position of the event.
        table_map: The event.
        of_ndb: Whether its transaction writes `mysql.ndb_apply_status`, as those of NDB do.
    """

    file: str
    position: int
    table_map: TableMap
    of_ndb: bool = True


@attrs.frozen
class LoggedChange:
    """
    A statement that changes rows.

    Attributes:
        file: Path of its file.
        position: Position of its event.
        text: The statement, or its start.
        tables: ``database.table`` of each table that it changes, or may change; empty if it does not say.
    """

    file: str
    position: int
    text: str
    tables: frozenset[str]


@attrs.frozen
class LoggedIncident:
    """
    An Incident event.

    Attributes:
        file: Path of its file.
        position: Position of the event.
        incident: The event.
    """

    file: str
    position: int
    incident: IncidentEvent


LogItem = LoggedStatement | LoggedTable | LoggedChange | LoggedIncident


def scan_log(files: Sequence[str | Path], *, verify: bool) -> Iterator[LogItem]:
    """
    Yield what a log says besides rows, in order; it ends where the log cannot be read.

    Args:
        files: In the order in which they were written.
        verify: Whether it ends at such an event, too, if its checksum is wrong; readers that check them end there.
    """
    for file in (each for each in files if Path(each).exists()):  # one that was read earlier need not be there
        try:
            first = first_event(file, verify=False)
            if first is None:
                continue
            description = decode_format_description(first.body)
            index = recent_index(file)
            arrays = (index.positions, index.types, index.sizes)
            for number in definition_events(map_bytes(index.file), *arrays, description.checksum_size).tolist():
                found = _read(index, number, description, verify=verify)
                if found is not None:
                    yield found
        except FormatError:
            return  # whoever reads the rows says why
        if index.error is not None:
            return


def _is_of_ndb(index: EventIndex, number: int) -> bool:
    """Return whether the transaction of an event has a Table_map event of `mysql.ndb_apply_status`."""
    data = map_bytes(index.file)
    for way in (range(number, len(index.types)), range(number - 1, -1, -1)):
        for other in way:
            if index.types[other] in _TRANSACTION_ENDS:
                break
            if index.types[other] == EventType.TABLE_MAP_EVENT:
                start = int(index.positions[other]) + EVENT_HEADER_SIZE + _TABLE_NAME_AT
                if data[start : start + len(_STATUS_NAME)].tobytes() == _STATUS_NAME:
                    return True
    return False


_TRANSACTION_ENDS = (EventType.QUERY_EVENT, EventType.XID_EVENT)
_TABLE_NAME_AT = 8  # in the body of a Table_map event, after the table id and the flags
_STATUS_NAME = b"".join(bytes([len(part)]) + part.encode() + b"\0" for part in APPLY_STATUS.split("."))


def _read(index: EventIndex, number: int, description: FormatDescription, *, verify: bool) -> LogItem | None:
    event = event_at(index.file, int(index.positions[number]), description, verify=verify)
    if event.type is EventType.TABLE_MAP_EVENT:
        return LoggedTable(
            index.file, event.position, decode_table_map(event.body, event.server), _is_of_ndb(index, number)
        )
    if event.type is EventType.INCIDENT_EVENT:
        return LoggedIncident(index.file, event.position, decode_incident(event.body))
    query = decode_query(_query_body(event), event.server)
    if changes_rows(query.statement):
        tables = changed_tables(query.statement, query.database, session_of(query))
        return LoggedChange(index.file, event.position, query.statement[:_MOST_KEPT], tables)
    statement = statement_of(query)
    if statement is None:
        return None
    return LoggedStatement(index.file, event.position, event.header.server_id, statement)


# Of an Execute_load_query event, between the head of a Query event and its status: file id, and where the name is.
_QUERY_HEAD, _LOAD_HEAD = 13, 13


def _query_body(event: Event) -> bytes:
    """Return the body of an event as that of a Query event."""
    if event.type is EventType.MARIADB_QUERY_COMPRESSED_EVENT:
        return uncompressed_query(event.body)
    if event.type is EventType.EXECUTE_LOAD_QUERY_EVENT:
        return event.body[:_QUERY_HEAD] + event.body[_QUERY_HEAD + _LOAD_HEAD :]
    return event.body
