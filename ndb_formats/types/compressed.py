"""
Values of MariaDB's COMPRESSED columns.

    head     u8   0 plain; else bits 4 to 7 the method (8 = zlib), bit 3 no header of zlib, bits 0 to 2 the size's bytes
    size     of the value, big-endian
    data     to the end

An empty value has no byte at all. Source: MariaDB `field_comp.cc`.
"""

from __future__ import annotations

import zlib

from ndb_formats.errors import CorruptError, UnsupportedError
from ndb_formats.unpacked_size import check_unpacked

__all__ = ["compressed_value", "uncompressed_value"]

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
