"""
The events of a binlog file, in order.

This is the only module of the package that opens files; `stored` has those on object storage. It checks what all events
have in common: header, size and checksum. The modules in `events` decode their bodies.
"""

from __future__ import annotations

import mmap
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import attrs

from ndb_formats.constants import (
    BINLOG_MAGIC,
    CHECKSUM_ALG_CRC32,
    ENCRYPTED_MAGIC,
    EVENT_HEADER_SIZE,
    LOG_EVENT_BINLOG_IN_USE_F,
    EventType,
)
from ndb_formats.cursor import UNPACKED_OPTION, allow_unpacked
from ndb_formats.errors import ChecksumError, CorruptError, CutFileError, FormatError, UnsupportedError
from ndb_formats.events.header import (
    EventHeader,
    FormatDescription,
    decode_format_description,
    decode_header,
    encode_header,
)
from ndb_formats.events.transaction_payload import decode_transaction_payload
from ndb_formats.stored import path_of

FIRST_POSITION = len(BINLOG_MAGIC)
ENCRYPTED_FROM_HERE = "the events after it are encrypted; fetch the file with mysqlbinlog --read-from-remote-server"
allow_unpacked(os.environ.get(UNPACKED_OPTION))
_TYPES = {each.value: each for each in EventType}


@attrs.frozen
class Event:
    """
    One event, not decoded.

    Attributes:
        file: Path of its file.
        position: Its position in that file.
        header: Its header.
        body: The bytes after the header, without the checksum (but see `decode_format_description`).
        server: Version text of the server that wrote it; empty if it is not known.
        payload_position: Where it starts among the uncompressed events of the compressed transaction around it; 0 for
            an event of the file itself, since the first one inside changes no row.
    """

    file: str
    position: int
    header: EventHeader
    body: bytes = attrs.field(repr=False)
    server: str = attrs.field(default="", repr=False)
    payload_position: int = attrs.field(default=0, repr=False)

    @property
    def type(self) -> EventType | None:
        """Event type; None if this version does not know it."""
        return _TYPES.get(self.header.type_code)

    @property
    def end(self) -> int:
        """Position after it in its file."""
        return self.position + self.header.size


def unpacked(event: Event) -> Iterator[Event]:
    """
    Yield an event, or the events inside it if it is a compressed transaction; they have its position.

    Raises:
        FormatError: The payload cannot be read.
    """
    if event.type is not EventType.TRANSACTION_PAYLOAD_EVENT:
        yield event
        return
    start = 0
    for header, body in decode_transaction_payload(event.body).events():
        yield Event(event.file, event.position, header, body, event.server, start)
        start += header.size


@contextmanager
def locate(event: Event) -> Iterator[None]:
    """Add file, position and event type to any `FormatError` raised inside."""
    try:
        yield
    except FormatError as error:
        raise error.located(file=event.file, position=event.position, event=event.header.type_name) from error.__cause__


def read_events(
    path: str | Path, *, start: int = FIRST_POSITION, stop: int | None = None, verify: bool = True
) -> Iterator[Event]:
    """
    Yield the events of one file that start at or after `start` and before `stop`.

    The Format_description event at the start of the file is always read, but yielded only if it is in that range.

    Args:
        path: The binlog file.
        start: Position of an event.
        stop: Position, or None for the end of the file.
        verify: Whether to check checksums.

    Raises:
        CorruptError: Not a binlog, or an event's size cannot be right.
        ChecksumError: An event's bytes do not match its CRC32.
        CutFileError: The file ends inside an event. All events before it have been yielded.
        UnsupportedError: An encrypted file, events that are encrypted, or a binlog version other than 4.
    """
    name = str(path)
    size = _size_of(path)
    with path_of(path).open("rb") as file:
        check_magic(file.read(len(BINLOG_MAGIC)), name)
        if size == FIRST_POSITION:
            return
        first, description = _read_description(file, name, size, verify=verify)
        if start <= first.position and (stop is None or first.position < stop):
            yield first
        position = max(start, first.end)
        file.seek(position)
        while position < size and (stop is None or position < stop):
            event = _read_event(file, name, position, size, description, verify=verify)
            if event.type is EventType.FORMAT_DESCRIPTION_EVENT:
                # A relay log has its source's Format_description event after its own.
                description = decode_format_description(event.body)
            elif event.type is EventType.MARIADB_START_ENCRYPTION_EVENT:
                raise UnsupportedError(ENCRYPTED_FROM_HERE, file=name, position=position, event=event.header.type_name)
            yield event
            position = event.end


def read_headers(path: str | Path) -> Iterator[tuple[int, EventHeader]]:
    """
    Yield position and header of every event of a file, without reading the bodies.

    Raises:
        CorruptError: Not a binlog, or an event's size cannot be right.
        CutFileError: The file ends inside an event.
        UnsupportedError: Events are encrypted.
    """
    name = str(path)
    size = _size_of(path)
    with path_of(path).open("rb") as file:
        check_magic(file.read(len(BINLOG_MAGIC)), name)
        position = FIRST_POSITION
        while position < size:
            file.seek(position)
            _, header = _read_header(file, name, position, size, trailer=0)
            if header.type_code == EventType.MARIADB_START_ENCRYPTION_EVENT:
                raise UnsupportedError(ENCRYPTED_FROM_HERE, file=name, position=position, event=header.type_name)
            yield position, header
            position += header.size


def map_file(path: str | Path) -> mmap.mmap | bytes:
    """
    Return the bytes of a file, memory-mapped.

    The file may grow meanwhile, as a server's last binlog does; the new bytes are not seen. It must not shrink.
    """
    _size_of(path)
    with path_of(path).open("rb") as file:
        # An empty file cannot be mapped.
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""


def first_event(path: str | Path, *, verify: bool) -> Event | None:
    """
    Return the Format_description event of a file; None if the file holds no event.

    Args:
        path: The binlog file.
        verify: Whether to check its checksum.

    Raises:
        FormatError: As `read_events`.
    """
    name = str(path)
    size = _size_of(path)
    with path_of(path).open("rb") as file:
        check_magic(file.read(len(BINLOG_MAGIC)), name)
        if size == FIRST_POSITION:
            return None
        return _read_description(file, name, size, verify=verify)[0]


def server_of(path: str | Path) -> int | None:
    """Return the id of the server that wrote a file; None if the file cannot be read, or holds no event."""
    try:
        first = first_event(path, verify=False)
    except (FormatError, OSError):
        return None
    return None if first is None else first.header.server_id


def event_at(
    path: str | Path,
    position: int,
    description: FormatDescription | None,
    *,
    verify: bool,
    size: int | None = None,
) -> Event:
    """
    Return the one event at a position.

    Args:
        path: The binlog file.
        position: Its position.
        description: The Format_description event that applies to it; None if it has no checksum.
        verify: Whether to check its checksum.
        size: Bytes of the file that count, if it may have grown; None for all.

    Raises:
        FormatError: As `read_events`.
    """
    with path_of(path).open("rb") as file:
        end = os.fstat(file.fileno()).st_size if size is None else size
        file.seek(position)
        return _read_event(file, str(path), position, end, description, verify=verify)


def _size_of(path: str | Path) -> int:
    """
    Return the bytes of a file; nothing is opened before, since opening a pipe waits.

    Raises:
        UnsupportedError: It is a folder, a pipe or a device.
    """
    facts = path_of(path).stat()
    if not stat.S_ISREG(facts.st_mode):
        message = "it is no regular file; give a copy of the binlog (`decode` reads pipes, too)"
        raise UnsupportedError(message, file=str(path))
    return facts.st_size


# First bytes of files that people give in place of binlogs, and what they are.
_KINDS = {
    b"BZh": "a bzip2 file; unpack it first",
    b"\xfd7zX": "an xz file; unpack it first",
    b"\x04\x22\x4d\x18": "an lz4 file; unpack it first",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"# at": "text of mysqlbinlog; give the binlog that it was made of",
    b"/*!": "text of mysqlbinlog, or a dump; give the binlog itself",
    b"-- ": "a dump in SQL; give the binlog itself",
}
_TAR, _TAR_AT = b"ustar", 257


def foreign_kind(head: bytes) -> str | None:
    """
    Return what a file is that is no binlog, and what to do; None if its first bytes do not say it.

    Args:
        head: Its first bytes; a tar archive shows in the first 262.
    """
    if head[_TAR_AT:].startswith(_TAR):
        return "a tar archive; unpack it first"
    return next((kind for first, kind in _KINDS.items() if head.startswith(first)), None)


def _said(kind: str | None) -> str:
    return "" if kind is None else f" but {kind}"


def check_magic(magic: bytes, name: str) -> None:
    """
    Check the first four bytes of a file.

    Raises:
        FormatError: They are not those of a binlog that can be read.
    """
    if magic == ENCRYPTED_MAGIC:
        message = "the file is encrypted; decrypt it first, or fetch it with mysqlbinlog --read-from-remote-server"
        raise UnsupportedError(message, file=name, position=0)
    if magic != BINLOG_MAGIC:
        if BINLOG_MAGIC.startswith(magic):
            message = "the file ends inside the four magic bytes of a binlog"
            raise CutFileError(message, file=name, position=0)
        message = (
            f"not a binlog{_said(foreign_kind(magic))}: it starts with 0x{magic.hex()}, not 0x{BINLOG_MAGIC.hex()}"
        )
        raise CorruptError(message, file=name, position=0)


def _read_description(file: BinaryIO, name: str, size: int, *, verify: bool) -> tuple[Event, FormatDescription]:
    event = _read_event(file, name, FIRST_POSITION, size, None, verify=verify)
    if event.type is not EventType.FORMAT_DESCRIPTION_EVENT:
        message = "the first event is not a FORMAT_DESCRIPTION_EVENT; files of MySQL before 5.0 cannot be read"
        raise UnsupportedError(message, file=name, position=FIRST_POSITION, event=event.header.type_name)
    return event, decode_format_description(event.body)


def _read_header(file: BinaryIO, name: str, position: int, size: int, trailer: int) -> tuple[bytes, EventHeader]:
    """Read a header, as bytes and decoded; no event may be shorter than a header and a checksum of `trailer` bytes."""
    head = file.read(EVENT_HEADER_SIZE)
    if len(head) < EVENT_HEADER_SIZE:
        message = f"the file ends {len(head)} bytes into an event header"
        raise CutFileError(message, file=name, position=position)
    header = decode_header(head)
    if header.size < EVENT_HEADER_SIZE + trailer:
        message = f"its header gives its size as {header.size} bytes, which is less than the header itself"
        raise CorruptError(message, file=name, position=position, event=header.type_name)
    if position + header.size > size:
        message = f"its header gives its size as {header.size} bytes, but the file ends after {size - position} of them"
        raise CutFileError(message, file=name, position=position, event=header.type_name)
    return head, header


def _read_event(
    file: BinaryIO, name: str, position: int, size: int, description: FormatDescription | None, *, verify: bool
) -> Event:
    trailer = 0 if description is None else description.checksum_size
    head, header = _read_header(file, name, position, size, trailer)
    body = file.read(header.size - EVENT_HEADER_SIZE)
    if header.type_code == EventType.FORMAT_DESCRIPTION_EVENT:
        # It says itself whether it has a checksum, which stays in the body because the algorithm is just before it.
        # The checksum is checked first: a damaged server version could turn all checksums off.
        event = Event(name, position, header, body)
        if verify and body[-5:-4] == bytes([CHECKSUM_ALG_CRC32]):
            _check_crc(head + body, header, name, position)
        with locate(event):
            decode_format_description(body)
        return event
    if verify and description is not None and description.checksum == CHECKSUM_ALG_CRC32:
        _check_crc(head + body, header, name, position)
    server = "" if description is None else description.server_version
    return Event(name, position, header, body[: len(body) - trailer], server)


def _check_crc(data: bytes, header: EventHeader, name: str, position: int) -> None:
    stored = int.from_bytes(data[-4:], "little")
    # The server sets this flag after it has computed the checksum, and clears it when it closes the file.
    if header.type_code == EventType.FORMAT_DESCRIPTION_EVENT and header.flags & LOG_EVENT_BINLOG_IN_USE_F:
        closed = attrs.evolve(header, flags=header.flags ^ LOG_EVENT_BINLOG_IN_USE_F)
        data = encode_header(closed) + data[EVENT_HEADER_SIZE:]
    computed = zlib.crc32(data[:-4])
    if stored != computed:
        message = f"its CRC32 is 0x{stored:08x}, but that of its bytes is 0x{computed:08x}: the file was damaged"
        raise ChecksumError(message, file=name, position=position, event=header.type_name)
