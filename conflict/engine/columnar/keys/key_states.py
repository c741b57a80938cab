"""
Every state of the rows of some tables, as columns, with the values of keys in them.

Rows with the same value can be in any two buckets. So each bucket returns all states, and the driver compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np
import pyarrow as pa

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.image_values import ImageReader, ImageValues
from conflict.engine.columnar.older_rows import OlderRows
from conflict.engine.columnar.setups import ClusterSetup, rules_of
from conflict.engine.kernels.arrays import Bool, Conflicts, EpochApplies, Int64
from conflict.engine.kernels.fold import fold
from conflict.engine.kernels.provenance_records import WatchedRows
from conflict.engine.kernels.records import packed_changes
from ndb_formats.columnar.keys import KeyRows, Slices, key_parts, put_keys
from ndb_formats.schema.tables import Column

# The transaction after which a state is: own epoch, group, whether it is an epoch apply without a trace, which follows
# that group, and number of the epoch apply.
MOMENT = pa.schema([("epoch", pa.uint64()), ("group", pa.int32()), ("untraced", pa.bool_()), ("number", pa.int64())])
VALUE = pa.dictionary(pa.int32(), pa.binary())


@attrs.frozen
class ComparedKey:
    """
    Columns of a table whose values are compared over all rows.

    Attributes:
        space: Values of another space are never equal.
        ordinals: The columns.
        columns: The columns by which their values compare.
    """

    space: int
    ordinals: tuple[int, ...]
    columns: tuple[Column, ...]


@attrs.frozen(eq=False)
class RowStates:
    """
    Every state of the watched rows of a bucket, one per row and transaction.

    Attributes:
        result: The decided bucket.
        moments: The transaction of each state, as the columns `MOMENT`. Shape (states,).
        first: Number among all states of the first one in that transaction. Shape (states,).
        last: Of the last one, which is the state.
    """

    result: FoldedBucket
    moments: Mapping[str, np.ndarray]
    first: Int64
    last: Int64

    def values(self, keys: Sequence[Sequence[ComparedKey]], count: int) -> list[pa.DictionaryArray]:
        """
        Return the values of the rows for the keys of their tables, NULL for none. Shape (states,) each.

        Args:
            keys: Per table, its keys.
            count: How many columns of values are returned.
        """
        return _values(self.result, self.last, keys, count)


def trace_states(
    bucket: Bucket,
    clusters: Sequence[ClusterSetup],
    applies: EpochApplies,
    conflicts: Conflicts,
    watched: Bool,
    older: OlderRows | None = None,
) -> RowStates:
    """
    Return every state of the rows of some tables.

    Args:
        bucket: The bucket.
        clusters: Both clusters.
        applies: All epoch applies in order.
        conflicts: The transactions in conflict.
        watched: Which tables. Shape (tables,).
        older: The rows before the log starts; None if there were none.
    """
    early = applies.moments.of_bucket(bucket.number)
    first_states = None if older is None else older.first
    rules, tables = rules_of(clusters), bucket.key_table
    folded = fold(
        applies,
        packed_changes(bucket.rows),
        rules,
        conflicts,
        tables,
        candidates=False,
        moments=early,
        older=first_states,
    )
    result = FoldedBucket(bucket, tuple(clusters), applies, conflicts, folded, watched=watched, older=older)
    moments = _moments(result)
    first, last = _one_per_transaction(result.final.watched, moments)
    return RowStates(result, {name: column[last] for name, column in moments.items()}, first, last)


def _moments(result: FoldedBucket) -> dict[str, np.ndarray]:
    """Return the transaction of each state, as the columns `MOMENT`. Shape (states,)."""
    watched, applies, count = result.final.watched, result.applies, len(result.final.watched)
    epoch, group = np.zeros(count, np.uint64), np.zeros(count, np.int32)
    untraced, number = np.zeros(count, np.bool_), np.zeros(count, np.int64)
    applied = watched.decision >= 0
    for side, rows in enumerate(result.bucket.rows):
        own = ~applied & (watched.cluster == side)
        epoch[own], group[own] = rows.epoch[watched.row[own]], rows.group[watched.row[own]]
    apply = result.folded.decisions.apply[watched.decision[applied]]
    epoch[applied], group[applied] = applies.epoch[apply], applies.group[apply]
    untraced[applied], number[applied] = ~applies.traced[apply], applies.number[apply]
    return dict(zip(MOMENT.names, (epoch, group, untraced, number), strict=True))


def _one_per_transaction(watched: WatchedRows, moments: Mapping[str, np.ndarray]) -> tuple[Int64, Int64]:
    """Return the numbers of the first and the last state of each row in each transaction. Shape (row states,)."""
    order = np.lexsort((watched.key, watched.cluster))
    columns: tuple[np.ndarray, ...] = (watched.cluster, watched.key, *moments.values())
    other = np.ones(len(order) + 1, np.bool_)
    other[1:-1] = np.any([column[order[1:]] != column[order[:-1]] for column in columns], axis=0)
    return order[other[:-1]], order[other[1:]]


def _values(
    result: FoldedBucket, states: Int64, keys: Sequence[Sequence[ComparedKey]], count: int
) -> list[pa.DictionaryArray]:
    watched = result.final.watched
    table_of = result.bucket.key_table[watched.key[states]]
    reader = ImageReader(result.bucket)
    where = [np.zeros(0, np.int64)]
    parts = [[pa.array([], pa.binary()).dictionary_encode()] for _ in range(count)]
    for number, compared in enumerate(keys):
        chosen = np.flatnonzero((table_of == number) & watched.exists[states])
        for part_of, found in _values_of_table(reader, number, compared, watched.images[states[chosen]]):
            where.append(chosen[part_of])
            missing = [pa.nulls(len(where[-1]), pa.binary())] * (count - len(found))
            for part, values in zip(parts, [*found, *missing], strict=True):
                part.append(values.dictionary_encode())
    at = np.full(len(states), -1, np.int64)
    at[np.concatenate(where)] = np.arange(sum(map(len, where)))
    indices = pa.array(at, mask=at < 0)
    return [pa.chunked_array(part).unify_dictionaries().combine_chunks().take(indices) for part in parts]


def _values_of_table(
    reader: ImageReader, number: int, keys: Sequence[ComparedKey], images: Int64
) -> Iterator[tuple[slice, list[pa.BinaryArray]]]:
    """
    Yield the values of a table's rows for each of its keys, a batch of rows at a time; NULL if a column is NULL.

    Args:
        reader: Of the bucket's images.
        number: Number of the table.
        keys: Its keys.
        images: Image of each column. Shape (rows, columns).
    """
    if not keys:
        return
    used = sorted({ordinal for key in keys for ordinal in key.ordinals})
    for batch, values in reader.in_batches(number, len(images), lambda rows: images[rows][:, used]):
        yield batch, [_joined(key.space, list(_parts(values, key, images[batch]))) for key in keys]


def _parts(values: ImageValues, key: ComparedKey, images: Int64) -> Iterator[Slices]:
    """Yield the bytes by which the values of each column of a key compare. Shape (rows,)."""
    for ordinal, column in zip(key.ordinals, key.columns, strict=True):
        found, indices = values.slices(ordinal, images[:, ordinal])
        parts = key_parts(column, found)
        # The index after the last image represents no value.
        yield Slices(parts.data, np.append(parts.starts, 0)[indices], np.append(parts.lengths, -1)[indices])


def _joined(space: int, parts: Sequence[Slices]) -> pa.BinaryArray:
    """Return the values of all columns of a key as one value; NULL where one of them is NULL."""
    lengths = np.stack([part.lengths for part in parts])
    whole: Bool = np.all(lengths >= 0, axis=0)
    data, offsets = put_keys([KeyRows(space, np.arange(len(whole)), parts)], len(whole))
    valid = pa.py_buffer(np.packbits(whole, bitorder="little"))
    buffers = [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(whole), buffers)
