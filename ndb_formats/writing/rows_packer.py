"""
Rows to rows events, as the server fills them.

A row goes into the event before it if that has the same table, operation, columns, extra row info and header, and does
not become longer than ``binlog_row_event_max_size``; a longer row has an event of its own, and so has a row without
columns, which has no bytes. The last event of a statement (NDB: of an epoch) has a flag that says so.

Source: MySQL `THD::binlog_prepare_pending_rows_event`.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ndb_formats.events.header import EventHeader
from ndb_formats.events.rows_event import STATEMENT_END, RowsEvent, encode_rows_event

__all__ = ["MAX_EVENT_BYTES", "RowsPacker"]

# The default of binlog_row_event_max_size.
MAX_EVENT_BYTES = 8192

Emit = Callable[[EventHeader, bytes], None]


@attrs.define
class RowsPacker:
    """
    Packs the rows of one statement after the other.

    Attributes:
        emit: Takes header and body of each event.
        limit: Bytes of the body of an event that get no further row.
    """

    emit: Emit
    limit: int = MAX_EVENT_BYTES
    _header: EventHeader | None = None
    _shape: RowsEvent | None = None
    _rows: list[bytes] = attrs.field(factory=list)
    _size: int = 0
    _closed: bool = False

    def add(self, header: EventHeader, shape: RowsEvent, row: bytes) -> None:
        """
        Add a row.

        Args:
            header: Header of its event; its type is that of `shape`.
            shape: Its event without images, and without the flag for the end of a statement.
            row: The bytes of its images.
        """
        same = self._shape is shape or (self._shape == shape and self._header == header)
        if not same or self._closed or self._size + len(row) > self.limit:
            self.flush()
            self._header, self._shape, self._size = header, shape, len(encode_rows_event(shape))
        self._rows.append(row)
        self._size += len(row)
        self._closed = not row  # nobody could tell two rows without bytes from one

    def add_event(self, header: EventHeader, event: RowsEvent) -> None:
        """Add a rows event as it is, but for the flag for the end of a statement."""
        self.flush()
        self._header, self._shape, self._closed = header, event, True

    def close(self) -> None:
        """Put the next row into another event."""
        self._closed = True

    def flush(self, *, statement_end: bool = False) -> None:
        """Emit the event at hand, if there is one."""
        header, shape = self._header, self._shape
        if header is not None and shape is not None:
            flags = shape.flags & ~STATEMENT_END | (STATEMENT_END if statement_end else 0)
            event = attrs.evolve(shape, flags=flags)
            typed = attrs.evolve(header, type_code=event.type)
            self.emit(typed, encode_rows_event(event) + b"".join(self._rows))
        self._header, self._shape, self._size, self._closed = None, None, 0, False
        self._rows.clear()
