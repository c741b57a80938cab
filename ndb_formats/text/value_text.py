"""
One value of a row image as `mysqlbinlog -v` prints it, and its type as `-vv` does.

`PRINTED` has a row per column type: the name of the type, and a function from a payload (the bytes of a value without
its length prefix) to text. Text is bytes: strings are printed as they are stored, each column in its own character set,
and only control characters, quotes and backslashes are escaped.

Choices: the tool is followed even where its output is odd. It prints an unsigned integer as a signed one first, the
year 0000 as 1900, and a negative TIME of servers before MySQL 5.6 as a large number.

Source: MySQL `log_event.cc` (`log_event_print_value`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import attrs

from ndb_formats.constants import ColumnCode
from ndb_formats.types import temporal
from ndb_formats.types.column_types import WireType, put_wire_types
from ndb_formats.types.decimals import decode_decimal

_ESCAPES = {byte: b"\\x%02x" % byte for byte in range(32)}
_ESCAPES |= {8: rb"\b", 9: rb"\t", 10: rb"\n", 12: rb"\f", 13: rb"\r", 39: rb"\'", 92: rb"\\"}
_QUOTED = tuple(_ESCAPES.get(byte, bytes([byte])) for byte in range(256))
_PLAIN = bytes(byte for byte in range(256) if byte not in _ESCAPES)

_BLOB_NAMES = {1: "TINYBLOB/TINYTEXT", 2: "BLOB/TEXT", 3: "MEDIUMBLOB/MEDIUMTEXT", 4: "LONGBLOB/LONGTEXT"}
_ENUM_NAMES = {1: "ENUM(1 byte)", 2: "ENUM(2 bytes)"}
_BIG_ENDIAN_METADATA = frozenset({ColumnCode.STRING, ColumnCode.ENUM, ColumnCode.SET, ColumnCode.NEWDECIMAL})


@attrs.frozen
class Printed:
    """
    How values of one type are printed.

    Attributes:
        name: Wire type and maximum of elements (of a VECTOR) to the name of the type.
        text: Payload and wire type to the text of the value.
    """

    name: Callable[[WireType, int], str]
    text: Callable[[bytes, WireType], bytes]


def metadata_number(wire: WireType) -> int:
    """Return the metadata of a column as the number that the tool prints after ``meta=``."""
    _, metadata = put_wire_types((wire,))
    return int.from_bytes(metadata, "big" if wire.code in _BIG_ENDIAN_METADATA else "little")


def quoted(data: bytes) -> bytes:
    """Return bytes in single quotes, escaped."""
    if data.translate(None, _PLAIN):
        data = b"".join(map(_QUOTED.__getitem__, data))
    return b"'" + data + b"'"


def _integer(data: bytes, _: WireType) -> bytes:
    signed = int.from_bytes(data, "little", signed=True)
    return b"%d (%d)" % (signed, int.from_bytes(data, "little")) if signed < 0 else b"%d" % signed


def _decimal(data: bytes, wire: WireType) -> bytes:
    return f"{decode_decimal(data, wire.length, wire.scale):f}".encode()


def _float(data: bytes, _: WireType) -> bytes:
    return b"%-20g" % float(struct.unpack("<f", data)[0])


def _double(data: bytes, _: WireType) -> bytes:
    return b"%.20g" % float(struct.unpack("<d", data)[0])


def _bit(data: bytes, wire: WireType) -> bytes:
    digits = f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}"
    return f"b'{digits[len(digits) - wire.length :]}'".encode()


def _set(data: bytes, _: WireType) -> bytes:
    """Return the bytes of a SET in the order stored, that of its first eight members first."""
    return b"b'" + b"".join(f"{byte:08b}".encode() for byte in data) + b"'"


def _enum(data: bytes, _: WireType) -> bytes:
    return b"%d" % int.from_bytes(data, "little")


def _year(data: bytes, _: WireType) -> bytes:
    return b"%d" % (data[0] + 1900)


def _date(data: bytes, _: WireType) -> bytes:
    return quoted(temporal.decode_date(data).replace("-", ":").encode())


def _time(data: bytes, wire: WireType) -> bytes:
    return quoted(temporal.decode_time2(data, wire.length).encode())


def _datetime(data: bytes, wire: WireType) -> bytes:
    return quoted(temporal.decode_datetime2(data, wire.length).encode())


def _timestamp(data: bytes, wire: WireType) -> bytes:
    seconds = b"%d" % int.from_bytes(data[:4], "big")
    if wire.length == 0:
        return seconds
    digits = f"{int.from_bytes(data[4:], 'big'):0{2 * temporal.fraction_bytes(wire.length)}d}"
    return seconds + b"." + digits[: wire.length].encode()


def _old_time(data: bytes, _: WireType) -> bytes:
    temporal.decode_old_time(data)  # refuses what is no TIME; mysqlbinlog prints a negative one as a large one
    number = int.from_bytes(data, "little")
    return b"'%02d:%02d:%02d'" % (number // 10000, number // 100 % 100, number % 100)


def _old_datetime(data: bytes, _: WireType) -> bytes:
    return temporal.decode_old_datetime(data).encode()


def _old_timestamp(data: bytes, _: WireType) -> bytes:
    return b"%d" % int.from_bytes(data, "little", signed=True)


def _vector(data: bytes, _: WireType) -> bytes:
    if not data:
        return b"["
    elements = struct.unpack(f"<{len(data) // 4}f", data[: len(data) // 4 * 4])
    return b"[" + b",".join(b"%.5e" % element for element in elements) + b"]"


def _string(data: bytes, _: WireType) -> bytes:
    return quoted(data)


def _named(name: str) -> Callable[[WireType, int], str]:
    """Return a function for a name in which ``{0}`` is the wire type and ``{1}`` the maximum of elements."""
    return name.format


# JSON is printed by `row_lines`; other types that are not here are not printed.
PRINTED: dict[ColumnCode, Printed] = {
    ColumnCode.TINY: Printed(_named("TINYINT"), _integer),
    ColumnCode.SHORT: Printed(_named("SHORTINT"), _integer),
    ColumnCode.INT24: Printed(_named("MEDIUMINT"), _integer),
    ColumnCode.LONG: Printed(_named("INT"), _integer),
    ColumnCode.LONGLONG: Printed(_named("LONGINT"), _integer),
    ColumnCode.NEWDECIMAL: Printed(_named("DECIMAL({0.length},{0.scale})"), _decimal),
    ColumnCode.FLOAT: Printed(_named("FLOAT"), _float),
    ColumnCode.DOUBLE: Printed(_named("DOUBLE"), _double),
    ColumnCode.BIT: Printed(_named("BIT({0.length})"), _bit),
    ColumnCode.ENUM: Printed(lambda wire, _: _ENUM_NAMES.get(wire.length, "ENUM"), _enum),
    ColumnCode.SET: Printed(_named("SET({0.length} bytes)"), _set),
    ColumnCode.YEAR: Printed(_named("YEAR"), _year),
    ColumnCode.DATE: Printed(_named("DATE"), _date),
    ColumnCode.NEWDATE: Printed(_named("DATE"), _date),
    ColumnCode.TIME: Printed(_named("TIME"), _old_time),
    ColumnCode.TIME2: Printed(_named("TIME({0.length})"), _time),
    ColumnCode.DATETIME: Printed(_named("DATETIME"), _old_datetime),
    ColumnCode.DATETIME2: Printed(_named("DATETIME({0.length})"), _datetime),
    ColumnCode.TIMESTAMP: Printed(_named("TIMESTAMP"), _old_timestamp),
    ColumnCode.TIMESTAMP2: Printed(_named("TIMESTAMP({0.length})"), _timestamp),
    ColumnCode.VARCHAR: Printed(_named("VARSTRING({0.length})"), _string),
    ColumnCode.VAR_STRING: Printed(_named("VARSTRING({0.length})"), _string),
    ColumnCode.STRING: Printed(_named("STRING({0.length})"), _string),
    ColumnCode.BLOB: Printed(lambda wire, _: _BLOB_NAMES.get(wire.length, "BLOB"), _string),
    # As mariadb-binlog prints them: the compressed bytes.
    ColumnCode.VARCHAR_COMPRESSED: Printed(_named("VARSTRING({0.length}) COMPRESSED"), _string),
    ColumnCode.BLOB_COMPRESSED: Printed(lambda wire, _: f"{_BLOB_NAMES.get(wire.length, 'BLOB')} COMPRESSED", _string),
    ColumnCode.VECTOR: Printed(_named("VECTOR({1})"), _vector),
}
