"""The values of columns that a statement does not give: declared defaults, and the implicit zero of a type."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

from ndb_formats.errors import SchemaError
from ndb_formats.schema.tables import BLOB_TYPES, Column
from ndb_formats.types.charsets import decode_text
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.values import ABSENT, Geometry, MaybeValue, Value, Vector

_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"})
_EMPTY: dict[str, Value] = {"json": JsonDocument(b""), "geometry": Geometry(b""), "vector": Vector(b"")}
_BYTES = frozenset({"binary", "varbinary"})
_ZERO_TEXTS = {
    "date": "0000-00-00",
    "time": "00:00:00",
    "datetime": "0000-00-00 00:00:00",
    "timestamp": "0000-00-00 00:00:00",
}


def declared_default(column: Column, default: MaybeValue) -> MaybeValue:
    """
    Return a declared constant default in the form that the server keeps.

    Bytes of a hexadecimal or bit literal are a number or a text, a number has the digits of its type, and a moment all
    of its parts. What is no value of the type stays as it is.
    """
    if isinstance(default, bytes):
        if column.charset is not None or column.members:
            return literal_text(default, column.charset or "latin1")
        return default if column.type in _BYTES | BLOB_TYPES else str(int.from_bytes(default, "big"))
    if not isinstance(default, str):
        return default
    try:
        if column.type in _INTEGERS and column.type != "year":
            return str(Decimal(default).quantize(Decimal(1), ROUND_HALF_UP, _EXACT))
        if column.type == "decimal":
            return f"{Decimal(default).quantize(Decimal(1).scaleb(-(column.scale or 0)), ROUND_HALF_UP, _EXACT):f}"
    except ArithmeticError:
        return default
    return _moment(column, default) if column.type in _ZERO_TEXTS else default


def literal_text(data: bytes, charset: str) -> str:
    """Return the text of a hexadecimal or bit literal, which zeros at its left fill up to whole characters."""
    return decode_text(bytes(-len(data) % _UNIT.get(charset, 1)) + data, charset)


_EXACT = Context(prec=100)
_UNIT = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}  # bytes that a literal is filled up to, from the left


def _moment(column: Column, default: str) -> str:
    """Return a moment with all parts of its type: digits alone are a number, and a date can stand for a datetime."""
    whole, _, fraction = default.replace("T", " ").partition(".")
    if column.type == "time":
        whole = _clock(whole)
    fraction = f".{fraction[: column.length].ljust(column.length, '0')}" if column.length else ""
    if whole.isdecimal():
        digits = whole.zfill(_DIGITS[column.type])
        if column.type == "time":
            whole = f"{digits[:-4]}:{digits[-4:-2]}:{digits[-2:]}"
        elif int(digits) == 0 or len(digits) in (8, 14):
            date = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
            clock = f"{digits[8:10] or '00'}:{digits[10:12] or '00'}:{digits[12:14] or '00'}"
            whole = date if column.type == "date" else f"{date} {clock}"
    elif column.type in ("datetime", "timestamp") and len(whole) == len("0000-00-00"):
        whole = f"{whole} 00:00:00"
    return whole + ("" if column.type == "date" else fraction)


def _clock(whole: str) -> str:
    """Return the time of day in a text of a date and a time; of a date alone its first number, as minutes, seconds."""
    date, _, clock = whole.rpartition(" ")
    if date.count("-") == 2:
        return clock
    if whole.count("-") == 2:
        return whole.partition("-")[0]
    if whole.isdecimal() and len(whole) == len("20200102030405"):
        return whole[8:]
    return whole


_DIGITS = {"date": 8, "time": 6, "datetime": 8, "timestamp": 8}


def default_value(column: Column) -> Value:
    """
    Return the declared constant default as a value of the column; NULL if none is declared.

    Raises:
        SchemaError: It is no value of the column's type.
    """
    default = column.default
    if default is ABSENT or default is None:
        return None
    if isinstance(default, bytes) or column.type in _BYTES:
        return _padded(column, default if isinstance(default, bytes) else str(default).encode())
    if not isinstance(default, str):
        return default
    try:
        return _of_text(column, default)
    except (ValueError, ArithmeticError) as error:
        message = f"its default {default[:40]!r} is no {column.type}"
        raise SchemaError(message, column=column.name) from error


def _of_text(column: Column, default: str) -> Value:
    if column.type in _INTEGERS:
        return int(default)
    if column.type == "decimal":
        return Decimal(default).quantize(Decimal(1).scaleb(-(column.scale or 0)))
    return float(default) if column.type in ("float", "double") else default


def _padded(column: Column, value: bytes) -> bytes:
    """Return bytes as a column holds them: BINARY has all of its length, with zeros behind."""
    return value.ljust(column.length or 0, b"\0") if column.type == "binary" else value


def value_of_insert(column: Column) -> MaybeValue:
    """
    Return the constant that an insert stores in a column that it leaves out; ABSENT if that is refused, or computed.

    Of an ENUM that is NOT NULL and declares no default it is the first member, in strict mode, too. Data nodes know
    declared defaults alone, see `Column.must_be_given`.

    Source: MySQL manual, "Data Type Default Values".

    Raises:
        SchemaError: The declared default is no value of the column's type.
    """
    if column.default is ABSENT and column.computed_default:
        return ABSENT
    if column.default is ABSENT and not column.nullable:
        return column.members[0] if column.type == "enum" else ABSENT
    return default_value(column)


def implied_value(column: Column) -> Value:
    """Return what a server fills in for a value that it does not have: the default, else NULL, else the type's zero."""
    default = default_value(column)
    return zero_value(column) if default is None and not column.nullable else default


def zero_value(column: Column) -> Value:
    """Return the implicit zero of a type, such as 0, an empty text or the zero date; for JSON an empty document."""
    if column.type in _ZERO_TEXTS:
        fraction = f".{'0' * column.length}" if column.length and column.type != "date" else ""
        return _ZERO_TEXTS[column.type] + fraction
    if column.charset is not None:
        return ""
    if column.type in _INTEGERS:
        return 0
    if column.type == "decimal":
        return Decimal(0).scaleb(-(column.scale or 0))
    return 0.0 if column.type in ("float", "double") else _EMPTY.get(column.type, _padded(column, b""))
