"""
Values and names in SQL: one text for each value, exact, and safe whatever it holds.

A text that is not plain is written as its bytes, with the character set of its column before them. So no quote,
backslash or comment in a value can end its literal, whatever the server's and the client's settings are, and no
character set has to be converted. Text is compared by its bytes: a collation takes other letters for equal.

Source: MySQL manual, "Literal Values", "Character Set Introducers", "CAST"; checked by tests/mysql_server.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal

import attrs

from ndb_formats.errors import FormatError
from ndb_formats.schema.tables import Column
from ndb_formats.types.charsets import encode_text
from ndb_formats.types.column_types import Codec
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_values import JsonOpaque
from ndb_formats.types.values import Geometry, Vector

_NULL = "NULL"
# Texts that stand in quotes; all others are written as bytes.
_PLAIN = re.compile(r"[A-Za-z0-9 _.,:;@+=()\[\]{}-]*", re.ASCII)
_MOST_PLAIN = 200  # characters
# Their letters have other bytes than in ASCII.
_NOT_ASCII = frozenset({"ucs2", "utf16", "utf16le", "utf32", "swe7"})
_SURROGATES = re.compile("[\ud800-\udfff]")


class NotWritableError(Exception):
    """A value that no SQL text stands for exactly; the message says why."""


@attrs.frozen
class SqlValue:
    """
    A value in SQL.

    Attributes:
        literal: What assigns it to its column.
        compared: What it is compared with; `as_bytes` says with what of the column.
        as_bytes: Whether the bytes of the column are compared, and not its value.
    """

    literal: str
    compared: str
    as_bytes: bool = False

    def condition(self, column: str) -> str:
        """Return the condition that a column, quoted, has this value; that a column with NULL has it is false."""
        if self.compared == _NULL:
            return f"{column} IS NULL"
        left = f"CAST({column} AS BINARY)" if self.as_bytes else column
        return f"{left} <=> {self.compared}"


def name_in_sql(name: str) -> str:
    """Return a name in SQL."""
    return "`" + name.replace("`", "``") + "`"


def table_in_sql(database: str, table: str) -> str:
    """Return the name of a table in SQL, with its database."""
    return f"{name_in_sql(database)}.{name_in_sql(table)}"


def sql_value(column: Column, codec: Codec, payload: bytes | None) -> SqlValue:
    """
    Return a value of a column.

    Args:
        column: The column.
        codec: How its values are encoded.
        payload: The bytes of the value; None is NULL.

    Raises:
        NotWritableError: No SQL text stands for it exactly.
    """
    if payload is None:
        return SqlValue(_NULL, _NULL)
    try:
        value = codec.decode(payload)
    except FormatError as error:
        message = f"its value of column {column.name} cannot be read: {error}"
        raise NotWritableError(message) from None
    try:
        if column.charset is not None and isinstance(value, str):
            return _text(value, column, payload)
        return _WRITERS[type(value)](value)
    except NotWritableError as error:
        message = f"its value of column {column.name} {error}"
        raise NotWritableError(message) from None


def _text(value: str, column: Column, payload: bytes) -> SqlValue:
    """Return a text, or the members of an ENUM or SET, with its bytes in the character set of the column."""
    assert column.charset is not None
    if _SURROGATES.search(value):
        message = f"is not valid in character set {column.charset}"
        raise NotWritableError(message)
    if column.type == "enum" and not any(payload):
        message = "is the error value of an ENUM, which no statement can set"
        raise NotWritableError(message)
    if column.charset not in _NOT_ASCII and len(value) <= _MOST_PLAIN and _PLAIN.fullmatch(value):
        return SqlValue(f"'{value}'", f"'{value}'", as_bytes=True)
    data = _hexadecimal(encode_text(value, column.charset))
    return SqlValue(f"_{column.charset} {data}", data, as_bytes=True)


def _moment(value: str) -> SqlValue:
    return SqlValue(f"'{value}'", f"'{value}'")


def _hexadecimal(data: bytes) -> str:
    return f"X'{data.hex().upper()}'"


def _bytes(data: bytes) -> SqlValue:
    return SqlValue(_hexadecimal(data), _hexadecimal(data))


def _kept_bytes(value: Geometry | Vector) -> SqlValue:
    data = _hexadecimal(value.data)
    return SqlValue(data, data, as_bytes=True)


def _integer(value: int) -> SqlValue:
    return SqlValue(str(value), str(value))


def _decimal(value: Decimal) -> SqlValue:
    return SqlValue(f"{value:f}", f"{value:f}")


def _float(value: float) -> SqlValue:
    """Return a number as DOUBLE; that of a FLOAT column is the same number, which its text with six digits is not."""
    if not math.isfinite(value):
        message = "is no finite number"
        raise NotWritableError(message)
    digits = repr(value)
    literal = digits if "e" in digits else f"{digits}e0"
    return SqlValue(literal, literal)


def _json(document: JsonDocument) -> SqlValue:
    try:
        value, text = document.value, document.text
    except FormatError as error:
        message = f"is no JSON document: {error}"
        raise NotWritableError(message) from None
    if _holds_opaque(value):
        message = "is a JSON document with a decimal number, a date or bytes, which its text does not keep"
        raise NotWritableError(message)
    try:
        data = _hexadecimal(text.encode())
    except UnicodeEncodeError:
        message = "is a JSON document with text that is not valid"
        raise NotWritableError(message) from None
    literal = f"CAST(_utf8mb4 {data} AS JSON)"
    return SqlValue(literal, literal)


def _holds_opaque(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_opaque, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_opaque, value))
    return isinstance(value, JsonOpaque)


_WRITERS: dict[type, Callable[..., SqlValue]] = {
    int: _integer,
    float: _float,
    Decimal: _decimal,
    str: _moment,
    bytes: _bytes,
    JsonDocument: _json,
    Geometry: _kept_bytes,
    Vector: _kept_bytes,
}
