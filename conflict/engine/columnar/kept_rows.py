"""
What a bucket keeps between rounds, so that a later round reads only the rows of some keys.

A first round reads all rows from the grid. Later rounds fold few rows, and would spend their time on reading the grid
again. So the first round writes the columns that decide to plain files. In a local folder a task maps these into
memory: it reads the keys, and the other columns only at the rows that it folds. Every round also writes which rows the
appliers logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
import numpy as np

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.kernels.apply_order import boundaries_of
from conflict.engine.kernels.arrays import (
    Bool,
    BucketRows,
    Int16,
    Int32,
    Int64,
    UInt64,
    holds_anything,
)
from conflict.engine.kernels.column_scans import epoch_of_rows, mark_keys, row_numbers_of_keys
from conflict.engine.kernels.fold import Folded
from conflict.history.grid.folder import Folder
from ndb_formats.columnar.kernel import each_read_only, read_only

_TABLES = "tables.arrow"
# Columns of `BucketRows` that rounds read, besides the key and the epoch.
_DECIDING = {
    "operation": np.int8,
    "group": np.int32,
    "before_presence": np.int8,
    "before_value": np.uint64,
    "after_presence": np.int8,
    "after_value": np.uint64,
    "incomplete": np.int8,
}


@attrs.frozen(eq=False)
class KeptRows:
    """
    The rows of one cluster in a bucket.

    Attributes:
        key: Key of each row. Shape (rows,).
        epochs: The distinct epochs, ascending. Shape (epochs,).
        starts: First row of each epoch, and the number of rows. Shape (epochs + 1,).
        columns: The other columns that decide; one that is 0 everywhere is left out. Shape (rows,).
    """

    key: Int32
    epochs: UInt64
    starts: Int32
    columns: Mapping[str, np.ndarray]

    def mark(self, epochs: UInt64, groups: Int64, marked: Bool) -> None:
        """Mark the keys that some groups changed; groups are sorted by epoch and group. Shape of `marked` (keys,)."""
        group = self.columns.get("group", np.zeros(len(self.key), np.int32))
        mark_keys(*(*each_read_only(self.epochs, self.starts, group, self.key, epochs, groups), marked))

    def all(self, ordinal: Int32) -> BucketRows:
        """Return all rows; `ordinal` is the one column that is not kept."""
        plain = {name: self.columns.get(name, _zeros(name, len(self.key))) for name in _DECIDING}
        epoch = np.repeat(self.epochs, np.diff(self.starts))
        return BucketRows(key=self.key, epoch=epoch, ordinal=ordinal, **plain)

    def of_keys(self, chosen: Bool, number: Int32) -> BucketRows:
        """
        Return the rows of some keys; ordinals are 0.

        Args:
            chosen: Whether a key is one of them. Shape (keys,).
            number: The new number of each chosen key. Shape (keys,).
        """
        rows = row_numbers_of_keys(*each_read_only(self.key, chosen))
        plain = {
            name: self.columns[name][rows] if name in self.columns else _zeros(name, len(rows)) for name in _DECIDING
        }
        epoch = epoch_of_rows(*each_read_only(self.epochs, self.starts, rows))
        ordinal = np.broadcast_to(np.zeros((), np.int32), len(rows))
        return BucketRows(key=number[self.key[rows]], epoch=epoch, ordinal=ordinal, **plain)


def _zeros(name: str, count: int) -> np.ndarray:
    """Return a column of zeros that takes no memory."""
    return np.broadcast_to(np.zeros((), _DECIDING[name]), count)


@attrs.frozen(eq=False)
class ChosenRows:
    """
    The rows of some keys of a bucket.

    Attributes:
        keys: Numbers of those keys in the bucket. Shape (chosen,).
        rows: Their rows of both clusters, with keys numbered from 0; ordinals are 0.
    """

    keys: Int32
    rows: tuple[BucketRows, BucketRows]


@attrs.frozen(eq=False)
class RoundRows:
    """
    The rows of a bucket.

    Attributes:
        bucket: Number of the bucket.
        sides: Those of both clusters.
        key_table: Table number of each key. Shape (keys,).
    """

    bucket: int
    sides: tuple[KeptRows, KeptRows]
    key_table: Int16

    def all(self, ordinals: Iterable[Int32]) -> tuple[BucketRows, BucketRows]:
        """Return all rows, given the ordinals of each cluster's rows."""
        first, second = (side.all(ordinal) for side, ordinal in zip(self.sides, ordinals, strict=True))
        return first, second

    def of_keys(self, chosen: Bool) -> ChosenRows:
        """Return the rows of some keys. Shape of `chosen` (keys,)."""
        keys = np.flatnonzero(chosen).astype(np.int32)
        number = np.empty(len(chosen), np.int32)  # set for the chosen keys alone
        number[keys] = np.arange(len(keys))
        first, second = (side.of_keys(chosen, number) for side in self.sides)
        return ChosenRows(keys, (first, second))


def keep_rows(bucket: Bucket, folder: Folder) -> None:
    """Write the rows of a bucket for later rounds and for the result."""
    folder.write_arrays(_TABLES, {"table": bucket.key_table})
    for side, rows in enumerate(bucket.rows):
        epochs, starts = boundaries_of(read_only(rows.epoch))
        columns = {name: getattr(rows, name) for name in _DECIDING if holds_anything(getattr(rows, name))}
        folder.write_arrays(_rows_file(side), {"key": rows.key, "epochs": epochs, "starts": starts, **columns})


def load_rows(folder: Folder, bucket: int) -> RoundRows:
    """Return what `keep_rows` wrote of a bucket to a folder."""
    first, second = (_load(folder.read_arrays(_rows_file(side))) for side in (0, 1))
    return RoundRows(bucket, (first, second), folder.read_arrays(_TABLES)["table"])


def _rows_file(side: int) -> str:
    return f"rows-{side}.arrow"


def _load(arrays: Mapping[str, np.ndarray]) -> KeptRows:
    columns = {name: arrays[name] for name in arrays.keys() & _DECIDING.keys()}
    return KeptRows(**{name: arrays[name] for name in arrays.keys() - columns.keys()}, columns=columns)


@attrs.frozen(eq=False)
class LoggedRows:
    """
    The rows that appliers refreshed or reflected, as far as they are known. Shape (entries,).

    Attributes:
        key: The row.
        apply: Number of the epoch apply.
    """

    key: Int32
    apply: Int32

    @classmethod
    def of(cls, folded: Folded) -> LoggedRows:
        """Return those of a fold."""
        return cls(folded.logged.key, folded.logged.apply.astype(np.int32))

    def replaced(self, marked: Bool, keys: Int32, others: LoggedRows) -> LoggedRows:
        """
        Return the entries with those of some rows replaced.

        Args:
            marked: Whether a key is one of these rows. Shape (keys,).
            keys: Numbers of these rows.
            others: Their new entries, with keys numbered among them.
        """
        stays = ~marked[self.key]
        return LoggedRows(np.append(self.key[stays], keys[others.key]), np.append(self.apply[stays], others.apply))


def keep_logged(logged: LoggedRows, folder: Folder, number: int) -> None:
    """Write what is known after a round. The file of the round before stays, for a task that runs again."""
    folder.write_arrays(_logged_file(number), attrs.asdict(logged))


def load_logged(folder: Folder, number: int) -> LoggedRows:
    """Return what `keep_logged` wrote to a folder after a round."""
    return LoggedRows(**folder.read_arrays(_logged_file(number)))


def _logged_file(number: int) -> str:
    return f"logged-{number:05d}.arrow"
