"""
Write_rows, Update_rows and Delete_rows, versions 1 and 2.

    table id          u48
    flags             u16
    extra row info    u16 length counting itself, then blocks (v2 only)
    column count      packed integer
    columns before    bitmap: of the before image; of the after image for Write_rows
    columns after     bitmap: of the after image (Update_rows only)
    rows              images, one after the other; two per row for Update_rows

Unused bits at the end of a bitmap are 1 and mean nothing.
Source: MySQL `rows_event.h` (`Rows_event`).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import attrs

from ndb_formats.constants import EventType
from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError
from ndb_formats.events.table_map import bits
from ndb_formats.extra_row_info import ExtraRowInfo, decode_extra_row_info
from ndb_formats.row_image import RowImage, RowLayout, take_image

__all__ = ["ROWS_EVENTS", "Operation", "RowsEvent", "decode_rows_event"]

_EXTRA_ROW_INFO = 0
_PARTITION = 1
_NDB_FORMAT = 0
_STATEMENT_END = 0x1


class Operation(IntEnum):
    """What a row event does, numbered as in ``NDB$OP_TYPE`` of an exceptions table."""

    WRITE_ROW = 1
    UPDATE_ROW = 2
    DELETE_ROW = 3


_KINDS = {
    EventType.WRITE_ROWS_EVENT_V1: (Operation.WRITE_ROW, 1),
    EventType.UPDATE_ROWS_EVENT_V1: (Operation.UPDATE_ROW, 1),
    EventType.DELETE_ROWS_EVENT_V1: (Operation.DELETE_ROW, 1),
    EventType.WRITE_ROWS_EVENT: (Operation.WRITE_ROW, 2),
    EventType.UPDATE_ROWS_EVENT: (Operation.UPDATE_ROW, 2),
    EventType.DELETE_ROWS_EVENT: (Operation.DELETE_ROW, 2),
}
ROWS_EVENTS = frozenset(_KINDS)


@attrs.frozen
class RowsEvent:
    """
    One rows event; its rows are read by `rows` once the table's layout is known.

    Attributes:
        table_id: The Table_map event it refers to.
        operation: Write, update or delete.
        statement_end: Whether it is the last of its statement (NDB: of its epoch).
        extra: What NDB added; None if nothing.
        column_count: Columns of the table.
        before: Positions of the columns of the before image; None for a write.
        after: Positions of the columns of the after image; None for a delete.
        body: The images.
    """

    table_id: int
    operation: Operation
    statement_end: bool
    extra: ExtraRowInfo | None
    column_count: int
    before: tuple[int, ...] | None
    after: tuple[int, ...] | None
    body: bytes = attrs.field(repr=False)

    def rows(self, layout: RowLayout) -> Iterator[tuple[RowImage | None, RowImage | None]]:
        """
        Yield the before and after image of each row.

        Raises:
            CorruptError: The table has another number of columns.
            TruncatedError: The last image is cut short.
        """
        if self.column_count != len(layout.codecs):
            message = f"has {self.column_count} columns, its Table_map {len(layout.codecs)}"
            raise CorruptError(message, table=layout.table)
        cursor = Cursor(self.body)
        while cursor.remaining:
            before = None if self.before is None else take_image(cursor, layout, self.before)
            after = None if self.after is None else take_image(cursor, layout, self.after)
            yield before, after
            if not self.before and not self.after:
                return  # an image of no columns takes no bytes: without this the loop would not end


def decode_rows_event(event_type: EventType, body: bytes) -> RowsEvent:
    """
    Decode the body of a rows event.

    Raises:
        TruncatedError: The body ends too early.
    """
    operation, version = _KINDS[event_type]
    cursor = Cursor(body)
    table_id = cursor.uint(6)
    flags = cursor.uint(2)
    extra = _extra(Cursor(cursor.take(cursor.uint(2) - 2))) if version == 2 else None
    count = cursor.packed()
    first = _columns(cursor, count)
    second = _columns(cursor, count) if operation is Operation.UPDATE_ROW else None
    before = None if operation is Operation.WRITE_ROW else first
    after = {Operation.WRITE_ROW: first, Operation.UPDATE_ROW: second}.get(operation)
    return RowsEvent(table_id, operation, bool(flags & _STATEMENT_END), extra, count, before, after, cursor.rest())


def _columns(cursor: Cursor, count: int) -> tuple[int, ...]:
    present = bits(cursor.take((count + 7) // 8), count)
    return tuple(place for place, here in enumerate(present) if here)


def _extra(cursor: Cursor) -> ExtraRowInfo | None:
    """Return the NDB block; blocks of partitioned tables and of other formats are passed over."""
    found = None
    while cursor.remaining:
        kind = cursor.uint(1)
        if kind == _EXTRA_ROW_INFO:
            length = cursor.uint(1)
            block_format = cursor.uint(1)
            payload = cursor.take(length - 2)
            if block_format == _NDB_FORMAT:
                found = decode_extra_row_info(payload)
        elif kind == _PARTITION:
            cursor.skip(2)  # updates carry two numbers; the rest of the block is theirs alone
            cursor.skip(cursor.remaining)
        else:
            message = f"extra row info of unknown type {kind}"
            raise CorruptError(message)
    return found
