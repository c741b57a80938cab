"""
One codec per column type: bytes of a row image to a value and back.

Every type is laid out in one of two ways: a fixed number of bytes, or a length of 1 to 4 bytes
followed by that many. So a column can always be stepped over, whatever stands in it. Values of JSON,
GEOMETRY and VECTOR keep their bytes.

Source: `libs/mysql/binlog/event` (`calc_field_size`) and the field types' `pack` methods of MySQL 9.x.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache, partial
from operator import attrgetter
from typing import Any, Literal

import attrs

from ndb_formats.constants import ColumnCode
from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError, SchemaError, UnsupportedError
from ndb_formats.types import temporal
from ndb_formats.types.charsets import charset_of_collation_id, decode_text, encode_text
from ndb_formats.types.decimals import decimal_size, decode_decimal, encode_decimal
from ndb_formats.types.geometry import Geometry
from ndb_formats.types.json_binary import JsonDocument, document_bytes
from ndb_formats.types.values import Value
from ndb_formats.types.vector import decode_vector, vector_bytes

__all__ = ["Codec", "Meaning", "WireType", "codec_of", "put_wire_types", "read_wire_types"]


@attrs.frozen
class WireType:
    """
    The type of a column as far as a Table_map event tells it.

    Attributes:
        code: Type code; ENUM and SET are already told apart from STRING, under which they travel.
        length: Maximum or fixed length in bytes, precision or fraction digits, as the type needs it.
        scale: Digits after the point of a DECIMAL; spare bits of a BIT.
    """

    code: ColumnCode
    length: int = 0
    scale: int = 0


@attrs.frozen
class Meaning:
    """
    What a codec was made of: all that is known of a column's type.

    Attributes:
        wire: Its type in the Table_map event.
        unsigned: Whether an integer is UNSIGNED.
        charset: Character set of its text; None for bytes.
        members: Strings of an ENUM or SET; none if they are not known.
    """

    wire: WireType
    unsigned: bool = False
    charset: str | None = None
    members: tuple[str, ...] = ()


@attrs.frozen
class Codec:
    """
    How a column's values stand in an image.

    Attributes:
        width: Bytes of a value; of its length prefix if `prefixed`.
        prefixed: Whether a length comes first.
        decode: Payload bytes (without the length prefix) to value.
        encode: Value to payload bytes.
        meaning: What it was made of; None for what is no column's type.
    """

    width: int
    prefixed: bool
    decode: Callable[[bytes], Value]
    encode: Callable[[Any], bytes]
    meaning: Meaning | None = None

    def take(self, cursor: Cursor) -> bytes:
        """Step over one value and return its payload."""
        return cursor.take(cursor.uint(self.width) if self.prefixed else self.width)

    def put(self, payload: bytes) -> bytes:
        """Return the bytes of a payload in an image; the inverse of `take`."""
        return len(payload).to_bytes(self.width, "little") + payload if self.prefixed else payload


# Bytes of metadata per type code in a Table_map event.
_METADATA_SIZE = {
    ColumnCode.FLOAT: 1, ColumnCode.DOUBLE: 1, ColumnCode.VARCHAR: 2, ColumnCode.BIT: 2,
    ColumnCode.TIMESTAMP2: 1, ColumnCode.DATETIME2: 1, ColumnCode.TIME2: 1, ColumnCode.VECTOR: 1,
    ColumnCode.JSON: 1, ColumnCode.NEWDECIMAL: 2, ColumnCode.ENUM: 2, ColumnCode.SET: 2,
    ColumnCode.TINY_BLOB: 1, ColumnCode.MEDIUM_BLOB: 1, ColumnCode.LONG_BLOB: 1, ColumnCode.BLOB: 1,
    ColumnCode.VAR_STRING: 2, ColumnCode.STRING: 2, ColumnCode.GEOMETRY: 1,
}  # fmt: skip


def read_wire_types(codes: bytes, metadata: Cursor) -> tuple[WireType, ...]:
    """
    Return the wire type of every column.

    Args:
        codes: One type code per column.
        metadata: The metadata block of the Table_map event.

    Raises:
        UnsupportedError: A type code is not known.
    """
    types = []
    for position, code in enumerate(codes):
        try:
            kind = _column_code(code)
            types.append(_wire_type(kind, metadata.take(_METADATA_SIZE.get(kind, 0))))
        except UnsupportedError as error:
            raise error.located(column=f"@{position + 1}") from None
    return tuple(types)


def _column_code(code: int) -> ColumnCode:
    try:
        return ColumnCode(code)
    except ValueError:
        message = f"column type code {code} is not known"
        raise UnsupportedError(message) from None


def put_wire_types(types: Sequence[WireType]) -> tuple[bytes, bytes]:
    """Return the type codes and the metadata block of a Table_map event; the inverse of `read_wire_types`."""
    codes, metadata = bytearray(), bytearray()
    for wire in types:
        hidden = wire.code in (ColumnCode.ENUM, ColumnCode.SET)
        codes.append(ColumnCode.STRING if hidden else wire.code)
        metadata += _wire_metadata(wire)
    return bytes(codes), bytes(metadata)


def _wire_metadata(wire: WireType) -> bytes:
    if wire.code in (ColumnCode.ENUM, ColumnCode.SET):
        return bytes([wire.code, wire.length])
    if wire.code is ColumnCode.STRING:
        return bytes([ColumnCode.STRING ^ (wire.length >> 4 & 0x30), wire.length & 0xFF])
    if wire.code is ColumnCode.NEWDECIMAL:
        return bytes([wire.length, wire.scale])
    if wire.code is ColumnCode.BIT:
        return bytes([wire.length % 8, wire.length // 8])
    return wire.length.to_bytes(_METADATA_SIZE.get(wire.code, 0), "little")


def _wire_type(code: ColumnCode, metadata: bytes) -> WireType:
    if code is ColumnCode.STRING:
        # The high length bits are hidden, inverted, in bits 4 and 5 of the real type.
        real, low = metadata
        if real & 0x30 != 0x30:
            return WireType(_column_code(real | 0x30), low | ((real & 0x30) ^ 0x30) << 4)
        return WireType(_column_code(real), low)
    if code in (ColumnCode.ENUM, ColumnCode.SET):
        return WireType(code, metadata[1])
    if code is ColumnCode.NEWDECIMAL:
        return WireType(code, metadata[0], metadata[1])
    if code is ColumnCode.BIT:
        return WireType(code, metadata[1] * 8 + metadata[0])
    return WireType(code, int.from_bytes(metadata, "little"))


def _integer(width: int, unsigned: bool, order: Literal["little", "big"] = "little") -> Codec:
    return Codec(
        width,
        False,
        lambda data: int.from_bytes(data, order, signed=not unsigned),
        lambda value: value.to_bytes(width, order, signed=not unsigned),
    )


def _packed_float(code: str, width: int) -> Codec:
    packing = struct.Struct(code)
    return Codec(width, False, lambda data: packing.unpack(data)[0], packing.pack)


def _string(wire: WireType, charset: str | None) -> Codec:
    width = wire.length if wire.code in _BLOBS else (1 if wire.length < 256 else 2)
    if charset is not None:
        return Codec(width, True, partial(decode_text, charset=charset), partial(encode_text, charset=charset))
    if wire.code is ColumnCode.STRING:
        # BINARY(n) travels without its trailing zero bytes and is stored with them.
        return Codec(width, True, lambda data: data.ljust(wire.length, b"\0"), lambda value: value.rstrip(b"\0"))
    return Codec(width, True, bytes, bytes)


def _fractional(
    whole: int, decode: Callable[[bytes, int], str], encode: Callable[[str, int], bytes], digits: int
) -> Codec:
    return Codec(
        whole + temporal.fraction_bytes(digits),
        False,
        lambda data: decode(data, digits),
        lambda value: encode(value, digits),
    )


def _decode_year(data: bytes) -> int:
    return data[0] + 1900 if data[0] else 0


def _encode_year(value: int) -> bytes:
    return bytes([value - 1900 if value else 0])


_BLOBS = frozenset({ColumnCode.BLOB, ColumnCode.TINY_BLOB, ColumnCode.MEDIUM_BLOB, ColumnCode.LONG_BLOB})
_INTEGER_WIDTH = {
    ColumnCode.TINY: 1,
    ColumnCode.SHORT: 2,
    ColumnCode.INT24: 3,
    ColumnCode.LONG: 4,
    ColumnCode.LONGLONG: 8,
}
_PLAIN: dict[ColumnCode, Codec] = {
    ColumnCode.FLOAT: _packed_float("<f", 4),
    ColumnCode.DOUBLE: _packed_float("<d", 8),
    ColumnCode.NULL: Codec(0, False, lambda data: None, lambda value: b""),
    ColumnCode.YEAR: Codec(1, False, _decode_year, _encode_year),
    ColumnCode.DATE: Codec(3, False, temporal.decode_date, temporal.encode_date),
    ColumnCode.NEWDATE: Codec(3, False, temporal.decode_date, temporal.encode_date),
    ColumnCode.TIME: Codec(3, False, temporal.decode_old_time, temporal.encode_old_time),
    ColumnCode.DATETIME: Codec(8, False, temporal.decode_old_datetime, temporal.encode_old_datetime),
    ColumnCode.TIMESTAMP: Codec(
        4,
        False,
        lambda data: temporal.decode_timestamp2(data[::-1], 0),
        lambda value: temporal.encode_timestamp2(value, 0)[::-1],
    ),
}
_FRACTIONAL = {
    ColumnCode.TIME2: (3, temporal.decode_time2, temporal.encode_time2),
    ColumnCode.DATETIME2: (5, temporal.decode_datetime2, temporal.encode_datetime2),
    ColumnCode.TIMESTAMP2: (4, temporal.decode_timestamp2, temporal.encode_timestamp2),
}
_KEPT_AS_BYTES: dict[ColumnCode, tuple[Callable[[bytes], Value], Callable[[Any], bytes]]] = {
    ColumnCode.JSON: (JsonDocument, document_bytes),
    ColumnCode.GEOMETRY: (Geometry, attrgetter("data")),
    ColumnCode.VECTOR: (decode_vector, vector_bytes),
}


@cache
def codec_of(
    wire: WireType,
    *,
    unsigned: bool = False,
    charset: str | None = None,
    members: tuple[str, ...] = (),
) -> Codec:
    """
    Return the codec of a column.

    Args:
        wire: Its type in the Table_map event.
        unsigned: Whether an integer is UNSIGNED; the type code alone does not say.
        charset: Character set of its text; None reads it as bytes.
        members: Strings of an ENUM or SET; without them the value is the number or the bit set.

    Raises:
        UnsupportedError: The layout of the type is not known.
    """
    meaning = Meaning(wire, unsigned, charset, members)
    return attrs.evolve(_codec_of(meaning), meaning=meaning)


def _codec_of(meaning: Meaning) -> Codec:
    wire, unsigned, charset, members = meaning.wire, meaning.unsigned, meaning.charset, meaning.members
    if wire.code in _INTEGER_WIDTH:
        return _integer(_INTEGER_WIDTH[wire.code], unsigned)
    if wire.code in _PLAIN:
        return _PLAIN[wire.code]
    if wire.code in _FRACTIONAL:
        return _fractional(*_FRACTIONAL[wire.code], wire.length)
    if wire.code is ColumnCode.NEWDECIMAL:
        return _decimal(wire.length, wire.scale)
    if wire.code is ColumnCode.BIT:
        return _integer((wire.length + 7) // 8, True, "big")
    if wire.code is ColumnCode.ENUM:
        return _enum(wire.length, members)
    if wire.code is ColumnCode.SET:
        return _set(wire.length, members)
    if wire.code in _KEPT_AS_BYTES:
        return Codec(wire.length, True, *_KEPT_AS_BYTES[wire.code])
    if wire.code in _BLOBS or wire.code in (ColumnCode.STRING, ColumnCode.VARCHAR, ColumnCode.VAR_STRING):
        return _string(wire, charset)
    message = f"the layout of type {wire.code.name} is not known"
    raise UnsupportedError(message)


def _decimal(precision: int, scale: int) -> Codec:
    if precision == 0 or scale > precision:
        message = f"there is no DECIMAL({precision},{scale})"
        raise CorruptError(message)

    def decode(data: bytes) -> Decimal:
        return decode_decimal(data, precision, scale)

    def encode(value: Decimal) -> bytes:
        return encode_decimal(value, precision, scale)

    return Codec(decimal_size(precision, scale), False, decode, encode)


def _enum(width: int, members: tuple[str, ...]) -> Codec:
    """ENUM: the number of the member, counted from 1; 0 is the error value, shown as ''."""
    number = _integer(width, True)
    if not members:
        return number
    by_number = ("", *members)

    def decode(data: bytes) -> str:
        value = int.from_bytes(data, "little")
        if value >= len(by_number):
            message = f"holds member {value} of an ENUM that is defined with {len(members)}"
            raise SchemaError(message)
        return by_number[value]

    def encode(value: str) -> bytes:
        return number.encode(members.index(value) + 1 if value in members else by_number.index(value))

    return Codec(width, False, decode, encode)


def _set(width: int, members: tuple[str, ...]) -> Codec:
    """SET: bit n stands for member n, counted from 0."""
    bits = _integer(width, True)
    if not members:
        return bits

    def decode(data: bytes) -> str:
        mask = int.from_bytes(data, "little")
        if mask >> len(members):
            message = f"holds member {mask.bit_length()} of a SET that is defined with {len(members)}"
            raise SchemaError(message)
        return ",".join(member for place, member in enumerate(members) if mask >> place & 1)

    def encode(value: str) -> bytes:
        return bits.encode(sum(1 << members.index(member) for member in value.split(",") if member))

    return Codec(width, False, decode, encode)


def charset_of(collation_id: int) -> str | None:
    """Return the character set to decode with, or None for collation `binary`."""
    charset = charset_of_collation_id(collation_id)
    return None if charset == "binary" else charset
