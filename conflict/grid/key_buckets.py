"""
Row changes to the parts of a grid: which bucket a key belongs to, and rows to columns.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence

import attrs
import pyarrow as pa

from conflict.grid.schemas import IMAGES, STAGED_CHANGES, STAGED_CONSEQUENCES
from conflict.history.effects import effect_of
from conflict.history.epochs import BinlogEpoch
from conflict.history.model import RowChange
from ndb_formats.events.row_image import RowImage, put_image
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import ABSENT

__all__ = ["PartBuilder", "TableNumbers", "bucket_of", "identity_of"]


@attrs.frozen
class TableNumbers:
    """
    The tables of a History by number, and the column of each that a conflict function compares.

    Attributes:
        tables: In the order of their numbers.
        resolve_columns: Column name per table name; tables without such a function are not there.
    """

    tables: tuple[Table, ...]
    resolve_columns: Mapping[str, str]

    def number(self, name: str) -> int:
        """Return a table's number."""
        return next(number for number, table in enumerate(self.tables) if table.full_name == name)

    def resolve_ordinal(self, name: str) -> int | None:
        """Return the position of a table's resolve column."""
        column = self.resolve_columns.get(name)
        table = self.tables[self.number(name)]
        return None if column is None or table.find(column) is None else table.ordinal(column)


def identity_of(table: int, key: bytes) -> bytes:
    """Return the identity of a row among all tables."""
    return table.to_bytes(2, "little") + key


def bucket_of(identity: bytes, buckets: int) -> int:
    """Return the bucket of a row; the same in every process and version."""
    return zlib.crc32(identity) % buckets


@attrs.define
class _Columns:
    changes: list[tuple[object, ...]] = attrs.field(factory=list)
    images: list[tuple[bytes | None, ...]] = attrs.field(factory=list)
    consequences: list[tuple[object, ...]] = attrs.field(factory=list)


@attrs.define
class PartBuilder:
    """
    Collects the rows of one run, bucket by bucket.

    Attributes:
        numbers: The tables.
        buckets: How many buckets the History has.
        files: Binlog files in order; a row keeps the number of its file.
    """

    numbers: TableNumbers
    buckets: int
    files: Sequence[str]
    _parts: dict[int, _Columns] = attrs.field(factory=dict)
    _table_numbers: dict[str, tuple[int, int | None]] = attrs.field(factory=dict)

    def add(self, epoch: BinlogEpoch) -> None:
        """Add one epoch."""
        ordinal = 0
        for transaction in epoch.transactions:
            for change in transaction.changes:
                self.add_change(change, transaction.epoch, transaction.group, ordinal)
                ordinal += 1
        for group, change in epoch.consequences:
            number, _ = self._table(change.table)
            identity = identity_of(number, change.key)
            row = (identity, number, epoch.number, group, int(effect_of(change)))
            self._part(identity).consequences.append(row)

    def add_change(self, change: RowChange, epoch: int, group: int, ordinal: int) -> None:
        """Add one row change of the cluster itself."""
        number, resolve = self._table(change.table)
        identity = identity_of(number, change.key)
        part = self._part(identity)
        origin = change.origin
        part.changes.append(
            (
                identity,
                number,
                int(change.operation),
                int(change.flags),
                epoch,
                group,
                ordinal,
                _bitmap(change.before),
                _value(change.before, resolve),
                _bitmap(change.after),
                _value(change.after, resolve),
                change.transaction_id,
                -1 if origin is None else self.files.index(origin.file),
                0 if origin is None else origin.position,
                0 if origin is None else origin.row,
            )
        )
        part.images.append(
            tuple(None if image is None else put_image(image) for image in (change.before, change.after))
        )

    def tables(self) -> Iterable[tuple[int, pa.Table, pa.Table, pa.Table]]:
        """Yield, per bucket that has rows, its staged changes, images and staged consequences."""
        for bucket, part in sorted(self._parts.items()):
            yield (
                bucket,
                _to_table(part.changes, STAGED_CHANGES),
                _to_table(part.images, IMAGES),
                _to_table(part.consequences, STAGED_CONSEQUENCES),
            )

    def _part(self, identity: bytes) -> _Columns:
        return self._parts.setdefault(bucket_of(identity, self.buckets), _Columns())

    def _table(self, name: str) -> tuple[int, int | None]:
        if name not in self._table_numbers:
            self._table_numbers[name] = (self.numbers.number(name), self.numbers.resolve_ordinal(name))
        return self._table_numbers[name]


def _bitmap(image: RowImage | None) -> bytes:
    """Return which columns an image carries, one bit each; no bytes for no image."""
    if image is None:
        return b""
    return sum(1 << place for place in image.present).to_bytes((len(image.layout.codecs) + 7) // 8, "little")


def _value(image: RowImage | None, ordinal: int | None) -> int:
    """Return the value of an image's resolve column; 0 for one that is NULL or absent."""
    value = ABSENT if image is None or ordinal is None else image.value(ordinal)
    # Signed columns are refused before anything is resolved.
    return value if isinstance(value, int) and value > 0 else 0


def _to_table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [() for _ in schema]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )
