"""
The status counters of a bucket, and the figures of each table. Computes docs/functions.md, "Counters".
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.cluster_setup import ClusterSetup
from conflict.columnar.kernels.arrays import Decisions, Int64, OperationKind, each_read_only
from conflict.columnar.kernels.column_scans import CountedDecisions, count_outcomes
from conflict.rules.counters import (
    DELETE_DELETE,
    REFLECTED_DISCARDED,
    REFLECTED_RECEIVED,
    REFRESH_RECEIVED,
    TRANSACTION_ROW_CONFLICTS,
    TRANSACTION_ROW_REJECTS,
)
from conflict.rules.decision import Cause, Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["count_bucket", "status_counters"]

DELETE = int(Operation.DELETE_ROW)


def count_bucket(result: BucketResult) -> list[tuple[Int64, Int64, dict[str, int]]]:
    """
    Count what each cluster's applier did.

    Returns:
        Per cluster, the number of operations by table, verdict and cause, that of refreshed rows by table, and what the
        bucket adds to its status counters.
    """
    counted = _count(result, result.folded.decisions)
    # Both passes over an epoch count, TRACK and APPLY.
    passes = (counted, _count(result, result.folded.tracked))
    found = []
    for number, cluster in enumerate(result.clusters):
        total: Counter[str] = Counter()
        for each in passes:
            total.update(status_counters(cluster, each[number]))
        found.append((counted[number].sum(axis=(1, 2)), _refreshes(result, number), dict(total)))
    return found


def _count(result: BucketResult, decisions: Decisions) -> Int64:
    """Count decisions; see `count_outcomes` for the shape."""
    tables = len(result.bucket.numbers.tables)
    shape = (len(result.clusters), tables, len(Operation) + 1, len(OperationKind), len(Verdict), len(Cause))
    counts = np.zeros(shape, np.int64)
    columns = (getattr(decisions, name) for name in CountedDecisions._fields[2:])
    given = CountedDecisions(*each_read_only(result.applies.applier, result.bucket.key_table, *columns))
    count_outcomes(given, counts)
    return counts


def _refreshes(result: BucketResult, number: int) -> Int64:
    """Return how many rows the applier of a cluster refreshed. Shape (tables,)."""
    logged = result.folded.logged
    refreshed = logged.key[logged.refresh & (logged.cluster == number)]
    return np.bincount(result.bucket.key_table[refreshed], minlength=len(result.bucket.numbers.tables))


def status_counters(cluster: ClusterSetup, counts: Int64) -> Counter[str]:
    """Return the status counters. Shape of `counts` (tables, operations, kinds, verdicts, causes)."""
    rejected = counts[:, :, :, Verdict.REJECTED]
    with_transaction = int(rejected[..., Cause.TRANS_IN_CONFLICT].sum())
    own = rejected.sum(axis=(2, 3)) - rejected[..., Cause.TRANS_IN_CONFLICT].sum(axis=2)  # by table and operation
    delete_deletes = rejected[:, DELETE, :, Cause.ROW_DOES_NOT_EXIST].sum(axis=1)
    counters: Counter[str] = Counter(
        {
            REFRESH_RECEIVED: int(counts[:, :, OperationKind.REFRESH].sum()),
            REFLECTED_RECEIVED: int(counts[:, :, OperationKind.REFLECTED].sum()),
            REFLECTED_DISCARDED: int(counts[:, :, :, Verdict.DISCARDED].sum()),
            TRANSACTION_ROW_REJECTS: with_transaction,
            TRANSACTION_ROW_CONFLICTS: 0,
        }
    )
    for table, setup in enumerate(cluster.setups):
        if setup.function is None:
            continue
        spec = setup.function.spec
        counters[spec.counter] += int(own[table].sum())
        if spec.refreshes:
            counters[DELETE_DELETE] += int(delete_deletes[table])
        if spec.transactional:
            ignored = 0 if spec.delete_delete_conflicts else int(delete_deletes[table])
            counters[TRANSACTION_ROW_CONFLICTS] += int(own[table].sum()) - ignored
    return counters
