"""
One bucket of a History on disk, loaded for the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import attrs
import numpy as np
import pyarrow as pa

from conflict.columnar.bucket_images import BucketImages
from conflict.columnar.kernels.arrays import BucketRows, Int8, Int16, Int32, Int64, Presence, UInt64, each_read_only
from conflict.columnar.kernels.column_scans import facts_of_rows
from conflict.columnar.kernels.provenance import ColumnSets, ImageArrays
from conflict.grid.columns import GridColumns
from conflict.grid.event_shapes import parts_of
from conflict.grid.folder import Folder
from conflict.grid.key_buckets import TableNumbers
from conflict.grid.manifest import Manifest
from conflict.grid.schemas import CHANGES, CONSEQUENCES, KEYS, keys_part, part
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.table_map import bits
from ndb_formats.schema.tables import Table

__all__ = ["Bucket", "load_bucket", "required_bits"]

BITS = 64
ABSENT_SET = -1
# The columns that always decide, and those that do only where a function compares a column.
_DECIDING = ("key", "epoch", "group", "ordinal", "shape")
_PLAIN = ("key", "epoch", "group", "ordinal")
_VALUES = ("before_value", "after_value")


@attrs.frozen
class _Shapes:
    """
    The distinct event shapes of both clusters: their operation, and which columns their images carry.

    Attributes:
        operation: `Operation`. Shape (shapes,).
        before: Number of the before image's column set; `ABSENT_SET` for no image. Shape (shapes,).
        after: The same of the after image.
        sets: The distinct column sets.
        of_rows: Per cluster, the shape number of each row. Shape (rows,).
    """

    operation: Int8
    before: Int32
    after: Int32
    sets: ColumnSets
    of_rows: tuple[Int32, Int32]


@attrs.define(slots=False)
class Bucket:
    """
    One bucket.

    Attributes:
        number: Its number.
        clusters: Names of the two clusters.
        numbers: The tables.
        layouts: Layout per table number; None for a table that no binlog mentions.
        changes: Per cluster, its `CHANGES` in order.
        images: The images of the same rows; None if they are not loaded.
        consequences: Per cluster, its `CONSEQUENCES`.
        keys: Its `KEYS`.
        kept: Its `rows`, if an earlier task kept them.
    """

    number: int
    clusters: tuple[str, ...]
    numbers: TableNumbers
    layouts: Sequence[RowLayout | None]
    changes: tuple[GridColumns, ...]
    images: BucketImages | None
    consequences: tuple[GridColumns, ...]
    keys: GridColumns
    kept: tuple[BucketRows, BucketRows] | None = None

    @cached_property
    def rows(self) -> tuple[BucketRows, BucketRows]:
        """The columns that decide, as arrays; values of the resolve column are 0 where no function compares one."""
        if self.kept is not None:
            return self.kept
        names = (*_DECIDING, *_VALUES) if self.numbers.resolve_columns else _DECIDING
        for changes in self.changes:
            changes.read(names)
        presence, lacks = self._presence(), self._lacking()
        return self._rows(0, presence, lacks), self._rows(1, presence, lacks)

    def _rows(self, side: int, presence: Int8, lacks: UInt64) -> BucketRows:
        changes, shapes = self.changes[side], self._shapes
        plain = {name: changes.array(name) for name in _PLAIN}
        nothing = np.broadcast_to(np.uint64(0), len(plain["key"]))
        compares = bool(self.numbers.resolve_columns)
        before, after = (changes.array(name) if compares else nothing for name in _VALUES)
        return BucketRows(
            **plain,
            operation=self._by_shape(side, shapes.operation[None]),
            before_presence=self._by_shape(side, presence[:, shapes.before]),
            before_value=before,
            after_presence=self._by_shape(side, presence[:, shapes.after]),
            after_value=after,
            before_lacks=self._by_shape(side, lacks[:, shapes.before]),
            after_lacks=self._by_shape(side, lacks[:, shapes.after]),
        )

    def _by_shape(self, side: int, facts: np.ndarray) -> np.ndarray:
        """Return a fact about each row, given by table and event shape, or by shape alone. Shape (rows,)."""
        key = self.changes[side].array("key")
        if not facts.size or (facts == facts.flat[0]).all():  # usual where no function compares a column
            return np.broadcast_to(facts.flat[0] if facts.size else facts.dtype.type(0), len(key))
        return np.asarray(facts_of_rows(*each_read_only(facts, self.key_table, key, self._shapes.of_rows[side])))

    def _members(self) -> Iterator[tuple[int, set[int]]]:
        """Yield number and columns of each column set."""
        sets = self._shapes.sets
        for number, (start, stop) in enumerate(pairwise(sets.offsets.tolist())):
            yield number, set(sets.columns[start:stop].tolist())

    def _presence(self) -> Int8:
        """
        Return the `Presence` of the resolve column in images with each column set; the last one stands for no image.

        Shape (tables, sets + 1).
        """
        sets = self._shapes.sets
        presence = np.full((len(self.numbers.tables), len(sets.offsets)), Presence.ABSENT, np.int8)
        ordinals = [self.numbers.resolve_ordinal(table.full_name) for table in self.numbers.tables]
        for number, carried in self._members():
            for table, ordinal in enumerate(ordinals):
                if ordinal in carried:
                    presence[table, number] = Presence.PRESENT
            if not carried:
                presence[:, number] = Presence.NO_COLUMNS
        return presence

    def _lacking(self) -> UInt64:
        """
        Return the required columns that each column set lacks, one bit each; the last one stands for no image.

        Shape (tables, sets + 1).
        """
        sets = self._shapes.sets
        lacking = np.zeros((len(self.numbers.tables), len(sets.offsets)), np.uint64)
        for number, table in enumerate(self.numbers.tables):
            bit_of = required_bits(table)
            lacking[number, -1] = _word(bit_of.values())
            for place, carried in self._members():
                lacking[number, place] = _word(bit for column, bit in bit_of.items() if column not in carried)
        return lacking

    @cached_property
    def key_table(self) -> Int16:
        """Table number of each key. Shape (keys,)."""
        return self.keys.array("table")

    @cached_property
    def key_texts(self) -> pa.StringArray:
        """Each key as text. Shape (keys,)."""
        return self.keys.column("text").combine_chunks()

    @cached_property
    def slots(self) -> Int64:
        """First slot of each key, one slot per column of its table, and their total. Shape (keys + 1,)."""
        widths = np.array([len(table.columns) for table in self.numbers.tables], np.int64)
        return np.concatenate([[0], np.cumsum(widths[self.key_table])]).astype(np.int64)

    @cached_property
    def column_sets(self) -> tuple[ColumnSets, tuple[ImageArrays, ImageArrays]]:
        """The distinct column sets, and per cluster the set of each image."""
        before, after = (each[None] for each in (self._shapes.before, self._shapes.after))
        first, second = (ImageArrays(self._by_shape(side, before), self._by_shape(side, after)) for side in (0, 1))
        return self._shapes.sets, (first, second)

    @cached_property
    def _shapes(self) -> _Shapes:
        chunks = [side.column("shape").chunks for side in self.changes]
        joined = pa.chunked_array([*chunks[0], *chunks[1]], CHANGES.field("shape").type).unify_dictionaries()
        parts = list(map(parts_of, joined.chunk(0).dictionary.to_pylist() if joined.num_chunks else ()))
        bitmaps = list(dict.fromkeys(bitmap for _, *both in parts for bitmap in both if bitmap is not None))
        number: dict[bytes | None, int] = {None: ABSENT_SET, **{each: place for place, each in enumerate(bitmaps)}}
        members = list(map(_positions, bitmaps))
        indices = [chunk.indices.to_numpy() for chunk in joined.chunks]
        return _Shapes(
            np.array([operation for operation, _, _ in parts], np.int8),
            np.array([number[before] for _, before, _ in parts], np.int32),
            np.array([number[after] for _, _, after in parts], np.int32),
            ColumnSets(
                np.cumsum([0, *map(len, members)]).astype(np.int64),
                np.array([place for positions in members for place in positions], np.int32),
            ),
            (_joined(indices[: len(chunks[0])]), _joined(indices[len(chunks[0]) :])),
        )


def required_bits(table: Table) -> dict[int, int]:
    """
    Return the columns besides the key that a new row must be given a value for, each with its bit.

    All from the 64th on share the last bit: rows that lack different ones of these are not distinguished.
    """
    required = [place for place, column in enumerate(table.columns) if column.must_be_given]
    required = [place for place in required if place not in table.key_ordinals]
    return {place: min(bit, BITS - 1) for bit, place in enumerate(required)}


def _word(numbers: Iterable[int]) -> int:
    return sum(1 << bit for bit in set(numbers))


def _joined(chunks: Sequence[Int32]) -> Int32:
    return chunks[0] if len(chunks) == 1 else np.concatenate([np.zeros(0, np.int32), *chunks])


def _positions(bitmap: bytes) -> list[int]:
    return [place for place, here in enumerate(bits(bitmap, 8 * len(bitmap))) if here]


def load_bucket(
    history: Folder,
    number: int,
    manifest: Manifest,
    numbers: TableNumbers,
    layouts: Sequence[RowLayout | None],
    *,
    images: bool = True,
) -> Bucket:
    """
    Read a bucket.

    Args:
        history: Folder of the History.
        number: The bucket.
        manifest: What the History holds.
        numbers: The tables.
        layouts: Layout per table number.
        images: Load images too, each column when it is first used.
    """

    def paths(kind: str, cluster: str) -> list[str]:
        return [part(kind, cluster, run, number) for run in range(len(manifest.segments[cluster]))]

    def columns(kind: str, cluster: str, schema: pa.Schema) -> GridColumns:
        last = manifest.last_epochs[cluster] if manifest.epochs_left_out.get(cluster) else None
        return GridColumns(history, paths(kind, cluster), schema, last)

    clusters = tuple(manifest.clusters)
    return Bucket(
        number,
        clusters,
        numbers,
        layouts,
        tuple(columns("changes", cluster, CHANGES) for cluster in clusters),
        BucketImages(history, [paths("images", cluster) for cluster in clusters]) if images else None,
        tuple(columns("consequences", cluster, CONSEQUENCES) for cluster in clusters),
        GridColumns(history, [keys_part(number, batch) for batch in range(manifest.batches)], KEYS),
    )
