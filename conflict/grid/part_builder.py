"""
Epochs that the scalar reader read to columns of a grid, divided into key buckets.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import attrs
import pyarrow as pa

from conflict.grid.image_digests import carried_by, digest_of
from conflict.grid.schemas import IMAGES, KEYLESS, STAGED_CHANGES, STAGED_CONSEQUENCES, table_of_rows
from conflict.history.effects import effect_of
from conflict.history.epochs import BinlogEpoch
from conflict.history.logged_images import add_text, sorted_texts
from conflict.history.marks import mark_of
from conflict.history.model import RowChange
from conflict.history.tables import TableNumbers
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage, put_image
from ndb_formats.types.values import ABSENT

__all__ = ["PartBuilder", "bucket_of", "identity_of"]


def identity_of(table: int, key: bytes) -> bytes:
    """Return the identity of a row among the rows of all tables."""
    return table.to_bytes(2, "little") + key


def bucket_of(identity: bytes, buckets: int) -> int:
    """Return the bucket of a row; it is the same in every process and version."""
    return zlib.crc32(identity) % buckets


@attrs.define
class _Rows:
    changes: list[tuple[object, ...]] = attrs.field(factory=list)
    images: list[tuple[object, ...]] = attrs.field(factory=list)
    consequences: list[tuple[object, ...]] = attrs.field(factory=list)


@attrs.define
class PartBuilder:
    """
    Collects the rows of one segment by bucket.

    Attributes:
        numbers: The tables.
        buckets: How many buckets the History has.
        files: Binlog files of the cluster, in order; a row stores the number of its file.
    """

    numbers: TableNumbers
    buckets: int
    files: Sequence[str]
    _images: dict[str, set[str]] = attrs.field(factory=dict)
    _marks: dict[str, set[str]] = attrs.field(factory=dict)
    _parts: dict[int, _Rows] = attrs.field(factory=dict)
    _keyless: list[tuple[object, ...]] = attrs.field(factory=list)
    _table_numbers: dict[str, tuple[int, int | None]] = attrs.field(factory=dict)

    def add(self, epoch: BinlogEpoch) -> None:
        """Add one epoch."""
        ordinal = 0
        for transaction in epoch.transactions:
            for change in transaction.changes:
                self.add_change(change, transaction.epoch, transaction.group, ordinal)
                ordinal += 1
        for group, change in epoch.consequences:
            mark = mark_of(change.flags)
            if mark is not None:
                self._marks.setdefault(change.table, set()).add(mark.value)
            number, _ = self._table(change.table)
            if change.keyless:
                self._add_keyless(change, (epoch.number, group, 0), own=False)
                continue
            identity = identity_of(number, change.key)
            row = (identity, number, epoch.number, group, int(effect_of(change)), _digest(change))
            self._part(identity).consequences.append(row)

    def add_change(self, change: RowChange, epoch: int, group: int, ordinal: int) -> None:
        """Add one row change of the cluster itself."""
        add_text(self._images, change)
        if change.keyless:
            self._add_keyless(change, (epoch, group, ordinal), own=True)
            return
        number, resolve = self._table(change.table)
        identity = identity_of(number, change.key)
        rows = self._part(identity)
        rows.changes.append(
            (
                identity,
                number,
                int(change.operation),
                int(change.flags),
                epoch,
                group,
                ordinal,
                _carried(change.before),
                _value(change.before, resolve),
                _carried(change.after),
                _value(change.after, resolve),
                _digest(change),
                change.transaction_id,
                *self._place(change),
            )
        )
        rows.images.append(_images(change))

    def _add_keyless(self, change: RowChange, place: tuple[int, int, int], *, own: bool) -> None:
        """Add a row of a table without a primary key; `place`: epoch, group, and number among the own rows of it."""
        number, _ = self._table(change.table)
        decision = (number, int(change.operation), int(change.flags), *place)
        carried = (_carried(change.before), _carried(change.after))
        self._keyless.append((own, *decision, *carried, change.transaction_id, *self._place(change), *_images(change)))

    def _place(self, change: RowChange) -> tuple[int, int, int, int]:
        """Return the columns `PLACE`; no file for a change that comes from no binlog."""
        origin = change.origin
        if origin is None:
            return -1, 0, 0, 0
        return self.files.index(origin.file), origin.position, origin.payload_position, origin.row

    def tables(self) -> Iterable[tuple[int, pa.Table, pa.Table, pa.Table]]:
        """Yield, per bucket that has rows, its staged changes, images and staged consequences."""
        for bucket, rows in sorted(self._parts.items()):
            yield (
                bucket,
                table_of_rows(rows.changes, STAGED_CHANGES),
                table_of_rows(rows.images, IMAGES),
                table_of_rows(rows.consequences, STAGED_CONSEQUENCES),
            )

    def keyless(self) -> pa.Table:
        """Return the rows of tables without a primary key, as `KEYLESS`."""
        return table_of_rows(self._keyless, KEYLESS)

    @property
    def images(self) -> dict[str, list[str]]:
        """Which columns the images of the changes carry, by table (see `conflict.history.logged_images`)."""
        return sorted_texts(self._images)

    @property
    def marks(self) -> dict[str, list[str]]:
        """Marks of the rows that the applier changed, by table (see `conflict.history.marks`)."""
        return sorted_texts(self._marks)

    def _part(self, identity: bytes) -> _Rows:
        return self._parts.setdefault(bucket_of(identity, self.buckets), _Rows())

    def _table(self, name: str) -> tuple[int, int | None]:
        if name not in self._table_numbers:
            self._table_numbers[name] = (self.numbers.number(name), self.numbers.resolve_ordinal(name))
        return self._table_numbers[name]


def _carried(image: RowImage | None) -> bytes:
    """Return the columns that an image carries, one bit each; no bytes for no image."""
    return b"" if image is None else carried_by(image)


def _images(change: RowChange) -> tuple[bytes | None, ...]:
    """Return the bytes of both images of a change."""
    return tuple(None if image is None else put_image(image) for image in (change.before, change.after))


def _digest(change: RowChange) -> int:
    """Return the digest of an after image; 0 for a read, which writes no values."""
    if change.after is None or change.flags & ConflictFlag.READ:
        return 0
    return digest_of(change.after)


def _value(image: RowImage | None, ordinal: int | None) -> int:
    """Return the value of an image's resolve column; 0 if it is NULL or absent."""
    value = ABSENT if image is None or ordinal is None else image.value(ordinal)
    # Signed columns are refused before anything is resolved.
    return value if isinstance(value, int) and value > 0 else 0
