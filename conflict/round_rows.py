"""
The rows of a bucket between two rounds: laid out so that those of some keys are found without reading the others.

The first round has to go over all rows. Later ones fold only few, and would spend their time on reading the grid.
So the first round leaves the columns that decide in plain files, and the numbers of the rows by key beside them.
Where the folder is local, a task maps the files into memory, and only what it looks at is ever read.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.bucket import Bucket
from conflict.grid import Folder
from conflict.kernels.arrays import Bool, BucketRows, Int16, Int32, Int64, UInt64, read_only
from conflict.kernels.links import by_key, mark_keys, rows_of_keys

__all__ = ["RoundRows", "keep_rows", "load_rows"]

_ORDER, _OFFSETS, _TABLES = "order", "offsets", "tables"


@attrs.frozen(eq=False)
class RoundRows:
    """
    The rows of a bucket.

    Attributes:
        rows: Of both clusters.
        order: Per cluster, the numbers of its rows by key. Shape (rows,).
        offsets: Per cluster, where the rows of each key begin in that, and the number of rows. Shape (keys + 1,).
        key_table: Table number of each key. Shape (keys,).
    """

    rows: tuple[BucketRows, BucketRows]
    order: tuple[Int32, Int32]
    offsets: tuple[Int32, Int32]
    key_table: Int16

    def mark(self, side: int, epochs: UInt64, groups: Int64, affected: Bool) -> None:
        """Mark the keys that a cluster changed in some groups, given in order. Shape of `affected` (keys,)."""
        rows = self.rows[side]
        mark_keys(read_only(rows.epoch), read_only(rows.group), read_only(rows.key), epochs, groups, affected)

    def of_keys(self, keys: Int64) -> tuple[BucketRows, BucketRows]:
        """Return the rows of some keys, given in order, which are numbered from 0 then."""
        number = np.empty(len(self.key_table), np.int32)
        number[keys] = np.arange(len(keys), dtype=np.int32)
        first, second = (self._of_keys(side, keys, number) for side in (0, 1))
        return first, second

    def _of_keys(self, side: int, keys: Int64, number: Int32) -> BucketRows:
        numbers = rows_of_keys(read_only(self.order[side]), read_only(self.offsets[side]), keys)
        chosen = self.rows[side].take(np.sort(numbers))
        return attrs.evolve(chosen, key=number[chosen.key])


def keep_rows(bucket: Bucket, folder: Folder) -> None:
    """Leave the rows of a bucket for later rounds and the result; columns that are 0 throughout are left out."""
    folder.write_array(_TABLES, bucket.key_table)
    for side, rows in enumerate(bucket.rows):
        order, offsets = by_key(read_only(rows.key), len(bucket.key_table))
        folder.write_array(f"{_ORDER}-{side}", order)
        folder.write_array(f"{_OFFSETS}-{side}", offsets)
        for name in _kept_columns():
            column = getattr(rows, name)
            if column.any():
                folder.write_array(f"{name}-{side}", column)


def load_rows(folder: Folder) -> RoundRows:
    """Return what `keep_rows` left in a folder."""
    first, second = (
        (folder.read_array(f"{_ORDER}-{side}"), folder.read_array(f"{_OFFSETS}-{side}")) for side in (0, 1)
    )
    return RoundRows(
        rows=(_load_rows(folder, 0), _load_rows(folder, 1)),
        order=(first[0], second[0]),
        offsets=(first[1], second[1]),
        key_table=folder.read_array(_TABLES),
    )


def _load_rows(folder: Folder, side: int) -> BucketRows:
    count = len(folder.read_array(f"{_ORDER}-{side}"))
    types = _kept_columns()
    nothing = {kind: np.zeros(count, kind) for kind in set(types.values())}
    columns = {
        name: folder.read_array(f"{name}-{side}") if folder.exists(f"{name}-{side}") else nothing[kind]
        for name, kind in types.items()
    }
    return BucketRows(**columns)


def _kept_columns() -> dict[str, type[np.generic]]:
    """Return the columns of `BucketRows` that rounds need, with their types."""
    kinds: Sequence[type[np.generic]] = (
        *(np.int32, np.int8, np.uint64, np.int32, np.int32),
        *(np.int8, np.uint64, np.int8, np.uint64, np.uint64, np.uint64),
    )
    return dict(zip((field.name for field in attrs.fields(BucketRows)), kinds, strict=True))
