"""
Which take makes two rows hold one unique value, and so stops its applier.

See `conflict.reference.unique_keys` for the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.columnar.applier_stops import Phase, StoppingOperation
from conflict.columnar.kernels.arrays import Int64
from conflict.columnar.kernels.unique_holders import first_duplicate
from conflict.columnar.operation_order import order_of
from conflict.columnar.unique_keys.states import MOMENT, STATES

__all__ = ["find_duplicates"]


def find_duplicates(parts: Sequence[pa.Table]) -> dict[int, StoppingOperation]:
    """
    Return, per cluster, the operation by which its applier first makes two rows hold one value.

    Args:
        parts: What `unique_states` returned of each bucket.
    """
    states = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
    entries, count = _entries(states)
    rows = _rows(parts)
    columns = [states.column(name).to_numpy() for name in MOMENT]
    cluster, own = states.column("cluster").to_numpy(), pc.is_null(states.column("place")).to_numpy()
    found = {}
    for number in (0, 1):
        mine = np.flatnonzero(cluster == number)
        order = mine[np.lexsort([column[mine] for column in reversed(columns)])]
        other = np.any([np.diff(column[order].astype(np.uint64)) != 0 for column in columns], axis=0)
        starts = np.concatenate([[0], np.flatnonzero(other) + 1, [len(order)]])[: len(order) + 1]
        stop, holders = first_duplicate(
            starts, own[order[starts[:-1]]], rows[order], entries[order], int(rows.max(initial=-1)) + 1, count
        )
        if stop >= 0:
            group = order[starts[stop] : starts[stop + 1]]
            places = states.column("place").combine_chunks().take(pa.array(group))
            group = group[order_of(np.zeros((len(group), 1), np.int64), places)]
            state = group[_first(rows[group], entries[group], holders)]
            found[number] = _stopping_operation(states.slice(state, 1).to_pylist()[0])
    return found


def _rows(parts: Sequence[pa.Table]) -> Int64:
    """Number the rows over all buckets. Shape (states,)."""
    keys = [part.column("key").to_numpy() for part in parts]
    first = np.cumsum([0, *(int(key.max(initial=-1)) + 1 for key in keys)])
    return np.concatenate([key + start for key, start in zip(keys, first[:-1], strict=True)]).astype(np.int64)


def _entries(states: pa.Table) -> tuple[Int64, int]:
    """Number the values of all unique keys; returns those of each state, -1 for none, and how many there are."""
    columns, count = [np.zeros((0, len(states)), np.int64)], 0
    for name in states.schema.names[len(STATES) :]:
        encoded = states.column(name).combine_chunks()
        numbers = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
        columns.append(np.where(numbers < 0, -1, numbers + count)[None])
        count += len(encoded.dictionary)
    return np.ascontiguousarray(np.concatenate(columns).T), count


def _first(rows: Int64, entries: Int64, holders: Int64) -> int:
    """Return the first state of a transaction, in its order, with a value that another row holds too."""
    moved, wanted = set(rows.tolist()), set[int]()
    for place, values in enumerate(entries.tolist()):
        for entry in values:
            if entry >= 0 and (entry in wanted or (holders[entry] >= 0 and int(holders[entry]) not in moved)):
                return place
            wanted.add(entry)
    message = "no two rows of the transaction hold one value"
    raise AssertionError(message)


def _stopping_operation(state: dict[str, Any]) -> StoppingOperation:
    """Return the operation that a state tells of."""
    # Nothing stands behind the own change at the end of a place.
    place = tuple(state["place"][:-1])
    facts = {name: state[name] for name in ("table", "operation", "foreign_epoch", "file", "position", "row")}
    return StoppingOperation(state["number"], Phase.COMMIT, place, **facts)
