"""
The values in a JSON document, with all distinctions of MySQL's binary form, and their text as in ``CAST(j AS CHAR)``.

Signed integers, doubles, strings, booleans, null, arrays and objects are Python values; objects are dicts in the order
stored. An unsigned integer is a `JsonUint`, and a value of an SQL type a `JsonOpaque`.

Source: MySQL `json_dom.cc` (`Json_decimal`, `Json_datetime`, `Json_opaque`, `wrapper_to_string`, `double_quote`),
`my_time.cc`, `dtoa.cc` (`my_gcvt`) and `base64.h`.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from decimal import Decimal
from typing import TypeAlias

import attrs

from ndb_formats.constants import ColumnCode
from ndb_formats.errors import CorruptError
from ndb_formats.types.decimals import decimal_size, decode_decimal
from ndb_formats.types.temporal import decode_datetime2, decode_time2

_DATETIMES = frozenset({ColumnCode.DATE, ColumnCode.DATETIME, ColumnCode.TIMESTAMP})
_TIME_OFFSET, _TIME_SIZE = 0x800000 << 24, 6
_DATETIME_OFFSET, _DATETIME_SIZE = 0x8000000000 << 24, 8
_MICROSECONDS = 6


class JsonUint(int):
    """An unsigned integer, which MySQL distinguishes from a signed one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"JsonUint({int(self)})"


@attrs.frozen
class JsonOpaque:
    """
    A value of an SQL type that JSON does not have.

    Attributes:
        type_code: Type code of a column of that type (`ColumnCode`), or an unknown one.
        data: Its bytes: a DECIMAL after its precision and scale, a temporal value as a packed 64-bit number, any
            other value as it is.
    """

    type_code: int
    data: bytes

    @property
    def is_number(self) -> bool:
        """Whether it is a DECIMAL, which is printed without quotes."""
        return self.type_code == ColumnCode.NEWDECIMAL

    @property
    def value(self) -> Decimal | str | bytes:
        """
        A DECIMAL as a number, a temporal value as text with six digits of fraction, any other as bytes.

        Raises:
            CorruptError: The bytes are not a value of the type.
        """
        if self.is_number:
            return self._decimal()
        if self.type_code == ColumnCode.TIME:
            return decode_time2(self._packed(_TIME_OFFSET, _TIME_SIZE), _MICROSECONDS)
        if self.type_code in _DATETIMES:
            text = decode_datetime2(self._packed(_DATETIME_OFFSET, _DATETIME_SIZE), _MICROSECONDS)
            return text.split(" ")[0] if self.type_code == ColumnCode.DATE else text
        return self.data

    def _decimal(self) -> Decimal:
        precision, scale = (self.data[0], self.data[1]) if len(self.data) > 2 else (0, 0)
        if scale > precision or precision == 0 or decimal_size(precision, scale) != len(self.data) - 2:
            message = f"{self.data.hex()} is not a DECIMAL with its precision and scale"
            raise CorruptError(message)
        return decode_decimal(self.data[2:], precision, scale)

    def _packed(self, offset: int, size: int) -> bytes:
        """Return the bytes that a column has for the value; it adds an offset, so that they sort like the values."""
        number = int.from_bytes(self.data, "little", signed=True) + offset
        # Only a TIME has a sign.
        low = 0 if self.type_code == ColumnCode.TIME else offset
        if len(self.data) != 8 or not low <= number < 1 << 8 * size:
            message = f"{self.data.hex()} is not a packed temporal value"
            raise CorruptError(message)
        return number.to_bytes(size, "big")


JsonValue: TypeAlias = "bool | int | float | str | JsonOpaque | list[JsonValue] | dict[str, JsonValue] | None"


_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_SPECIAL = re.compile(r'[\x00-\x1f"\\]')
_BASE64_LINE = 57  # bytes that give a line of 76 characters
# Powers of ten within which a double is written without an exponent (`MAX_DECPT_FOR_F_FORMAT`).
_MAX_PLAIN_DIGITS = 15


def json_text(value: JsonValue, *, quoted: bool = True) -> str:
    """
    Return the text of a value.

    Args:
        value: A JSON value.
        quoted: Whether to quote and escape a string, temporal or opaque value at the top, as ``CAST(j AS CHAR)``
            does and `mysqlbinlog` does not.
    """
    if isinstance(value, JsonOpaque):
        if value.is_number:
            return format(value.value, "f")
        value = _opaque_text(value)
    if isinstance(value, str):
        return _quote(value) if quoted else value
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(json_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quote(key)}: {json_text(member)}" for key, member in value.items()) + "}"
    return _plain_text(value)


def _plain_text(value: float | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, int) else _double_text(value)


def _opaque_text(opaque: JsonOpaque) -> str:
    value = opaque.value
    if isinstance(value, bytes) and opaque.type_code == ColumnCode.VAR_STRING:
        # MySQL prints the bytes as they are; a str cannot hold those that are not UTF-8.
        return value.decode("utf-8", "replace")
    if isinstance(value, bytes):
        lines = (value[start : start + _BASE64_LINE] for start in range(0, len(value), _BASE64_LINE))
        return f"base64:type{opaque.type_code}:" + "\n".join(b64encode(line).decode("ascii") for line in lines)
    return str(value)


def _quote(text: str) -> str:
    return f'"{_SPECIAL.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _double_text(value: float) -> str:
    """
    Return the shortest text that gives the same number, always with a point or an exponent.

    JSON has no infinity and no NaN; MySQL prints 0.0 for their bytes.
    """
    if not math.isfinite(value):
        return "0.0"
    if not value:
        return repr(value)
    mantissa, _, exponent = f"{abs(Decimal(repr(value))):e}".partition("e")
    text = mantissa.replace(".", "").rstrip("0")
    point = int(exponent) + 1
    minus = "-" if value < 0 else ""
    if point < 1 - _MAX_PLAIN_DIGITS or (point > _MAX_PLAIN_DIGITS and len(text) <= point):
        return f"{minus}{text[0]}{'.' if len(text) > 1 else ''}{text[1:]}e{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    return f"{minus}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"
