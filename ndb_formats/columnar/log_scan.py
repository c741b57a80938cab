"""
What a log says of definitions: its statements that change them, and its different Table_map events.

Only event headers and a few bytes of each event are read. Events inside compressed transactions are not seen: NDB does
not compress statements, and whoever reads the rows meets the Table_map events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.binlog_reader import event_at, first_event
from ndb_formats.columnar.event_index import EventIndex, index_events, map_bytes
from ndb_formats.constants import EVENT_HEADER_SIZE, EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.header import FormatDescription, decode_format_description
from ndb_formats.events.logged_statement import statement_of
from ndb_formats.events.query_event import decode_query
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.definitions import Statement

__all__ = ["LoggedStatement", "LoggedTable", "scan_log"]

_TABLE_ID = 6
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, so that different identities stay different but for a rare coincidence
# Statements that begin and end transactions, after the NUL that ends the database's name.
_PLAIN = tuple(np.frombuffer(word, np.uint8) for word in (b"\0BEGIN", b"\0COMMIT"))


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


def scan_log(files: Sequence[str | Path]) -> Iterator[LoggedStatement | LoggedTable]:
    """
    Yield what a log says of definitions, in order; it ends where the log cannot be read.

    Args:
        files: In the order in which they were written.
    """
    for file in (each for each in files if Path(each).exists()):  # one that was read earlier need not be there
        try:
            first = first_event(file, verify=False)
            if first is None:
                continue
            description = decode_format_description(first.body)
            index = index_events(file)
            read = [(number, _read(index, number, description)) for number in _statements(index, description).tolist()]
            statements = [(number, found) for number, found in read if found is not None]
            maps = _tables(index, np.array([number for number, _ in statements], np.int64))
            found = statements + [(number, _read(index, number, description)) for number in maps.tolist()]
            yield from (item for _, item in sorted(found, key=itemgetter(0)) if item is not None)
        except FormatError:
            return  # whoever reads the rows says why
        if index.error is not None:
            return


def _read(index: EventIndex, number: int, description: FormatDescription) -> LoggedStatement | LoggedTable | None:
    event = event_at(index.file, int(index.positions[number]), description, verify=False)
    if event.type is EventType.TABLE_MAP_EVENT:
        return LoggedTable(index.file, event.position, decode_table_map(event.body))
    statement = statement_of(decode_query(event.body))
    if statement is None:
        return None
    return LoggedStatement(index.file, event.position, event.header.server_id, statement)


def _statements(index: EventIndex, description: FormatDescription) -> npt.NDArray[np.int64]:
    """Return the numbers of Query events that neither begin nor end a transaction."""
    queries = np.flatnonzero(index.types == EventType.QUERY_EVENT)
    if not len(queries):
        return queries
    data = map_bytes(index.file)
    ends = index.positions[queries] + index.sizes[queries].astype(np.int64) - description.checksum_size
    left = np.ones(len(queries), np.bool_)
    for word in _PLAIN:
        same = left.copy()
        for place, letter in enumerate(word, start=-len(word)):
            same[same] = data[ends[same] + place] == letter
        left &= ~same
    return queries[left]


def _tables(index: EventIndex, statements: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """
    Return the numbers of the first Table_map event of each table id, size, and statement before it.

    A server gives an id once, but a table that is renamed and back has its id again.
    """
    maps = np.flatnonzero(index.types == EventType.TABLE_MAP_EVENT)
    if not len(maps):
        return maps
    starts = index.positions[maps] + EVENT_HEADER_SIZE
    data, identities = map_bytes(index.file), np.searchsorted(statements, maps).astype(np.uint64)
    identities = identities * _MIX + index.sizes[maps]
    for place in range(_TABLE_ID):
        identities = identities * _MIX + data[starts + place]
    order = np.argsort(identities, kind="stable")
    new = np.append(True, np.diff(identities[order]) != 0)
    return np.sort(maps[order[new]])
