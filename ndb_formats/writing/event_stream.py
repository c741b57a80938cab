"""
Events to the bytes of a file: each gets its size, its position and its checksum.

The events of a transaction wait until it is complete, because the Gtid event before them has its length. As in the
server's binlog cache, large transactions go to a temporary file, so that memory does not grow with them.

A row goes into the rows event before it if that has the same table, operation, columns, extra row info and header, and
does not become longer than ``binlog_row_event_max_size``; a longer row has an event of its own, and so has a row
without columns, which has no bytes. The last event of a statement (NDB: of an epoch) has a flag that says so.

Source: MySQL `THD::binlog_prepare_pending_rows_event`.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

import attrs

from ndb_formats.constants import (
    BINLOG_MAGIC,
    EVENT_HEADER_SIZE,
    LOG_EVENT_BINLOG_IN_USE_F,
    EventType,
)
from ndb_formats.events.header import (
    EventHeader,
    FormatDescription,
    decode_header,
    encode_format_description,
    encode_header,
    has_checksum_algorithm,
)
from ndb_formats.events.rows_event import STATEMENT_END, RowsEvent, encode_rows_event
from ndb_formats.events.transaction_payload import TransactionPayload, compressed, encode_transaction_payload

_CRC_BYTES = 4
_POSITION_MASK = 0xFFFFFFFF  # the header has 32 bits, whatever the size of the file


def sealed(header: EventHeader, body: bytes, *, checksum: bool) -> bytes:
    """
    Return the bytes of an event.

    Args:
        header: Its header; its size is computed.
        body: Its body, without a checksum.
        checksum: Whether it ends with a CRC32.
    """
    header = _resized(header, EVENT_HEADER_SIZE + len(body) + (_CRC_BYTES if checksum else 0))
    data = encode_header(header) + body
    if not checksum:
        return data
    if header.type_code == EventType.FORMAT_DESCRIPTION_EVENT and header.flags & LOG_EVENT_BINLOG_IN_USE_F:
        # The server sets this flag after it has computed the checksum.
        closed = attrs.evolve(header, flags=header.flags & ~LOG_EVENT_BINLOG_IN_USE_F)
        return data + zlib.crc32(encode_header(closed) + body).to_bytes(_CRC_BYTES, "little")
    return data + zlib.crc32(data).to_bytes(_CRC_BYTES, "little")


def _resized(header: EventHeader, size: int) -> EventHeader:
    return EventHeader(header.timestamp, header.type_code, header.server_id, size, header.next_position, header.flags)


@attrs.define
class EventStream:
    """
    Writes the events of one file, in order.

    Attributes:
        out: Where the bytes go.
        position: Position of the next event.
        checksums: Whether events end with a CRC32; the Format_description event decides.
    """

    out: BinaryIO
    position: int = 0
    checksums: bool = False

    @property
    def trailer(self) -> int:
        """Bytes of the checksum of an event."""
        return _CRC_BYTES if self.checksums else 0

    def start(self, header: EventHeader, description: FormatDescription, *, keep_position: bool = False) -> None:
        """Write a Format_description event, and before the first one the magic bytes; arguments as for `put`."""
        if not self.position:
            self._write(BINLOG_MAGIC)
        self.checksums = bool(description.checksum_size)
        body = encode_format_description(description)
        self._put(header, body, checksum=has_checksum_algorithm(description), keep_position=keep_position)

    def put(self, header: EventHeader, body: bytes, *, keep_position: bool = False) -> None:
        """
        Write an event.

        Args:
            header: Its header; its size and the position after it are computed.
            body: Its body, without a checksum.
            keep_position: Whether to keep the position in the header, as relay logs have that of another file.
        """
        self._put(header, body, checksum=self.checksums, keep_position=keep_position)

    def put_sealed(self, events: memoryview) -> None:
        """Write events that have their sizes, positions and checksums."""
        self._write(events)

    def _put(self, header: EventHeader, body: bytes, *, checksum: bool, keep_position: bool = False) -> None:
        size = EVENT_HEADER_SIZE + len(body) + (_CRC_BYTES if checksum else 0)
        after = header.next_position if keep_position else self.position + size & _POSITION_MASK
        placed = EventHeader(header.timestamp, header.type_code, header.server_id, size, after, header.flags)
        self._write(sealed(placed, body, checksum=checksum))

    def _write(self, data: bytes | memoryview) -> None:
        self.out.write(data)
        self.position += len(data)


_MEMORY = 1 << 20


@attrs.frozen
class Gtid:
    """
    The Gtid event before a transaction.

    Attributes:
        header: Its header.
        body: Its body, given the length of the transaction, which counts this event too.
        keep_position: As for `EventStream.put`.
    """

    header: EventHeader
    body: Callable[[int], bytes]
    keep_position: bool = False

    def write_to(self, stream: EventStream, after: int) -> None:
        """Write it before `after` bytes of its transaction."""
        length, body = 0, self.body(0)
        # A longer length can take more bytes, which count too.
        while (whole := EVENT_HEADER_SIZE + len(body) + stream.trailer + after) != length:
            length, body = whole, self.body(whole)
        stream.put(self.header, body, keep_position=self.keep_position)


def _spool() -> tempfile.SpooledTemporaryFile[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=_MEMORY)


@attrs.define
class TransactionBuffer:
    """
    The events of one transaction, in order.

    Attributes:
        size: Bytes of its events, without checksums.
        count: Number of its events.
    """

    size: int = 0
    count: int = 0
    _file: tempfile.SpooledTemporaryFile[bytes] = attrs.field(factory=_spool)

    def add(self, header: EventHeader, body: bytes, *, keep_position: bool = False) -> None:
        """Add an event; arguments as for `EventStream.put`."""
        data = sealed(header, body, checksum=False)
        self._file.write(bytes([keep_position]) + data)
        self.size += len(data)
        self.count += 1

    def take_all(self, other: TransactionBuffer) -> None:
        """Add all events of another buffer, which is empty afterwards."""
        for header, body, keep_position in other.events():
            self.add(header, body, keep_position=keep_position)
        other.clear()

    def events(self) -> Iterator[tuple[EventHeader, bytes, bool]]:
        """Yield header, body and `keep_position` of each event; the sizes in the headers count no checksum."""
        self._file.seek(0)
        for _ in range(self.count):
            head = self._file.read(1 + EVENT_HEADER_SIZE)
            header = decode_header(head[1:])
            yield header, self._file.read(header.size - EVENT_HEADER_SIZE), bool(head[0])

    def plain(self) -> bytes:
        """Return the bytes of all events as they stand in a compressed transaction."""
        return b"".join(sealed(header, body, checksum=False) for header, body, _ in self.events())

    def clear(self) -> None:
        """Forget all events."""
        self._file.seek(0)
        self._file.truncate()
        self.size = self.count = 0

    def write_to(self, stream: EventStream, gtid: Gtid | None = None) -> None:
        """
        Write the transaction, after its Gtid event if there is one, and forget it.

        Args:
            stream: Where it is written.
            gtid: The Gtid event.
        """
        if gtid is not None:
            gtid.write_to(stream, self.size + self.count * stream.trailer)
        for header, body, keep_position in self.events():
            stream.put(header, body, keep_position=keep_position)
        self.clear()

    def compress(self, header: EventHeader, original: TransactionPayload | None = None) -> None:
        """
        Put one Transaction_payload event in the place of all events.

        Args:
            header: Header of that event; its type is set.
            original: A payload that is used again if it has the same events.
        """
        plain = self.plain()
        payload = original if original is not None and original.uncompressed() == plain else compressed(plain)
        self.clear()
        header = attrs.evolve(header, type_code=EventType.TRANSACTION_PAYLOAD_EVENT)
        self.add(header, encode_transaction_payload(payload))


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
