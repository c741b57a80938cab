"""
How often each thing happened in a bucket: what the status counters and the summary of a run are made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from conflict.bucket_result import BucketResult
from conflict.counters import (
    DELETE_DELETE,
    REFLECTED_DISCARDED,
    REFLECTED_RECEIVED,
    REFRESH_RECEIVED,
    TRANSACTION_ROW_CONFLICTS,
    TRANSACTION_ROW_REJECTS,
)
from conflict.decision import Cause, Verdict
from conflict.kernels.arrays import Decisions, Int64, read_only
from conflict.kernels.operations import Operations
from conflict.kernels.outcomes import count_outcomes
from conflict.sites import Site
from ndb_formats.events.rows_event import Operation

__all__ = ["count_bucket"]

DELETE = int(Operation.DELETE_ROW)
REFRESH, REFLECTED = 1, 2


def count_bucket(result: BucketResult) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, dict[str, int]]]]:
    """Return, per cluster, how far the bucket moves its status counters, and what happened to each table."""
    counted = _count(result.sites, result.folded.decisions, result.operations)
    # Passes TRACK and APPLY over an epoch both count.
    passes = (counted, _count(result.sites, result.folded.tracked, result.tracked))
    counters, tables = {}, {}
    for number, site in enumerate(result.sites):
        total: Counter[str] = Counter()
        for each in passes:
            total.update(_counters(site, each[number]))
        counters[site.name] = dict(total)
        tables[site.name] = {
            setup.table.full_name: {**_table(counted[number, table]), "refreshes": _refreshes(result, number, table)}
            for table, setup in enumerate(site.setups)
        }
    return counters, tables


def _count(sites: Sequence[Site], decisions: Decisions, about: Operations) -> Int64:
    """Return how often each thing was decided; see `count_outcomes` for the shape."""
    shape = (len(sites), len(sites[0].setups), len(Operation) + 1, 3, len(Verdict), len(Cause))
    counts = np.zeros(shape, np.int64)
    count_outcomes(
        *(read_only(about.applier), read_only(about.table), read_only(about.operation)),
        *(read_only(about.refresh), read_only(about.reflected)),
        *(read_only(decisions.verdict), read_only(decisions.cause), counts),
    )
    return counts


def _table(counts: Int64) -> dict[str, int]:
    """Return what happened to a table's rows. Shape of `counts` (operations, 3, verdicts, causes)."""
    verdicts = {each.name.lower(): int(counts[:, :, each].sum()) for each in Verdict}
    causes = {each.name: int(counts[:, :, Verdict.REJECTED, each].sum()) for each in Cause if each}
    return {**verdicts, **causes}


def _refreshes(result: BucketResult, number: int, table: int) -> int:
    logged = result.folded.logged
    return int((logged.refresh & (logged.cluster == number) & (result.bucket.key_table[logged.key] == table)).sum())


def _counters(site: Site, counts: Int64) -> Counter[str]:
    """Return the status counters. Shape of `counts` (tables, operations, 3, verdicts, causes)."""
    rejected = counts[:, :, :, Verdict.REJECTED]
    with_transaction = int(rejected[..., Cause.TRANS_IN_CONFLICT].sum())
    own = rejected.sum(axis=(2, 3)) - rejected[..., Cause.TRANS_IN_CONFLICT].sum(axis=2)  # by table and operation
    delete_deletes = rejected[:, DELETE, :, Cause.ROW_DOES_NOT_EXIST].sum(axis=1)
    counters: Counter[str] = Counter(
        {
            REFRESH_RECEIVED: int(counts[:, :, REFRESH].sum()),
            REFLECTED_RECEIVED: int(counts[:, :, REFLECTED].sum()),
            REFLECTED_DISCARDED: int(counts[:, :, :, Verdict.DISCARDED].sum()),
            TRANSACTION_ROW_REJECTS: with_transaction,
            TRANSACTION_ROW_CONFLICTS: 0,
        }
    )
    for table, setup in enumerate(site.setups):
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
