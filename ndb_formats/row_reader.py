"""The row changes of a binlog file, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs

from ndb_formats.binlog_reader import FIRST_POSITION, locate
from ndb_formats.constants import APPLY_STATUS
from ndb_formats.events.agreed_definition import agreed_layout
from ndb_formats.events.gtid_event import gtid_and_time
from ndb_formats.events.row_image import RowImage, RowLayout, layout_of
from ndb_formats.events.rows_event import ExtraRowInfo, Operation
from ndb_formats.events.table_map import TableMap
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import DecodedEvent, Selection, select_events


@attrs.frozen
class LoggedRow:
    """
    One row change as logged.

    Attributes:
        file: Path of the file.
        position: Position of its event.
        payload_position: Position of its event inside a compressed transaction; 0 outside of one.
        row: Number of the row in the event, from 0.
        timestamp: Seconds since 1970.
        server_id: Server on which the change was first made.
        epoch: NDB epoch of its binlog transaction; None for other engines.
        extra: The extra row info of NDB; None if there is none.
        database: Database name.
        table: Table name.
        operation: Write, update or delete.
        before: Before image; None for a write.
        after: After image; None for a delete.
        gtid: GTID of its transaction; None if none is logged.
        committed: Microseconds since 1970 when the server of the log committed it; None if not logged.
    """

    file: str
    position: int
    payload_position: int
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
    gtid: str | None = None
    committed: int | None = None


def read_rows(
    path: str | Path,
    *,
    start: int = FIRST_POSITION,
    stop: int | None = None,
    schema: Schema | None = None,
    wanted: Callable[[str], bool] = lambda table: table != APPLY_STATUS,
    last_epoch: int | None = None,
    strict: bool = True,
) -> Iterator[LoggedRow]:
    """
    Yield the row changes of a file, in order.

    Args:
        path: The binlog file.
        start: Position of a transaction's first event.
        stop: Position to stop before; None for the end of the file.
        schema: Definitions, for names and types that are not in the binlog.
        wanted: Whether to read a table, by ``database.table``; others are skipped.
        last_epoch: Stop after this NDB epoch.
        strict: Whether a definition that does not fit the log is an error; if not, the log is right.

    Raises:
        FormatError: The file cannot be read further; the error names file and position.
    """
    selection = Selection(start_position=start, stop_position=stop, stop_epoch=last_epoch)
    return rows_of(select_events([str(path)], selection, verify=True), schema or Schema(), wanted, strict=strict)


def rows_of(
    events: Iterable[DecodedEvent],
    schema: Schema,
    wanted: Callable[[str], bool] = lambda table: table != APPLY_STATUS,
    *,
    strict: bool = True,
) -> Iterator[LoggedRow]:
    """
    Yield the row changes of events.

    Args:
        events: Events, in order.
        schema: As for `read_rows`.
        wanted: As for `read_rows`.
        strict: As for `read_rows`.

    Raises:
        FormatError: A row cannot be read; the error names file and position.
    """
    layouts: dict[TableMap, RowLayout] = {}
    for decoded in events:
        table_map, rows, event = decoded.table_map, decoded.rows, decoded.event
        if rows is None or table_map is None or not wanted(table_map.full_name):
            continue
        with locate(event):
            if table_map not in layouts:
                known = schema.find(table_map.database, table_map.table, any_case=not strict)
                layouts[table_map] = layout_of(table_map, known) if strict else agreed_layout(table_map, known)[0]
            begin = decoded.begin
            told: tuple[str | None, int | None] = (None, None)
            if begin is not None:
                told = gtid_and_time(begin.header.type_code, begin.header.server_id, begin.body)
            for number, (before, after) in enumerate(rows.rows(layouts[table_map])):
                yield LoggedRow(
                    event.file,
                    event.position,
                    event.payload_position,
                    number,
                    event.header.timestamp,
                    event.header.server_id,
                    decoded.epoch,
                    rows.extra,
                    table_map.database,
                    table_map.table,
                    rows.operation,
                    before,
                    after,
                    *told,
                )
