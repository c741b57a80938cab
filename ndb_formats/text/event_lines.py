"""
Events as text, in the format of mysqlbinlog.

The ``###`` lines of rows and the lines of table metadata are those of mysqlbinlog, byte for byte. The lines of events
are similar, and statements are shown without the session settings around them: this text is for reading, not for a
server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from ndb_formats.constants import EventType
from ndb_formats.selection import DecodedEvent
from ndb_formats.text.row_lines import rows_event_lines
from ndb_formats.text.table_metadata_lines import table_metadata_lines

__all__ = ["text_lines"]


def text_lines(events: Iterable[DecodedEvent], *, verbose: int, table_metadata: bool) -> Iterator[bytes]:
    """
    Yield the lines of events, without newlines, in the character sets of the binlog.

    Args:
        events: Events, in order.
        verbose: 0 for no rows, 1 for rows, 2 for rows with the types of columns.
        table_metadata: Whether to print columns and primary key of each table.
    """
    position = None
    for decoded in events:
        event = decoded.event
        if (event.file, event.position) != position:
            position = (event.file, event.position)
            yield f"# at {event.position}".encode()
        yield _event_line(decoded)
        if decoded.statement is not None:
            yield decoded.statement.encode("utf-8", "surrogateescape")
        if table_metadata and decoded.table_map is not None and decoded.rows is None:
            yield from table_metadata_lines(decoded.table_map)
        if verbose and decoded.rows is not None and decoded.table_map is not None:
            yield from rows_event_lines(decoded.table_map, decoded.rows, verbose=verbose)


def _event_line(decoded: DecodedEvent) -> bytes:
    header = decoded.event.header
    moment = datetime.fromtimestamp(header.timestamp, UTC)
    clock = f"{moment:%y%m%d} {moment.hour:2d}:{moment:%M:%S}"
    line = f"#{clock} server id {header.server_id}  end_log_pos {header.next_position} \t{_title(decoded)}"
    return line.encode("utf-8", "surrogateescape")


def _title(decoded: DecodedEvent) -> str:
    """Return the text that mysqlbinlog prints for an event."""
    kind, table_map, rows = decoded.event.type, decoded.table_map, decoded.rows
    if rows is not None:
        name = decoded.event.header.type_name.removesuffix("_EVENT").capitalize()
        return f"{name}: table id {rows.table_id}{' flags: STMT_END_F' if rows.statement_end else ''}"
    if table_map is not None:
        return f"Table_map: `{table_map.database}`.`{table_map.table}` mapped to number {table_map.table_id}"
    if kind is EventType.XID_EVENT:
        return f"Xid = {int.from_bytes(decoded.event.body[:8], 'little')}"
    return decoded.event.header.type_name.removesuffix("_EVENT").removesuffix("_LOG").capitalize()
