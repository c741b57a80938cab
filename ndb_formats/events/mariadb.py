"""
MariaDB's compressed parts of events (``log_bin_compress``).

    head     u8   bit 7 is set, bits 4 to 6 the algorithm (0 = zlib), bits 0 to 2 how many bytes the size takes
    size     of the plain bytes, big-endian
    data     zlib stream, until the end

In a rows event the images are compressed and what stands before them is not; in a query event the statement.
Source: MariaDB `log_event.cc` (`binlog_buf_compress`).
"""

from __future__ import annotations

import zlib

from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError, UnsupportedError

__all__ = ["MAX_PLAIN_BYTES", "uncompressed"]

_ZLIB = 0
# The largest max_allowed_packet of the server.
MAX_PLAIN_BYTES = 1 << 30


def uncompressed(data: bytes) -> bytes:
    """
    Return the plain bytes of a compressed part.

    Raises:
        CorruptError: It is not of the form above, or not of the size given.
        UnsupportedError: The algorithm is not known.
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
    if size > MAX_PLAIN_BYTES:
        message = f"a compressed part is given as {size} bytes, more than a server would write"
        raise CorruptError(message)
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(cursor.rest(), size + 1)
    except zlib.error as error:
        message = f"a compressed part cannot be decompressed: {error}"
        raise CorruptError(message) from error
    if len(plain) != size:
        message = f"a compressed part is not of the {size} bytes that it gives"
        raise CorruptError(message)
    return plain
