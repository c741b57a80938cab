"""
Column values as recordings write them, in JSON.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from ndb_formats.types.decimals import decimal_text
from ndb_formats.types.geometry import Geometry
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.values import Value
from ndb_formats.types.vector import Vector

__all__ = ["plain_value", "recorded_value"]


def plain_value(value: Value) -> object:
    """Return a value as recordings write it: decimals and JSON as text, bytes in hex, others as they are."""
    if isinstance(value, JsonDocument):
        return value.text
    if isinstance(value, Geometry | Vector):
        value = value.data
    if isinstance(value, bytes):
        return value.hex().upper()
    return decimal_text(value) if isinstance(value, Decimal) else value


def recorded_value(value: object, column_type: str) -> object:
    """Return a recorded value as `plain_value` gives it: the server shows six digits of a FLOAT, and 3.0 as 3."""
    if column_type.startswith("float") and isinstance(value, int | float):
        return float(np.float32(value))
    return float(value) if column_type.startswith("double") and isinstance(value, int) else value
