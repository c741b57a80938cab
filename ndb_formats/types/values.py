"""
The values of a column in a row image, with the types that Python lacks.

Absent is not NULL: a column that an image does not carry is `ABSENT`, and one that is NULL in it is ``None``. No
function in this project turns one into the other.

GEOMETRY is a spatial reference system and well-known binary, kept as bytes:

    srid    u32
    wkb     byte order u8, type u32, coordinates; always little-endian

VECTOR is floats of four bytes, little-endian.

Source: MySQL `spatial.h` (`SRID_SIZE`, `WKB_HEADER_SIZE`), `vector_conversion.h`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Final, Literal

import attrs

from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_diff import JsonChange

_SRID_SIZE = 4


@attrs.frozen
class Geometry:
    """
    A spatial value; equal to another one of the same bytes.

    Attributes:
        data: Its bytes.
    """

    data: bytes

    @property
    def srid(self) -> int:
        """
        The number of its spatial reference system; 0 is the plane.

        Raises:
            TruncatedError: There are fewer than four bytes.
        """
        return Cursor(self.data).uint(_SRID_SIZE)

    @property
    def wkb(self) -> bytes:
        """The geometry as well-known binary."""
        return self.data[_SRID_SIZE:]


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
        """
        The numbers as JSON, each with as many digits as tell it from all other floats of four bytes.

        A vector with a number that JSON does not have, infinite or NaN, is its bytes: ``0x`` and hexadecimal digits.
        (``VECTOR_TO_STRING`` and `mysqlbinlog` print six digits, from which the value cannot be had back.)
        """
        numbers = self.floats
        if not all(map(isfinite, numbers)):
            return "0x" + self.data.hex().upper()
        return f"[{','.join(map(_float_text, numbers))}]"


def _float_text(number: float) -> str:
    """Return the shortest text from which a float of four bytes can be had back; nine digits always do."""
    data = struct.pack("<f", number)
    texts = (f"{number:.{digits}g}" for digits in range(6, 10))
    return next(text for text in texts if struct.pack("<f", float(text)) == data)


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


class Absent(Enum):
    """The type of `ABSENT`; an enum, so that it survives pickling with its identity."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> Literal[False]:
        return False


ABSENT: Final = Absent.ABSENT

# Temporal values are text as MySQL writes it, since zero dates and 838:59:59 have no Python type.
# JSON, GEOMETRY and VECTOR keep their bytes, which can differ for equal values.
Value = int | float | Decimal | str | bytes | JsonDocument | JsonChange | Geometry | Vector | None
MaybeValue = Value | Absent
