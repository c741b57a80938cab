"""
Unique keys besides the primary key: which epoch apply gives two rows, in any buckets, the same value.

A bucket gives every state of its rows that have such keys; the driver finds the duplicates. Computes error 1022 of
docs/functions.md, "Stops"; `conflict.engine.reference.keys` has the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.engine.columnar.applier_stops import Phase, StoppingOperation
from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.keys.key_states import MOMENT, VALUE, ComparedKey, trace_states
from conflict.engine.columnar.older_rows import OlderRows
from conflict.engine.columnar.order import ORDER, operation_orders, sorted_by_order
from conflict.engine.columnar.setups import ClusterSetup
from conflict.engine.kernels.arrays import Bool, Conflicts, EpochApplies, Int64
from conflict.engine.kernels.key_values import NO_VALUE, first_duplicate
from conflict.history.grid.schemas import PLACE
from conflict.rules.stops import ServerStop
from ndb_formats.schema.tables import Table

# A row after a transaction that touched it: an epoch apply, or an own transaction of the cluster.
_STATES = pa.schema(
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
    """Return the schema of states: `_STATES`, and a column per unique key, NULL where a row has no value of it."""
    count = max((len(table.unique_keys) for table in tables), default=0)
    return pa.schema([*_STATES, *(pa.field(f"value{number}", VALUE) for number in range(count))])


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
    values = states.values(keys, len(schema) - len(_STATES))
    return pa.table([*(columns[name] for name in _STATES.names), *values], schema=schema)


def _unique_keys(number: int, table: Table) -> list[ComparedKey]:
    keys = [tuple(table.ordinal(name) for name in names) for names in table.unique_keys]
    return [ComparedKey(number, key, tuple(table.columns[ordinal] for ordinal in key)) for key in keys]


def _operations(result: FoldedBucket, first: Int64, last: Int64) -> dict[str, pa.Array]:
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


def find_duplicates(parts: Sequence[pa.Table]) -> dict[int, StoppingOperation]:
    """
    Return, per cluster number, the operation by which its applier first makes two rows have one value.

    Args:
        parts: The states of every bucket (see `conflict.engine.columnar.keys.unique_keys.unique_states`).
    """
    states = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
    values, count = _values(states)
    rows = _rows(parts)
    columns = [states.column(name).to_numpy() for name in MOMENT.names]
    cluster, own = states.column("cluster").to_numpy(), pc.is_null(states.column("order")).to_numpy()
    found = {}
    for number in (0, 1):
        mine = np.flatnonzero(cluster == number)
        order = mine[np.lexsort([column[mine] for column in reversed(columns)])]
        other = np.any([np.diff(column[order].astype(np.uint64)) != 0 for column in columns], axis=0)
        starts = np.concatenate([[0], np.flatnonzero(other) + 1, [len(order)]])[: len(order) + 1]
        stop, row_of = first_duplicate(
            starts, own[order[starts[:-1]]], rows[order], values[order], int(rows.max(initial=-1)) + 1, count
        )
        if stop >= 0:
            group = order[starts[stop] : starts[stop + 1]]
            orders = states.column("order").combine_chunks().take(pa.array(group))
            group = group[sorted_by_order(np.zeros((len(group), 1), np.int64), orders)]
            state = group[_first(rows[group], values[group], row_of)]
            found[number] = _stopping_operation(states.slice(state, 1).to_pylist()[0])
    return found


def _rows(parts: Sequence[pa.Table]) -> Int64:
    """Number the rows over all buckets. Shape (states,)."""
    keys = [part.column("key").to_numpy() for part in parts]
    first = np.cumsum([0, *(int(key.max(initial=-1)) + 1 for key in keys)])
    return np.concatenate([key + start for key, start in zip(keys, first[:-1], strict=True)]).astype(np.int64)


def _values(states: pa.Table) -> tuple[Int64, int]:
    """Number the values of all unique keys; return those of each state, shape (states, unique keys), and how many."""
    columns, count = [np.zeros((0, len(states)), np.int64)], 0
    for name in states.schema.names[len(_STATES) :]:
        encoded = states.column(name).combine_chunks()
        numbers = pc.fill_null(encoded.indices, NO_VALUE).to_numpy().astype(np.int64)
        columns.append(np.where(numbers == NO_VALUE, NO_VALUE, numbers + count)[None])
        count += len(encoded.dictionary)
    return np.ascontiguousarray(np.concatenate(columns).T), count


def _first(rows: Int64, values: Int64, row_of: Int64) -> int:
    """
    Return the first state of a transaction with a value that another row has too.

    Args:
        rows: Row of each state, in the order of the transaction. Shape (states,).
        values: Its values. Shape (states, unique keys).
        row_of: The row of each value before the transaction. Shape (values,).
    """
    touched, claimed = set(rows.tolist()), set[int]()
    for number, own in enumerate(values.tolist()):
        for value in own:
            if value >= 0 and (value in claimed or (row_of[value] >= 0 and int(row_of[value]) not in touched)):
                return number
            claimed.add(value)
    message = "no two rows have one value after the transaction"
    raise AssertionError(message)


def _stopping_operation(state: dict[str, Any]) -> StoppingOperation:
    """Return the last operation on the row of a state."""
    facts = {name: state[name] for name in ("table", "operation", "foreign_epoch", *PLACE)}
    return StoppingOperation(
        state["number"], Phase.COMMIT, tuple(state["order"]), kind=ServerStop.DUPLICATE_VALUE, **facts
    )
