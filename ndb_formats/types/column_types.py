"""
The column types: one row of `COLUMN_TYPES` each, with the codec between the bytes of a row image and a value.

Every value has either a fixed number of bytes, or a length of 1 to 4 bytes and then that many bytes. So a column can
be skipped whatever its type is. Values of JSON, GEOMETRY and VECTOR keep their bytes.

To add a type: write its decoding and encoding in a module beside this one, and add a row to `COLUMN_TYPES`;
docs/adding.md lists what else changes.

Source: `libs/mysql/binlog/event` (`calc_field_size`) and the field types' `pack` methods of MySQL 9.x.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
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
from ndb_formats.types.json_binary import JsonDocument, document_bytes
from ndb_formats.types.mariadb_compression import compressed_value, uncompressed_value
from ndb_formats.types.values import Geometry, Value, decode_vector, vector_bytes


@attrs.frozen
class WireType:
    """
    The type of a column in a Table_map event.

    Attributes:
        code: Type code; that of ENUM and SET columns, for which the event has STRING.
        length: Maximum or fixed length in bytes, precision, or digits of a fraction, depending on the type.
        scale: Digits after the point of a DECIMAL.
    """

    code: ColumnCode
    length: int = 0
    scale: int = 0


@attrs.frozen
class Meaning:
    """
    All that is known of a column's type: what its codec is made from.

    Attributes:
        wire: Its type in the Table_map event.
        unsigned: Whether an integer is UNSIGNED.
        charset: Character set of its text; None for bytes.
        members: Members of an ENUM or SET; empty if they are not known.
    """

    wire: WireType
    unsigned: bool = False
    charset: str | None = None
    members: tuple[str, ...] = ()


@attrs.frozen
class Codec:
    """
    How a column's values are encoded in an image.

    Attributes:
        width: Bytes of a value, or of its length prefix if `prefixed`.
        prefixed: Whether values have a length prefix.
        decode: Payload bytes (without the length prefix) to value.
        encode: Value to payload bytes.
        meaning: What it was made from; None for a codec that belongs to no column type.
    """

    width: int
    prefixed: bool
    decode: Callable[[bytes], Value]
    encode: Callable[[Any], bytes]
    meaning: Meaning | None = None

    def take(self, cursor: Cursor) -> bytes:
        """Read one value and return its payload."""
        return cursor.take(cursor.uint(self.width) if self.prefixed else self.width)

    def put(self, payload: bytes) -> bytes:
        """Return the bytes of a payload in an image; the inverse of `take`."""
        return len(payload).to_bytes(self.width, "little") + payload if self.prefixed else payload


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
            types.append(_wire_type(kind, metadata.take(_metadata_size(kind))))
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
        as_string = wire.code in (ColumnCode.ENUM, ColumnCode.SET)
        codes.append(ColumnCode.STRING if as_string else wire.code)
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
    return wire.length.to_bytes(_metadata_size(wire.code), "little")


def _wire_type(code: ColumnCode, metadata: bytes) -> WireType:
    if code is ColumnCode.STRING:
        # Bits 4 and 5 of the real type hold the high bits of the length, inverted.
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


@attrs.frozen
class ColumnType:
    """
    One column type.

    Attributes:
        metadata_size: Bytes of its metadata in a Table_map event.
        codec: Makes the codec of a column of that type.
    """

    metadata_size: int
    codec: Callable[[Meaning], Codec]


def _integer(width: int, *, unsigned: bool, order: Literal["little", "big"] = "little") -> Codec:
    return Codec(
        width,
        False,
        lambda data: int.from_bytes(data, order, signed=not unsigned),
        lambda value: value.to_bytes(width, order, signed=not unsigned),
    )


def _integers(width: int) -> ColumnType:
    return ColumnType(0, lambda meaning: _integer(width, unsigned=meaning.unsigned))


def _float(code: str, width: int) -> ColumnType:
    packing = struct.Struct(code)
    return ColumnType(1, lambda _: Codec(width, False, lambda data: packing.unpack(data)[0], packing.pack))


def _decimal(meaning: Meaning) -> Codec:
    precision, scale = meaning.wire.length, meaning.wire.scale
    if precision == 0 or scale > precision:
        message = f"there is no DECIMAL({precision},{scale})"
        raise CorruptError(message)
    return Codec(
        decimal_size(precision, scale),
        False,
        lambda data: decode_decimal(data, precision, scale),
        lambda value: encode_decimal(value, precision, scale),
    )


def _bit(meaning: Meaning) -> Codec:
    return _integer((meaning.wire.length + 7) // 8, unsigned=True, order="big")


def _decode_year(data: bytes) -> int:
    return data[0] + 1900 if data[0] else 0


def _encode_year(value: int) -> bytes:
    return bytes([value - 1900 if value else 0])


def _fixed(width: int, decode: Callable[[bytes], Value], encode: Callable[[Any], bytes]) -> ColumnType:
    return ColumnType(0, lambda _: Codec(width, False, decode, encode))


def _with_fraction(whole: int, decode: Callable[[bytes, int], str], encode: Callable[[str, int], bytes]) -> ColumnType:
    def codec(meaning: Meaning) -> Codec:
        digits = meaning.wire.length
        return Codec(
            whole + temporal.fraction_bytes(digits),
            False,
            lambda data: decode(data, digits),
            lambda value: encode(value, digits),
        )

    return ColumnType(1, codec)


def _text_or_bytes(meaning: Meaning, width: int) -> Codec:
    wire, charset = meaning.wire, meaning.charset
    if charset is not None:
        return Codec(width, True, partial(decode_text, charset=charset), partial(encode_text, charset=charset))
    if wire.code is ColumnCode.STRING:
        # BINARY(n) is logged without its trailing zero bytes.
        return Codec(width, True, lambda data: data.ljust(wire.length, b"\0"), lambda value: value.rstrip(b"\0"))
    return Codec(width, True, bytes, bytes)


def _string(meaning: Meaning) -> Codec:
    return _text_or_bytes(meaning, 1 if meaning.wire.length < 256 else 2)


def _blob(meaning: Meaning) -> Codec:
    return _text_or_bytes(meaning, meaning.wire.length)


def _compressed(meaning: Meaning, width: int) -> Codec:
    charset = meaning.charset

    def decode(data: bytes) -> Value:
        plain = uncompressed_value(data)
        return plain if charset is None else decode_text(plain, charset)

    def encode(value: Any) -> bytes:
        return compressed_value(value if charset is None else encode_text(value, charset))

    return Codec(width, True, decode, encode)


def _kept_as_bytes(decode: Callable[[bytes], Value], encode: Callable[[Any], bytes]) -> ColumnType:
    return ColumnType(1, lambda meaning: Codec(meaning.wire.length, True, decode, encode))


def _enum(meaning: Meaning) -> Codec:
    """ENUM: the number of the member, counted from 1; 0 is the error value, shown as ''."""
    width, members = meaning.wire.length, meaning.members
    number = _integer(width, unsigned=True)
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


def _set(meaning: Meaning) -> Codec:
    """SET: bit n stands for member n, counted from 0."""
    width, members = meaning.wire.length, meaning.members
    bits = _integer(width, unsigned=True)
    if not members:
        return bits

    def decode(data: bytes) -> str:
        mask = int.from_bytes(data, "little")
        if mask >> len(members):
            message = f"holds member {mask.bit_length()} of a SET that is defined with {len(members)}"
            raise SchemaError(message)
        return ",".join(member for bit, member in enumerate(members) if mask >> bit & 1)

    def encode(value: str) -> bytes:
        return bits.encode(sum(1 << members.index(member) for member in value.split(",") if member))

    return Codec(width, False, decode, encode)


def _decode_old_timestamp(data: bytes) -> str:
    return temporal.decode_timestamp2(data[::-1], 0)


def _encode_old_timestamp(value: str) -> bytes:
    return temporal.encode_timestamp2(value, 0)[::-1]


COLUMN_TYPES: dict[ColumnCode, ColumnType] = {
    ColumnCode.TINY: _integers(1),
    ColumnCode.SHORT: _integers(2),
    ColumnCode.INT24: _integers(3),
    ColumnCode.LONG: _integers(4),
    ColumnCode.LONGLONG: _integers(8),
    ColumnCode.FLOAT: _float("<f", 4),
    ColumnCode.DOUBLE: _float("<d", 8),
    ColumnCode.NEWDECIMAL: ColumnType(2, _decimal),
    ColumnCode.BIT: ColumnType(2, _bit),
    ColumnCode.NULL: _fixed(0, lambda data: None, lambda value: b""),
    ColumnCode.YEAR: _fixed(1, _decode_year, _encode_year),
    ColumnCode.DATE: _fixed(3, temporal.decode_date, temporal.encode_date),
    ColumnCode.NEWDATE: _fixed(3, temporal.decode_date, temporal.encode_date),
    ColumnCode.TIME: _fixed(3, temporal.decode_old_time, temporal.encode_old_time),
    ColumnCode.DATETIME: _fixed(8, temporal.decode_old_datetime, temporal.encode_old_datetime),
    ColumnCode.TIMESTAMP: _fixed(4, _decode_old_timestamp, _encode_old_timestamp),
    ColumnCode.TIME2: _with_fraction(3, temporal.decode_time2, temporal.encode_time2),
    ColumnCode.DATETIME2: _with_fraction(5, temporal.decode_datetime2, temporal.encode_datetime2),
    ColumnCode.TIMESTAMP2: _with_fraction(4, temporal.decode_timestamp2, temporal.encode_timestamp2),
    ColumnCode.STRING: ColumnType(2, _string),
    ColumnCode.VARCHAR: ColumnType(2, _string),
    ColumnCode.VAR_STRING: ColumnType(2, _string),
    ColumnCode.VARCHAR_COMPRESSED: ColumnType(2, lambda meaning: _compressed(meaning, _string(meaning).width)),
    ColumnCode.BLOB_COMPRESSED: ColumnType(1, lambda meaning: _compressed(meaning, meaning.wire.length)),
    ColumnCode.TINY_BLOB: ColumnType(1, _blob),
    ColumnCode.BLOB: ColumnType(1, _blob),
    ColumnCode.MEDIUM_BLOB: ColumnType(1, _blob),
    ColumnCode.LONG_BLOB: ColumnType(1, _blob),
    ColumnCode.ENUM: ColumnType(2, _enum),
    ColumnCode.SET: ColumnType(2, _set),
    ColumnCode.JSON: _kept_as_bytes(JsonDocument, document_bytes),
    ColumnCode.GEOMETRY: _kept_as_bytes(Geometry, attrgetter("data")),
    ColumnCode.VECTOR: _kept_as_bytes(decode_vector, vector_bytes),
}


def _metadata_size(code: ColumnCode) -> int:
    return COLUMN_TYPES[code].metadata_size if code in COLUMN_TYPES else 0


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
        unsigned: Whether an integer is UNSIGNED; the type code does not tell.
        charset: Character set of its text; None reads it as bytes.
        members: Members of an ENUM or SET; without them the value is a number or a bit set.

    Raises:
        UnsupportedError: The layout of the type is not known.
    """
    if wire.code not in COLUMN_TYPES:
        message = f"the layout of type {wire.code.name} is not known"
        raise UnsupportedError(message)
    meaning = Meaning(wire, unsigned, charset, members)
    return attrs.evolve(COLUMN_TYPES[wire.code].codec(meaning), meaning=meaning)


def charset_of(collation_id: int) -> str | None:
    """Return the character set of a collation number, or None for the collation `binary`."""
    charset = charset_of_collation_id(collation_id)
    return None if charset == "binary" else charset
