"""
Gtid_tagged_log: the Gtid event of a transaction whose GTID has a tag (MySQL 8.3 and later).

    version    varint  1
    size       varint  bytes of the whole body
    last id    varint  of the last field that must be understood
    fields     id varint, then the value: varints, but for the source, 16 varints, and the tag, a length and bytes

    0 flags    1 source    2 number    3 tag    4 last committed    5 sequence number    6 committed
    7 first committed    8 length of the transaction    9 server version    10 first version    11 ticket

A varint has as many bytes as its first byte has 1 bits at its lower end, plus one; its value is in the bits above
these and the 0 bit that ends them, little-endian.

Only the length of the transaction is decoded: it changes if the transaction does.

Source: MySQL `mysql/serialization`, `control_events.h` (`Gtid_event::define_fields`).
"""

from __future__ import annotations

from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError, UnsupportedError

__all__ = ["decode_tagged_length", "encode_tagged_length"]

_VERSION = 1
_SOURCE, _TAG, _LENGTH, _LAST = 1, 3, 8, 11
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
            continue
        for _ in range(_UUID_BYTES if field == _SOURCE else 1):
            _varint(cursor)
        if field == _LENGTH:
            return start, cursor.offset
    message = "a Gtid event without the length of its transaction"
    raise CorruptError(message)


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
