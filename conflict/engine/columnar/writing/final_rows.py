"""
The final rows of a bucket, and where the two clusters differ.

The kernels trace the image that each column of each row comes from. Rows whose columns come from the same images are
equal; of other rows the values are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.image_values import DecodedColumn, ImageReader, ImageValues
from conflict.engine.kernels.arrays import Bool, Int64
from conflict.engine.kernels.provenance import ABSENT_IMAGE
from conflict.engine.ledger.arrow_rows import row_schema, with_unknown
from conflict.engine.ledger.ledger import FinalTable
from conflict.rules.table_setup import TableSetup
from ndb_formats.schema.default_values import implied_value
from ndb_formats.schema.tables import Column, Table


@attrs.frozen(eq=False)
class _Keys:
    """
    Some keys of one table.

    Attributes:
        exists: Whether the row exists. Shape (clusters, keys).
        known: Whether it exists and all its columns are known. Shape (clusters, keys).
        seen: Whether it exists and all its columns are known but those that its server computed. Shape (clusters,
            keys).
        may_be_missing: Whether it may exist, though it does not for all that is known. Shape (clusters, keys).
        images: Image of each column; `ABSENT_IMAGE` too where the row does not exist. Shape (clusters, keys, columns).
    """

    exists: Bool
    known: Bool
    seen: Bool
    may_be_missing: Bool
    images: Int64

    @classmethod
    def of(cls, result: FoldedBucket, table: int, keys: Int64) -> _Keys:
        """Return some keys of a table."""
        widths, slots = [len(each.columns) for each in result.bucket.numbers.tables], result.bucket.slots
        width = widths[table]
        exists = result.final.exists[:, keys]
        if set(widths) == {width}:
            images = result.final.images.reshape(2, -1, width)[:, keys]
        else:
            images = result.final.images[:, slots[keys][:, None] + np.arange(width)]
        images[~exists] = ABSENT_IMAGE
        known = exists & (result.columns_not_known[:, keys] == 0)
        seen = exists & (result.columns_not_seen[:, keys] == 0)
        return cls(exists, known, seen, result.may_be_missing[:, keys], images)

    def part(self, batch: slice) -> _Keys:
        """Return some of the keys."""
        marks = (self.exists, self.known, self.seen, self.may_be_missing)
        exists, known, seen, may_be_missing = (each[:, batch] for each in marks)
        return _Keys(exists, known, seen, may_be_missing, self.images[:, batch])

    @property
    def unlike(self) -> Bool:
        """Which rows are known on both clusters, and come from different images. Shape (keys,)."""
        return np.asarray(self.known.all(axis=0) & (self.images[0] != self.images[1]).any(axis=1))

    @property
    def alone(self) -> int:
        """Number of rows that the logs show, and that exist on one cluster alone."""
        alone = (self.exists[0] != self.exists[1]) & ~self.may_be_missing.any(axis=0)
        return int((alone & self.seen.any(axis=0)).sum())


def count_differing(result: FoldedBucket, table: int) -> int | None:
    """Return how many keys of a table differ between the clusters; None if only values can tell."""
    first, second = result.folded.exists & (result.bucket.key_table == table)
    if (first & second).any():
        return None
    alone = first ^ second
    if result.older is not None:
        alone &= ~result.may_be_missing.any(axis=0) & (result.columns_not_seen == 0).all(axis=0)
    return int(alone.sum())


def rows_that_may_differ(result: FoldedBucket) -> Bool:
    """
    Return which rows are not surely the same on both clusters: their images differ, or not all is known of them.

    No values are read: some of them have the same ones. Shape (keys,).
    """
    exists, starts = result.final.exists, result.bucket.slots[:-1]
    if not exists.shape[1]:
        return np.zeros(0, np.bool_)
    unlike = np.logical_or.reduceat(result.final.images[0] != result.final.images[1], starts)
    found = (exists[0] != exists[1]) | (exists.all(axis=0) & unlike)
    found |= (result.columns_not_known > 0).any(axis=0) | result.may_be_missing.any(axis=0)
    return np.asarray(found if result.older is None else found | result.older.left_open)


def count_unequal(result: FoldedBucket, reader: ImageReader, table: int) -> int:
    """
    Return how many keys of a table differ between the clusters; values are read where only they can tell.

    Raises:
        FormatError: A value cannot be decoded.
    """
    if _is_shown_otherwise(result, table):
        differing = declared_table(result, reader, table).differing
        assert differing is not None
        return differing
    definition, numbers = result.bucket.numbers.tables[table], _present_keys(result, table)
    everything = _Keys.of(result, table, numbers)
    unlike = _Keys.of(result, table, numbers[everything.unlike])
    schema, differing = row_schema(definition), everything.alone
    for batch, images in reader.in_batches(table, len(unlike.unlike), lambda batch: unlike.images[:, batch]):
        keys = unlike.part(batch)
        columns = [
            _with_default(images.column(place, keys.images[:, :, place], field.type), column)
            for place, (field, column) in enumerate(zip(schema, definition.columns, strict=True))
        ]
        differing += int(_differing(images, keys, definition, columns).sum())
    return differing


def final_table(result: FoldedBucket, reader: ImageReader, table: int) -> FinalTable:
    """
    Return the final rows of a table.

    Raises:
        FormatError: A value cannot be decoded.
    """
    if _is_shown_otherwise(result, table):
        return declared_table(result, reader, table)
    definition, numbers = result.bucket.numbers.tables[table], _present_keys(result, table)
    schema = row_schema(definition)
    parts: tuple[list[pa.Table], ...] = ([schema.empty_table()], [schema.empty_table()])
    differing = 0
    everything = _Keys.of(result, table, numbers)
    for batch, images in reader.in_batches(table, len(numbers), lambda batch: everything.images[:, batch]):
        keys = everything.part(batch)
        columns = [
            _with_default(images.column(place, keys.images[:, :, place], field.type), column)
            for place, (field, column) in enumerate(zip(schema, definition.columns, strict=True))
        ]
        differing += keys.alone + int(_differing(images, keys, definition, columns).sum())
        for side, known in enumerate(keys.known):
            arrays = [column.take(column.indices[side, known]) for column in columns]
            parts[side].append(pa.table(arrays, schema=schema))
    return _joined(result, table, parts, differing)


def _is_shown_otherwise(result: FoldedBucket, table: int) -> bool:
    """Whether final rows have other columns than the History table, or differ by cluster."""
    virtual = any(column.generated == "virtual" for column in result.bucket.numbers.tables[table].columns)
    return virtual or any(cluster.setups[table].declared is not None for cluster in result.clusters)


def declared_table(result: FoldedBucket, reader: ImageReader, table: int) -> FinalTable:
    """Return the final rows of a table whose columns are not those of the History table, or differ by cluster."""
    numbers = _present_keys(result, table)
    shown = [cluster.setups[table].stored for cluster in result.clusters]
    schemas = [row_schema(definition) for definition, _ in shown]
    common = [place for place in shown[0][1] if place in shown[1][1]]
    parts: tuple[list[pa.Table], ...] = tuple([schema.empty_table()] for schema in schemas)
    in_part: tuple[list[pa.Table], ...] = tuple(list[pa.Table]() for _ in schemas)
    differing = 0
    everything = _Keys.of(result, table, numbers)
    for batch, images in reader.in_batches(table, len(numbers), lambda batch: everything.images[:, batch]):
        keys, found = everything.part(batch), list[dict[int, pa.Array]]()
        for side, (definition, places) in enumerate(shown):
            columns = {}
            for place, field, column in zip(places, schemas[side], definition.columns, strict=True):
                values = _with_default(images.column(place, keys.images[side, :, place], field.type), column)
                columns[place] = values.all_rows()
            found.append(columns)
            rows = pa.table(list(columns.values()), schema=schemas[side])
            parts[side].append(rows.filter(pa.array(keys.known[side])))
            in_part[side].extend(_in_part(rows, keys, side, places, result.clusters[side].setups[table]))
        unlike = np.zeros(len(keys.unlike), np.bool_)
        for place in common:
            computed = [
                _computed(cluster.setups[table])[places.index(place)] & (keys.images[side, :, place] == ABSENT_IMAGE)
                for side, (cluster, (_, places)) in enumerate(zip(result.clusters, shown, strict=True))
            ]
            unlike |= ~np.logical_or(*computed) & ~_same_values(*(side[place] for side in found))
        differing += keys.alone + int((unlike & keys.seen.all(axis=0)).sum())
    return _joined(result, table, parts, differing, in_part)


def _in_part(rows: pa.Table, keys: _Keys, side: int, places: Sequence[int], setup: TableSetup) -> list[pa.Table]:
    """Return those of some rows of a cluster that have columns which its server computed, if there are any."""
    chosen = np.flatnonzero(keys.seen[side] & ~keys.known[side])
    images = keys.images[side][np.ix_(chosen, np.array(places))]
    return (
        [with_unknown(rows.take(pa.array(chosen)), _computed(setup) & (images == ABSENT_IMAGE))] if len(chosen) else []
    )


def _computed(setup: TableSetup) -> Bool:
    """Return which stored columns the server computes where no image has them, so that their values are not known."""
    return np.array([setup.is_open(column) for column in setup.stored[0].columns], np.bool_)


def _joined(
    result: FoldedBucket,
    table: int,
    parts: Sequence[Sequence[pa.Table]],
    differing: int,
    in_part: Sequence[Sequence[pa.Table]] = ((), ()),
) -> FinalTable:
    """Return a table, given the parts of each cluster's rows; a cluster does not have a table that was refused."""
    rows = {
        cluster.name: pa.concat_tables(part)
        for cluster, part in zip(result.clusters, parts, strict=True)
        if cluster.setups[table].refusal is None
    }
    partly = {
        cluster.name: pa.concat_tables(part)
        for cluster, part in zip(result.clusters, in_part, strict=True)
        if part and cluster.setups[table].refusal is None
    }
    return FinalTable(result.bucket.numbers.tables[table].full_name, rows, differing, partly)


def _same_values(first: pa.Array, second: pa.Array) -> Bool:
    """Return where two columns have the same value, NULL like NULL. Shape (rows,)."""
    other = second if second.type == first.type else second.cast(first.type, safe=False)
    same = pc.if_else(pc.is_null(first), pc.is_null(other), pc.fill_null(pc.equal(first, other), False))
    return np.asarray(same.to_numpy(zero_copy_only=False))


def _present_keys(result: FoldedBucket, table: int) -> Int64:
    """Return the keys of a table that exist on either cluster at the end. Shape (present,)."""
    return np.flatnonzero((result.bucket.key_table == table) & result.final.exists.any(axis=0))


def _with_default(found: DecodedColumn, column: Column) -> DecodedColumn:
    """Return the column with its default where no image has a value."""
    return found.extended([implied_value(column)]) if (found.indices == found.absent).any() else found


def _differing(images: ImageValues, keys: _Keys, table: Table, columns: Sequence[DecodedColumn]) -> Bool:
    """Return which keys have different values in different images. Shape (keys,)."""
    differing, unlike = np.zeros(len(keys.unlike), np.bool_), np.flatnonzero(keys.unlike)
    for place, column in enumerate(columns):
        compared = unlike[(keys.images[0, unlike, place] != keys.images[1, unlike, place]) & ~differing[unlike]]
        if len(compared) == 0:
            continue
        if table.columns[place].type == "json":
            # Documents are equal if their bytes are.
            numbers = keys.images[:, :, place]
            found = _with_default(images.payloads(place, numbers), table.columns[place])
        else:
            found = column
        first, second = (found.take(found.indices[side, compared]) for side in (0, 1))
        same = pc.if_else(pc.is_null(first), pc.is_null(second), pc.fill_null(pc.equal(first, second), False))
        differing[compared] = ~same.to_numpy(zero_copy_only=False)
    return differing
