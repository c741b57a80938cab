"""
The header of every event, and the Format_description event at the start of a file.

    timestamp      u32  seconds since 1970
    type           u8
    server id      u32  the server on which the change was first made
    size           u32  of the whole event
    next position  u32  of the next event in the file that it was first written to
    flags          u16

Source: MySQL `binlog_event.h` (`Log_event_header`), `control_events.h` (`Format_description_event`).
"""

from __future__ import annotations

import struct

import attrs

from ndb_formats.constants import CHECKSUM_ALG_CRC32, CHECKSUM_ALG_OFF, EVENT_HEADER_SIZE, EventType
from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError, UnsupportedError

_HEADER = struct.Struct("<IBIIIH")
_BINLOG_VERSION = 4
_FIRST_VERSION_WITH_CHECKSUMS = (5, 6, 1)
# The sizes of the fixed parts of MySQL 9.x's events, by type code minus 1.
POST_HEADER_SIZES = bytes.fromhex(
    "00 0d 00 08 00 00 00 00 04 00 04 00 00 00 63 00 04 1a 08 00 00 00 00 00 00 02 00 00 00 0a 0a 0a 2a 2a 00 12 34 00"
    "0a 28 00 00"
)


@attrs.frozen
class EventHeader:
    """The header; fields as in the table above."""

    timestamp: int
    type_code: int
    server_id: int
    size: int
    next_position: int
    flags: int

    @property
    def type_name(self) -> str:
        """The server's name of the event type."""
        return EventType.name_of(self.type_code)


@attrs.frozen
class FormatDescription:
    """
    The first event, which applies to all others.

    Attributes:
        server_version: Version text of the server that wrote the file.
        checksum: Checksum algorithm: 0 none, 1 CRC32.
        post_header_sizes: Size of each event type's fixed part, by type code minus 1.
        created: When the server was started, if this is its first file since then; else 0.
    """

    server_version: str
    checksum: int
    post_header_sizes: bytes = attrs.field(repr=False)
    created: int = 0

    @property
    def checksum_size(self) -> int:
        """Bytes of the checksum at the end of each event."""
        return 4 if self.checksum == CHECKSUM_ALG_CRC32 else 0


def decode_header(data: bytes) -> EventHeader:
    """Decode the 19 bytes of a header; `data` must be that long."""
    return EventHeader(*_HEADER.unpack(data[:EVENT_HEADER_SIZE]))


def decode_format_description(body: bytes) -> FormatDescription:
    """
    Decode the body of a Format_description event, its checksum still at the end.

    Raises:
        UnsupportedError: The file is not of binlog version 4, or its checksums are of an unknown kind.
    """
    cursor = Cursor(body)
    version = cursor.uint(2)
    if version != _BINLOG_VERSION:
        message = f"binlog version {version}; only version 4 (MySQL 5.0 and later) can be read"
        raise UnsupportedError(message)
    server_version = cursor.take(50).rstrip(b"\0").decode("ascii", "surrogateescape")
    created = cursor.uint(4)
    header_size = cursor.uint(1)
    if header_size != EVENT_HEADER_SIZE:
        message = f"event headers of {header_size} bytes; binlog version 4 has {EVENT_HEADER_SIZE}"
        raise CorruptError(message)
    rest = cursor.rest()
    if _version_numbers(server_version) < _FIRST_VERSION_WITH_CHECKSUMS:
        return FormatDescription(server_version, CHECKSUM_ALG_OFF, rest, created)
    # This event ends with the algorithm and a checksum of its own, even if the others have none.
    if len(rest) < 5:
        message = "ends before its checksum algorithm"
        raise CorruptError(message)
    algorithm = rest[-5]
    if algorithm not in (CHECKSUM_ALG_OFF, CHECKSUM_ALG_CRC32):
        message = f"checksum algorithm {algorithm} is not known"
        raise UnsupportedError(message)
    return FormatDescription(server_version, algorithm, rest[:-5], created)


def encode_header(header: EventHeader) -> bytes:
    """Return the 19 bytes of a header; the inverse of `decode_header`."""
    return _HEADER.pack(*attrs.astuple(header))


def encode_format_description(description: FormatDescription) -> bytes:
    """Return the body of a Format_description event, without the checksum (which servers before 5.6.1 do not write)."""
    version = description.server_version.encode("ascii", "surrogateescape").ljust(50, b"\0")
    head = _BINLOG_VERSION.to_bytes(2, "little") + version + description.created.to_bytes(4, "little")
    body = head + bytes([EVENT_HEADER_SIZE]) + description.post_header_sizes
    return body + bytes([description.checksum]) if has_checksum_algorithm(description) else body


def has_checksum_algorithm(description: FormatDescription) -> bool:
    """Return whether the server knows checksums, so that this event ends with an algorithm and a checksum."""
    return _version_numbers(description.server_version) >= _FIRST_VERSION_WITH_CHECKSUMS


def _version_numbers(text: str) -> tuple[int, ...]:
    numbers = []
    for part in text.split(".")[:3]:
        digits = "".join(character for character in part if character.isdigit())
        if part and not part[0].isdigit():
            break
        leading = part[: len(part) - len(part.lstrip("0123456789"))]
        numbers.append(int(leading or digits or 0))
    return tuple(numbers)
