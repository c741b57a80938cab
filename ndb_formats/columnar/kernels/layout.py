"""
What the row walker's arrays hold: the names of their columns, and the numbers with a meaning.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["MODE_EPOCH", "MODE_ROWS", "NULL_CELL", "Kind", "Place", "Slot", "Spec", "Stop"]

NULL_CELL = 0xFFFFFFFF
# What is wanted of a table: its rows, and the epochs that they name.
MODE_ROWS, MODE_EPOCH = 1, 2


class Stop(IntEnum):
    """Why the walk ended."""

    END = 0
    FULL = 1
    TABLE_MAP = 2
    KIND = 3
    FAULT = 4


class Place(IntEnum):
    """Where the walk stands: what each number of its state is."""

    EVENT = 0  # number of the event
    ROW_AT = 1  # where its next row starts; -1 if its head has not been read
    ROW = 2  # number of that row
    KIND = 3  # kind of that event
    HAS_EPOCH = 4  # whether an NDB epoch is open
    ROWS = 5  # rows found
    CELLS = 6  # cells filled
    DIFFS = 7  # at `Stop.KIND` in a partial update: which of the JSON columns are diffs, else 0


class Slot(IntEnum):
    """What is known of a table as one Table_map event describes it: the columns of the array of slots."""

    BODY_AT = 0  # where the event's body stands, without the table id
    BODY_SIZE = 1
    KIND = 2  # its first kind; -1 if it has none
    MODE = 3


class Kind(IntEnum):
    """What rows events are told apart by: the columns of the array of kinds."""

    NEXT = 0  # the next kind of the same table; -1 if there is none
    TYPE = 1  # event type
    KEY_AT = 2  # where its key stands: column count and bitmaps
    KEY_SIZE = 3
    DIFFS = 4  # which of the JSON columns are diffs
    SPEC = 5  # number of its first column
    BEFORE = 6  # columns of the before image; -1 if there is none
    AFTER = 7  # columns of the after image; -1 if there is none
    WIDTH = 8  # cells of a row
    DOCUMENTS = 9  # JSON columns of the table
    BATCH = 10
    EPOCH_SPEC = 11  # number of its first column where only an epoch is looked for


class Spec(IntEnum):
    """How to step over a column of an image: the columns of the array of columns."""

    PREFIX = 0  # bytes of the length; -1 for a fixed width
    WIDTH = 1
    CELL = 2  # -1 if it is not wanted
