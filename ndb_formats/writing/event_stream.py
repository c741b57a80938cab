"""
Events to the bytes of a file: this gives each event its size, its position and its checksum.
"""

from __future__ import annotations

import zlib
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
    encode_format_description,
    encode_header,
    has_checksum_algorithm,
)

__all__ = ["EventStream", "sealed"]

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
