"""
Every state of the rows of a bucket that refer to others or that others may refer to, as columns.

The driver looks for rows whose parent is missing (see `conflict.columnar.foreign_keys.broken`).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa

from conflict.columnar.bucket import Bucket
from conflict.columnar.cluster_setup import ClusterSetup
from conflict.columnar.kernels.arrays import Bool, Conflicts, EpochApplies
from conflict.columnar.row_states import MOMENT, VALUE, ComparedKey, trace_states
from conflict.history.run import Run
from conflict.rules.foreign_keys import linked_tables, links_of
from ndb_formats.schema.tables import Table

__all__ = ["STATES", "LinkedKeys", "has_changing_links", "linked_keys", "linked_states"]

# A row after a transaction that touched it.
STATES = pa.schema(
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
        The columns `STATES`, and a column per end of a foreign key, NULL where a row has no value of it.
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
    schema = pa.schema([*STATES, *(pa.field(f"value{number}", VALUE) for number in range(count))])
    plain = [pa.array(columns[name], STATES.field(name).type) for name in STATES.names]
    return pa.table([*plain, *states.values(linked.keys, count)], schema=schema)
