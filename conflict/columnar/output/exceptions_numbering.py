"""
Numbers the rows of exceptions tables, which buckets leave unnumbered.

``NDB$count`` runs from 1 per applier and table, over all buckets, in the order in which operations were taken.
A pass over an epoch that was rolled back has used its numbers all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from conflict.columnar.cluster_setup import ClusterSetup
from conflict.columnar.kernels.arrays import Conflicts, EpochApplies, Int64
from conflict.columnar.operation_order import PLACES, order_of
from conflict.grid.folder import Folder
from conflict.results.arrow_rows import row_schema
from conflict.results.layout import exceptions_path, staged_exceptions_path
from conflict.rules.exceptions_table import ExceptionsTable
from ndb_formats.schema.tables import Table

__all__ = ["EPOCH_APPLY", "OWN_CAUSE", "PLACE", "TrackedRows", "number_exceptions"]

_COUNT_COLUMN = 3
# What stands beside rows that are not numbered yet: their take, whether they were rejected for a cause of their own
# rather than with their transaction, and the place of their operation.
EPOCH_APPLY, OWN_CAUSE = pa.field("apply", pa.int64()), pa.field("own_cause", pa.bool_())
PLACE = pa.field("place", PLACES)
# Per site and exceptions table, the takes over which pass TRACK made rows in one bucket, and how many.
TrackedRows = Mapping[tuple[str, str], tuple[Int64, Int64]]


def number_exceptions(
    out: Folder,
    clusters: Sequence[ClusterSetup],
    applies: EpochApplies,
    conflicts: Conflicts,
    buckets: int,
    tracked: Sequence[TrackedRows],
) -> None:
    """
    Join the buckets' parts of each exceptions table, number them, and write the tables.

    Args:
        out: Folder of the result.
        clusters: Both sites.
        applies: All takes in order.
        conflicts: The transactions in conflict.
        buckets: How many buckets there are.
        tracked: Of every bucket, the rows that were made and rolled back.
    """
    numbered: list[dict[str, pa.Table]] = []
    tables: dict[str, ExceptionsTable] = {}
    passes = _passes_rolled_back(applies, conflicts)
    for cluster in clusters:
        own = [setup.exceptions for setup in cluster.setups if setup.exceptions is not None]
        tables.update({exceptions.table.full_name: exceptions for exceptions in own})
        numbered.append({})
        for each in own:
            name = each.table.full_name
            lost = np.zeros(len(applies), np.int64)
            for part in tracked:
                if (cluster.name, name) in part:
                    applied, rows = part[cluster.name, name]
                    lost[applied] += rows * passes[applied]
            numbered[-1][name] = _numbered(out, cluster, each.table, buckets, np.cumsum(lost))
    for number, cluster in enumerate(clusters):
        for name, exceptions in tables.items():
            schema = row_schema(exceptions.table)
            parts = [numbered[number][name]] if name in numbered[number] else []
            if exceptions.replicated and name in numbered[1 - number]:
                parts.append(_received(numbered[1 - number][name], applies, number))
            if parts:
                joined = pa.concat_tables(rows.select(schema.names) for rows in parts).cast(schema)
                out.write_table(exceptions_path(cluster.name, name), joined)
    out.delete("staged_exceptions")


def _passes_rolled_back(applies: EpochApplies, conflicts: Conflicts) -> Int64:
    """Return how many passes over each take were rolled back because of transactions in conflict. Shape (takes,)."""
    in_conflict = np.diff(conflicts.offsets) > 0
    passes = np.zeros(len(applies), np.int64)
    for applier in (0, 1):
        mine = np.flatnonzero(applies.applier == applier)
        # After an epoch with conflicts the applier starts the next one in TRACK, unless it is started anew.
        tracking = np.append(False, in_conflict[mine[:-1]])[: len(mine)] & ~applies.restarted[mine]
        passes[mine] = np.where(in_conflict[mine], np.where(tracking, 1, 2), 0)
    return passes


def _numbered(out: Folder, cluster: ClusterSetup, definition: Table, buckets: int, lost: Int64) -> pa.Table:
    """
    Return one applier's rows of a table in order, numbered, the take beside them.

    Args:
        out: Folder of the result.
        cluster: The applier's site.
        definition: The exceptions table.
        buckets: How many buckets there are.
        lost: Numbers used up by passes that were rolled back, up to each take. Shape (takes,).
    """
    name = definition.full_name
    schema = pa.schema([*row_schema(definition), EPOCH_APPLY, OWN_CAUSE, PLACE])
    rows = out.read_tables((staged_exceptions_path(cluster.name, name, bucket) for bucket in range(buckets)), schema)
    keys = np.stack([rows.column(field.name).to_numpy().astype(np.int64) for field in (EPOCH_APPLY, OWN_CAUSE)], axis=1)
    # Rows of rejected transactions come first in a take.
    rows = rows.drop_columns(PLACE.name).take(pa.array(order_of(keys, rows.column(PLACE.name).combine_chunks())))
    apply = rows.column(EPOCH_APPLY.name).to_numpy()
    field = schema.field(_COUNT_COLUMN)
    return rows.set_column(_COUNT_COLUMN, field, pa.array(np.arange(1, len(rows) + 1) + lost[apply]).cast(field.type))


def _received(rows: pa.Table, applies: EpochApplies, applier: int) -> pa.Table:
    """Return those rows of the other side's table whose epochs this applier took, as often as it took them."""
    applied, times = np.unique(applies.foreign_epoch[applies.applier == applier], return_counts=True)
    made_in = applies.epoch[rows.column(EPOCH_APPLY.name).to_numpy()]
    known = np.flatnonzero(np.isin(made_in, applied))
    return rows.take(pa.array(np.repeat(known, times[np.searchsorted(applied, made_in[known])])))
