"""
The staged files of a segment: epochs that the scalar reader read, as columns, divided into key buckets.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from itertools import chain

import attrs
import pyarrow as pa

from conflict.history.epochs import BinlogEpoch
from conflict.history.grid.catalogue import FileFacts, facts_of
from conflict.history.grid.columns import digest_of
from conflict.history.grid.epoch_files import EPOCHS
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import (
    KEYLESS,
    STAGED_CHANGES,
    STAGED_CONSEQUENCES,
    log_part,
    staged_part,
    table_of_rows,
)
from conflict.history.roles import mark_of
from conflict.history.run import TableNumbers
from conflict.history.shown_effects import add_text, carried_by, effect_of, sorted_texts
from conflict.history.timeline import RowChange
from ndb_formats.events.row_image import RowImage, put_image
from ndb_formats.events.rows_event import ConflictFlag
from ndb_formats.types.values import ABSENT

IDENTITY_PREFIX = 2  # bytes of an identity that are the number of its table


def identity_of(table: int, key: bytes) -> bytes:
    """Return the identity of a row among the rows of all tables."""
    return table.to_bytes(2, "little") + key


def bucket_of(identity: bytes, buckets: int) -> int:
    """Return the bucket of a row; it is the same in every process and version."""
    return zlib.crc32(identity) % buckets


@attrs.define
class _Rows:
    changes: list[tuple[object, ...]] = attrs.field(factory=list)
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
            effect, flags = int(effect_of(change)), int(change.flags)
            row = (identity, number, epoch.number, group, effect, flags, _digest(change))
            self._part(identity).consequences.append(row)

    def add_change(self, change: RowChange, epoch: int, group: int, ordinal: int) -> None:
        """Add one row change of the cluster itself."""
        add_text(self._images, change)
        if change.keyless:
            self._add_keyless(change, (epoch, group, ordinal), own=True)
            return
        number, resolve = self._table(change.table)
        identity = identity_of(number, change.key)
        self._part(identity).changes.append(
            (
                identity,
                number,
                int(change.operation),
                int(change.flags),
                epoch,
                group,
                ordinal,
                carried_by(change.before),
                _value(change.before, resolve),
                self._before_digest(change, number),
                carried_by(change.after),
                _value(change.after, resolve),
                _digest(change),
                change.transaction_id,
                *self._place(change),
                *_images(change),
            )
        )

    def _before_digest(self, change: RowChange, table: int) -> int:
        """Return the digest of a before image; 0 where it carries the key alone, which tells nothing else."""
        before = change.before
        if before is None or change.flags & ConflictFlag.READ:
            return 0
        alone = set(before.present) <= set(self.numbers.tables[table].key_ordinals)
        return 0 if alone else digest_of(before)

    def _add_keyless(self, change: RowChange, place: tuple[int, int, int], *, own: bool) -> None:
        """Add a row of a table without a primary key; `place`: epoch, group, and number among the own rows of it."""
        number, _ = self._table(change.table)
        decision = (number, int(change.operation), int(change.flags), *place)
        carried = (carried_by(change.before), carried_by(change.after))
        self._keyless.append((own, *decision, *carried, change.transaction_id, *self._place(change), *_images(change)))

    def _place(self, change: RowChange) -> tuple[int, int, int, int]:
        """Return the columns `PLACE`; no file for a change that comes from no binlog."""
        origin = change.origin
        if origin is None:
            return -1, 0, 0, 0
        return self.files.index(origin.file), origin.position, origin.payload_position, origin.row

    def tables(self) -> list[tuple[pa.Table, pa.Table]]:
        """Return the staged changes and staged consequences of each bucket."""
        parts = [self._parts.get(bucket, _Rows()) for bucket in range(self.buckets)]
        return [
            (table_of_rows(rows.changes, STAGED_CHANGES), table_of_rows(rows.consequences, STAGED_CONSEQUENCES))
            for rows in parts
        ]

    def keyless(self) -> pa.Table:
        """Return the rows of tables without a primary key, as `KEYLESS`."""
        return table_of_rows(self._keyless, KEYLESS)

    @property
    def images(self) -> dict[str, list[str]]:
        """Which columns the images of the changes carry, by table (see `conflict.history.shown_effects`)."""
        return sorted_texts(self._images)

    @property
    def marks(self) -> dict[str, list[str]]:
        """Marks of the rows that the applier changed, by table (see `conflict.history.roles`)."""
        return sorted_texts(self._marks)

    def _part(self, identity: bytes) -> _Rows:
        return self._parts.setdefault(bucket_of(identity, self.buckets), _Rows())

    def _table(self, name: str) -> tuple[int, int | None]:
        if name not in self._table_numbers:
            self._table_numbers[name] = (self.numbers.number(name), self.numbers.resolve_ordinal(name))
        return self._table_numbers[name]


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


def write_parts(
    folder: Folder,
    cluster: str,
    segment: int,
    parts: Iterable[tuple[pa.Table, pa.Table]],
    keyless: pa.Table,
) -> dict[str, bytes]:
    """
    Write the rows of one segment, keys still as bytes.

    Args:
        folder: Folder of the History.
        cluster: Name of the cluster.
        segment: Number of the segment.
        parts: Staged changes and staged consequences of each bucket.
        keyless: The rows of tables without a primary key, as `KEYLESS`.

    Returns:
        What `Folder.write_parts` returns of each kind, as bytes.
    """
    if len(keyless):
        folder.write_table(staged_part("keyless", cluster, segment), keyless)
    return {
        kind: folder.write_parts(staged_part(kind, cluster, segment), tables).tobytes()
        for kind, tables in zip(("changes", "consequences"), zip(*parts, strict=True), strict=True)
    }


def join_logs(
    folder: Folder, cluster: str, segments: Sequence[int], batch: int, merged: Sequence[int] = ()
) -> list[FileFacts]:
    """
    Write the epochs of new segments, and the rows without a primary key, as files of a batch; return their facts.

    Args:
        folder: Folder of the History.
        cluster: Name of the cluster.
        segments: Numbers of the new segments.
        batch: Number of the new batch.
        merged: Numbers of the batches whose rows it takes over.
    """
    written = []
    for kind, schema in (("epochs", EPOCHS), ("keyless", KEYLESS)):
        paths = [log_part(kind, cluster, each) for each in merged]
        paths += [staged_part(kind, cluster, segment) for segment in segments]
        tables = (folder.read_table(path, schema) for path in paths)
        filled = (each for each in tables if len(each))
        first = next(filled, None)
        if first is not None:
            written.append(log_part(kind, cluster, batch))
            folder.write_rows(written[-1], chain([first], filled))
    return facts_of(folder, written)
