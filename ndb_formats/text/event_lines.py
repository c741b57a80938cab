"""
Events as text, in the format of mysqlbinlog, without the rows that they have.

The lines are similar to mysqlbinlog's, and statements are shown without the session settings around them: this text is
for reading, not for a server.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

from ndb_formats.constants import EventType
from ndb_formats.events.control_events import decode_incident
from ndb_formats.selection import DecodedEvent
from ndb_formats.text.table_metadata_lines import table_metadata_lines

_SECONDS = 256


def event_lines(decoded: DecodedEvent, *, table_metadata: bool) -> Iterator[bytes]:
    """
    Yield the lines of an event, without newlines, in the character sets of the binlog; without the rows that it has.

    Args:
        decoded: The event.
        table_metadata: Whether to print columns and primary key of a table.
    """
    yield _event_line(decoded)
    if decoded.statement is not None:
        yield decoded.statement
    if decoded.event.type is EventType.INCIDENT_EVENT:
        incident = decode_incident(decoded.event.body)
        yield f"# Incident: {incident.name}".encode()
        yield b"RELOAD DATABASE; # Shall generate syntax error"
    if table_metadata and decoded.table_map is not None and decoded.rows is None:
        yield from table_metadata_lines(decoded.table_map)


def _event_line(decoded: DecodedEvent) -> bytes:
    header = decoded.event.header
    clock = clock_text(header.timestamp)
    line = f"#{clock} server id {header.server_id}  end_log_pos {header.next_position} \t{_title(decoded)}"
    return line.encode("utf-8", "surrogateescape")


@lru_cache(maxsize=_SECONDS)
def clock_text(timestamp: int) -> str:
    """Return a moment as mysqlbinlog prints it, in UTC."""
    moment = datetime.fromtimestamp(timestamp, UTC)
    return f"{moment:%y%m%d} {moment.hour:2d}:{moment:%M:%S}"


def _title(decoded: DecodedEvent) -> str:
    """Return the text that mysqlbinlog prints for an event."""
    kind, table_map, rows = decoded.event.type, decoded.table_map, decoded.rows
    if rows is not None:
        return rows_title(decoded.event.header.type_name, rows.table_id, statement_end=rows.statement_end)
    if table_map is not None:
        return f"Table_map: `{table_map.database}`.`{table_map.table}` mapped to number {table_map.table_id}"
    if kind is EventType.XID_EVENT:
        return f"Xid = {int.from_bytes(decoded.event.body[:8], 'little')}"
    if kind is EventType.INCIDENT_EVENT:
        return ""
    return decoded.event.header.type_name.removesuffix("_EVENT").removesuffix("_LOG").capitalize()


def rows_title(type_name: str, table_id: int, *, statement_end: bool) -> str:
    """Return the text that mysqlbinlog prints for a rows event."""
    name = type_name.removesuffix("_EVENT").capitalize()
    return f"{name}: table id {table_id}{' flags: STMT_END_F' if statement_end else ''}"
