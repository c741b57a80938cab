"""
The values of a column in a row image.

Absent is not NULL: a column that an image does not carry is `ABSENT`, and one that is NULL in it is ``None``. No
function in this project turns one into the other.
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

# Temporal values are text as MySQL writes it, since zero dates and 838:59:59 have no Python type.
# JSON, GEOMETRY and VECTOR keep their bytes, which can differ for equal values.
Value = int | float | Decimal | str | bytes | JsonDocument | JsonChange | Geometry | Vector | None
MaybeValue = Value | Absent
