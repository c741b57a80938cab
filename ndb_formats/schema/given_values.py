"""
Values of columns as people give them: a text for anything, numbers, bytes or their hexadecimal digits.
"""

from __future__ import annotations

import re
from decimal import Decimal

from ndb_formats.schema.row_keys import is_text, value_text
from ndb_formats.schema.tables import Column
from ndb_formats.types.decimals import decimal_as_shown
from ndb_formats.types.values import Value

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year")
MOMENTS = ("date", "time", "datetime", "timestamp")


def given_value(column: Column, given: object) -> Value:
    """
    Return what a column holds if it is given something.

    Whether an integer is in the range of the column, or a moment exists, is not looked at.

    Raises:
        ValueError: It is none of its column.
    """
    if given is None or isinstance(given, bytes):
        return given
    text = value_text(given)
    if is_text(column) or column.members:
        return text
    try:
        return _typed(column, text)
    except (ValueError, ArithmeticError):
        raise no_value(column, text) from None


def no_value(column: Column, value: object) -> ValueError:
    """Return the error of a value that is none of its column."""
    return ValueError(f"{value} is no value of {column.name}, {column.sql_type}")


def _typed(column: Column, text: str) -> Value:
    if column.type in _INTEGERS:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else int("")
    if column.type == "decimal":
        return Decimal(decimal_as_shown(text, column.scale or 0))
    if column.type in ("float", "double"):
        return float(text)
    return text if column.type in MOMENTS else bytes.fromhex(text.removeprefix("0x"))
