"""
What a JSON document holds, with every distinction that MySQL's binary form makes.

Signed integers, doubles, strings, booleans, null, arrays and objects are Python's own. Two things
have no Python type: an unsigned integer is a `JsonUint`, and a value of an SQL type is a `JsonOpaque`.
Objects are dicts in the order stored.

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
    """An unsigned integer; MySQL keeps apart whether a number was signed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"JsonUint({int(self)})"


@attrs.frozen
class JsonOpaque:
    """
    A value of an SQL type that JSON does not have.

    Attributes:
        type_code: Type code of a column of that type (`ColumnCode`), also one that is not known.
        data: Its bytes: a DECIMAL with precision and scale before it, a temporal value as a packed
            64-bit number, anything else as it is.
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
        DECIMAL as a number, a temporal value as text with six digits of fraction, else the bytes.

        Raises:
            CorruptError: The bytes are no value of the type.
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
            message = f"{self.data.hex()} is no DECIMAL with its precision and scale"
            raise CorruptError(message)
        return decode_decimal(self.data[2:], precision, scale)

    def _packed(self, offset: int, size: int) -> bytes:
        """Return the bytes of a column value; a column adds an offset, so that they sort as the values do."""
        number = int.from_bytes(self.data, "little", signed=True) + offset
        # Only a TIME has a sign.
        low = 0 if self.type_code == ColumnCode.TIME else offset
        if len(self.data) != 8 or not low <= number < 1 << 8 * size:
            message = f"{self.data.hex()} is no packed temporal value"
            raise CorruptError(message)
        return number.to_bytes(size, "big")


JsonValue: TypeAlias = "bool | int | float | str | JsonOpaque | list[JsonValue] | dict[str, JsonValue] | None"
