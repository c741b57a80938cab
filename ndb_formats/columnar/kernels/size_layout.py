"""
The columns of the arrays that `sizes` works with, by name, and its special values.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "DIFF_TWIN",
    "NO_DEFAULT",
    "NO_TWIN",
    "NULL_DEFAULT",
    "Outcome",
    "ShapeMode",
    "SizeState",
    "SizeStop",
    "SizedShape",
]

# In place of the length of a column's default.
NO_DEFAULT, NULL_DEFAULT = -1, -2
# In place of the number of a column of the after image among those of the before image.
NO_TWIN, DIFF_TWIN = -1, -2


class SizeStop(IntEnum):
    """Why the loop stopped."""

    END = 0  # of the rows
    VARIANT = 1  # a variant that is not registered
    KEYS = 2  # a text key with other bytes: is it the same key?


class SizeState(IntEnum):
    """What the numbers of the loop's state are."""

    ROW = 0
    KEY_CHANGE = 1  # the answer at `SizeStop.KEYS`; -1 if it was not asked for
    VARIANT = 2  # at `SizeStop.VARIANT`: what happened to the key, times 2, plus 1 for a read event


class ShapeMode(IntEnum):
    """What the changed columns of a shape's rows are."""

    NOTHING = 0  # not looked for
    INSERT = 1  # those that differ from their default
    UPDATE = 2  # those that differ from the before image


class Outcome(IntEnum):
    """What is known of a variant in one format and bound."""

    FIRST_EVENT = 0
    EVENTS = 1
    LACKING = 2  # whether the log lacks values that the format logs
    HIDDEN = 3  # whether the two bounds have other columns


class SizedShape(IntEnum):
    """The columns of the array of shapes."""

    CELLS_AT = 0  # number of its first cell among all shapes
    BEFORE = 1  # columns of the before image
    AFTER = 2  # columns of the after image
    COLUMNS = 3  # columns of the table
    FIRST_COLUMN = 4  # number of the table's first column among those of all tables
    KIND = 5  # kind of change of its table
    MASKS_AT = 6  # where its masks of key columns are: all, then those whose bytes can differ in equal keys
    MODE = 7
    NDB = 8  # whether it is a table of NDB
