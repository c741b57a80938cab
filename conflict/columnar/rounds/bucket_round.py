"""
Which transactions are in conflict: found by folding until nothing changes.

A round folds with the transactions that are known to be in conflict rejected. Each bucket tells which transactions
had a conflict of their own, and which touched a row after which; from that the driver closes the set over
dependencies, per take. What is decided in a take depends on takes before it and on that take alone, so every round
makes at least one more take right, and the set that reproduces itself is the one sequential answer.

What is decided on one row does not depend on other rows, once it is known which transactions are rejected. So after the
first round only those rows are folded again that a transaction touches about which the last round changed its mind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import attrs
import numpy as np

from conflict.columnar.applier_stops import StoppingOperation, stopping_decisions, stops_now
from conflict.columnar.bucket import Bucket
from conflict.columnar.cluster_setup import ClusterSetup, rules_of, transactional_tables
from conflict.columnar.kernels.arrays import (
    Bool,
    BucketRows,
    Conflicts,
    Decisions,
    EpochApplies,
    Int16,
    Int32,
    Int64,
    UInt64,
    each_read_only,
    read_only,
)
from conflict.columnar.kernels.fold import Folded, fold
from conflict.columnar.kernels.links import linked, mark_keys
from conflict.columnar.kernels.search import boundaries_of
from conflict.columnar.rounds.entries import LoggedRows
from conflict.columnar.rounds.kept_rows import RoundRows
from conflict.rules.decision import Cause, Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["Changed", "Findings", "RoundResult", "changed_places", "fold_again", "fold_round"]


@attrs.frozen(eq=False)
class Findings:
    """
    What a bucket finds in a round about the rows that it folded.

    Attributes:
        keys: Those rows; None for all.
        conflicting: Transactions with a conflict of their own: key, take and group. Shape (transactions, 3).
        dependencies: Transactions that touched a row one right after the other: key, take, and both groups. Shape
            (pairs, 4).
        stopping: Per site, the first operation that stops its applier.
        rows: How many row changes were folded.
    """

    keys: Int32 | None
    conflicting: Int32
    dependencies: Int32
    stopping: dict[str, StoppingOperation]
    rows: int


@attrs.frozen(eq=False)
class RoundResult:
    """
    What a bucket finds in a round, and what stays with it.

    Attributes:
        findings: What the driver needs to know.
        entries: What appliers logged in the bucket, as far as is known then.
    """

    findings: Findings
    entries: LoggedRows


@attrs.frozen(eq=False)
class Changed:
    """
    Transactions about which the last round changed its mind, in the order of cluster, epoch and group.

    Attributes:
        source: Cluster that made them. Shape (transactions,).
        epoch: Epoch in which it did.
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


def changed_places(applies: EpochApplies, pairs: Int64) -> Changed:
    """Return transactions, given as take and group, by where they were made. Shape of `pairs` (transactions, 2)."""
    source, epoch = 1 - applies.applier[pairs[:, 0]].astype(np.int64), applies.foreign_epoch[pairs[:, 0]]
    order = np.lexsort((pairs[:, 1], epoch, source))
    return Changed(source[order], epoch[order], pairs[order, 1])


def fold_round(
    bucket: Bucket, clusters: Sequence[ClusterSetup], applies: EpochApplies, conflicts: Conflicts
) -> RoundResult:
    """
    Fold a bucket.

    Args:
        bucket: The bucket; its images are not needed.
        clusters: Both sites.
        applies: All takes in order.
        conflicts: Transactions in conflict, as far as is known.
    """
    folded = fold(applies, bucket.rows, rules_of(clusters), conflicts, bucket.key_table, candidates=True)
    stopping = stopping_decisions(bucket, clusters, applies, folded)
    found = _find(bucket.rows, bucket.key_table, clusters, applies, conflicts, folded)
    return RoundResult(attrs.evolve(found, stopping=stopping), LoggedRows.of(folded))


def fold_again(
    rows: RoundRows,
    clusters: Sequence[ClusterSetup],
    applies: EpochApplies,
    conflicts: Conflicts,
    changed: Changed,
    entries: LoggedRows,
) -> RoundResult | None:
    """
    Fold those rows of a bucket that a transaction touches about which the last round changed its mind.

    Args:
        rows: The rows of the bucket.
        clusters: Both sites.
        applies: All takes in order.
        conflicts: Transactions in conflict, as far as is known.
        changed: Those that the last round added or took out.
        entries: What appliers logged in the bucket, as far as was known after the last round.

    Returns:
        None if an operation now stops an applier, for which all rows count.
    """
    affected = _affected(rows, applies, changed, entries)
    chosen = rows.of_keys(affected)
    keys, key_table = chosen.keys, np.asarray(rows.key_table[chosen.keys])
    folded = fold(applies, chosen.rows, rules_of(clusters), conflicts, key_table, candidates=True)
    if stops_now(clusters, applies, folded, key_table):
        return None
    found = _find(chosen.rows, key_table, clusters, applies, conflicts, folded)
    for columns in (found.conflicting, found.dependencies):
        columns[:, 0] = keys[columns[:, 0]]
    entries = entries.with_others(affected, keys, LoggedRows.of(folded))
    return RoundResult(attrs.evolve(found, keys=keys), entries)


def _affected(rows: RoundRows, applies: EpochApplies, changed: Changed, entries: LoggedRows) -> Bool:
    """Return which rows a changed transaction touches. Shape (keys,)."""
    affected = np.zeros(len(rows.key_table), np.bool_)
    for side, kept in enumerate(rows.sides):
        kept.mark(*changed.of(side), affected)
    affected[entries.key[_changed_applies(applies, changed)[entries.apply]]] = True
    return affected


@lru_cache(maxsize=2)  # of what every bucket of a task's process has
def _changed_applies(applies: EpochApplies, changed: Changed) -> Bool:
    """Return which takes are a changed transaction in the log of their applier. Shape (takes,)."""
    found = np.zeros(len(applies), np.bool_)
    for side, own_places in enumerate(_own_places(applies)):
        mark_keys(*(*own_places, *each_read_only(*changed.of(side)), found))
    return found


@lru_cache(maxsize=2)  # as above
def _own_places(applies: EpochApplies) -> list[list[np.ndarray]]:
    """Return where the takes of each applier stand in its log, as `mark_keys` wants it, the takes in place of keys."""
    found = []
    for side in (0, 1):
        mine = np.flatnonzero(applies.applier == side)
        mine = mine[np.lexsort((applies.group[mine], applies.epoch[mine]))]
        stretches = boundaries_of(read_only(applies.epoch[mine]))
        found.append(each_read_only(*stretches, applies.group[mine], mine.astype(np.int32)))
    return found


def _find(
    rows: Sequence[BucketRows],
    key_table: Int16,
    clusters: Sequence[ClusterSetup],
    applies: EpochApplies,
    conflicts: Conflicts,
    folded: Folded,
) -> Findings:
    """Return what was found of rows, but for operations that stop appliers."""
    return Findings(
        None,
        _conflicting(clusters, applies, conflicts, folded, key_table),
        _dependencies(folded.decisions, len(key_table)),
        {},
        sum(len(side) for side in rows),
    )


def _row_conflicts(
    decisions: Decisions, clusters: Sequence[ClusterSetup], applies: EpochApplies, key_table: Int16
) -> Int64:
    """Return the numbers of the decisions that put their transaction in conflict."""
    delete_deletes = np.array(
        [
            [setup.function is not None and setup.function.spec.delete_delete_conflicts for setup in cluster.setups]
            for cluster in clusters
        ],
        np.bool_,
    )
    rejected = np.flatnonzero(decisions.verdict == Verdict.REJECTED)
    cause = decisions.cause[rejected]
    table = (applies.applier[decisions.apply[rejected]], key_table[decisions.key[rejected]])
    delete_delete = (decisions.operation[rejected] == Operation.DELETE_ROW) & (cause == Cause.ROW_DOES_NOT_EXIST)
    found = transactional_tables(clusters)[table] & (~delete_delete | delete_deletes[table])
    return np.asarray(rejected[found & (cause != Cause.TRANS_IN_CONFLICT)])


def _conflicting(
    clusters: Sequence[ClusterSetup],
    applies: EpochApplies,
    conflicts: Conflicts,
    folded: Folded,
    key_table: Int16,
) -> Int32:
    """Return the transactions with a conflict of their own, as pass TRACK sees them."""
    twice = applies.judged | (np.diff(conflicts.offsets) > 0)
    parts = []
    for decisions, counted in ((folded.decisions, ~twice), (folded.tracked, np.ones(len(applies), np.bool_))):
        mine = _row_conflicts(decisions, clusters, applies, key_table)
        mine = mine[counted[decisions.apply[mine]]]
        parts.append(np.stack([column[mine] for column in (decisions.key, decisions.apply, decisions.group)], axis=1))
    return np.concatenate(parts)


def _dependencies(decisions: Decisions, keys: int) -> Int32:
    """Return which transactions touched a row right after which, in the same take."""
    return linked(decisions.apply, decisions.key, decisions.group, decisions.kind, keys)
