"""Rows that were judged some time before the commit: the kernels decide as the reference engine does."""

import tempfile
from itertools import groupby

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.columnar.apply_order import ApplierEpochs, order_applies
from conflict.columnar.bucket import load_bucket
from conflict.columnar.cluster_setup import ClusterSetup, rules_of
from conflict.columnar.kernels.arrays import Conflicts, EpochApplies
from conflict.columnar.kernels.fold import fold
from conflict.grid.folder import Folder
from conflict.grid.tables import TableNumbers, resolve_columns
from conflict.grid.writer import write_history
from conflict.history.model import EpochApply, History
from conflict.reference.replay import resolve
from conflict.results.model import Resolution
from conflict.rules.decision import Cause, Verdict
from conflict.rules.roles import Role
from tests.conflict.histories import Setups, layouts, setups
from tests.conflict.reference.test_placement import truth_of
from tests.conflict.worlds import Step, World, steps, world

FUNCTIONS = ["NDB$OLD(x)", "NDB$MAX(x)", "NDB$MAX_INS(x)", "NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2_TRANS()"]


def with_moments(made: World, roles: dict[str, Role]) -> History:
    """Return the traced part of what happened in a world, with the moments."""
    known, _ = truth_of(made, roles)
    clusters = []
    for at, cluster in enumerate(known.clusters):
        moments = {(each.epoch, each.group): each.moments for each in made.replayed[at].result.applies}
        timeline = []
        for item in cluster.timeline:
            if isinstance(item, EpochApply) and item.traced:
                timeline.append(EpochApply(*_place(item), moments=moments[item.epoch, item.group]))
            elif not isinstance(item, EpochApply):
                timeline.append(item)
        clusters.append(type(cluster)(cluster.name, cluster.server_id, tuple(timeline), cluster.role))
    return History(tuple(clusters), layouts())


def _place(item: EpochApply) -> tuple[int, int, str, int]:
    return item.epoch, item.group, item.source, item.foreign_epoch


def conflicts_of(resolution: Resolution, applies: EpochApplies, names: list[str]) -> Conflicts:
    """Return the transactions that the reference engine rejected, per epoch apply."""
    groups = []
    for applier, foreign in zip(applies.applier, applies.foreign_epoch, strict=True):
        found = {
            outcome.group
            for outcome in resolution.outcomes
            if (outcome.applier, outcome.source_epoch) == (names[applier], foreign)
            and outcome.cause is Cause.TRANS_IN_CONFLICT
        }
        groups.append(sorted(found))
    offsets = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    return Conflicts(offsets, np.array([group for each in groups for group in each], np.int32))


def decided_by_kernels(history: History, tables: Setups, resolution: Resolution) -> dict[str, list[object]]:
    """Return what the kernels decide on each operation of each applier, in order."""
    numbers = TableNumbers(tuple(setup.table for setup in tables["A"].values()), resolve_columns(tables))
    clusters = tuple(
        ClusterSetup(each.name, each.server_id, tuple(tables[each.name].values()), each.role)
        for each in history.clusters
    )
    with tempfile.TemporaryDirectory() as path:
        manifest = write_history(history, numbers, Folder(path))
        bucket = load_bucket(Folder(path), 0, manifest, numbers, manifest.layouts(numbers))
        identities = bucket.keys.column("identity").to_pylist()
        names = [numbers.tables[table].full_name for table in bucket.key_table.tolist()]
        located = {
            (name, identity[2:]): (0, number)
            for number, (name, identity) in enumerate(zip(names, identities, strict=True))
        }
        applied = [ApplierEpochs.of_cluster(cluster, located) for cluster in history.clusters]
        applies = order_applies(applied, [cluster.name for cluster in history.clusters])
        conflicts = conflicts_of(resolution, applies, [cluster.name for cluster in history.clusters])
        folded = fold(
            applies,
            bucket.rows,
            rules_of(clusters),
            conflicts,
            bucket.key_table,
            candidates=True,
            moments=applies.moments.of_bucket(0),
        )
    found = folded.decisions
    rows = zip(found.apply.tolist(), found.verdict.tolist(), found.cause.tolist(), strict=True)
    decided: dict[str, list[object]] = {cluster.name: [] for cluster in history.clusters}
    for apply, verdict, cause in rows:
        decided[history.clusters[applies.applier[apply]].name].append((Verdict(verdict), Cause(cause)))
    return decided


@settings(max_examples=60)
@given(st.sampled_from(FUNCTIONS), steps("tn"), st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_kernels_judge_early_rows_as_the_reference_engine(function: str, done: list[Step], early: list[int]):
    """Verdict and cause of every operation are equal."""
    both = "EPOCH" not in function or "EPOCH2" in function
    roles = {"A": Role.PRIMARY, "B": Role.SECONDARY} if "EPOCH2" in function else {}
    made = world(function, only_first=not both, roles=roles)
    made.early = early
    made.run(done)
    for cluster in (0, 1):
        made.close(cluster)
    history, tables = with_moments(made, roles), setups(function, function if both else None)
    resolution = resolve(history, tables)
    expected: dict[str, list[object]] = {cluster.name: [] for cluster in history.clusters}
    for applier, outcomes in groupby(resolution.outcomes, key=lambda outcome: outcome.applier):
        expected[applier] += [(outcome.verdict, outcome.cause) for outcome in outcomes]
    assert decided_by_kernels(history, tables, resolution) == expected
