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

from conflict.bucket import Bucket
from conflict.grid import Folder
from conflict.kernels.arrays import Bool, BucketRows, Int16, Int32, Int64, UInt64, each_read_only, read_only
from conflict.kernels.links import epoch_of_rows, epochs_of, mark_keys, rows_of_keys

__all__ = ["Entries", "KeptRows", "RoundRows", "keep_entries", "keep_rows", "load_entries", "load_rows"]

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

    def of_keys(self, wanted: Bool, number: Int32) -> BucketRows:
        """Return the rows of some keys; ordinals are 0. `number` holds the new number of each key. Shape (keys,)."""
        rows = rows_of_keys(*each_read_only(self.key, wanted))
        plain = {
            name: self.columns[name][rows] if name in self.columns else _zeros(name, len(rows)) for name in _DECIDING
        }
        epoch = epoch_of_rows(*each_read_only(self.epochs, self.starts, rows))
        ordinal = np.broadcast_to(np.zeros((), np.int32), len(rows))
        return BucketRows(key=number[self.key[rows]], epoch=epoch, ordinal=ordinal, **plain)


def _zeros(name: str, count: int) -> np.ndarray:
    """Return a column of zeros, which takes no room."""
    return np.broadcast_to(np.zeros((), _DECIDING[name]), count)


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

    def of_keys(self, wanted: Bool) -> tuple[BucketRows, BucketRows]:
        """Return the rows of some keys, which are numbered from 0 then. Shape of `wanted` (keys,)."""
        number = np.cumsum(wanted, dtype=np.int32) - 1
        first, second = (side.of_keys(wanted, number) for side in self.sides)
        return first, second


@attrs.frozen(eq=False)
class Entries:
    """
    Rows that an applier sent again or reflected, as far as is known. Shape (entries,).

    Attributes:
        key: The row.
        take: The take.
    """

    key: Int32
    take: Int32

    def with_others(self, again: Bool, others: Entries) -> Entries:
        """Return other entries in place of those of some rows. Shape of `again` (keys,)."""
        stays = ~again[self.key]
        return Entries(np.append(self.key[stays], others.key), np.append(self.take[stays], others.take))


def keep_entries(entries: Entries, folder: Folder, number: int) -> None:
    """Leave the entries that are known after a round; those of the round before stay, for a task that runs again."""
    folder.write_arrays(_entries(number), attrs.asdict(entries))


def load_entries(folder: Folder, number: int) -> Entries:
    """Return what `keep_entries` left in a folder after a round."""
    return Entries(**folder.read_arrays(_entries(number)))


def _entries(number: int) -> str:
    return f"entries-{number:05d}.arrow"


def keep_rows(bucket: Bucket, folder: Folder) -> None:
    """Leave the rows of a bucket for later rounds and the result."""
    folder.write_arrays(_TABLES, {"table": bucket.key_table})
    for side, rows in enumerate(bucket.rows):
        epochs, starts = epochs_of(read_only(rows.epoch))
        columns = {name: getattr(rows, name) for name in _DECIDING if getattr(rows, name).any()}
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
