"""
VECTOR: floats of four bytes, little-endian.

Source: MySQL `vector_conversion.h`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import attrs

from ndb_formats.errors import CorruptError

__all__ = ["Vector", "decode_vector", "vector_bytes"]

_FLOAT_SIZE = 4


@attrs.frozen
class Vector:
    """
    A vector; equal to another one of the same bytes, even with NaN in it.

    Attributes:
        data: Its bytes; a Python float would not keep every NaN.
    """

    data: bytes

    @property
    def floats(self) -> tuple[float, ...]:
        """The numbers."""
        return struct.unpack(f"<{len(self.data) // _FLOAT_SIZE}f", self.data)

    @property
    def text(self) -> str:
        """The text that `mysqlbinlog` and ``VECTOR_TO_STRING`` print: five digits after the point."""
        return f"[{','.join(f'{number:.5e}' for number in self.floats)}]"


def decode_vector(data: bytes) -> Vector:
    """
    Return the vector of these bytes.

    Raises:
        CorruptError: Their number is not a multiple of four.
    """
    if len(data) % _FLOAT_SIZE:
        message = f"{len(data)} bytes are not a whole number of 4-byte floats"
        raise CorruptError(message)
    return Vector(data)


def vector_bytes(vector: Vector | Sequence[float]) -> bytes:
    """Return the bytes of a vector, or of numbers."""
    return vector.data if isinstance(vector, Vector) else struct.pack(f"<{len(vector)}f", *vector)
