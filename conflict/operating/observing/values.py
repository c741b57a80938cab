"""
Values as servers print them and as a result has them, made comparable.

FLOAT is printed with six digits and DOUBLE with up to seventeen; blanks at the ends of texts, and zero bytes at the
ends of binary values, do not survive all ways of printing. NULL and the text NULL look the same.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal, InvalidOperation

import pyarrow as pa


def comparable(value: object, kind: pa.DataType) -> object:
    """
    Return a value in a form that is the same for equal values, and can be a key.

    Args:
        value: A value of a result; or a text or bytes, as a server gives them. A text that is no value of the type
            stays as it is.
        kind: The type of its column in the result.
    """
    if value is None or value == "NULL":
        return None
    with suppress(ValueError, InvalidOperation):
        if pa.types.is_integer(kind):
            return _integer(value)
        if pa.types.is_decimal(kind):
            return Decimal(str(value))
        if pa.types.is_floating(kind):
            return float(f"{float(str(value)):.{6 if pa.types.is_float32(kind) else 15}g}")
    if pa.types.is_binary(kind):
        return (value if isinstance(value, bytes) else str(value).encode()).rstrip(b"\0")
    return (value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)).strip(" ")


def _integer(value: object) -> int:
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    if isinstance(value, int):
        return value
    text = str(value)
    try:
        return int(text)
    except ValueError:  # a BIT, as the characters that it is made of
        return int.from_bytes(text.encode("latin-1"), "big")


def shown_value(value: object) -> str | None:
    """Return a value as people read it; None is NULL."""
    if value is None:
        return None
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
