"""Rules that both engines have, each by itself: what the reference engine says, the kernels say."""

from collections import Counter
from itertools import product

import attrs
import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st

from conflict.engine.columnar.beyond_kernels import compares_reflected
from conflict.engine.columnar.fixed_point import in_conflict
from conflict.engine.kernels.arrays import OperationKind
from conflict.engine.kernels.dependencies import dependent_groups
from conflict.engine.kernels.effects import effect_number
from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.engine.reference.decide import DependencyTracker
from conflict.engine.reference.replay import replay
from conflict.history.model import Cluster, History
from conflict.history.shown_effects import NO_EFFECT, effect_on_row
from conflict.history.timeline import EpochApply
from ndb_formats.events.rows_event import ConflictFlag
from tests.conflict.engine.columnar.one_bucket import bucket_by_kernels, plan_applies
from tests.conflict.random_histories import BINLOG_TYPES, SETTINGS, configuration, make_history
from tests.examples import examples

KINDS = [OperationKind.CHANGE, OperationKind.CHANGE, OperationKind.EMPTY]
KEYS = 4
# Operations that an applier receives: epoch apply, key, transaction, kind.
OPERATIONS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, KEYS - 1), st.integers(0, 5), st.sampled_from(KINDS)), max_size=40
).map(lambda found: sorted(found, key=lambda each: each[0]))


@given(OPERATIONS, st.sets(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=4))
def test_transactions_that_depend(
    operations: list[tuple[int, int, int, OperationKind]], conflicting: set[tuple[int, int]]
) -> None:
    """The closure of the transactions in conflict, in each epoch apply."""
    expected = []
    for number in range(3):
        tracker = DependencyTracker({group for apply, group in conflicting if apply == number})
        for apply, key, group, kind in operations:
            if apply == number and kind is not OperationKind.EMPTY:
                tracker.touch(key, group)
        expected += [(number, group) for group in sorted(tracker.in_conflict())]
    columns = np.array(operations, np.int32).reshape(-1, 4).T
    pairs = dependent_groups(*columns[:3], columns[3].astype(np.int8), KEYS)
    found = in_conflict(np.array(sorted(conflicting), np.int32).reshape(-1, 2), pairs[:, 1:])
    assert [tuple(each) for each in found.tolist()] == expected


@attrs.define
class _Noting(Applier):
    """An applier that notes the max replicated epoch before each epoch apply."""

    known: list[tuple[int, int]] = attrs.field(factory=list)

    def apply_epoch(self, apply: EpochApply, source: ReplayedCluster) -> None:
        """Note it, and apply the epoch."""
        self.known.append((apply.foreign_epoch, self.cluster.max_replicated_epoch))
        super().apply_epoch(apply, source)


def without_functions(history: History) -> History:
    """Return a History of epochs alone: what its rows come to stops no applier."""
    return attrs.evolve(history, clusters=tuple(map(_emptied, history.clusters)))


def _emptied(cluster: Cluster) -> Cluster:
    timeline = [item if isinstance(item, EpochApply) else attrs.evolve(item, changes=()) for item in cluster.timeline]
    return attrs.evolve(cluster, timeline=tuple(timeline))


@given(st.integers(0, 2**32 - 1), st.integers(0, 120))
@examples(15, long=60)
def test_max_replicated_epoch(seed: int, steps: int) -> None:
    """Before every epoch apply."""
    history = without_functions(make_history(seed, steps, complete=True))
    setups = configuration(0).setups.at_end
    appliers = {
        each.name: _Noting(ReplayedCluster(each, setups[each.name], history.layouts)) for each in history.clusters
    }
    replay(history, appliers)
    planned = plan_applies(history.clusters)
    for number, cluster in enumerate(history.clusters):
        mine = planned.applier == number
        columns = planned.foreign_epoch[mine].tolist(), planned.max_replicated_epoch[mine].tolist()
        assert list(zip(*columns, strict=True)) == appliers[cluster.name].known


def test_effect_on_a_row() -> None:
    """In every case."""
    for refreshed, wrote, existed, exists in product((False, True), repeat=4):
        effect = effect_on_row(refreshed=refreshed, wrote=wrote, existed=existed, exists=exists)
        assert effect_number(refreshed, wrote, existed, exists) == (NO_EFFECT if effect is None else effect)


LOGGING = {
    "seed": st.integers(0, 2**32 - 1),
    "steps": st.integers(0, 120),
    "setting": st.integers(0, len(SETTINGS) - 1),
    "binlog_type": st.sampled_from(BINLOG_TYPES),
}


@given(**LOGGING)
@example(seed=9, steps=86, setting=9, binlog_type=7)  # an epoch is applied twice
@example(seed=9, steps=88, setting=9, binlog_type=7)  # in one own epoch
@example(seed=360, steps=93, setting=11, binlog_type=7)  # a row is refreshed twice in one group
@examples(15, long=60)
def test_what_appliers_log(seed: int, steps: int, setting: int, binlog_type: int) -> None:
    """One event per row that is refreshed or reflected, in each epoch apply."""
    history, run = make_history(seed, steps, complete=True), configuration(setting, binlog_type=binlog_type)
    setups = run.setups.at_end
    replayed = {each.name: ReplayedCluster(each, setups[each.name], history.layouts) for each in history.clusters}
    resolution = replay(history, {name: Applier(cluster) for name, cluster in replayed.items()})
    assume(all(each.stop is None for each in resolution.clusters.values()) and not compares_reflected(run))
    result = bucket_by_kernels(history, setups, resolution)
    logged, applies = result.folded.logged, result.applies
    keys = result.bucket.keys.column("identity").to_pylist()
    columns = logged.cluster, applies.epoch[logged.apply], applies.group[logged.apply], logged.key, logged.operation
    found = Counter(
        (number, epoch, group, keys[key][2:], operation, refresh)
        for number, epoch, group, key, operation, refresh in zip(
            *(each.tolist() for each in (*columns, logged.refresh)), strict=True
        )
    )
    assert found == Counter(
        (
            number,
            epoch,
            entry.group,
            entry.change.key,
            entry.change.operation,
            bool(entry.change.flags & ConflictFlag.REFRESH),
        )
        for number, cluster in enumerate(replayed.values())
        for epoch, entries in cluster.log.items()
        for entry in entries
        if isinstance(entry, LoggedChange) and entry.ordinal < 0 and entry.server_id == cluster.server_id
    )
