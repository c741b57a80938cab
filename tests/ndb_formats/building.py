"""
Builders of events, written from the format's documentation and independent of the decoder.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

MAGIC = b"\xfebin"
HEADER_SIZE = 19


def packed(number: int) -> bytes:
    """Return a length-encoded integer."""
    if number < 251:
        return bytes([number])
    if number < 1 << 16:
        return b"\xfc" + number.to_bytes(2, "little")
    if number < 1 << 24:
        return b"\xfd" + number.to_bytes(3, "little")
    return b"\xfe" + number.to_bytes(8, "little")


def bitmap(places: Sequence[int], count: int) -> bytes:
    """Return a bitmap of `count` columns with the bits of `places` set, lowest bit first."""
    data = bytearray((count + 7) // 8)
    for place in places:
        data[place // 8] |= 1 << place % 8
    return bytes(data)


def table_map_body(
    types: bytes,
    metadata: bytes = b"",
    *,
    table_id: int = 7,
    database: bytes = b"db",
    table: bytes = b"t",
    nullable: Sequence[int] = (),
    optional: Sequence[tuple[int, bytes]] = (),
) -> bytes:
    """Return the body of a Table_map event."""
    return b"".join(
        [
            table_id.to_bytes(6, "little"),
            b"\x01\x00",
            bytes([len(database)]) + database + b"\0",
            bytes([len(table)]) + table + b"\0",
            packed(len(types)) + types,
            packed(len(metadata)) + metadata,
            bitmap(nullable, len(types)),
            *(bytes([kind]) + packed(len(value)) + value for kind, value in optional),
        ]
    )


def rows_body(
    images: bytes,
    count: int,
    bitmaps: Sequence[Sequence[int]],
    *,
    table_id: int = 7,
    flags: int = 1,
    extra: bytes | None = b"",
) -> bytes:
    """Return the body of a rows event; `extra` None makes it version 1, which has no such block."""
    block = b"" if extra is None else (len(extra) + 2).to_bytes(2, "little") + extra
    return b"".join(
        [
            table_id.to_bytes(6, "little"),
            flags.to_bytes(2, "little"),
            block,
            packed(count),
            *(bitmap(places, count) for places in bitmaps),
            images,
        ]
    )


def query_body(database: bytes, statement: bytes, status: bytes = b"") -> bytes:
    """Return the body of a Query event."""
    head = struct.pack("<IIBHH", 5, 0, len(database), 0, len(status))
    return head + status + database + b"\0" + statement


def description_body(version: bytes = b"9.7.4-cluster", algorithm: int = 1, *, binlog_version: int = 4) -> bytes:
    """Return the body of a Format_description event without its checksum."""
    sizes = bytes([56, 13, 0, 8, 0, 0, 0])
    head = struct.pack("<H50sIB", binlog_version, version, 0, HEADER_SIZE)
    return head + sizes + bytes([algorithm])


def event_bytes(
    code: int, body: bytes, *, checksum: bool = True, flags: int = 0, position: int = 0, server_id: int = 3
) -> bytes:
    """Return a whole event, with a CRC32 at the end if wanted."""
    size = HEADER_SIZE + len(body) + (4 if checksum else 0)
    data = struct.pack("<IBIIIH", 1_700_000_000, code, server_id, size, position + size, flags) + body
    return data + zlib.crc32(data).to_bytes(4, "little") if checksum else data


FORMAT_DESCRIPTION = 15
QUERY = 2


def description_event(version: bytes = b"9.7.4-cluster", algorithm: int = 1) -> bytes:
    """Return a Format_description event; it always has a checksum of its own."""
    return event_bytes(FORMAT_DESCRIPTION, description_body(version, algorithm))
