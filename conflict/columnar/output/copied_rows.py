"""
How many rows a table had when its definition was changed by copying. Computes docs/definitions.md, "Counters".
"""

from __future__ import annotations

import numpy as np

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.cluster_setup import steps_before
from conflict.grid.schemas import RowStep
from conflict.rules.decision import Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["count_copied"]

DELETES = (int(Operation.DELETE_ROW), int(RowStep.EMPTIED))


def count_copied(result: BucketResult, number: int) -> int:
    """Return how many rows of the bucket the applier of a cluster copied for statements of the other one."""
    cluster, total = result.clusters[number], 0
    for table, places in cluster.copied.items():
        for place in places:
            total += _count(result, number, table, place)
    return total


def _count(result: BucketResult, number: int, table: int, place: int) -> int:
    """Return how many rows of a table exist before one of its changes, given by its number among them."""
    bucket, decisions = result.bucket, result.folded.decisions
    rows, keys = bucket.rows[number], len(bucket.key_table)
    epoch, group = result.clusters[number].steps[table][place]
    before = (rows.epoch < np.uint64(epoch)) | ((rows.epoch == np.uint64(epoch)) & (rows.group < group))
    own = np.flatnonzero(before & (rows.operation != RowStep.CHANGED))
    last_own = np.full(keys, -1, np.int64)
    last_own[rows.key[own]] = own  # the last one of a key stays
    applied = decisions.verdict == Verdict.APPLIED
    applied &= (result.applies.applier == number)[decisions.apply]
    applied &= (steps_before(result.clusters[number].steps[table], result.applies) <= place)[decisions.apply]
    made = np.flatnonzero(applied)
    last_made = np.full(keys, -1, np.int64)
    last_made[decisions.key[made]] = made
    there = np.zeros(keys, np.bool_)
    has_own, has_made = last_own >= 0, last_made >= 0
    there[has_own] = ~np.isin(rows.operation[last_own[has_own]], DELETES)
    own_end = np.zeros(keys, np.int64)
    own_end[has_made] = result.folded.own_end[decisions.apply[last_made[has_made]]]
    later = has_made & (last_own < own_end)
    there[later] = ~np.isin(decisions.operation[last_made[later]], DELETES)
    return int((there & (bucket.key_table == table)).sum())
