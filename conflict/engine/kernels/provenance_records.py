"""
What `provenance` takes, fills in and gives: column sets of images, the rows that it follows, the images found.

Arrays go to the kernels as named tuples, because numba knows their fields.
"""

from __future__ import annotations

from typing import NamedTuple

import attrs

from conflict.engine.kernels.arrays import Bool, Int8, Int16, Int32, Int64
from conflict.engine.kernels.records import Records


@attrs.frozen
class ColumnSets:
    """
    The distinct sets of columns that images carry, in one array.

    Attributes:
        offsets: Set n is ``columns[offsets[n]:offsets[n + 1]]``. Shape (sets + 1,).
        columns: Column positions. Shape (columns of all sets,).
    """

    offsets: Int64
    columns: Int32


@attrs.frozen
class ImageArrays:
    """
    The column sets of the images of `BucketRows`. Shape (rows,).

    Attributes:
        before: Number of the before image's column set; -1 for no image.
        after: Number of the after image's column set; -1 for no image.
    """

    before: Int32
    after: Int32


@attrs.frozen(eq=False)
class EarlierRows:
    """
    The rows of a bucket before their first change.

    Attributes:
        exists: Whether each row is there. Shape (clusters, keys).
        images: The image that each column comes from: `UNKNOWN_IMAGE` if nothing shows it, `ABSENT_IMAGE` for its
            default, and of a row that is not there. Shape (clusters, slots).
    """

    exists: Bool
    images: Int64


@attrs.frozen
class WatchedRows:
    """
    Every state of the rows of some tables: after each own change, and after each epoch apply that changed them.

    Shape (states,).

    Attributes:
        cluster: Number of the cluster.
        key: The row.
        row: The own change before the state; -1 after an epoch apply.
        decision: A decision of the epoch apply that changed the row; -1 after an own change.
        exists: Whether the row exists.
        images: Image of each column. Shape (states, widest table).
    """

    cluster: Int8
    key: Int32
    row: Int64
    decision: Int64
    exists: Bool
    images: Int64

    def __len__(self) -> int:
        return len(self.cluster)


@attrs.frozen
class FinalRows:
    """
    The images that the rows of a bucket consist of.

    The number of an image is ``2 * row`` (before image) or ``2 * row + 1`` (after image); rows of the second cluster
    are numbered after those of the first.

    Attributes:
        exists: Whether the row exists at the end. Shape (clusters, keys).
        images: Image of each column at the end. Shape (clusters, slots).
        logged_before: Image of each column in the before image that an applier logged; `ABSENT_IMAGE` for refreshes,
            which carry the key alone, `DEFAULT_IMAGE` for a column that nothing wrote. Shape (entries, widest table).
        logged_after: The same of its after image. Shape (entries, widest table).
        watched: Every state of the rows of watched tables.
        unknown: Columns of older rows that nothing showed. Shape (clusters, slots), or (0,) if there are no such rows.
    """

    exists: Bool
    images: Int64
    logged_before: Int64
    logged_after: Int64
    watched: WatchedRows
    unknown: Bool


class Traced(NamedTuple):
    """
    What is traced: the schedule, the changes and the decisions on them.

    Attributes:
        applier: Of each epoch apply. int8.
        own_end: See `Folded`. int64.
        changes: Own changes of both clusters, the second's after the first's. `CHANGE`.
        begin: First change of each cluster.
        end: One past the last.
        apply: Of each decision; see `Decisions`. int32.
        source: See `Decisions`. int32.
        verdict: See `Decisions`. int8.
    """

    applier: Int8
    own_end: Int64
    changes: Records
    begin: tuple[int, int]
    end: tuple[int, int]
    apply: Int32
    source: Int32
    verdict: Int8


class Columns(NamedTuple):
    """
    The columns of rows and of images.

    Attributes:
        offsets: See `ColumnSets`.
        columns: See `ColumnSets`.
        slots: First slot of each key, one slot per column of its table, and their total. Shape (keys + 1,).
        table: Table number of each key. Shape (keys,).
    """

    offsets: Int64
    columns: Int32
    slots: Int64
    table: Int16


class LoggedColumns(NamedTuple):
    """
    Columns of `Logged`, shape (entries,), the columns that the rows have, and the images to fill in.

    The last three have the shape (entries, widest table).
    """

    key: Int32
    apply: Int64
    operation: Int8
    refresh: Bool
    held: Bool
    before: Int64
    after: Int64


class Trace(NamedTuple):
    """
    The rows that are followed, and their present images.

    Attributes:
        followed: Rows that an applier logged, or whose every state is returned. Shape (keys,).
        final: Image of each column. Shape (clusters, slots).
        rows: `TRACED_ROW`, shape (clusters, keys).
        stamps: The last epoch apply that touched a row, where rows are reflected. Shape (keys,) or (0,).
        old: Image of each column before it. Shape (slots,) or (0,).
        written: The last epoch apply that wrote each column. Shape (slots,) or (0,).
        marked: Columns that count as written, of one row. Shape (columns,).
    """

    followed: Bool
    final: Int64
    rows: Records
    stamps: Int64
    old: Int64
    written: Int64
    marked: Bool


class States(NamedTuple):
    """Columns of `WatchedRows` to fill in, shape (states,), and which rows are watched, shape (keys,)."""

    watched: Bool
    cluster: Int8
    key: Int32
    row: Int64
    decision: Int64
    exists: Bool
    images: Int64
