"""
Which transactions are in conflict: found by folding until nothing changes.

A round folds every bucket with the transactions that are known to be in conflict rejected. Each bucket tells which
transactions had a conflict of their own, and which touched a row after which; from that the driver closes
the set over dependencies, per take. What is decided in a take depends on takes before it and on that take alone,
so every round makes at least one more take right, and the set that reproduces itself is the one sequential answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from conflict.bucket import Bucket
from conflict.bucket_fold import fold_bucket
from conflict.decision import Cause, Verdict
from conflict.kernels.arrays import Bool, Conflicts, Int64, TakeArrays
from conflict.kernels.fold import Folded
from conflict.kernels.operations import Operations, operations_of
from conflict.sites import Site, transactional_tables
from conflict.unusable import Unusable, unusable_decisions
from ndb_formats.events.rows_event import Operation

__all__ = ["Findings", "InConflict", "close_over_dependencies", "conflicts_of", "fold_round", "row_conflicts"]

# (applier, number among its takes, group): stays the same when later takes are left out.
InConflict = frozenset[tuple[int, int, int]]


@attrs.frozen
class Findings:
    """
    What one bucket finds in a round.

    Attributes:
        conflicting: Transactions with a conflict of their own: take and group. Shape (transactions, 2).
        dependencies: Takes, and groups where the second touched a row right after the first. Shape (pairs, 3).
        unusable: Per site, the first operation that stops its applier.
    """

    conflicting: Int64
    dependencies: Int64
    unusable: dict[str, Unusable]


def fold_round(
    bucket: Bucket, sites: Sequence[Site], takes: TakeArrays, conflicts: Conflicts, wanted: Bool
) -> Findings:
    """
    Fold a bucket and say what it finds.

    Args:
        bucket: The bucket; its images are not needed.
        sites: Both sites.
        takes: All takes in order.
        conflicts: Transactions in conflict, as far as is known.
        wanted: Whether dependencies are asked for, whatever this bucket finds. Shape (takes,).
    """
    folded = fold_bucket(bucket, sites, takes, conflicts)
    operations = operations_of(folded.decisions, folded.logged, takes, bucket.rows, bucket.key_table)
    conflicting = _conflicting(bucket, sites, takes, conflicts, folded, operations)
    asked = wanted.copy()
    asked[conflicting[:, 0]] = True
    return Findings(
        conflicting,
        _dependencies(folded, operations, asked),
        unusable_decisions(bucket, sites, takes, folded, operations),
    )


def row_conflicts(verdict: np.ndarray, cause: np.ndarray, operations: Operations, sites: Sequence[Site]) -> Bool:
    """
    Return which decisions put their transaction in conflict. Shape (operations,).

    Args:
        verdict: Of each decision.
        cause: Of each decision.
        operations: What they were about.
        sites: Both sites.
    """
    delete_deletes = np.array(
        [
            [setup.function is not None and setup.function.spec.delete_delete_conflicts for setup in site.setups]
            for site in sites
        ],
        np.bool_,
    )
    table = (operations.applier, operations.table)
    delete_delete = (operations.operation == Operation.DELETE_ROW) & (cause == Cause.ROW_DOES_NOT_EXIST)
    own = (verdict == Verdict.REJECTED) & (cause != Cause.TRANS_IN_CONFLICT)
    return np.asarray(own & transactional_tables(sites)[table] & (~delete_delete | delete_deletes[table]))


def _conflicting(
    bucket: Bucket,
    sites: Sequence[Site],
    takes: TakeArrays,
    conflicts: Conflicts,
    folded: Folded,
    operations: Operations,
) -> Int64:
    """Return the transactions with a conflict of their own, as pass TRACK sees them."""
    tracked = operations_of(folded.tracked, folded.logged, takes, bucket.rows, bucket.key_table)
    twice = np.isin(folded.decisions.take, conflicts.takes) | takes.judged[folded.decisions.take]
    parts = []
    for decisions, about, counted in (
        (folded.decisions, operations, ~twice),
        (folded.tracked, tracked, np.ones(len(folded.tracked), np.bool_)),
    ):
        mine = counted & row_conflicts(decisions.verdict, decisions.cause, about, sites)
        parts.append(np.stack([decisions.take[mine], about.group[mine].astype(np.int64)], axis=1))
    return np.unique(np.concatenate(parts), axis=0)


def _dependencies(folded: Folded, operations: Operations, asked: Bool) -> Int64:
    """Return which transactions touched a row right after which, in the takes asked for."""
    take = folded.decisions.take
    chosen = np.flatnonzero(asked[take] & ~operations.empty)
    order = chosen[np.lexsort((chosen, operations.key[chosen], take[chosen]))]
    first, second = order[:-1], order[1:]
    linked = (
        (take[first] == take[second])
        & (operations.key[first] == operations.key[second])
        & (operations.group[first] != operations.group[second])
    )
    first, second = first[linked], second[linked]
    pairs = (take[first], operations.group[first].astype(np.int64), operations.group[second].astype(np.int64))
    return np.unique(np.stack(pairs, axis=1), axis=0)


def close_over_dependencies(
    conflicting: Iterable[tuple[int, int]], dependencies: Iterable[tuple[int, int, int]]
) -> set[tuple[int, int]]:
    """
    Return the transactions in conflict: those with a conflict of their own, and all that depend on them.

    Args:
        conflicting: Take and group.
        dependencies: Take, group, and a group that depends on it.
    """
    dependents: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for take, before, after in dependencies:
        dependents.setdefault((take, before), []).append((take, after))
    found: set[tuple[int, int]] = set()
    waiting = list(conflicting)
    while waiting:
        transaction = waiting.pop()
        if transaction not in found:
            found.add(transaction)
            waiting += dependents.get(transaction, ())
    return found


def conflicts_of(takes: TakeArrays, in_conflict: InConflict) -> Conflicts:
    """Return transactions in conflict as the kernels read them."""
    numbers = {
        place: take for take, place in enumerate(zip(takes.applier.tolist(), takes.number.tolist(), strict=True))
    }
    pairs = np.array(
        sorted((numbers[applier, number], group) for applier, number, group in in_conflict), np.int64
    ).reshape(-1, 2)
    offsets = np.searchsorted(pairs[:, 0], np.arange(len(takes) + 1), "left").astype(np.int64)
    return Conflicts(offsets, pairs[:, 1].astype(np.int32))
