"""
What a log says of definitions: its statements that change them, and its different Table_map events.

Only event headers and a few bytes of each event are read. Events inside compressed transactions are not seen: NDB does
not compress statements, and whoever reads the rows meets the Table_map events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from ndb_formats.binlog_reader import event_at, first_event
from ndb_formats.columnar.event_index import EventIndex, map_bytes, recent_index
from ndb_formats.columnar.kernels.definition_events import definition_events
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.header import FormatDescription, decode_format_description
from ndb_formats.events.logged_statement import statement_of
from ndb_formats.events.query_event import decode_query
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.definitions import Statement

__all__ = ["LoggedStatement", "LoggedTable", "scan_log"]


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
    """

    file: str
    position: int
    table_map: TableMap


def scan_log(files: Sequence[str | Path], *, verify: bool) -> Iterator[LoggedStatement | LoggedTable]:
    """
    Yield what a log says of definitions, in order; it ends where the log cannot be read.

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


def _read(
    index: EventIndex, number: int, description: FormatDescription, *, verify: bool
) -> LoggedStatement | LoggedTable | None:
    event = event_at(index.file, int(index.positions[number]), description, verify=verify)
    if event.type is EventType.TABLE_MAP_EVENT:
        return LoggedTable(index.file, event.position, decode_table_map(event.body))
    statement = statement_of(decode_query(event.body, event.server))
    if statement is None:
        return None
    return LoggedStatement(index.file, event.position, event.header.server_id, statement)
