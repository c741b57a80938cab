"""
Every state of the rows of a bucket that have unique keys besides the primary key, as columns.

Rows with the same value can be in any two buckets. So each bucket returns all states, and the driver finds the
duplicates (see `conflict.columnar.unique_keys.duplicates`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from conflict.columnar.bucket import Bucket
from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.cluster_setup import ClusterSetup, rules_of
from conflict.columnar.image_values import ImageReader, ImageValues
from conflict.columnar.kernels.arrays import Bool, Conflicts, EpochApplies, Int64
from conflict.columnar.kernels.fold import fold
from conflict.columnar.kernels.provenance import WatchedRows
from conflict.columnar.older_states import OlderRows
from conflict.columnar.operation_order import ORDER, operation_orders
from ndb_formats.columnar.keys import KeyRows, Slices, key_parts, put_keys
from ndb_formats.schema.tables import Table

__all__ = ["MOMENT", "STATES", "has_unique_keys", "states_schema", "unique_states"]

# A row after a transaction that touched it: an epoch apply, or an own transaction of the cluster.
STATES = pa.schema(
    [
        ("cluster", pa.int8()),
        # The transaction: own epoch, group, whether it is an epoch apply without a trace, which follows that group, and
        # number of the epoch apply.
        ("epoch", pa.uint64()),
        ("group", pa.int32()),
        ("untraced", pa.bool_()),
        ("number", pa.int64()),
        ("key", pa.int32()),  # number of the row in its bucket
        # Of epoch applies alone: the order of the operation that touched the row first, and the last one that did.
        ("order", ORDER),
        ("foreign_epoch", pa.uint64()),
        ("table", pa.int16()),
        ("operation", pa.int8()),
        ("file", pa.int16()),
        ("position", pa.uint64()),
        ("row", pa.int32()),
    ]
)
MOMENT = ("epoch", "group", "untraced", "number")
_VALUE = pa.dictionary(pa.int32(), pa.binary())


def states_schema(tables: Sequence[Table]) -> pa.Schema:
    """Return the schema of states: `STATES`, and a column per unique key, NULL where a row has no value of it."""
    count = max((len(table.unique_keys) for table in tables), default=0)
    return pa.schema([*STATES, *(pa.field(f"value{number}", _VALUE) for number in range(count))])


def has_unique_keys(clusters: Sequence[ClusterSetup]) -> Bool:
    """Return which tables have unique keys besides the primary key. Shape (tables,)."""
    return np.array([bool(setup.table.unique_keys) for setup in clusters[0].setups], np.bool_)


def unique_states(
    bucket: Bucket,
    clusters: Sequence[ClusterSetup],
    applies: EpochApplies,
    conflicts: Conflicts,
    older: OlderRows | None = None,
) -> pa.Table:
    """
    Return every state of the rows of a bucket that have unique keys, with the columns of `states_schema`.

    Args:
        bucket: The bucket.
        clusters: Both clusters.
        applies: All epoch applies in order.
        conflicts: The transactions in conflict.
        older: The rows before the log starts; None if there were none.
    """
    early = applies.moments.of_bucket(bucket.number)
    told = None if older is None else older.first
    rules, tables = rules_of(clusters), bucket.key_table
    folded = fold(applies, bucket.rows, rules, conflicts, tables, candidates=False, moments=early, older=told)
    watched_tables = has_unique_keys(clusters)
    result = BucketResult(bucket, tuple(clusters), applies, conflicts, folded, watched=watched_tables, older=older)
    watched, moments = result.final.watched, _moments(result)
    first, last = _one_per_transaction(watched, moments)
    schema = states_schema(bucket.numbers.tables)
    columns = {
        "cluster": pa.array(watched.cluster[last]),
        **{name: pa.array(column[last]) for name, column in moments.items()},
        "key": pa.array(watched.key[last]),
        **_operations(result, watched.decision[first], watched.decision[last]),
    }
    values = _values(result, last, len(schema) - len(STATES))
    return pa.table([*(columns[name] for name in STATES.names), *values], schema=schema)


def _moments(result: BucketResult) -> dict[str, np.ndarray]:
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
    return dict(zip(MOMENT, (epoch, group, untraced, number), strict=True))


def _one_per_transaction(watched: WatchedRows, moments: Mapping[str, np.ndarray]) -> tuple[Int64, Int64]:
    """Return the numbers of the first and the last state of each row in each transaction. Shape (row states,)."""
    order = np.lexsort((watched.key, watched.cluster))
    columns: tuple[np.ndarray, ...] = (watched.cluster, watched.key, *moments.values())
    other = np.ones(len(order) + 1, np.bool_)
    other[1:-1] = np.any([column[order[1:]] != column[order[:-1]] for column in columns], axis=0)
    return order[other[:-1]], order[other[1:]]


def _operations(result: BucketResult, first: Int64, last: Int64) -> dict[str, pa.Array]:
    """
    Return the operations of an epoch apply on rows: all of the last one, and the order of the first. NULL for others.

    Args:
        result: The bucket.
        first: Decision on the first operation of each row; -1 after an own transaction. Shape (row states,).
        last: Decision on the last one.
    """
    decisions, bucket = result.folded.decisions, result.bucket
    applied = np.flatnonzero(last >= 0)
    orders = operation_orders(first[applied], decisions, result.folded.logged, result.applies, bucket.rows)
    decision = last[applied]
    numbers = np.full(len(last), -1, np.int64)
    numbers[applied] = np.arange(len(applied))
    plain: dict[str, np.ndarray] = {
        "foreign_epoch": result.applies.foreign_epoch[decisions.apply[decision]],
        "table": bucket.key_table[decisions.key[decision]],
        "operation": decisions.operation[decision],
        "file": np.full(len(applied), -1, np.int16),
        "position": np.zeros(len(applied), np.uint64),
        "row": np.zeros(len(applied), np.int32),
    }
    source, applier = decisions.source[decision], result.applies.applier[decisions.apply[decision]]
    for side in (0, 1):
        logged = (source >= 0) & (applier == 1 - side)
        for name in ("file", "position", "row"):
            plain[name][logged] = bucket.changes[side].array(name)[source[logged]]
    found = pa.array(numbers, mask=numbers < 0)
    return {"order": orders.take(found), **{name: pa.array(column).take(found) for name, column in plain.items()}}


def _values(result: BucketResult, states: Int64, count: int) -> list[pa.DictionaryArray]:
    """Return the values of rows for each of `count` unique keys, NULL for none. Shape (states,)."""
    watched, tables = result.final.watched, result.bucket.numbers.tables
    table_of = result.bucket.key_table[watched.key[states]]
    reader = ImageReader(result.bucket)
    where = [np.zeros(0, np.int64)]
    parts = [[pa.array([], pa.binary()).dictionary_encode()] for _ in range(count)]
    for number, table in enumerate(tables):
        chosen = np.flatnonzero((table_of == number) & watched.exists[states])
        for part_of, found in _values_of_table(reader, number, table, watched.images[states[chosen]]):
            where.append(chosen[part_of])
            missing = [pa.nulls(len(where[-1]), pa.binary())] * (count - len(found))
            for part, values in zip(parts, [*found, *missing], strict=True):
                part.append(values.dictionary_encode())
    at = np.full(len(states), -1, np.int64)
    at[np.concatenate(where)] = np.arange(sum(map(len, where)))
    indices = pa.array(at, mask=at < 0)
    return [pa.chunked_array(part).unify_dictionaries().combine_chunks().take(indices) for part in parts]


def _values_of_table(
    reader: ImageReader, number: int, table: Table, images: Int64
) -> Iterator[tuple[slice, list[pa.BinaryArray]]]:
    """
    Yield the values of a table's rows for each of its unique keys, a batch of rows at a time; NULL if a column is NULL.

    Args:
        reader: Of the bucket's images.
        number: Number of the table.
        table: The table.
        images: Image of each column. Shape (rows, columns).
    """
    if not table.unique_keys:
        return
    keys = [[table.ordinal(name) for name in names] for names in table.unique_keys]
    used = sorted({ordinal for ordinals in keys for ordinal in ordinals})
    for batch, values in reader.in_batches(number, len(images), lambda rows: images[rows][:, used]):
        parts = {ordinal: _comparable(values, ordinal, images[batch, ordinal], table) for ordinal in used}
        yield batch, [_joined(number, [parts[ordinal] for ordinal in ordinals]) for ordinals in keys]


def _comparable(images: ImageValues, ordinal: int, numbers: Int64, table: Table) -> Slices:
    """Return the bytes by which the values of a column compare. Shape (rows,)."""
    found, indices = images.slices(ordinal, numbers)
    parts = key_parts(table.columns[ordinal], found)
    # The index after the last image stands for no value.
    return Slices(parts.data, np.append(parts.starts, 0)[indices], np.append(parts.lengths, -1)[indices])


def _joined(table: int, parts: Sequence[Slices]) -> pa.BinaryArray:
    """Return the values of all columns of a key as one value; NULL where one of them is NULL."""
    lengths = np.stack([part.lengths for part in parts])
    whole: Bool = np.all(lengths >= 0, axis=0)
    data, offsets = put_keys([KeyRows(table, np.arange(len(whole)), parts)], len(whole))
    valid = pa.py_buffer(np.packbits(whole, bitorder="little"))
    buffers = [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(whole), buffers)
