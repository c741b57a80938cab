"""
MariaDB's compressed parts of events (``log_bin_compress``).

    head     u8   bit 7 set, bits 4 to 6 the algorithm (0 = zlib), bits 0 to 2 the number of bytes of the size
    size     of the uncompressed bytes, big-endian
    data     zlib stream, to the end

In a rows event the images are compressed, and in a query event the statement; what comes before them is not.
Source: MariaDB `log_event.cc` (`binlog_buf_compress`).
"""

from __future__ import annotations

import zlib

from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError, UnsupportedError
from ndb_formats.unpacked_size import check_unpacked

__all__ = ["uncompressed", "uncompressed_query"]

_ZLIB = 0


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
    if algorithm != _ZLIB:
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
