"""
Which epoch apply makes two rows have one value of a unique key, and so stops its applier.

Computes error 1022 of docs/functions.md, "Stops"; `conflict.reference.unique_keys` has the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.columnar.applier_stops import Phase, StoppingOperation
from conflict.columnar.kernels.arrays import Int64
from conflict.columnar.kernels.unique_values import NO_VALUE, first_duplicate
from conflict.columnar.operation_order import sorted_by_order
from conflict.columnar.row_states import MOMENT
from conflict.columnar.unique_keys.states import STATES
from conflict.grid.schemas import PLACE
from conflict.rules.stops import ServerStop

__all__ = ["find_duplicates"]


def find_duplicates(parts: Sequence[pa.Table]) -> dict[int, StoppingOperation]:
    """
    Return, per cluster number, the operation by which its applier first makes two rows have one value.

    Args:
        parts: The states of every bucket (see `conflict.columnar.unique_keys.states.unique_states`).
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
    for name in states.schema.names[len(STATES) :]:
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
