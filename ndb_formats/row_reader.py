"""
A binlog file to its row changes, one by one, whoever made them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from ndb_formats.binlog_reader import FIRST_POSITION, Event, locate, read_events
from ndb_formats.constants import EventType
from ndb_formats.errors import CorruptError, UnsupportedError
from ndb_formats.events.rows_event import ROWS_EVENTS, Operation, RowsEvent, decode_rows_event
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.extra_row_info import ExtraRowInfo
from ndb_formats.row_image import RowImage, RowLayout, layout_of
from ndb_formats.schema import Schema

__all__ = ["APPLY_STATUS", "UNREAD_ROW_EVENTS", "LoggedRow", "read_rows"]

APPLY_STATUS = "mysql.ndb_apply_status"
_EPOCH, _LOG_NAME = 1, 2
# Events that carry row changes which this version cannot read; passing them over would lose changes.
UNREAD_ROW_EVENTS = {
    EventType.PARTIAL_UPDATE_ROWS_EVENT: "partial JSON updates",
    EventType.TRANSACTION_PAYLOAD_EVENT: "compressed transactions",
    EventType.PRE_GA_WRITE_ROWS_EVENT: "row events of MySQL before 5.1.16",
    EventType.PRE_GA_UPDATE_ROWS_EVENT: "row events of MySQL before 5.1.16",
    EventType.PRE_GA_DELETE_ROWS_EVENT: "row events of MySQL before 5.1.16",
}


@attrs.frozen
class LoggedRow:
    """
    One row change as a binlog holds it.

    Attributes:
        file: Path of the file.
        position: Position of its event.
        row: Number of the row in the event, from 0.
        timestamp: Seconds since 1970.
        server_id: Server on which the change was first made.
        epoch: NDB epoch of its binlog transaction; None in the binlog of another engine.
        extra: What NDB added; None if nothing.
        database: Database name.
        table: Table name.
        operation: Write, update or delete.
        before: Before image; None for a write.
        after: After image; None for a delete.
    """

    file: str
    position: int
    row: int
    timestamp: int
    server_id: int
    epoch: int | None
    extra: ExtraRowInfo | None
    database: str
    table: str
    operation: Operation
    before: RowImage | None
    after: RowImage | None


@attrs.define
class _State:
    """What earlier events say about the next."""

    maps: dict[int, TableMap] = attrs.field(factory=dict)
    layouts: dict[TableMap, RowLayout] = attrs.field(factory=dict)
    epoch: int | None = None


def read_rows(
    path: str | Path,
    *,
    start: int = FIRST_POSITION,
    stop: int | None = None,
    schema: Schema | None = None,
    wanted: Callable[[str], bool] = lambda table: table != APPLY_STATUS,
    last_epoch: int | None = None,
) -> Iterator[LoggedRow]:
    """
    Yield the row changes of a file, in order.

    Args:
        path: The binlog file.
        start: Position of a transaction's first event.
        stop: Position to stop before; None for the end of the file.
        schema: Definitions, for names and types that the binlog itself does not tell.
        wanted: Which tables, by ``database.table``; others are stepped over.
        last_epoch: Stop before the first NDB epoch after this one.

    Raises:
        FormatError: The file cannot be read further; the error names file and position.
    """
    state = _State()
    for event in read_events(path, start=start, stop=stop):
        with locate(event):
            yield from _rows_of(event, state, schema or Schema(), wanted)
        if last_epoch is not None and state.epoch is not None and state.epoch > last_epoch:
            return


def _rows_of(event: Event, state: _State, schema: Schema, wanted: Callable[[str], bool]) -> Iterator[LoggedRow]:
    kind = event.type
    if kind is EventType.TABLE_MAP_EVENT:
        table_map = decode_table_map(event.body)
        state.maps[table_map.table_id] = table_map
    elif kind in (EventType.QUERY_EVENT, EventType.XID_EVENT):
        state.epoch = None
    elif kind in UNREAD_ROW_EVENTS:
        message = f"{UNREAD_ROW_EVENTS[kind]} cannot be read"
        raise UnsupportedError(message)
    elif kind in ROWS_EVENTS:
        assert kind is not None
        rows = decode_rows_event(kind, event.body)
        table_map_or_none = state.maps.get(rows.table_id)
        if table_map_or_none is None:
            message = f"no TABLE_MAP_EVENT for table id {rows.table_id} comes before it"
            raise CorruptError(message)
        yield from _changes(event, rows, table_map_or_none, state, schema, wanted)


def _changes(
    event: Event,
    rows: RowsEvent,
    table_map: TableMap,
    state: _State,
    schema: Schema,
    wanted: Callable[[str], bool],
) -> Iterator[LoggedRow]:
    name = table_map.full_name
    if name != APPLY_STATUS and not wanted(name):
        return
    if table_map not in state.layouts:
        state.layouts[table_map] = layout_of(table_map, schema.find(table_map.database, table_map.table))
    for number, (before, after) in enumerate(rows.rows(state.layouts[table_map])):
        if name == APPLY_STATUS and after is not None and not after.payloads[_LOG_NAME]:
            state.epoch = int.from_bytes(after.payloads[_EPOCH] or b"", "little")
        if wanted(name):
            yield LoggedRow(
                event.file,
                event.position,
                number,
                event.header.timestamp,
                event.header.server_id,
                state.epoch,
                rows.extra,
                table_map.database,
                table_map.table,
                rows.operation,
                before,
                after,
            )
