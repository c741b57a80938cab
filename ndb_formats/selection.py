"""
Which events of a log are wanted (`Selection`), and the decoding of each, whatever its type (`decode_event`).

Events are selected by the options of mysqlbinlog, and by NDB epochs. To add a type of event: see docs/adding.md.

Rows of `mysql.ndb_apply_status` tell which epoch a binlog transaction of NDB is, and which foreign epochs it applied:

    server_id  INT UNSIGNED     the server that the epoch is of
    epoch      BIGINT UNSIGNED
    log_name   VARCHAR(255)     empty in the row that the NDB injector writes for its own epoch

Other columns follow, which nobody reads. A table of this name with other columns is not NDB's, and says nothing of
epochs; nor does an image that leaves out one of the three.
Source: MySQL manual, "NDB Cluster Replication Schema and Tables".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from ndb_formats.binlog_reader import (
    ENCRYPTED_FROM_HERE,
    FIRST_POSITION,
    Event,
    locate,
    read_events,
    server_of,
    unpacked,
)
from ndb_formats.constants import APPLY_STATUS, TRANSACTION_STARTS, ColumnCode, EventType
from ndb_formats.errors import CorruptError, UnsupportedError
from ndb_formats.events.control_events import decode_xa_prepare
from ndb_formats.events.query_event import decode_query, query_body_of
from ndb_formats.events.row_image import RowImage, layout_of
from ndb_formats.events.rows_event import ROWS_EVENTS, RowsEvent, decode_rows_event
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.tables import full_name
from ndb_formats.types.column_types import WireType

_SERVER_ID, EPOCH, LOG_NAME = _PLACES = tuple(range(3))
_TYPES = (ColumnCode.LONG, ColumnCode.LONGLONG, ColumnCode.VARCHAR)


def has_status_columns(types: Sequence[WireType]) -> bool:
    """Return whether the columns of a table are those of `ndb_apply_status`."""
    return tuple(wire.code for wire in types[: len(_TYPES)]) == _TYPES


def is_status_image(present: Sequence[int] | None) -> bool:
    """Return whether an image with these columns names an epoch."""
    return present is not None and tuple(present[: len(_PLACES)]) == _PLACES


def _epoch_of(after: RowImage | None) -> int | None:
    """Return the epoch that a row names as that of its own binlog transaction; None if it names none."""
    if after is None or not is_status_image(after.present) or after.payloads[LOG_NAME]:
        return None
    return int.from_bytes(after.payloads[EPOCH] or b"", "little")


# Events with row changes that cannot be read; to skip them would lose changes.
UNREAD_ROW_EVENTS = {
    EventType.PRE_GA_WRITE_ROWS_EVENT: "row events of MySQL before 5.1.16",
    EventType.PRE_GA_UPDATE_ROWS_EVENT: "row events of MySQL before 5.1.16",
    EventType.PRE_GA_DELETE_ROWS_EVENT: "row events of MySQL before 5.1.16",
}


@attrs.frozen
class Selection:
    """
    Which events to select.

    The log of each server stops for itself: its events after a stop are not read, those of other servers are.

    Attributes:
        start_position: First position, in the first file alone.
        stop_position: Position to stop before, in the last file alone.
        start_time: First second since 1970.
        stop_time: Second since 1970; the log of a server stops before its first event of that time or later.
        databases: Databases; none means all.
        tables: ``database.table`` names; none means all.
        start_epoch: First NDB epoch.
        stop_epoch: Last NDB epoch; the log of a server stops after it.
        server_ids: Servers on which changes were first made; none means all.
        server_id_bits: How many of the lowest bits of a server id are that of a server (``server_id_bits`` of NDB).
        transactions: Ids of NDB transactions; none means all.
        key: Names of columns and their values as text: rows in which an image has all of them are selected.
    """

    start_position: int = FIRST_POSITION
    stop_position: int | None = None
    start_time: int = 0
    stop_time: int | None = None
    databases: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    start_epoch: int = 0
    stop_epoch: int | None = None
    server_ids: frozenset[int] = frozenset()
    server_id_bits: int = 32
    transactions: frozenset[int] = frozenset()
    key: tuple[tuple[str, str], ...] = ()

    @property
    def by_row(self) -> bool:
        """Whether it looks into rows events, so that events without rows are left out."""
        return bool(self.transactions or self.key)

    def has_name(self, database: str, table: str) -> bool:
        """Return whether the changes of a table are selected."""
        in_database = not self.databases or database in self.databases
        return in_database and (not self.tables or full_name(database, table) in self.tables)

    def has_table(self, table_map: TableMap) -> bool:
        """Return whether the changes of a table are selected."""
        return self.has_name(table_map.database, table_map.table)

    def has_epoch(self, epoch: int | None) -> bool:
        """Return whether an epoch is selected; events outside epochs are unless epochs were chosen."""
        if epoch is None:
            return self.start_epoch == 0 and self.stop_epoch is None
        return self.start_epoch <= epoch and (self.stop_epoch is None or epoch <= self.stop_epoch)


@attrs.frozen
class DecodedEvent:
    """
    One selected event.

    Attributes:
        event: The event; one inside a compressed transaction has the position of the transaction.
        epoch: NDB epoch that it belongs to; None outside of epochs, and before the epoch is known.
        table_map: The Table_map event, decoded; for a rows event, the one it refers to.
        rows: The rows event, decoded.
        statement: The text of an event that holds or is a statement, as logged.
        begin: For a rows event, the event that begins its transaction; None if there is none.
    """

    event: Event
    epoch: int | None = None
    table_map: TableMap | None = None
    rows: RowsEvent | None = None
    statement: bytes | None = None
    begin: Event | None = None


@attrs.define
class DecodingState:
    """
    What has to be known of earlier events to decode the next one.

    Attributes:
        maps: The last Table_map event of each table id.
        epoch: The current NDB epoch.
        begin: The event that begins the current transaction; None if there is none.
    """

    maps: dict[int, TableMap] = attrs.field(factory=dict)
    epoch: int | None = None
    begin: Event | None = None


def select_events(files: Sequence[str], selection: Selection, *, verify: bool) -> Iterator[DecodedEvent]:
    """
    Yield the selected events of files, in order.

    Args:
        files: Paths in the order in which the files were written.
        selection: Which events to select.
        verify: Whether to check checksums.

    Raises:
        FormatError: A file cannot be read further; the error names file and position.
    """
    states: dict[int | None, DecodingState] = {}
    ended: set[int | None] = set()
    for number, file in enumerate(files):
        server = server_of(file)
        state = states.setdefault(server, DecodingState())
        start = selection.start_position if number == 0 else FIRST_POSITION
        stop = selection.stop_position if number == len(files) - 1 else None
        for event in () if server in ended else read_events(file, start=start, stop=stop, verify=verify):
            if selection.stop_time is not None and event.header.timestamp >= selection.stop_time:
                ended.add(server)
                break
            with locate(event):
                for inner in unpacked(event):
                    decoded = decode_event(inner, state)
                    if event.header.timestamp >= selection.start_time and _wanted(decoded, selection):
                        yield decoded
            if selection.stop_epoch is not None and state.epoch is not None and state.epoch > selection.stop_epoch:
                ended.add(server)
                break


def _wanted(decoded: DecodedEvent, selection: Selection) -> bool:
    if decoded.table_map is not None and not selection.has_table(decoded.table_map):
        return False
    return selection.has_epoch(decoded.epoch)


def decode_event(event: Event, state: DecodingState) -> DecodedEvent:
    """
    Decode an event.

    Args:
        event: Any event but a compressed transaction.
        state: The state after the events before it; changed.

    Raises:
        FormatError: It cannot be read.
    """
    kind = event.type
    if kind is EventType.TABLE_MAP_EVENT:
        table_map = decode_table_map(event.body, event.server)
        state.maps[table_map.table_id] = table_map
        return DecodedEvent(event, state.epoch, table_map)
    if kind in ROWS_EVENTS:
        assert kind is not None
        rows = decode_rows_event(kind, event.body)
        found = state.maps.get(rows.table_id)
        if found is None:
            message = f"no TABLE_MAP_EVENT for table id {rows.table_id} comes before it"
            raise CorruptError(message)
        _note_epoch(rows, found, state)
        return DecodedEvent(event, state.epoch, found, rows, begin=state.begin)
    if kind is EventType.MARIADB_START_ENCRYPTION_EVENT:
        raise UnsupportedError(ENCRYPTED_FROM_HERE)
    if kind in UNREAD_ROW_EVENTS:
        message = f"{UNREAD_ROW_EVENTS[kind]} cannot be read"
        raise UnsupportedError(message)
    if kind in TRANSACTION_STARTS:
        state.begin = event
    decoded = DecodedEvent(event, state.epoch)
    if kind is EventType.XA_PREPARE_LOG_EVENT:
        decoded = attrs.evolve(decoded, statement=decode_xa_prepare(event.body).statement.encode())
    elif (query := query_body_of(kind, event.body)) is not None:
        decoded = attrs.evolve(decoded, statement=decode_query(query, event.server).logged_text)
    if kind in _ENDS:
        state.epoch = None
    return decoded


_ENDS = frozenset(
    {
        EventType.QUERY_EVENT,
        EventType.MARIADB_QUERY_COMPRESSED_EVENT,
        EventType.XID_EVENT,
        EventType.XA_PREPARE_LOG_EVENT,
    }
)


def _note_epoch(rows: RowsEvent, table_map: TableMap, state: DecodingState) -> None:
    """Set the epoch that a row of `ndb_apply_status` with an empty log name gives; partial updates give none."""
    if table_map.full_name != APPLY_STATUS or rows.type is EventType.PARTIAL_UPDATE_ROWS_EVENT:
        return
    if has_status_columns(table_map.types):
        for _, after in rows.rows(layout_of(table_map)):
            epoch = _epoch_of(after)
            state.epoch = state.epoch if epoch is None else epoch
