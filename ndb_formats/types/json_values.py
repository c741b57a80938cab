"""
The values in a JSON document, with all distinctions of MySQL's binary form.

Signed integers, doubles, strings, booleans, null, arrays and objects are Python values; objects are dicts in the order
stored. An unsigned integer is a `JsonUint`, and a value of an SQL type a `JsonOpaque`.

Source: MySQL `json_dom.cc` (`Json_decimal`, `Json_datetime`, `Json_opaque`) and `my_time.cc`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

import attrs

from ndb_formats.constants import ColumnCode
from ndb_formats.errors import CorruptError
from ndb_formats.types.decimals import decimal_size, decode_decimal
from ndb_formats.types.temporal import decode_datetime2, decode_time2

__all__ = ["JsonOpaque", "JsonUint", "JsonValue"]

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
