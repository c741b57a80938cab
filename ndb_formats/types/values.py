"""
What a column of a row image can hold.

Absent is not NULL: a column that an image does not carry is `ABSENT`, a column that it carries as
NULL is ``None``, and an empty string is ``""``. No function in this project lets one become another.
"""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from typing import Final, Literal

from ndb_formats.types.geometry import Geometry
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_diff import JsonChange
from ndb_formats.types.vector import Vector

__all__ = ["ABSENT", "Absent", "MaybeValue", "Value"]


class Absent(Enum):
    """The type of `ABSENT`; an enum, so that it survives pickling with its identity."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> Literal[False]:
        return False


ABSENT: Final = Absent.ABSENT

# Temporal values are text in MySQL's own spelling: zero dates and 838:59:59 have no Python type.
# JSON, GEOMETRY and VECTOR keep their bytes, which say more than the values in them.
Value = int | float | Decimal | str | bytes | JsonDocument | JsonChange | Geometry | Vector | None
MaybeValue = Value | Absent
