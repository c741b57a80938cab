"""
Foreign keys, over all buckets: the rows on which one refuses or changes something, and all that depend on them.

A bucket gives every state of its rows that refer to others or that others may refer to; the driver looks for rows whose
parent is missing. The check errs on the side of too many. Computes errors 1451 and 1452 of docs/functions.md, "Stops",
as far as there are any; `conflict.engine.reference.referential_actions` has the rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.engine.columnar.bucket import Bucket, CarefulRows
from conflict.engine.columnar.keys.key_states import MOMENT, VALUE, ComparedKey, trace_states
from conflict.engine.columnar.setups import ClusterSetup
from conflict.engine.kernels.arrays import Bool, Conflicts, EpochApplies, Int64
from conflict.engine.kernels.key_values import NO_VALUE, broken_rows, mark_linked
from conflict.history.run import Run
from conflict.rules.foreign_keys import linked_tables, links_of
from ndb_formats.schema.tables import Table

# A row after a transaction that touched it.
_STATES = pa.schema(
    [
        ("cluster", pa.int8()),
        *MOMENT,
        ("own", pa.bool_()),  # whether the cluster itself made the transaction
        ("key", pa.int32()),  # number of the row in its bucket
        ("table", pa.int16()),
    ]
)


@attrs.frozen(eq=False)
class LinkedKeys:
    """
    Per table, the columns that refer to other rows or to which other rows refer.

    Attributes:
        keys: Per table, its keys; both ends of a foreign key have one space of values.
        refers: Whether each of them is the end that refers. Shape (tables, most keys of a table).
    """

    keys: tuple[tuple[ComparedKey, ...], ...]
    refers: Bool

    @property
    def tables(self) -> Bool:
        """Which tables take part in a foreign key. Shape (tables,)."""
        return np.array([bool(keys) for keys in self.keys], np.bool_)


def linked_keys(tables: Sequence[Table]) -> LinkedKeys:
    """Return the ends of the foreign keys between some tables."""
    names = [table.full_name for table in tables]
    ends: list[list[tuple[ComparedKey, bool]]] = [[] for _ in tables]
    for space, link in enumerate(links_of(dict(zip(names, tables, strict=True)))):
        ends[names.index(link.child)].append((ComparedKey(space, link.columns, link.compared), True))
        ends[names.index(link.parent)].append((ComparedKey(space, link.references, link.compared), False))
    refers = np.zeros((len(tables), max(map(len, ends), default=0)), np.bool_)
    for number, own in enumerate(ends):
        refers[number, : len(own)] = [each for _, each in own]
    return LinkedKeys(tuple(tuple(key for key, _ in own) for own in ends), refers)


def has_changing_links(run: Run) -> bool:
    """Whether tables take part in foreign keys at some time of logs in which definitions change."""
    moments = (moment for known in run.definitions.values() for moment in known.moments)
    return any(linked_tables(moment.setups) for moment in moments)


def linked_states(
    bucket: Bucket, clusters: Sequence[ClusterSetup], applies: EpochApplies, conflicts: Conflicts
) -> pa.Table:
    """
    Return every state of the rows of a bucket that take part in foreign keys.

    Args:
        bucket: The bucket.
        clusters: Both clusters.
        applies: All epoch applies in order.
        conflicts: The transactions in conflict.

    Returns:
        The columns `_STATES`, and a column per end of a foreign key, NULL where a row has no value of it.
    """
    linked = linked_keys(bucket.numbers.tables)
    states = trace_states(bucket, clusters, applies, conflicts, linked.tables)
    watched = states.result.final.watched
    key = watched.key[states.last]
    columns = {
        "cluster": watched.cluster[states.last],
        **states.moments,
        "own": watched.decision[states.last] < 0,
        "key": key,
        "table": bucket.key_table[key],
    }
    count = linked.refers.shape[1]
    schema = pa.schema([*_STATES, *(pa.field(f"value{number}", VALUE) for number in range(count))])
    plain = [pa.array(columns[name], _STATES.field(name).type) for name in _STATES.names]
    return pa.table([*plain, *states.values(linked.keys, count)], schema=schema)


def rows_of_broken_links(parts: Sequence[pa.Table], linked: LinkedKeys, unique: Bool) -> CarefulRows | None:
    """
    Return the rows that an epoch apply left without parent or removed while others referred to them, and linked ones.

    A foreign key carries what happens to one row to those that refer to it, and no further: rows that never had a value
    in common, by way of other rows either, have nothing to do with each other. Of a table with unique keys besides the
    primary key, all rows are returned, because an action may give a row any values.

    Args:
        parts: The states of every bucket (see `conflict.engine.columnar.keys.foreign_keys.linked_states`).
        linked: The ends of all foreign keys.
        unique: Which tables have such unique keys. Shape (tables,).

    Returns:
        None if no foreign key refuses or changes anything.
    """
    states = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
    values, value_count = _values(states)
    rows, first = _rows(parts)
    marked, table = np.zeros(int(first[-1]), np.bool_), states.column("table").to_numpy()
    for side in (0, 1):
        mine = np.flatnonzero(states.column("cluster").to_numpy() == side)
        marked |= _broken_rows(states, mine, rows, values, linked.refers[table], len(marked), value_count)
    if not marked.any():
        return None
    whole = np.zeros(len(unique), np.bool_)
    while True:
        linked_to = mark_linked(rows, values, value_count, marked)
        found = np.zeros(len(unique), np.bool_)
        found[table[marked[rows]]] = True
        if not (found & unique & ~whole).any():
            break
        whole |= found & unique
        marked[rows[whole[table]]] = True
    numbers = np.flatnonzero(marked)
    bucket = np.searchsorted(first, numbers, "right") - 1
    buckets = np.unique(bucket).tolist()
    keys = {each: numbers[bucket == each] - int(first[each]) for each in buckets}
    if whole.any():
        return CarefulRows(whole, keys)
    _, one_of, which = np.unique(linked_to[numbers], return_index=True, return_inverse=True)
    home = bucket[one_of][which.ravel()]
    return CarefulRows(whole, keys, {each: home[bucket == each] for each in buckets})


def _broken_rows(
    states: pa.Table, mine: Int64, rows: Int64, values: Int64, refers: Bool, row_count: int, value_count: int
) -> Bool:
    """Return which rows the applier of one cluster, whose states are `mine`, left with a broken link."""
    columns = [states.column(name).to_numpy() for name in MOMENT.names]
    order = mine[np.lexsort([column[mine] for column in reversed(columns)])]
    other = np.any([np.diff(column[order].astype(np.uint64)) != 0 for column in columns], axis=0)
    starts = np.concatenate([[0], np.flatnonzero(other) + 1, [len(order)]])[: len(order) + 1]
    own = states.column("own").to_numpy()[order[starts[:-1]]]
    return np.asarray(broken_rows(starts, own, rows[order], values[order], refers[order], row_count, value_count))


def _rows(parts: Sequence[pa.Table]) -> tuple[Int64, Int64]:
    """Number the rows over all buckets. Shape (states,); and the first one of each bucket, shape (buckets + 1,)."""
    keys = [part.column("key").to_numpy() for part in parts]
    first = np.cumsum([0, *(int(key.max(initial=-1)) + 1 for key in keys)])
    rows = np.concatenate([key + start for key, start in zip(keys, first[:-1], strict=True)])
    return rows.astype(np.int64), first.astype(np.int64)


def _values(states: pa.Table) -> tuple[Int64, int]:
    """Number the values, equal ones in any column alike; return those of each state, and how many there are."""
    encoded = [states.column(name).combine_chunks() for name in states.schema.names[len(_STATES) :]]
    known = pa.concat_arrays([each.dictionary for each in encoded]).dictionary_encode()
    numbers, start, found = known.indices.to_numpy(), 0, []
    for each in encoded:
        here = np.append(numbers[start : start + len(each.dictionary)], NO_VALUE)
        found.append(here[pc.fill_null(each.indices, len(each.dictionary)).to_numpy()])
        start += len(each.dictionary)
    return np.ascontiguousarray(np.stack(found, axis=1).astype(np.int64)), len(known.dictionary)
