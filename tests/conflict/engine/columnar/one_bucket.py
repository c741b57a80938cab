"""A History in one bucket, decided by the kernels."""

from __future__ import annotations

import tempfile

import numpy as np

from conflict.engine.columnar.bucket import load_bucket
from conflict.engine.columnar.bucket_result import BucketResult
from conflict.engine.columnar.order import ApplierEpochs, order_applies
from conflict.engine.columnar.setups import ClusterSetup, rules_of
from conflict.engine.kernels.arrays import Conflicts, EpochApplies
from conflict.engine.kernels.fold import fold
from conflict.engine.kernels.records import packed_changes
from conflict.history.grid.folder import Folder
from conflict.history.grid.writer import write_history
from conflict.history.model import History
from conflict.results.model import Resolution
from conflict.rules.decision import Cause
from tests.conflict.histories import Setups, numbers_of


def conflicts_of(resolution: Resolution, applies: EpochApplies, names: list[str]) -> Conflicts:
    """Return the transactions that the reference engine rejected, per epoch apply."""
    groups = []
    for applier, foreign, own in zip(applies.applier, applies.foreign_epoch, applies.epoch, strict=True):
        found = {
            outcome.group
            for outcome in resolution.outcomes
            if (outcome.applier, outcome.source_epoch, outcome.epoch)
            == (names[applier], foreign, own)  # it may come twice
            and outcome.cause is Cause.TRANS_IN_CONFLICT
        }
        groups.append(sorted(found))
    offsets = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    return Conflicts(offsets, np.array([group for each in groups for group in each], np.int32))


def bucket_by_kernels(history: History, tables: Setups, resolution: Resolution) -> BucketResult:
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
    return BucketResult(bucket, clusters, applies, conflicts, folded)
