"""
Every state of the rows of a bucket that have unique keys besides the primary key, as columns.

The driver finds the duplicates (see `conflict.columnar.unique_keys.duplicates`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from conflict.columnar.bucket import Bucket
from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.cluster_setup import ClusterSetup
from conflict.columnar.kernels.arrays import Bool, Conflicts, EpochApplies, Int64
from conflict.columnar.older_states import OlderRows
from conflict.columnar.operation_order import ORDER, operation_orders
from conflict.columnar.row_states import MOMENT, VALUE, ComparedKey, trace_states
from conflict.grid.schemas import PLACE
from ndb_formats.schema.tables import Table

__all__ = ["STATES", "has_unique_keys", "states_schema", "unique_states"]

# A row after a transaction that touched it: an epoch apply, or an own transaction of the cluster.
STATES = pa.schema(
    [
        ("cluster", pa.int8()),
        *MOMENT,
        ("key", pa.int32()),  # number of the row in its bucket
        # Of epoch applies alone: the order of the operation that touched the row first, and the last one that did.
        ("order", ORDER),
        ("foreign_epoch", pa.uint64()),
        ("table", pa.int16()),
        ("operation", pa.int8()),
        ("file", pa.int16()),
        ("position", pa.uint64()),
        ("payload_position", pa.uint32()),
        ("row", pa.int32()),
    ]
)


def states_schema(tables: Sequence[Table]) -> pa.Schema:
    """Return the schema of states: `STATES`, and a column per unique key, NULL where a row has no value of it."""
    count = max((len(table.unique_keys) for table in tables), default=0)
    return pa.schema([*STATES, *(pa.field(f"value{number}", VALUE) for number in range(count))])


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
    states = trace_states(bucket, clusters, applies, conflicts, has_unique_keys(clusters), older)
    watched, tables = states.result.final.watched, bucket.numbers.tables
    schema = states_schema(tables)
    columns = {
        "cluster": pa.array(watched.cluster[states.last]),
        **{name: pa.array(column) for name, column in states.moments.items()},
        "key": pa.array(watched.key[states.last]),
        **_operations(states.result, watched.decision[states.first], watched.decision[states.last]),
    }
    keys = [_unique_keys(number, table) for number, table in enumerate(tables)]
    values = states.values(keys, len(schema) - len(STATES))
    return pa.table([*(columns[name] for name in STATES.names), *values], schema=schema)


def _unique_keys(number: int, table: Table) -> list[ComparedKey]:
    keys = [tuple(table.ordinal(name) for name in names) for names in table.unique_keys]
    return [ComparedKey(number, key, tuple(table.columns[ordinal] for ordinal in key)) for key in keys]


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
        "payload_position": np.zeros(len(applied), np.uint32),
        "row": np.zeros(len(applied), np.int32),
    }
    source, applier = decisions.source[decision], result.applies.applier[decisions.apply[decision]]
    for side in (0, 1):
        logged = (source >= 0) & (applier == 1 - side)
        for name in PLACE:
            plain[name][logged] = bucket.changes[side].array(name)[source[logged]]
    found = pa.array(numbers, mask=numbers < 0)
    return {"order": orders.take(found), **{name: pa.array(column).take(found) for name, column in plain.items()}}
