"""
One bucket of a History on disk, loaded for the kernels; images are read on first use.

An image is numbered ``2 * row`` (before) or ``2 * row + 1`` (after), the second cluster's rows counted after the first
one's; the images of rows that stood before come after these, as if they were after images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import attrs
import numpy as np
import pyarrow as pa

from conflict.engine.columnar.bucket_images import BucketImages
from conflict.engine.columnar.setups import RequiredOverTime, required_columns
from conflict.engine.columnar.standing_rows import StandingRows
from conflict.engine.kernels.arrays import Bool, BucketRows, Int8, Int16, Int32, Int64, Presence
from conflict.engine.kernels.column_scans import facts_of_rows
from conflict.engine.kernels.provenance_records import ColumnSets, ImageArrays
from conflict.errors import HistoryError
from conflict.history.grid.columns import GridColumns, columns_of_bucket
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.grid.schemas import CHANGES
from conflict.history.run import TableNumbers
from conflict.history.scheduling.start import Bounds
from ndb_formats.columnar.kernel import each_read_only
from ndb_formats.columnar.keys import without_tables
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.table_map import bits

NO_IMAGE = -1
# What is always needed to decide, and what only where a function compares a column.
_PLAIN = ("key", "operation", "epoch", "group", "ordinal")
_COLUMNS = ("before_columns", "after_columns")
_VALUES = ("before_value", "after_value")


@attrs.frozen(eq=False)
class Carried:
    """
    What the images of both clusters carry.

    Attributes:
        sets: The different sets of columns; None for no image.
        images: Per cluster, the number of the set of each before image, and of each after image. Shape (rows,).
        operations: Per cluster, the operation of each row, where it is not the logged one.
    """

    sets: Sequence[set[int] | None]
    images: Sequence[tuple[Int32, Int32]]
    operations: tuple[Int8, Int8] | None = None


# The bucket with whose careful rows those are resolved that may have to do with any others.
TOGETHER = 0


@attrs.frozen(eq=False)
class CarefulRows:
    """
    Rows of keyed tables that the reference engine resolves, while the kernels resolve the others.

    Attributes:
        tables: Tables whose rows are all in it. Shape (tables,).
        keys: Numbers of further rows by bucket. Shape of each (rows,).
        homes: By bucket, where it is known which of `keys` have to do with each other: the same bucket for rows that
            have. Shape of each (rows,).
    """

    tables: Bool
    keys: Mapping[int, Int64] = attrs.field(factory=dict)
    homes: Mapping[int, Int64] = attrs.field(factory=dict)

    def of(self, bucket: int, key_table: Int16) -> Bool:
        """Return which rows of a bucket they are. `key_table`: table of each key. Shape (keys,)."""
        found: Bool = self.tables[key_table]
        found[self.keys.get(bucket, np.zeros(0, np.int64))] = True
        return found

    def joined(self, other: CarefulRows) -> CarefulRows:
        """Return these rows and others; what has to do with what is not known of all of them."""
        none = np.zeros(0, np.int64)
        buckets = sorted(self.keys.keys() | other.keys.keys())
        keys = {each: np.union1d(self.keys.get(each, none), other.keys.get(each, none)) for each in buckets}
        return CarefulRows(self.tables | other.tables, keys)


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
        relogged: What its images would carry in another format; None for what they carry.
        required: Per cluster, what new rows must be given of tables whose definitions change.
        standing: The rows as they stood before the changes; None if all that there was is among these.
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
    relogged: Carried | None = None
    required: tuple[RequiredOverTime, RequiredOverTime] = ({}, {})
    standing: StandingRows | None = None

    @cached_property
    def rows(self) -> tuple[BucketRows, BucketRows]:
        """The columns that decide, as arrays; values of the resolve column are 0 where no function compares one."""
        if self.kept is not None:
            return self.kept
        names = (*_PLAIN, *_COLUMNS, *(_VALUES if self.numbers.resolve_columns else ()))
        for changes in self.changes:
            changes.read(names)
        presence, incomplete = self._presence(), self._incomplete()
        return self._rows(0, presence, incomplete), self._rows(1, presence, incomplete)

    def of_keys(self, chosen: Bool) -> Bucket:
        """Return the bucket with all that it holds of some rows, and nothing of others. Shape of `chosen` (keys,)."""
        changes, consequences = (
            tuple(each.of(chosen[each.array("key")]) for each in columns)
            for columns in (self.changes, self.consequences)
        )
        images = None if self.images is None else BucketImages(changes, self.images.standing)
        return attrs.evolve(self, changes=changes, images=images, consequences=consequences, kept=None)

    def _rows(self, side: int, presence: Int8, incomplete: Int8) -> BucketRows:
        changes, (before, after) = self.changes[side], self._carried.images[side]
        plain = {name: changes.array(name) for name in _PLAIN}
        if self._carried.operations is not None:
            plain["operation"] = self._carried.operations[side]
        nothing = np.broadcast_to(np.uint64(0), len(plain["key"]))
        compares = bool(self.numbers.resolve_columns)
        before_value, after_value = (changes.array(name) if compares else nothing for name in _VALUES)
        return BucketRows(
            **plain,
            before_presence=self._of_images(presence, plain["key"], before),
            before_value=before_value,
            after_presence=self._of_images(presence, plain["key"], after),
            after_value=after_value,
            incomplete=self._with_changes(side, self._of_images(incomplete, plain["key"], after), plain, after),
        )

    def _with_changes(self, side: int, incomplete: Int8, plain: Mapping[str, np.ndarray], after: Int32) -> Int8:
        """Return which after images lack a column that a new row must be given; `incomplete`: if nothing changed."""
        for table, (steps, required) in self.required[side].items():
            mine = np.flatnonzero(self.key_table[plain["key"]] == table)
            epoch, group, version = plain["epoch"][mine], plain["group"][mine], np.zeros(len(mine), np.int64)
            for at, place in steps:
                version += (epoch > np.uint64(at)) | ((epoch == np.uint64(at)) & (group >= place))
            lacks = [[each is not None and not needed <= each for each in self._carried.sets] for needed in required]
            incomplete = incomplete.copy()
            incomplete[mine] = np.array(lacks, np.int8)[version, after[mine]]
        return incomplete

    def _of_images(self, facts: np.ndarray, key: Int32, carried: Int32) -> np.ndarray:
        """Return a fact about each row, by its table and the columns that its image carries. Shape (rows,)."""
        if not facts.size or (facts == facts.flat[0]).all():  # usual where no function compares a column
            return np.broadcast_to(facts.flat[0] if facts.size else facts.dtype.type(0), len(key))
        return np.asarray(facts_of_rows(*each_read_only(facts, self.key_table, key, carried)))

    def _presence(self) -> Int8:
        """Return the `Presence` of the resolve column in images by what they carry. Shape (tables, sets)."""
        presence = np.full((len(self.numbers.tables), len(self._carried.sets)), Presence.ABSENT, np.int8)
        for table, definition in enumerate(self.numbers.tables):
            ordinal = self.numbers.resolve_ordinal(definition.full_name)
            for number, carried in enumerate(self._carried.sets):
                if carried is not None and not carried:
                    presence[table, number] = Presence.NO_COLUMNS
                elif carried is not None and ordinal in carried:
                    presence[table, number] = Presence.PRESENT
        return presence

    def _incomplete(self) -> Int8:
        """Return which images lack a column that a new row must be given, by what they carry. Shape (tables, sets)."""
        incomplete = np.zeros((len(self.numbers.tables), len(self._carried.sets)), np.int8)
        for table, definition in enumerate(self.numbers.tables):
            required = required_columns(definition)
            for number, carried in enumerate(self._carried.sets):
                incomplete[table, number] = carried is not None and not required <= carried
        return incomplete

    @cached_property
    def key_table(self) -> Int16:
        """Table number of each key. Shape (keys,)."""
        return self.keys.array("table")

    @cached_property
    def key_texts(self) -> pa.StringArray:
        """Each key as text. Shape (keys,)."""
        return self.keys.column("text").combine_chunks()

    def row_keys(self, key: Int32 | Int64) -> dict[str, pa.Array]:
        """Return the columns of a result that tell rows apart, `ROW_KEY`, given the numbers of their keys."""
        chosen = pa.array(key)
        identities = self.keys.column("identity").take(chosen).combine_chunks()
        return {"key": self.key_texts.take(chosen), "identity": without_tables(identities)}

    @cached_property
    def slots(self) -> Int64:
        """First slot of each key, one slot per column of its table, and their total. Shape (keys + 1,)."""
        widths = np.array([len(table.columns) for table in self.numbers.tables], np.int64)
        return np.concatenate([[0], np.cumsum(widths[self.key_table])]).astype(np.int64)

    @cached_property
    def column_sets(self) -> tuple[ColumnSets, tuple[ImageArrays, ImageArrays]]:
        """The different sets of columns, and which one each image has."""
        return _column_sets(self._carried)

    @cached_property
    def logged_sets(self) -> tuple[ColumnSets, tuple[ImageArrays, ImageArrays]]:
        """The same of the images as they are in the binlogs, in which they are read."""
        return self.column_sets if self.relogged is None else _column_sets(self.carried)

    @cached_property
    def standing_sets(self) -> Int32:
        """The set of columns in `logged_sets` that each standing image has. Shape (images,)."""
        if self.standing is None:
            return np.zeros(0, np.int32)
        (sets, _), own = self.logged_sets, len(self.standing.bitmaps)
        return (self.standing.carried + len(sets.offsets) - 1 - own).astype(np.int32)

    @property
    def standing_images(self) -> Int64:
        """The image of each standing row by number; `NO_IMAGE` for one that is not there. Shape (keys, clusters)."""
        assert self.standing is not None
        numbers, changes = self.standing.image, sum(map(len, self.changes))
        return np.where(numbers < 0, NO_IMAGE, 2 * (changes + numbers) + 1)

    def after(self, standing: StandingRows) -> Bucket:
        """Return the bucket with what came after the rows stood so."""
        changes = tuple(each.of(standing.later(side, each)) for side, each in enumerate(self.changes))
        images = None if self.images is None else BucketImages(changes, standing.images)
        return attrs.evolve(self, changes=changes, images=images, kept=None, standing=standing)

    @property
    def _carried(self) -> Carried:
        return self.carried if self.relogged is None else self.relogged

    @cached_property
    def carried(self) -> Carried:
        """What the images in the binlogs carry."""
        columns = [side.column(name) for side in self.changes for name in _COLUMNS]
        chunks = [chunk for column in columns for chunk in column.chunks]
        joined = pa.chunked_array(chunks, CHANGES.field(_COLUMNS[0]).type).unify_dictionaries()
        bitmaps = joined.chunk(0).dictionary.to_pylist() if chunks else []
        numbers = (chunk.indices.to_numpy() for chunk in joined.chunks)
        before, after, other_before, other_after = (_joined([next(numbers) for _ in each.chunks]) for each in columns)
        carried = [_positions(each) if each else None for each in bitmaps]
        if self.standing is not None:
            carried += map(_positions, self.standing.bitmaps)
        self._refuse_columns_too_many(carried, [(before, after), (other_before, other_after)])
        return Carried(carried, [(before, after), (other_before, other_after)])

    def _refuse_columns_too_many(
        self, carried: Sequence[set[int] | None], images: Sequence[tuple[Int32, Int32]]
    ) -> None:
        """
        Make sure that images carry no columns that their tables do not have.

        Raises:
            HistoryError: One does.
        """
        widths = np.array([len(table.columns) for table in self.numbers.tables], np.int64)
        needed = np.array([1 + max(each, default=-1) if each else 0 for each in carried], np.int64)
        if not needed.size or not widths.size or needed.max() <= widths.min():
            return
        for changes, sets in zip(self.changes, images, strict=True):
            of_rows = widths[self.key_table[changes.array("key")]]
            if any((needed[each] > of_rows).any() for each in sets):
                message = (
                    f"{changes.history.uri}: an image in bucket {self.number} carries columns that its table does not "
                    "have. Ingest the binlogs again into another folder"
                )
                raise HistoryError(message)


def _column_sets(carried: Carried) -> tuple[ColumnSets, tuple[ImageArrays, ImageArrays]]:
    members = [sorted(each) for each in carried.sets if each is not None]
    numbers = iter(range(len(members)))
    set_of = np.array([NO_IMAGE if each is None else next(numbers) for each in carried.sets], np.int32)
    sets = ColumnSets(
        np.cumsum([0, *map(len, members)]).astype(np.int64),
        np.array([column for each in members for column in each], np.int32),
    )
    first, second = (ImageArrays(set_of.take(before), set_of.take(after)) for before, after in carried.images)
    return sets, (first, second)


def _joined(chunks: Sequence[Int32]) -> Int32:
    return chunks[0] if len(chunks) == 1 else np.concatenate([np.zeros(0, np.int32), *chunks])


def _positions(bitmap: bytes) -> set[int]:
    return {place for place, here in enumerate(bits(bitmap, 8 * len(bitmap))) if here}


def load_bucket(
    history: Folder,
    number: int,
    manifest: Manifest,
    numbers: TableNumbers,
    layouts: Sequence[RowLayout | None],
    *,
    images: bool = True,
    bounds: Mapping[str, Bounds] | None = None,
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
        bounds: Per cluster, the own epochs to read; None for all that can be resolved.
    """

    def columns(kind: str) -> tuple[GridColumns, ...]:
        return tuple(
            columns_of_bucket(history, manifest, kind, cluster, number, read.get(cluster)) for cluster in clusters
        )

    clusters = tuple(manifest.clusters)
    cut = {cluster: Bounds(last=last) for cluster, last in manifest.last_epochs.items() if manifest.is_cut(cluster)}
    read = cut if bounds is None else bounds
    changes = columns("changes")
    return Bucket(
        number,
        clusters,
        numbers,
        layouts,
        changes,
        BucketImages(changes) if images else None,
        columns("consequences"),
        columns_of_bucket(history, manifest, "keys", clusters[0], number),
    )
