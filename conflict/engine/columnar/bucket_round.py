"""
One round of one bucket: folds its rows, and reports which transactions conflict and which depend on which.

The decisions on a row do not depend on other rows, once it is known which transactions are rejected. So after a first
round a bucket folds only the rows of transactions that the round before added to those in conflict, or removed (see
`conflict.engine.columnar.fixed_point`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import attrs
import numpy as np

from conflict.engine.columnar.applier_stops import StoppingOperation, stopping_decisions, transactions_stop
from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.kept_rows import LoggedRows, RoundRows
from conflict.engine.columnar.older_rows import OlderRows
from conflict.engine.columnar.setups import ClusterSetup, rules_of, transactional_tables
from conflict.engine.kernels.apply_order import boundaries_of
from conflict.engine.kernels.arrays import (
    Bool,
    Conflicts,
    Decisions,
    EpochApplies,
    Int16,
    Int32,
    Int64,
    UInt64,
)
from conflict.engine.kernels.column_scans import mark_keys
from conflict.engine.kernels.dependencies import dependent_groups
from conflict.engine.kernels.fold import Folded, fold
from conflict.engine.kernels.lost_changes import own_causes
from conflict.engine.kernels.records import packed_changes
from conflict.rules.decision import Cause, Verdict, is_delete_delete, marks_transaction
from ndb_formats.columnar.kernel import each_read_only, read_only
from ndb_formats.events.rows_event import Operation


@attrs.frozen(eq=False)
class Findings:
    """
    What a bucket reports of the rows that it folded.

    Attributes:
        keys: Those rows; None for all.
        conflicting: Transactions with a conflict of their own: key, epoch apply and group. int32, shape
            (transactions, 3).
        dependencies: Transactions that touched a row one right after the other: key, epoch apply, and both groups.
            int32, shape (pairs, 4).
        stopping: Per cluster, the first operation that stops its applier.
        rows: Number of row changes that were folded.
    """

    keys: Int32 | None
    conflicting: Int32
    dependencies: Int32
    stopping: dict[str, StoppingOperation]
    rows: int


@attrs.frozen(eq=False)
class FoldedRound:
    """
    The result of a round of a bucket.

    Attributes:
        findings: What the driver receives.
        logged: Rows of the bucket that appliers logged, as far as they are known; they stay with the bucket.
    """

    findings: Findings
    logged: LoggedRows


@attrs.frozen(eq=False)
class Changed:
    """
    Transactions that a round added to those in conflict, or removed, sorted by cluster, epoch and group.

    Attributes:
        source: Number of the cluster that made them. Shape (transactions,).
        epoch: Its epoch.
        group: Group of that epoch.
    """

    source: Int64
    epoch: UInt64
    group: Int64

    def __len__(self) -> int:
        return len(self.epoch)

    def of(self, cluster: int) -> tuple[UInt64, Int64]:
        """Return epoch and group of those of one cluster."""
        start, stop = np.searchsorted(self.source, [cluster, cluster + 1])
        return self.epoch[start:stop], self.group[start:stop]


def changed_transactions(applies: EpochApplies, pairs: Int64) -> Changed:
    """Return transactions by epoch, given as epoch apply and group. Shape of `pairs` (transactions, 2)."""
    source, epoch = 1 - applies.applier[pairs[:, 0]].astype(np.int64), applies.foreign_epoch[pairs[:, 0]]
    order = np.lexsort((pairs[:, 1], epoch, source))
    return Changed(source[order], epoch[order], pairs[order, 1])


def fold_round(
    bucket: Bucket,
    clusters: Sequence[ClusterSetup],
    applies: EpochApplies,
    conflicts: Conflicts,
    older: OlderRows | None = None,
) -> FoldedRound:
    """
    Fold all rows of a bucket.

    Args:
        bucket: The bucket; its images are not read.
        clusters: Both clusters.
        applies: All epoch applies in order.
        conflicts: Transactions in conflict, as far as they are known.
        older: The rows before the log starts; None if there were none.
    """
    moments, rules = applies.moments.of_bucket(bucket.number), rules_of(clusters)
    first = None if older is None else older.first
    changes = packed_changes(bucket.rows)
    folded = fold(
        applies,
        changes,
        rules,
        conflicts,
        bucket.key_table,
        candidates=True,
        moments=moments,
        older=first,
        standing=None if bucket.standing is None else bucket.standing.states,
    )
    findings = Findings(
        None,
        conflicting_transactions(clusters, applies, conflicts, folded, bucket.key_table),
        _dependencies(folded.decisions, len(bucket.key_table)),
        stopping_decisions(bucket, clusters, applies, folded),
        sum(map(len, bucket.rows)),
    )
    return FoldedRound(findings, LoggedRows.of(folded))


def fold_again(
    rows: RoundRows,
    clusters: Sequence[ClusterSetup],
    applies: EpochApplies,
    conflicts: Conflicts,
    changed: Changed,
    logged: LoggedRows,
) -> FoldedRound | None:
    """
    Fold the rows of a bucket that changed transactions touch.

    Args:
        rows: The rows of the bucket.
        clusters: Both clusters.
        applies: All epoch applies in order.
        conflicts: Transactions in conflict, as far as they are known.
        changed: Those that the round before added or removed.
        logged: Rows that appliers logged, as the round before left them.

    Returns:
        None if an operation now stops an applier: then all rows must be folded.
    """
    touched = _touched_rows(rows, applies, changed, logged)
    chosen = rows.of_keys(touched)
    keys, key_table = chosen.keys, np.asarray(rows.key_table[chosen.keys])
    moments = applies.moments.of_bucket(rows.bucket).of_keys(keys)
    folded = fold(
        applies, packed_changes(chosen.rows), rules_of(clusters), conflicts, key_table, candidates=True, moments=moments
    )
    if transactions_stop(clusters, applies, folded, key_table):
        return None
    conflicting = conflicting_transactions(clusters, applies, conflicts, folded, key_table)
    dependencies = _dependencies(folded.decisions, len(key_table))
    for columns in (conflicting, dependencies):
        columns[:, 0] = keys[columns[:, 0]]
    findings = Findings(keys, conflicting, dependencies, {}, sum(map(len, chosen.rows)))
    return FoldedRound(findings, logged.replaced(touched, keys, LoggedRows.of(folded)))


def _touched_rows(rows: RoundRows, applies: EpochApplies, changed: Changed, logged: LoggedRows) -> Bool:
    """Return which rows changed transactions touch. Shape (keys,)."""
    touched = np.zeros(len(rows.key_table), np.bool_)
    for side, kept in enumerate(rows.sides):
        kept.mark(*changed.of(side), touched)
    touched[logged.key[_changed_applies(applies, changed)[logged.apply]]] = True
    return touched


@lru_cache(maxsize=2)  # the same for every bucket that a worker process folds in a round
def _changed_applies(applies: EpochApplies, changed: Changed) -> Bool:
    """Return which epoch applies are a changed transaction in the binlog of their applier. Shape (applies,)."""
    found = np.zeros(len(applies), np.bool_)
    for side, own_groups in enumerate(_own_groups(applies)):
        mark_keys(*(*own_groups, *each_read_only(*changed.of(side)), found))
    return found


@lru_cache(maxsize=2)  # as above
def _own_groups(applies: EpochApplies) -> list[list[np.ndarray]]:
    """Return the own epoch and group of each applier's epoch applies for `mark_keys`, with their numbers as keys."""
    found = []
    for side in (0, 1):
        mine = np.flatnonzero(applies.applier == side)
        mine = mine[np.lexsort((applies.group[mine], applies.epoch[mine]))]
        epochs = boundaries_of(read_only(applies.epoch[mine]))
        found.append(each_read_only(*epochs, applies.group[mine], mine.astype(np.int32)))
    return found


# By operation and cause.
_DELETE_DELETE = np.array(
    [[is_delete_delete(operation, cause) for cause in Cause] for operation in range(len(Operation) + 1)]
)


def delete_delete_conflicts(clusters: Sequence[ClusterSetup]) -> Bool:
    """Return `FunctionSpec.delete_delete_conflicts` of each table on each cluster. Shape (clusters, tables)."""
    return np.array(
        [
            [setup.function is not None and setup.function.spec.delete_delete_conflicts for setup in cluster.setups]
            for cluster in clusters
        ],
        np.bool_,
    )


def with_own_causes(
    folded: Folded, clusters: Sequence[ClusterSetup], applies: EpochApplies, key_table: Int16
) -> Decisions:
    """Return the decisions of a bucket with the causes by which changes are lost; see `own_causes`."""
    made = folded.decisions
    conflicts = delete_delete_conflicts(clusters)[applies.applier[made.apply], key_table[made.key]]
    return attrs.evolve(made, cause=own_causes(made, folded.tracked, conflicts))


def row_conflicts(
    decisions: Decisions, clusters: Sequence[ClusterSetup], applies: EpochApplies, key_table: Int16
) -> Int64:
    """Return the numbers of the decisions that put their transaction in conflict. Shape (conflicts,)."""
    delete_deletes = delete_delete_conflicts(clusters)
    rejected = np.flatnonzero(decisions.verdict == Verdict.REJECTED)
    cause = decisions.cause[rejected]
    table = (applies.applier[decisions.apply[rejected]], key_table[decisions.key[rejected]])
    delete_delete = _DELETE_DELETE[decisions.operation[rejected], cause]
    found = marks_transaction(transactional_tables(clusters)[table], delete_delete, delete_deletes[table])
    return np.asarray(rejected[found & (cause != Cause.TRANS_IN_CONFLICT)])


def conflicting_transactions(
    clusters: Sequence[ClusterSetup],
    applies: EpochApplies,
    conflicts: Conflicts,
    folded: Folded,
    key_table: Int16,
) -> Int32:
    """Return key, epoch apply and group of transactions with a conflict of their own in pass TRACK. Shape (n, 3)."""
    twice = np.diff(conflicts.offsets) > 0
    parts = []
    for decisions, counted in ((folded.decisions, ~twice), (folded.tracked, np.ones(len(applies), np.bool_))):
        mine = row_conflicts(decisions, clusters, applies, key_table)
        mine = mine[counted[decisions.apply[mine]]]
        parts.append(np.stack([column[mine] for column in (decisions.key, decisions.apply, decisions.group)], axis=1))
    return np.concatenate(parts)


def _dependencies(decisions: Decisions, keys: int) -> Int32:
    """Return the transactions of one epoch apply that touched a row one right after the other. Shape (pairs, 4)."""
    return dependent_groups(decisions.apply, decisions.key, decisions.group, decisions.kind, keys)
