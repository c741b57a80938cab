"""
JSON values as MySQL prints them, as in ``CAST(j AS CHAR)``.

Source: MySQL `json_dom.cc` (`wrapper_to_string`, `double_quote`), `dtoa.cc` (`my_gcvt`) and `base64.h`.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from decimal import Decimal

from ndb_formats.constants import ColumnCode
from ndb_formats.types.json_values import JsonOpaque, JsonValue

__all__ = ["json_text"]

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
