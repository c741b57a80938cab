"""
Gtid_log, Anonymous_gtid_log and Previous_gtids_log: which transaction follows, and which are in earlier files.

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

Source: MySQL `control_events.h` (`Gtid_event`, `Previous_gtids_event`), `rpl_gtid_set.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ndb_formats.cursor import Cursor, packed

__all__ = [
    "GtidEvent",
    "GtidInterval",
    "decode_gtid",
    "decode_previous_gtids",
    "encode_gtid",
    "encode_previous_gtids",
]

_LOGICAL = 2
_TIME_BYTES = 7
_MORE_TIME = 1 << 55
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
    if not cursor.remaining or body[cursor.offset] != _LOGICAL:
        return attrs.evolve(event, rest=cursor.rest())
    cursor.skip(1)
    event = attrs.evolve(event, last_committed=cursor.uint(8), sequence_number=cursor.uint(8))
    if not cursor.remaining:
        return event
    committed, first = cursor.uint(_TIME_BYTES), None
    if committed & _MORE_TIME:
        committed, first = committed & ~_MORE_TIME, cursor.uint(_TIME_BYTES)
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
        parts.append(bytes([_LOGICAL]))
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
