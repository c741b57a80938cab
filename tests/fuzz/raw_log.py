"""
A binlog as a list of raw events, to take apart, change and put together again.

It is read and written from the format's documentation, not by the code under test: what is put together can be wrong
in every way that an event can be, but its lengths and checksums fit unless somebody meant them not to.
"""

from __future__ import annotations

import struct
import zlib

import attrs
import zstandard

from tests.ndb_formats.building import HEADER_SIZE, MAGIC, packed

__all__ = ["PAYLOAD", "Payload", "RawEvent", "RawLog", "read_payload", "read_raw", "unzipped", "zipped"]

HEADER = struct.Struct("<IBIIIH")
DESCRIPTION, PAYLOAD = 15, 40
_CRC_SIZE = 4
ZSTD, PLAIN = 0, 255


@attrs.define
class RawEvent:
    """
    One event.

    Attributes:
        code: Type code.
        body: The bytes after the header, without checksum.
        time: Seconds since 1970.
        server: Server id.
        flags: Flags of the header.
        size: The size that the header tells; None for the right one.
        crc: The checksum; None for the right one.
    """

    code: int
    body: bytes
    time: int = 0
    server: int = 1
    flags: int = 0
    size: int | None = None
    crc: int | None = None

    def put(self, position: int, *, checksum: bool) -> bytes:
        """Return its bytes."""
        length = HEADER_SIZE + len(self.body) + _CRC_SIZE * checksum
        size = length if self.size is None else self.size
        head = HEADER.pack(self.time, self.code, self.server, size, (position + length) & 0xFFFFFFFF, self.flags)
        data = head + self.body
        if not checksum:
            return data
        return data + (zlib.crc32(data) if self.crc is None else self.crc).to_bytes(_CRC_SIZE, "little")


@attrs.define
class RawLog:
    """
    A whole file.

    Attributes:
        events: Its events.
        checksum: Whether they have checksums.
        own_checksum: Whether the Format_description event has one, as it has since MySQL 5.6.
    """

    events: list[RawEvent]
    checksum: bool
    own_checksum: bool

    def put(self) -> bytes:
        """Return its bytes."""
        data = bytearray(MAGIC)
        for event in self.events:
            of_description = event.code == DESCRIPTION and self.own_checksum
            data += event.put(len(data), checksum=of_description or self.checksum)
        return bytes(data)


def read_raw(data: bytes, most: int) -> RawLog:
    """Return the first events of a file, up to one that cannot be, as long as they take no more than `most` bytes."""
    events, position = [], len(MAGIC)
    log = RawLog(events, checksum=False, own_checksum=False)
    while position + HEADER_SIZE <= len(data):
        time, code, server, size, _, flags = HEADER.unpack_from(data, position)
        whole = data[position : position + size]
        if not HEADER_SIZE <= size <= max(most, 256) - position or len(whole) < size:
            break
        if code == DESCRIPTION:
            log.own_checksum = zlib.crc32(whole[:-4]) == int.from_bytes(whole[-4:], "little")
            log.checksum = log.own_checksum and whole[-5] == 1
        trailer = _CRC_SIZE * (log.checksum or (code == DESCRIPTION and log.own_checksum))
        events.append(RawEvent(code, whole[HEADER_SIZE : size - trailer], time, server, flags))
        position += size
    return log


@attrs.define
class Payload:
    """A compressed transaction: the events in it, and what its fields tell."""

    events: list[RawEvent]
    compression: int = ZSTD
    uncompressed: int | None = None
    size: int | None = None
    more: bytes = b""

    def put(self) -> bytes:
        """Return the body of the event."""
        data = b"".join(event.put(0, checksum=False) for event in self.events)
        inner = zstandard.ZstdCompressor().compress(data) if self.compression == ZSTD else data
        told = [(2, self.compression), (3, len(data) if self.uncompressed is None else self.uncompressed)]
        told.append((1, len(inner) if self.size is None else self.size))
        fields = b"".join(packed(kind) + packed(len(packed(value))) + packed(value) for kind, value in told)
        return fields + self.more + packed(0) + inner


def read_payload(body: bytes) -> Payload | None:
    """Return a compressed transaction of a sound file; None if it is not one."""
    start = body.find(b"\x28\xb5\x2f\xfd")
    if start < 0:
        return None
    try:
        data = zstandard.ZstdDecompressor().decompress(body[start:], max_output_size=1 << 20)
    except zstandard.ZstdError:
        return None
    inner = read_raw(MAGIC + data, len(data) + len(MAGIC))
    return Payload(inner.events)


def unzipped(body: bytes) -> tuple[bytes, bytes] | None:
    """Return what stands before a compressed part of MariaDB at the end of a body, and the part; None without one."""
    for place in range(len(body) - 8):
        if body[place] & 0xF0 == 0x80 and 1 <= (width := body[place] & 7) <= 4:
            size = int.from_bytes(body[place + 1 : place + 1 + width], "big")
            try:
                plain = zlib.decompress(body[place + 1 + width :])
            except zlib.error:
                continue
            if len(plain) == size:
                return body[:place], plain
    return None


def zipped(before: bytes, plain: bytes, size: int | None = None) -> bytes:
    """Return a body with a compressed part of MariaDB, which tells its size."""
    told = len(plain) if size is None else size
    return before + bytes([0x84]) + (told & 0xFFFFFFFF).to_bytes(4, "big") + zlib.compress(plain)
