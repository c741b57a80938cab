"""
The events on GTIDs, with and without a tag: which transaction follows, and which are in earlier files.

Gtid_log and Anonymous_gtid_log, before each transaction:

    flags                u8   1 = the transaction may have been logged as statements
    source               16 bytes, the UUID of the server that committed it; zeros if anonymous
    number               i64  its number on that server; 0 if anonymous
    timestamp type       u8   2
    last committed       i64  it depends on no transaction of this file with a greater number
    sequence number      i64  its own number in this file
    committed            u56  microseconds since 1970 on this server; bit 55 set: the next field follows
    first committed      u56  the same on the server where it was first made
    length               packed, bytes of the whole transaction, this event among them
    server version       u32  of this server; bit 31 set: the next field follows
    first version        u32  of the server where it was first made
    ticket               u64  only if it has a commit group

Servers before 8.0 end after the sequence number, the first ones that wrote this event after the number.

Gtid_tagged_log, where the GTID has a tag (MySQL 8.3 and later):

    version    varint  1
    size       varint  bytes of the whole body
    last id    varint  of the last field that must be understood
    fields     id varint, then the value: varints, but for the source, 16 varints, and the tag, a length and bytes

    0 flags    1 source    2 number    3 tag    4 last committed    5 sequence number    6 committed
    7 first committed    8 length of the transaction    9 server version    10 first version    11 ticket

A varint has as many bytes as its first byte has 1 bits at its lower end, plus one; its value is in the bits above
these and the 0 bit that ends them, little-endian. The number, and others that could be negative, have their sign in
the lowest bit.

MariaDB's Gtid event begins with the number, u64, and the domain, u32; the server is that of its header. It tells no
microsecond.

Source: MySQL `control_events.h` (`Gtid_event`, `Gtid_event::define_fields`, `Previous_gtids_event`), `rpl_gtid_set.cc`,
`mysql/serialization`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import attrs

from ndb_formats.constants import EventType
from ndb_formats.cursor import Cursor, packed
from ndb_formats.errors import CorruptError, FormatError, UnsupportedError

LOGICAL = 2
# Where fields are in the body of a Gtid_log or Anonymous_gtid_log event.
SOURCE, NUMBER, CLOCK, TIME = slice(1, 17), slice(17, 25), 25, slice(42, 49)
_TIME_BYTES = 7
_MORE_TIME = 1 << 55
TIME_BITS = _MORE_TIME - 1
_MORE_VERSION = 1 << 31


@attrs.frozen
class GtidEvent:
    """
    One Gtid_log or Anonymous_gtid_log event; fields as in the table above.

    Attributes:
        source: UUID, 16 bytes.
        number: 0 for an anonymous transaction.
        committed: None if the event ends before it.
        length: None if the event ends before it.
        server_version: Such as 90704; None if the event ends before it.
        rest: The bytes after the fields that are known.
    """

    source: bytes = bytes(16)
    number: int = 0
    last_committed: int | None = 0
    sequence_number: int = 0
    committed: int | None = None
    first_committed: int | None = None
    length: int | None = None
    server_version: int | None = None
    first_version: int | None = None
    flags: int = 0
    rest: bytes = attrs.field(default=b"", repr=False)


def decode_gtid(body: bytes) -> GtidEvent:
    """
    Decode the body of a Gtid_log or Anonymous_gtid_log event.

    Raises:
        TruncatedError: The body ends too early.
    """
    cursor = Cursor(body)
    event = GtidEvent(flags=cursor.uint(1), source=cursor.take(16), number=cursor.uint(8), last_committed=None)
    if not cursor.remaining or body[cursor.offset] != LOGICAL:
        return attrs.evolve(event, rest=cursor.rest())
    cursor.skip(1)
    event = attrs.evolve(event, last_committed=cursor.uint(8), sequence_number=cursor.uint(8))
    if not cursor.remaining:
        return event
    committed, first = cursor.uint(_TIME_BYTES), None
    if committed & _MORE_TIME:
        committed, first = committed & TIME_BITS, cursor.uint(_TIME_BYTES)
    event = attrs.evolve(event, committed=committed, first_committed=first)
    if not cursor.remaining:
        return event
    event = attrs.evolve(event, length=cursor.packed())
    if not cursor.remaining:
        return event
    version, first = cursor.uint(4), None
    if version & _MORE_VERSION:
        version, first = version & ~_MORE_VERSION, cursor.uint(4)
    return attrs.evolve(event, server_version=version, first_version=first, rest=cursor.rest())


def encode_gtid(event: GtidEvent) -> bytes:
    """Return the body of a Gtid_log or Anonymous_gtid_log event; the inverse of `decode_gtid`."""
    parts = [bytes([event.flags]), event.source, event.number.to_bytes(8, "little")]
    if event.last_committed is not None:
        parts.append(bytes([LOGICAL]))
        parts += [number.to_bytes(8, "little") for number in (event.last_committed, event.sequence_number)]
    if event.committed is not None:
        parts += _with_first(event.committed, event.first_committed, _TIME_BYTES)
    if event.length is not None:
        parts.append(packed(event.length))
    if event.server_version is not None:
        parts += _with_first(event.server_version, event.first_version, 4)
    return b"".join(parts) + event.rest


def _with_first(value: int, first: int | None, width: int) -> list[bytes]:
    """Return a value of this server, and the one of the first server if that differs; the highest bit says so."""
    if first is None:
        return [value.to_bytes(width, "little")]
    return [(value | 1 << 8 * width - 1).to_bytes(width, "little"), first.to_bytes(width, "little")]


def gtid_and_time(code: int, server_id: int, body: bytes) -> tuple[str | None, int | None]:
    """
    Return the GTID of a transaction, as its server shows it, and when the server of the log committed it.

    Args:
        code: Type code of an event that begins a transaction.
        server_id: The server in its header.
        body: Its body.

    Returns:
        ``source:number``, ``source:tag:number``, or, of MariaDB, ``domain-server-number``; microseconds since 1970.
        Each is None if the event does not tell it.
    """
    if code == EventType.MARIADB_GTID_EVENT:
        return _mariadb_gtid(server_id, body), None
    if code == EventType.GTID_TAGGED_LOG_EVENT:
        return _tagged_gtid_and_time(body)
    has_time = len(body) >= TIME.stop and body[CLOCK] == LOGICAL
    time = int.from_bytes(body[TIME], "little") & TIME_BITS if has_time else 0
    if code != EventType.GTID_LOG_EVENT or len(body) < NUMBER.stop:
        return None, time or None
    return f"{uuid_text(body[SOURCE])}:{int.from_bytes(body[NUMBER], 'little', signed=True)}", time or None


def uuid_text(source: bytes) -> str:
    """Return a UUID as text."""
    return str(UUID(bytes=source))


def _mariadb_gtid(server_id: int, body: bytes) -> str | None:
    if len(body) < _MARIADB_DOMAIN.stop:
        return None
    number, domain = (int.from_bytes(body[part], "little") for part in (_MARIADB_NUMBER, _MARIADB_DOMAIN))
    return f"{domain}-{server_id}-{number}"


_MARIADB_NUMBER, _MARIADB_DOMAIN = slice(0, 8), slice(8, 12)


def _tagged_gtid_and_time(body: bytes) -> tuple[str | None, int | None]:
    try:
        values = {field: Cursor(body[start:stop]) for field, start, stop in _tagged_fields(body)}
        source = uuid_text(bytes(_varint(values[_SOURCE]) for _ in range(_UUID_BYTES)))
        number, tag = _varint(values[_NUMBER]) >> 1, values[_TAG].take(_varint(values[_TAG])).decode()
        committed = _varint(values[_COMMITTED]) if _COMMITTED in values else None
    except (FormatError, KeyError, ValueError):  # a version that is not known, or no event of a server
        return None, None
    return f"{source}:{tag}:{number}" if tag else f"{source}:{number}", committed or None


@attrs.frozen
class GtidInterval:
    """
    Transactions of one server in a row.

    Attributes:
        source: UUID of the server, 16 bytes.
        first: Number of the first transaction.
        after: Number after the last one.
    """

    source: bytes
    first: int
    after: int


def decode_previous_gtids(body: bytes) -> tuple[GtidInterval, ...]:
    """
    Decode the body of a Previous_gtids_log event without tags.

    Raises:
        TruncatedError: The body ends too early.
    """
    cursor, found = Cursor(body), []
    for _ in range(cursor.uint(8)):
        source = cursor.take(16)
        found += [GtidInterval(source, cursor.uint(8), cursor.uint(8)) for _ in range(cursor.uint(8))]
    return tuple(found)


def encode_previous_gtids(intervals: Sequence[GtidInterval]) -> bytes:
    """Return the body of a Previous_gtids_log event; the inverse of `decode_previous_gtids`."""
    by_source: dict[bytes, list[GtidInterval]] = {}
    for interval in intervals:
        by_source.setdefault(interval.source, []).append(interval)
    parts = [len(by_source).to_bytes(8, "little")]
    for source, own in by_source.items():
        parts += [source, len(own).to_bytes(8, "little")]
        parts += [number.to_bytes(8, "little") for each in own for number in (each.first, each.after)]
    return b"".join(parts)


_VERSION = 1
_SOURCE, _NUMBER, _TAG, _COMMITTED, _LENGTH, _LAST = 1, 2, 3, 6, 8, 11
_UUID_BYTES = 16


def decode_tagged_length(body: bytes) -> int:
    """
    Return the length of the transaction that a Gtid_tagged_log event gives.

    Raises:
        CorruptError: It gives none.
        TruncatedError: The body ends too early.
        UnsupportedError: It is of another version, or has a field that is not known.
    """
    start, _ = _place_of_length(body)
    return _varint(Cursor(body, start))


def encode_tagged_length(body: bytes, length: int) -> bytes:
    """Return the body of a Gtid_tagged_log event with another length of the transaction; errors as for decoding."""
    start, stop = _place_of_length(body)
    cursor = Cursor(body)
    _varint(cursor)
    version_end = cursor.offset
    _varint(cursor)
    rest = body[cursor.offset : start] + _put_varint(length) + body[stop:]
    size = version_end + len(rest)
    while len(total := _put_varint(size)) != size - version_end - len(rest):
        size = version_end + len(total) + len(rest)
    return body[:version_end] + total + rest


def _place_of_length(body: bytes) -> tuple[int, int]:
    """Return where the length of the transaction starts and ends."""
    for field, start, stop in _tagged_fields(body):
        if field == _LENGTH:
            return start, stop
    message = "a Gtid event without the length of its transaction"
    raise CorruptError(message)


def _tagged_fields(body: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the fields of a Gtid_tagged_log event, and where the value of each starts and ends."""
    cursor = Cursor(body)
    version = _varint(cursor)
    if version != _VERSION:
        message = f"a Gtid event of serialization version {version}; only version {_VERSION} is known"
        raise UnsupportedError(message)
    _varint(cursor)
    _varint(cursor)
    while cursor.remaining:
        field = _varint(cursor)
        start = cursor.offset
        if field > _LAST:
            message = f"field {field} of a Gtid event is not known"
            raise UnsupportedError(message)
        if field == _TAG:
            cursor.skip(_varint(cursor))
        else:
            for _ in range(_UUID_BYTES if field == _SOURCE else 1):
                _varint(cursor)
        yield field, start, cursor.offset


def _varint(cursor: Cursor) -> int:
    first = cursor.uint(1)
    more = ((~first & first + 1).bit_length() - 1) if first != 0xFF else 8
    value = first | cursor.uint(more) << 8
    return value >> min(more + 1, 8)


def _put_varint(value: int) -> bytes:
    for more in range(8):
        if value < 1 << 7 * (more + 1):
            return (value << more + 1 | (1 << more) - 1).to_bytes(more + 1, "little")
    return b"\xff" + value.to_bytes(8, "little")
