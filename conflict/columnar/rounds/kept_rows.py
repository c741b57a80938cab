"""
The rows of a bucket between two rounds: those of some keys are found without reading the others.

The first round has to go over all rows. Later ones fold only few, and would spend their time on reading the grid.
So the first round leaves the columns that decide in plain files. Where the folder is local, a task maps them into
memory: it goes over the keys, and of the rest only what it looks at is ever read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
import numpy as np

from conflict.columnar.bucket import Bucket
from conflict.columnar.kernels.arrays import (
    Bool,
    BucketRows,
    Int16,
    Int32,
    Int64,
    UInt64,
    each_read_only,
    holds_anything,
    read_only,
)
from conflict.columnar.kernels.links import epoch_of_rows, mark_keys, rows_of_keys
from conflict.columnar.kernels.search import boundaries_of
from conflict.grid.folder import Folder

__all__ = ["ChosenRows", "KeptRows", "RoundRows", "keep_rows", "load_rows"]

_TABLES = "tables.arrow"
# Columns of `BucketRows` that rounds need, besides the key and the epoch.
_DECIDING = {
    "operation": np.int8,
    "group": np.int32,
    "before_presence": np.int8,
    "before_value": np.uint64,
    "after_presence": np.int8,
    "after_value": np.uint64,
    "before_lacks": np.uint64,
    "after_lacks": np.uint64,
}


@attrs.frozen(eq=False)
class KeptRows:
    """
    The rows of one cluster in a bucket.

    Attributes:
        key: Of each row. Shape (rows,).
        epochs: The different epochs. Shape (epochs,).
        starts: The first row of each, and the number of rows. Shape (epochs + 1,).
        columns: The other columns that decide, as far as they hold anything but 0. Shape (rows,).
    """

    key: Int32
    epochs: UInt64
    starts: Int32
    columns: Mapping[str, np.ndarray]

    def mark(self, epochs: UInt64, groups: Int64, affected: Bool) -> None:
        """Mark the keys that were changed in some groups, given in order. Shape of `affected` (keys,)."""
        group = self.columns.get("group", np.zeros(len(self.key), np.int32))
        mark_keys(*(*each_read_only(self.epochs, self.starts, group, self.key, epochs, groups), affected))

    def all(self, ordinal: Int32) -> BucketRows:
        """Return all rows, with a column that is not kept."""
        plain = {name: self.columns.get(name, _zeros(name, len(self.key))) for name in _DECIDING}
        epoch = np.repeat(self.epochs, np.diff(self.starts))
        return BucketRows(key=self.key, epoch=epoch, ordinal=ordinal, **plain)

    def of_keys(self, wanted: Bool, number: Int32) -> tuple[BucketRows, Int32]:
        """
        Return the rows of some keys, and their numbers; ordinals are 0.

        `number` holds the new number of each key. Shape (keys,).
        """
        rows = rows_of_keys(*each_read_only(self.key, wanted))
        plain = {
            name: self.columns[name][rows] if name in self.columns else _zeros(name, len(rows)) for name in _DECIDING
        }
        epoch = epoch_of_rows(*each_read_only(self.epochs, self.starts, rows))
        ordinal = np.broadcast_to(np.zeros((), np.int32), len(rows))
        return BucketRows(key=number[self.key[rows]], epoch=epoch, ordinal=ordinal, **plain), rows


def _zeros(name: str, count: int) -> np.ndarray:
    """Return a column of zeros, which takes no room."""
    return np.broadcast_to(np.zeros((), _DECIDING[name]), count)


@attrs.frozen(eq=False)
class ChosenRows:
    """
    The rows of some keys of a bucket.

    Attributes:
        keys: Those keys.
        rows: Their rows of both clusters, with keys that are numbered from 0; ordinals are 0.
        numbers: Numbers of those rows.
    """

    keys: Int32
    rows: tuple[BucketRows, BucketRows]
    numbers: tuple[Int32, Int32]


@attrs.frozen(eq=False)
class RoundRows:
    """
    The rows of a bucket.

    Attributes:
        sides: Of both clusters.
        key_table: Table number of each key. Shape (keys,).
    """

    sides: tuple[KeptRows, KeptRows]
    key_table: Int16

    def all(self, ordinals: Iterable[Int32]) -> tuple[BucketRows, BucketRows]:
        """Return all rows; ordinals are not kept, but given per cluster."""
        first, second = (side.all(ordinal) for side, ordinal in zip(self.sides, ordinals, strict=True))
        return first, second

    def of_keys(self, wanted: Bool) -> ChosenRows:
        """Return the rows of some keys. Shape of `wanted` (keys,)."""
        keys = np.flatnonzero(wanted).astype(np.int32)
        number = np.empty(len(wanted), np.int32)  # looked up for those keys alone
        number[keys] = np.arange(len(keys))
        (first, first_numbers), (second, second_numbers) = (side.of_keys(wanted, number) for side in self.sides)
        return ChosenRows(keys, (first, second), (first_numbers, second_numbers))


def keep_rows(bucket: Bucket, folder: Folder) -> None:
    """Leave the rows of a bucket for later rounds and the result."""
    folder.write_arrays(_TABLES, {"table": bucket.key_table})
    for side, rows in enumerate(bucket.rows):
        epochs, starts = boundaries_of(read_only(rows.epoch))
        columns = {name: getattr(rows, name) for name in _DECIDING if holds_anything(getattr(rows, name))}
        found = {"key": rows.key, "epochs": epochs, "starts": starts}
        folder.write_arrays(_side(side), {**found, **columns})


def load_rows(folder: Folder) -> RoundRows:
    """Return what `keep_rows` left in a folder."""
    first, second = (_load(folder.read_arrays(_side(side))) for side in (0, 1))
    return RoundRows((first, second), folder.read_arrays(_TABLES)["table"])


def _side(side: int) -> str:
    return f"rows-{side}.arrow"


def _load(arrays: Mapping[str, np.ndarray]) -> KeptRows:
    columns = {name: arrays[name] for name in arrays.keys() & _DECIDING.keys()}
    return KeptRows(**{name: arrays[name] for name in arrays.keys() - columns.keys()}, columns=columns)
