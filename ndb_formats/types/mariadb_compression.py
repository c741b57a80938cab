"""
What MariaDB compresses: values of COMPRESSED columns, and parts of events (``log_bin_compress``).

A value:

    head     u8   0 plain; else bits 4 to 7 the method (8 = zlib), bit 3 no header of zlib, bits 0 to 2 the size's bytes
    size     of the value, big-endian
    data     to the end

An empty value has no byte at all. Part of an event:

    head     u8   bit 7 set, bits 4 to 6 the algorithm (0 = zlib), bits 0 to 2 the number of bytes of the size
    size     of the uncompressed bytes, big-endian
    data     zlib stream, to the end

In a rows event the images are compressed, and in a query event the statement; what comes before them is not.
Source: MariaDB `field_comp.cc`, `log_event.cc` (`binlog_buf_compress`).
"""

from __future__ import annotations

import zlib

from ndb_formats.cursor import Cursor, check_unpacked
from ndb_formats.errors import CorruptError, UnsupportedError

_ZLIB = 8


def uncompressed_value(data: bytes) -> bytes:
    """
    Return the bytes of a value.

    Raises:
        CorruptError: They are not in the form above, or not of the size given.
        UnsupportedError: They are compressed in an unknown way, or unpack to more than is allowed.
    """
    if not data or data[0] == 0:
        return data[1:]
    method, bare, width = data[0] >> 4, bool(data[0] & 8), data[0] & 7
    if method != _ZLIB:
        message = f"holds a value that is compressed in the unknown way {method}"
        raise UnsupportedError(message)
    size = int.from_bytes(data[1 : 1 + width], "big")
    check_unpacked(size)
    stream = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)
    try:
        plain = stream.decompress(data[1 + width :], size + 1)
    except zlib.error as error:
        message = f"holds a compressed value that cannot be decompressed: {error}"
        raise CorruptError(message) from error
    if len(plain) != size:
        message = f"holds a compressed value that does not have the {size} bytes that it gives as its size"
        raise CorruptError(message)
    return plain


def compressed_value(plain: bytes) -> bytes:
    """Return the bytes of a column for a value, which stays as it is."""
    return b"\0" + plain if plain else b""


_ZLIB_EVENT = 0


def uncompressed(data: bytes) -> bytes:
    """
    Return the uncompressed bytes of a compressed part.

    Raises:
        CorruptError: It does not have the form above, or not the size that it gives.
        UnsupportedError: The algorithm is not known, or it unpacks to more than is allowed.
    """
    cursor = Cursor(data)
    head = cursor.uint(1)
    algorithm, width = head >> 4 & 7, head & 7
    if not head & 0x80:
        message = f"0x{head:02x} does not start a compressed part"
        raise CorruptError(message)
    if algorithm != _ZLIB_EVENT:
        message = f"compression algorithm {algorithm} of MariaDB is not known"
        raise UnsupportedError(message)
    size = int.from_bytes(cursor.take(width), "big")
    check_unpacked(size)
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(cursor.rest(), size + 1)
    except zlib.error as error:
        message = f"a compressed part cannot be decompressed: {error}"
        raise CorruptError(message) from error
    if len(plain) != size:
        message = f"a compressed part does not have the {size} bytes that it gives as its size"
        raise CorruptError(message)
    return plain


def uncompressed_query(body: bytes) -> bytes:
    """
    Return the body of a compressed Query event as that of a plain one.

    Raises:
        CorruptError: See `uncompressed`.
        TruncatedError: The body ends too early.
        UnsupportedError: See `uncompressed`.
    """
    cursor = Cursor(body)
    cursor.skip(8)
    database_size = cursor.uint(1)
    cursor.skip(2)
    cursor.skip(cursor.uint(2))
    cursor.skip(database_size + 1)
    return body[: cursor.offset] + uncompressed(cursor.rest())
