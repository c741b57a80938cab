"""
What a log says besides rows: definitions and changes as statements, rollbacks, different Table_map events, incidents.

Only event headers and a few bytes of each event are read. Compressed transactions are unpacked, for statements inside;
their Table_map events are left out, because whoever reads the rows meets them. What a reader of the rows has to know of
it is in `ndb_formats.columnar.log_remarks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.binlog_reader import Event, event_at, first_event, locate
from ndb_formats.columnar.event_index import EventIndex, index_payload, map_bytes, recent_index, telling_events
from ndb_formats.columnar.kernels.headers import definition_events
from ndb_formats.constants import APPLY_STATUS, EVENT_HEADER_SIZE, TRANSACTION_STARTS, EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.control_events import IncidentEvent, decode_incident, decode_xa_prepare
from ndb_formats.events.header import FormatDescription, decode_format_description, decode_header
from ndb_formats.events.logged_statement import changed_tables, changes_rows, statement_of
from ndb_formats.events.query_event import decode_query, query_body_of, session_of
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.statements import Statement
from ndb_formats.stored import path_of

_MOST_KEPT = 200  # characters of a statement that changes rows: a log can have very many


@attrs.frozen
class ScannedStatement:
    """
    A statement that may change definitions.

    Attributes:
        file: Path of its file.
        position: Position of its event.
        server_id: Server on which it was run.
        statement: The statement.
        stop: Position after its event, in the file that its server wrote; 0 if the event does not tell.
    """

    file: str
    position: int
    server_id: int
    statement: Statement
    stop: int = attrs.field(default=0, eq=False)


@attrs.frozen
class LoggedTable:
    """
    A Table_map event that differs from those before it in its file.

    Attributes:
        file: Path of its file.
        position: Position of the event.
        table_map: The event.
        of_ndb: Whether its transaction writes `mysql.ndb_apply_status`, as those of NDB do.
        packed: Whether its transaction is compressed.
    """

    file: str
    position: int
    table_map: TableMap
    of_ndb: bool = True
    packed: bool = attrs.field(default=False, eq=False)


@attrs.frozen
class ScannedChange:
    """
    A statement that changes rows.

    Attributes:
        file: Path of its file.
        position: Position of its event.
        text: The statement, or its start if it says which tables it changes.
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
        second: Second since 1970 at which it was logged.
    """

    file: str
    position: int
    incident: IncidentEvent
    second: int = 0


@attrs.frozen
class LoggedEnd:
    """
    A statement, or what stands for it, that leaves open or undoes what the log holds before it.

    Attributes:
        file: Path of its file.
        position: Position of its event.
        text: A ROLLBACK that follows row changes, ``ROLLBACK TO ...``, or XA PREPARE, COMMIT or ROLLBACK and the xid.
    """

    file: str
    position: int
    text: str


LogItem = ScannedStatement | LoggedTable | ScannedChange | LoggedIncident | LoggedEnd
_Found = tuple[LogItem, Event]


def scan_log(files: Sequence[str | Path], *, verify: bool) -> Iterator[LogItem]:
    """
    Yield what a log says besides rows, in order; it ends where the log cannot be read.

    Args:
        files: In the order in which they were written.
        verify: Whether it ends at such an event, too, if its checksum is wrong; readers that check them end there.
    """
    for file in (each for each in files if path_of(each).exists()):  # one that was read earlier need not be there
        try:
            index = recent_index(file)
            yield from (item for item, _ in items_of(index, verify=verify))
        except FormatError:
            return  # whoever reads the rows says why
        if index.error is not None:
            return


def items_of(index: EventIndex, *, verify: bool) -> Iterator[_Found]:
    """
    Yield what one file says besides rows, in order, each with its event; arguments as of `scan_log`.

    Raises:
        FormatError: It cannot be read further. What the headers alone show is the error of the index.
    """
    first = first_event(index.file, verify=False)
    if first is not None:
        description = decode_format_description(first.body)
        yield from _items(_Events(index, map_bytes(index.file), description), verify=verify)


@attrs.frozen(eq=False)
class _Events:
    """
    Events that follow each other: those of a file, or those inside one of its compressed transactions.

    Attributes:
        index: Where they are in `data`.
        data: Their bytes. Shape (bytes,), uint8.
        description: The Format_description event of the file.
        around: The compressed transaction around them; None if there is none.
    """

    index: EventIndex
    data: npt.NDArray[np.uint8]
    description: FormatDescription
    around: Event | None = None

    @property
    def trailer(self) -> int:
        """Bytes of the checksum at the end of each event."""
        return self.description.checksum_size if self.around is None else 0

    def event(self, number: int, *, verify: bool) -> Event:
        """Return an event; one inside a compressed transaction has the position of that."""
        start, around = int(self.index.positions[number]), self.around
        if around is None:
            return event_at(self.index.file, start, self.description, verify=verify)
        head, end = start + EVENT_HEADER_SIZE, start + int(self.index.sizes[number])
        header = decode_header(self.data[start:head].tobytes())
        return Event(around.file, around.position, header, self.data[head:end].tobytes(), around.server, start)

    def inside(self, event: Event) -> _Events:
        """Return the events inside a compressed transaction."""
        return _Events(*index_payload(event), self.description, event)


def _items(events: _Events, *, verify: bool) -> Iterator[_Found]:
    known = set[bytes]()
    for number in telling_events(events.index, events.data, events.trailer).tolist():
        event = events.event(number, verify=verify)
        if event.type is EventType.TRANSACTION_PAYLOAD_EVENT:
            with locate(event):
                inside = list(_items_inside(events.inside(event), known))
            yield from inside
        elif (found := _read(events, number, event)) is not None:
            yield found, event


def _items_inside(events: _Events, known: set[bytes]) -> Iterator[_Found]:
    """
    Yield the items of a compressed transaction.

    Args:
        events: The events inside it; readers unpack once, so one that is itself compressed is passed over.
        known: Table_map events of others in its file since the last statement; a new one is added.
    """
    index = events.index
    for number in definition_events(events.data, index.positions, index.types, index.sizes, events.trailer).tolist():
        if index.types[number] == EventType.TRANSACTION_PAYLOAD_EVENT:
            continue
        if index.types[number] == EventType.TABLE_MAP_EVENT:
            start = int(index.positions[number]) + EVENT_HEADER_SIZE
            identity = events.data[start : start + _TABLE_ID_SIZE].tobytes() + index.sizes[number].tobytes()
            if identity in known:
                continue
            known.add(identity)
        elif index.types[number] in _STATEMENTS:
            known.clear()
        event = events.event(number, verify=False)
        if (found := _read(events, number, event)) is not None:
            yield found, event


_TABLE_ID_SIZE = 6
_STATEMENTS = (EventType.QUERY_EVENT, EventType.MARIADB_QUERY_COMPRESSED_EVENT)


def _is_of_ndb(events: _Events, number: int) -> bool:
    """Return whether the transaction of an event has a Table_map event of `mysql.ndb_apply_status`."""
    index, data = events.index, events.data
    for way in (range(number, len(index.types)), range(number - 1, -1, -1)):
        for other in way:
            if index.types[other] in _TRANSACTION_ENDS:
                break
            if index.types[other] == EventType.TABLE_MAP_EVENT:
                start = int(index.positions[other]) + EVENT_HEADER_SIZE + _TABLE_NAME_AT
                if data[start : start + len(_STATUS_NAME)].tobytes() == _STATUS_NAME:
                    return True
    return False


_ENDS = (EventType.XID_EVENT, EventType.XA_PREPARE_LOG_EVENT)
_TRANSACTION_ENDS = (EventType.QUERY_EVENT, EventType.MARIADB_QUERY_COMPRESSED_EVENT, *_ENDS, *TRANSACTION_STARTS)
_TABLE_NAME_AT = 8  # in the body of a Table_map event, after the table id and the flags
_STATUS_NAME = b"".join(bytes([len(part)]) + part.encode() + b"\0" for part in APPLY_STATUS.split("."))


def _read(events: _Events, number: int, event: Event) -> LogItem | None:
    of_ndb = event.type is EventType.TABLE_MAP_EVENT and _is_of_ndb(events, number)
    found = item_of(event, of_ndb=of_ndb, packed=events.around is not None)
    if isinstance(found, LoggedEnd) and found.text[: len(_ROLLBACK)].upper() == _ROLLBACK:
        return found if _follows_rows(events, number, found.text) else None
    return found


def item_of(event: Event, *, of_ndb: bool, packed: bool) -> LogItem | None:
    """
    Return what an event says besides rows; None if it says nothing.

    Args:
        event: The event; a rollback is taken for one that follows row changes.
        of_ndb: See `LoggedTable`.
        packed: See there.

    Raises:
        FormatError: It cannot be read.
    """
    if event.type is EventType.TABLE_MAP_EVENT:
        table_map = decode_table_map(event.body, event.server)
        return LoggedTable(event.file, event.position, table_map, of_ndb, packed)
    if event.type is EventType.INCIDENT_EVENT:
        return LoggedIncident(event.file, event.position, decode_incident(event.body), event.header.timestamp)
    if event.type is EventType.XA_PREPARE_LOG_EVENT:
        prepared = decode_xa_prepare(event.body)
        return None if prepared.one_phase else LoggedEnd(event.file, event.position, prepared.statement)
    body = query_body_of(event.type, event.body)
    if body is None:
        return ScannedChange(event.file, event.position, "LOAD DATA, as servers before 5.0.3 logged it", frozenset())
    query = decode_query(body, event.server)
    if changes_rows(query.statement):
        tables = changed_tables(query.statement, query.database, session_of(query))
        kept = query.statement[:_MOST_KEPT] if tables else query.statement
        return ScannedChange(event.file, event.position, kept, tables)
    statement = statement_of(query)
    if statement is not None:
        header = event.header
        return ScannedStatement(event.file, event.position, header.server_id, statement, header.next_position)
    if query.statement[:_LONGEST_HEAD].upper().startswith(("XA COMMIT", "XA ROLLBACK", _ROLLBACK)):
        return LoggedEnd(event.file, event.position, query.statement)
    return None


_ROLLBACK = "ROLLBACK"
_LONGEST_HEAD = 11
_BACK_TO = re.compile(r"ROLLBACK\s+(?:WORK\s+)?TO\s+(?:SAVEPOINT\s+)?", re.IGNORECASE)


def _follows_rows(events: _Events, number: int, text: str) -> bool:
    """Return whether rows stand between a rollback and where it goes back to: a savepoint, or the start."""
    back = _BACK_TO.match(text)
    start = "BEGIN" if back is None else f"SAVEPOINT {text[back.end() :]}"
    for other in range(number - 1, -1, -1):
        kind = events.index.types[other]
        if kind == EventType.TABLE_MAP_EVENT:
            return True
        if kind in TRANSACTION_STARTS or kind in _ENDS:
            return False
        if kind == EventType.QUERY_EVENT:
            event = events.event(other, verify=False)
            if decode_query(event.body, event.server).statement == start:
                return False
    return False
