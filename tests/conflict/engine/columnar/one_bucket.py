"""A History in one bucket, decided by the kernels."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

import numpy as np

from conflict.engine.columnar.bucket import load_bucket
from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.order import ApplierEpochs, order_applies
from conflict.engine.columnar.setups import ClusterSetup, rules_of
from conflict.engine.kernels.arrays import Conflicts, EpochApplies
from conflict.engine.kernels.fold import fold
from conflict.engine.kernels.records import packed_changes
from conflict.engine.ledger.resolution import Outcome, Resolution
from conflict.history.grid.folder import Folder
from conflict.history.model import Cluster, History
from conflict.rules.decision import Cause
from tests.conflict.histories import Setups, numbers_of
from tests.conflict.written_histories import write_history


def conflicts_of(resolution: Resolution, applies: EpochApplies, names: list[str]) -> Conflicts:
    """Return the transactions that the reference engine rejected, per epoch apply."""
    times: dict[tuple[str, int, int], list[list[Outcome]]] = {}
    for outcome in resolution.outcomes:
        place = outcome.applier, outcome.source_epoch, outcome.epoch
        _add(times.setdefault(place, []), outcome)
    groups = []
    for applier, foreign, own in zip(applies.applier, applies.foreign_epoch, applies.epoch, strict=True):
        left = times.get((names[applier], int(foreign), int(own)), [])
        found = left.pop(0) if left else []
        groups.append(sorted({outcome.group for outcome in found if outcome.cause is Cause.TRANS_IN_CONFLICT}))
    offsets = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    return Conflicts(offsets, np.array([group for each in groups for group in each], np.int32))


def _add(times: list[list[Outcome]], outcome: Outcome) -> None:
    """
    Add an outcome to those of its epoch apply.

    Where an operation or an earlier group comes again, the epoch was applied once more. Of operations that an applier
    made, whose ordinal is -1, there can be several on a row.
    """
    if not times or outcome.group < times[-1][-1].group or (outcome.ordinal >= 0 and _is_among(outcome, times[-1])):
        times.append([])
    times[-1].append(outcome)


def _is_among(outcome: Outcome, others: list[Outcome]) -> bool:
    return any(_operation(outcome) == _operation(each) for each in others)


def _operation(outcome: Outcome) -> tuple[object, ...]:
    return outcome.group, outcome.ordinal, outcome.table, outcome.key, outcome.refresh


def bucket_by_kernels(history: History, tables: Setups, resolution: Resolution) -> FoldedBucket:
    """Decide a History; the transactions in conflict are those of the reference engine's `resolution`."""
    numbers = numbers_of(tables)
    names = [cluster.name for cluster in history.clusters]
    clusters = tuple(
        ClusterSetup(each.name, each.server_id, tuple(tables[each.name].values()), each.role)
        for each in history.clusters
    )
    with tempfile.TemporaryDirectory() as path:
        manifest = write_history(history, numbers, Folder(path))
        bucket = load_bucket(Folder(path), 0, manifest, numbers, manifest.layouts(numbers))
        of_tables = [numbers.tables[table].full_name for table in bucket.key_table.tolist()]
        identities = zip(of_tables, bucket.keys.column("identity").to_pylist(), strict=True)
        located = {(name, identity[2:]): (0, number) for number, (name, identity) in enumerate(identities)}
        applies = order_applies([ApplierEpochs.of_cluster(cluster, located) for cluster in history.clusters], names)
        conflicts = conflicts_of(resolution, applies, names)
        moments = applies.moments.of_bucket(0)
        rules = rules_of(clusters)
        folded = fold(
            applies, packed_changes(bucket.rows), rules, conflicts, bucket.key_table, candidates=True, moments=moments
        )
        bucket.column_sets  # noqa: B018  # read before the folder goes
    return FoldedBucket(bucket, clusters, applies, conflicts, folded)


def plan_applies(clusters: Sequence[Cluster]) -> EpochApplies:
    """Return the epoch applies of two clusters of a History in memory, in order."""
    return order_applies([ApplierEpochs.of_cluster(each) for each in clusters], [each.name for each in clusters])
