"""The columns of the row walker's arrays, by name, and its special values; walked rows sorted by batch."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ndb_formats.columnar.kernel import kernel

NULL_CELL = 0xFFFFFFFF
# Cells between two columns, which would otherwise fall into the same places of the processor's cache.
_APART = 16
# What is read of a table: its rows, or the epoch that they name, or both.
MODE_ROWS, MODE_EPOCH = 1, 2


class WalkStop(IntEnum):
    """Why the walk stopped."""

    END = 0  # of the chunk
    FULL = 1  # no more rows or cells fit
    TABLE_MAP = 2  # a Table_map event that is not registered
    KIND = 3  # a rows event of a kind that is not registered
    FAULT = 4  # an event that cannot be read


class WalkState(IntEnum):
    """What the numbers of the walk's state are."""

    EVENT = 0  # number of the event
    ROW_AT = 1  # offset of its next row; -1 if its head has not been read
    ROW = 2  # number of that row
    KIND = 3  # kind of that event
    HAS_EPOCH = 4  # whether the events belong to an NDB epoch
    ROWS = 5  # rows found
    CELLS = 6  # cells filled
    DIFFS = 7  # at `WalkStop.KIND` in a partial update: which of the JSON columns are diffs, else 0


class LayoutSlot(IntEnum):
    """The columns of the array of slots: a slot is a table as one Table_map event describes it."""

    BODY_AT = 0  # offset of the event's body, without the table id
    BODY_SIZE = 1
    KIND = 2  # its first kind; -1 if it has none
    MODE = 3


class EventKind(IntEnum):
    """The columns of the array of kinds: rows events of one kind have the same table, type and column bitmaps."""

    NEXT = 0  # the next kind of the same table; -1 if there is none
    TYPE = 1  # event type
    KEY_AT = 2  # offset of its key: column count and bitmaps
    KEY_SIZE = 3
    DIFFS = 4  # which of the JSON columns are diffs
    SPEC = 5  # number of its first column
    BEFORE = 6  # columns of the before image; -1 if there is none
    AFTER = 7  # columns of the after image; -1 if there is none
    WIDTH = 8  # cells of a row
    DOCUMENTS = 9  # JSON columns of the table
    BATCH = 10
    EPOCH_SPEC = 11  # number of its first column if only the epoch is read


class Spec(IntEnum):
    """The columns of the array of columns: how long a column of an image is, and whether it is wanted."""

    PREFIX = 0  # bytes of the length; -1 for a fixed width
    WIDTH = 1
    CELL = 2  # its cell among those of a row; -1 if it is not wanted


@kernel
def by_kind(row_batch, count, batches):
    """
    Sort rows by batch, in order within each.

    Returns:
        Row numbers, shape (count,), and where each batch starts among them, shape (batches + 1,).
    """
    bounds = np.zeros(batches + 1, np.int64)
    for row in range(count):
        bounds[row_batch[row] + 1] += 1
    for batch in range(batches):
        bounds[batch + 1] += bounds[batch]
    free = bounds.copy()
    order = np.empty(count, np.int64)
    for row in range(count):
        batch = row_batch[row]
        order[free[batch]] = row
        free[batch] += 1
    return order, bounds


@kernel
def cells_of(cells, row_cell, rows, width):
    """Return the cells of rows column by column. Shape (width, rows), uint32."""
    result = np.empty((width, len(rows) + _APART), np.uint32)[:, : len(rows)]
    for position in range(len(rows)):
        first = row_cell[rows[position]]
        for column in range(width):
            result[column, position] = cells[first + column]
    return result


@kernel
def cells_of_kinds(cells, row_cell, rows, kinds, places):
    """
    Return the cells of rows of several kinds column by column; `NULL_CELL` where a kind lacks a column.

    Args:
        cells: The cells of all rows. uint32.
        row_cell: The first cell of each row of the block. int64.
        rows: Numbers of the rows in the block. Shape (rows,), int64.
        kinds: The kind of each of them. Shape (rows,), int64.
        places: For each kind, the place of each column among the cells of a row, -1 without it. Shape (kinds, columns).

    Returns:
        Shape (columns, rows), uint32.
    """
    width = places.shape[1]
    result = np.empty((width, len(rows) + _APART), np.uint32)[:, : len(rows)]
    for position in range(len(rows)):
        first, kind = row_cell[rows[position]], kinds[position]
        for column in range(width):
            place = places[kind, column]
            result[column, position] = cells[first + place] if place >= 0 else NULL_CELL
    return result
