"""
Numbers the rows of exceptions tables, which buckets write without numbers.

``NDB$count`` runs from 1 per SQL node that applies and table, over all buckets, in the order in which it met the
operations.
A pass over an epoch that was rolled back used up numbers too. Computes docs/functions.md, "Exceptions tables".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import pyarrow as pa

from conflict.config.database_names import DatabaseNames
from conflict.engine.columnar.boundary import Counted
from conflict.engine.columnar.order import sorted_by_order
from conflict.engine.columnar.setups import ClusterSetup, steps_before
from conflict.engine.kernels.arrays import Bool, Conflicts, EpochApplies, Int64
from conflict.engine.ledger.arrow_rows import row_schema
from conflict.engine.ledger.layout import (
    EPOCH_APPLY,
    OPERATION_ORDER,
    OUTCOME_PLACE,
    OWN_CAUSE,
    STAGED_EXCEPTIONS,
    exceptions_path,
    staged_exceptions_path,
)
from conflict.history.grid.folder import Folder
from conflict.history.restarts import restarts_before
from conflict.rules.exceptions_table import ExceptionsTable
from ndb_formats.schema.tables import Table

_SERVER_COLUMN, _SOURCE_SERVER_COLUMN, _COUNT_COLUMN = 0, 1, 3
# By cluster and exceptions table, the epoch applies in which pass TRACK made rows in one bucket, and how many.
TrackedRows = Mapping[tuple[str, str], tuple[Int64, Int64]]


@attrs.frozen(eq=False)
class OlderEpochs:
    """
    The epoch applies of epochs that are older than the log. Shape (applies,).

    Attributes:
        refreshed: Those with a refreshed row in the binlog: a transaction was in conflict.
        unknown: Those of appliers whose binlogs show nothing of their work.
    """

    refreshed: Bool
    unknown: Bool

    @staticmethod
    def none(applies: int) -> OlderEpochs:
        """Return none, where there are so many epoch applies."""
        return OlderEpochs(np.zeros(applies, np.bool_), np.zeros(applies, np.bool_))


@attrs.frozen(eq=False)
class NumbersUsed:
    """
    The numbers of one exceptions table that one cluster used.

    Attributes:
        numbers: How many each epoch apply used. Shape (applies,).
        counts_of: Of which series they are, see `_numbered`. Shape (3, applies).
        before: The last ones that were used before, by series.
    """

    numbers: Int64
    counts_of: Int64
    before: Mapping[tuple[int, int, int], int]

    def last(self, count: int) -> dict[tuple[int, int, int], int]:
        """Return the last number that was used, by series, after so many epoch applies."""
        found, (kinds, which) = dict(self.before), np.unique(self.counts_of[:, :count], axis=1, return_inverse=True)
        for number in np.flatnonzero(kinds[0] >= 0).tolist():
            series = _series(kinds[:, number])
            found[series] = found.get(series, 0) + int(self.numbers[:count][which.ravel() == number].sum())
        return found


@attrs.frozen
class Numbered:
    """
    Exceptions tables whose rows were numbered.

    Attributes:
        further: Per cluster, for each epoch apply with conflicts that began in pass TRACK, by its number among those of
            the applier: the rows per exceptions table that one further pass would have made.
        used: The numbers used, by cluster and exceptions table.
    """

    further: Mapping[str, Mapping[int, dict[str, int]]] = attrs.field(factory=dict)
    used: Mapping[tuple[str, str], NumbersUsed] = attrs.field(factory=dict)


def number_exceptions(
    out: Folder,
    clusters: Sequence[ClusterSetup],
    applies: EpochApplies,
    conflicts: Conflicts,
    tracked: Mapping[int, TrackedRows],
    older: OlderEpochs,
    databases: DatabaseNames,
    before: Counted | None = None,
) -> Numbered:
    """
    Join the buckets' parts of each exceptions table, number them, and write the tables.

    Args:
        out: Folder of the result.
        clusters: Both clusters.
        applies: All epoch applies in order.
        conflicts: The transactions in conflict.
        tracked: By the number of each part, the rows that one pass TRACK made.
        older: The epoch applies of epochs that are older than the log.
        databases: The names that clusters use for databases which appliers rename.
        before: The last numbers that were used before; None if none were.
    """
    used: dict[tuple[str, str], NumbersUsed] = {}
    numbered: list[dict[str, pa.Table]] = []
    tables: dict[str, ExceptionsTable] = {}
    passes = _passes_rolled_back(applies, conflicts, older)
    further: dict[str, dict[int, dict[str, int]]] = {}
    for cluster in clusters:
        own = [setup.exceptions for setup in cluster.setups if setup.exceptions is not None]
        tables.update({exceptions.table.full_name: exceptions for exceptions in own})
        numbered.append({})
        for each in own:
            name = each.table.full_name
            each_pass = np.zeros(len(applies), np.int64)
            for part in tracked.values():
                if (cluster.name, name) in part:
                    applied, rows = part[cluster.name, name]
                    each_pass[applied] += rows
            used_up = each_pass * passes
            for apply in np.flatnonzero((passes == 1) & (each_pass > 0)).tolist():
                own_number = int(applies.number[apply])
                further.setdefault(cluster.name, {}).setdefault(own_number, {})[name] = int(each_pass[apply])
            paths = [staged_exceptions_path(cluster.name, name, bucket) for bucket in sorted(tracked)]
            eras = steps_before(cluster.renewed.get(name, ()), applies)
            eras[applies.applier != len(numbered) - 1] = -1
            servers = np.where(applies.server > 0, applies.server, cluster.server_id).astype(np.uint64)
            restarts = restarts_before(servers, applies.epoch, cluster.restarts)
            series = np.stack([eras, servers.astype(np.int64), restarts])
            rows, used[cluster.name, name] = _numbered(
                out, paths, each.table, used_up, series, (before or {}).get((cluster.name, name), {})
            )
            numbered[-1][name] = _with_servers(rows, applies)
    for number, cluster in enumerate(clusters):
        for name, exceptions in tables.items():
            schema = row_schema(exceptions.table).append(OUTCOME_PLACE)
            parts = [numbered[number][name]] if name in numbered[number] else []
            if exceptions.replicated and name in numbered[1 - number] and name not in cluster.filtered:
                parts.append(_received(numbered[1 - number][name], applies, number))
            if parts:
                joined = pa.concat_tables(rows.select(schema.names) for rows in parts).cast(schema)
                out.write_table(exceptions_path(cluster.name, databases.own_name(cluster.name, name)), joined)
    out.delete(STAGED_EXCEPTIONS)
    return Numbered(further, used)


def _passes_rolled_back(applies: EpochApplies, conflicts: Conflicts, older: OlderEpochs) -> Int64:
    """Return how many passes of each epoch apply were rolled back for transactions in conflict. Shape (applies,)."""
    passes = np.zeros(len(applies), np.int64)
    if not len(conflicts.groups):
        return passes
    in_conflict = np.diff(conflicts.offsets) > 0
    for applier in (0, 1):
        mine = np.flatnonzero((applies.applier == applier) & ~older.unknown)
        # After an epoch with conflicts the applier starts the next one in pass TRACK, unless it was restarted.
        begun = (in_conflict | older.refreshed)[mine[:-1]]
        tracking = np.append(False, begun)[: len(mine)] & ~applies.restarted[mine]
        passes[mine] = np.where(in_conflict[mine], np.where(tracking, 1, 2), 0)
    return passes


def _numbered(
    out: Folder,
    paths: Sequence[str],
    definition: Table,
    used_up: Int64,
    counts_of: Int64,
    before: Mapping[tuple[int, int, int], int],
) -> tuple[pa.Table, NumbersUsed]:
    """
    Return one applier's rows of a table in order, with their numbers, and their epoch apply beside them; what it used.

    Args:
        out: Folder of the result.
        paths: Paths of the buckets' rows.
        definition: The exceptions table.
        used_up: How many numbers the rolled back passes of each epoch apply used up. Shape (applies,).
        counts_of: How often counting had started again before each epoch apply of the applier, -1 for other appliers,
            the SQL node that counts, and how often that had been restarted. Shape (3, applies).
        before: The last numbers that were used before, by these three.
    """
    schema = pa.schema([*row_schema(definition), OUTCOME_PLACE, EPOCH_APPLY, OWN_CAUSE, OPERATION_ORDER])
    rows = out.read_tables(paths, schema)
    # The rows of rejected transactions come first in an epoch apply.
    keys = np.stack([rows.column(field.name).to_numpy().astype(np.int64) for field in (EPOCH_APPLY, OWN_CAUSE)], axis=1)
    order = sorted_by_order(keys, rows.column(OPERATION_ORDER.name).combine_chunks())
    rows = rows.drop_columns(OPERATION_ORDER.name).take(pa.array(order))
    apply, field = rows.column(EPOCH_APPLY.name).to_numpy(), schema.field(_COUNT_COLUMN)
    counts, (counted, which) = np.zeros(len(rows), np.int64), np.unique(counts_of, axis=1, return_inverse=True)
    for number in np.flatnonzero(counted[0] >= 0).tolist():
        together = which.ravel() == number
        mine = np.flatnonzero(together[apply])
        first = 1 + before.get(_series(counted[:, number]), 0)
        counts[mine] = np.arange(first, first + len(mine)) + np.cumsum(used_up * together)[apply[mine]]
    numbers = used_up + np.bincount(apply, minlength=len(used_up)).astype(np.int64)
    used = NumbersUsed(numbers, counts_of, before)
    return rows.set_column(_COUNT_COLUMN, field, pa.array(counts).cast(field.type)), used


def _series(counts_of: Int64) -> tuple[int, int, int]:
    era, server, restarts = (int(each) for each in counts_of)
    return era, server, restarts


def _with_servers(rows: pa.Table, applies: EpochApplies) -> pa.Table:
    """Return rows with the SQL nodes that applied their epochs, and those from whose binlogs, where they are known."""
    apply = rows.column(EPOCH_APPLY.name).to_numpy()
    for place, servers in ((_SERVER_COLUMN, applies.server), (_SOURCE_SERVER_COLUMN, applies.source_server)):
        known, field = servers[apply], rows.schema.field(place)
        if known.any():
            found = np.where(known > 0, known, rows.column(place).to_numpy())
            rows = rows.set_column(place, field, pa.array(found).cast(field.type))
    return rows


def _received(rows: pa.Table, applies: EpochApplies, applier: int) -> pa.Table:
    """Return the rows of the other cluster's table that this applier applied, as often as it applied their epoch."""
    applied, times = np.unique(applies.foreign_epoch[applies.applier == applier], return_counts=True)
    made_in = applies.epoch[rows.column(EPOCH_APPLY.name).to_numpy()]
    known = np.flatnonzero(np.isin(made_in, applied))
    return rows.take(pa.array(np.repeat(known, times[np.searchsorted(applied, made_in[known])])))
