"""
Whether a foreign key refuses or changes anything: then the reference engine resolves the run.

The check errs on that side. Computes errors 1451 and 1452 of docs/functions.md, "Stops", as far as there are any;
`conflict.reference.referential_actions` has the rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.columnar.foreign_keys.states import STATES, LinkedKeys
from conflict.columnar.kernels.arrays import Int64
from conflict.columnar.kernels.foreign_values import NO_TRANSACTION, NO_VALUE, first_broken
from conflict.columnar.row_states import MOMENT

__all__ = ["breaks_a_link"]


def breaks_a_link(parts: Sequence[pa.Table], linked: LinkedKeys) -> bool:
    """
    Whether an epoch apply leaves a row that it touched without its parent, or a row without the parent that it removed.

    Args:
        parts: The states of every bucket (see `conflict.columnar.foreign_keys.states.linked_states`).
        linked: The ends of all foreign keys.
    """
    states = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
    values, count = _values(states)
    rows = _rows(parts)
    refers = linked.refers[states.column("table").to_numpy()]
    columns = [states.column(name).to_numpy() for name in MOMENT.names]
    cluster, own = states.column("cluster").to_numpy(), states.column("own").to_numpy()
    for number in (0, 1):
        mine = np.flatnonzero(cluster == number)
        order = mine[np.lexsort([column[mine] for column in reversed(columns)])]
        other = np.any([np.diff(column[order].astype(np.uint64)) != 0 for column in columns], axis=0)
        starts = np.concatenate([[0], np.flatnonzero(other) + 1, [len(order)]])[: len(order) + 1]
        row_count = int(rows.max(initial=-1)) + 1
        found = first_broken(
            starts, own[order[starts[:-1]]], rows[order], values[order], refers[order], row_count, count
        )
        if found != NO_TRANSACTION:
            return True
    return False


def _rows(parts: Sequence[pa.Table]) -> Int64:
    """Number the rows over all buckets. Shape (states,)."""
    keys = [part.column("key").to_numpy() for part in parts]
    first = np.cumsum([0, *(int(key.max(initial=-1)) + 1 for key in keys)])
    return np.concatenate([key + start for key, start in zip(keys, first[:-1], strict=True)]).astype(np.int64)


def _values(states: pa.Table) -> tuple[Int64, int]:
    """Number the values, equal ones in any column alike; return those of each state, and how many there are."""
    encoded = [states.column(name).combine_chunks() for name in states.schema.names[len(STATES) :]]
    known = pa.concat_arrays([each.dictionary for each in encoded]).dictionary_encode()
    numbers, start, found = known.indices.to_numpy(), 0, []
    for each in encoded:
        here = np.append(numbers[start : start + len(each.dictionary)], NO_VALUE)
        found.append(here[pc.fill_null(each.indices, len(each.dictionary)).to_numpy()])
        start += len(each.dictionary)
    return np.ascontiguousarray(np.stack(found, axis=1).astype(np.int64)), len(known.dictionary)
