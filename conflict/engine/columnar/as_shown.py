"""
Judges epoch applies of a bucket on rows as the binlogs show them: which of them still differ from their binlogs.

Of the others nothing has to be explained, if their functions judge transactions: they differ from their binlogs only
because of what was derived of earlier epoch applies. Computes "Moments" of docs/inference.md, "Why no hypothesis is
missed".
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.bucket_round import row_conflicts
from conflict.engine.columnar.contested import shown_rows
from conflict.engine.columnar.setups import ClusterSetup, rules_of
from conflict.engine.kernels.arrays import Bool, Conflicts, EpochApplies, Int32, Int64
from conflict.engine.kernels.as_shown import judge_as_shown
from conflict.engine.kernels.dependencies import dependent_groups
from conflict.engine.kernels.records import packed_changes


@attrs.frozen(eq=False)
class JudgedAsShown:
    """
    What a bucket tells of the epoch applies that are looked at.

    Attributes:
        conflicting: Transactions with a conflict of their own: epoch apply and group. int32, shape (transactions, 2).
        dependencies: Transactions that touched a row one right after the other: epoch apply and both groups. int32,
            shape (pairs, 3).
        differing: Those that have another effect on a row than their binlog shows, given the transactions in conflict;
            and those with rows of functions that judge row by row. Numbers of epoch applies, sorted.
        showing: Whether the binlog of each cluster shows anything. Shape (clusters,).
    """

    conflicting: Int32
    dependencies: Int32
    differing: Int64
    showing: Bool


def judged_as_shown(
    bucket: Bucket, clusters: Sequence[ClusterSetup], applies: EpochApplies, conflicts: Conflicts, looked_at: Int64
) -> JudgedAsShown:
    """
    Judge some epoch applies of a bucket.

    Args:
        bucket: The bucket; its images are not read.
        clusters: Both clusters; no function of theirs compares a column.
        applies: All epoch applies in order.
        conflicts: Transactions in conflict, as far as they are known.
        looked_at: Numbers of the epoch applies; they have a trace.
    """
    chosen = np.zeros(len(applies), np.bool_)
    chosen[looked_at] = True
    shown = [shown_rows(each) for each in bucket.consequences]
    showing = np.array([len(each.key) > 0 for each in shown], np.bool_)
    changes, keys = packed_changes(bucket.rows), bucket.key_table
    found = judge_as_shown(applies, changes, rules_of(clusters), conflicts, keys, shown, chosen)
    if found is None:
        return JudgedAsShown(np.zeros((0, 2), np.int32), np.zeros((0, 3), np.int32), looked_at, showing)
    decisions, differing = found
    mine = row_conflicts(decisions, clusters, applies, keys)
    pairs = dependent_groups(decisions.apply, decisions.key, decisions.group, decisions.kind, len(keys))
    alone = _judged_alone(clusters)[applies.applier[decisions.apply], keys[decisions.key]]
    differing[decisions.apply[alone]] = True
    return JudgedAsShown(
        np.stack([decisions.apply[mine], decisions.group[mine]], axis=1),
        pairs[:, 1:],
        np.flatnonzero(differing),
        showing,
    )


def _judged_alone(clusters: Sequence[ClusterSetup]) -> Bool:
    """Return where a function judges row by row. Shape (clusters, tables)."""
    functions = ([setup.function for setup in cluster.setups] for cluster in clusters)
    return np.array([[each is not None and not each.spec.transactional for each in own] for own in functions], np.bool_)
