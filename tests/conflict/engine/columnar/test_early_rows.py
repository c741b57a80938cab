"""Rows that were judged some time before the commit: the kernels decide as the reference engine does."""

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.inference.replay import resolve
from conflict.engine.ledger.resolution import Resolution
from conflict.history.model import History
from conflict.history.timeline import EpochApply
from conflict.rules.decision import Cause, Verdict
from conflict.rules.replication_table import Role
from tests.conflict.engine.columnar.one_bucket import bucket_by_kernels
from tests.conflict.engine.inference.test_placement import truth_of
from tests.conflict.histories import Setups, layouts, setups
from tests.conflict.worlds import Step, World, steps, world
from tests.examples import examples

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


def decided_by_kernels(history: History, tables: Setups, resolution: Resolution) -> dict[str, list[object]]:
    """Return what the kernels decide on each operation of each applier, in order."""
    result = bucket_by_kernels(history, tables, resolution)
    found = result.folded.decisions
    rows = zip(found.apply.tolist(), found.verdict.tolist(), found.cause.tolist(), strict=True)
    decided: dict[str, list[object]] = {cluster.name: [] for cluster in history.clusters}
    for apply, verdict, cause in rows:
        decided[history.clusters[result.applies.applier[apply]].name].append((Verdict(verdict), Cause(cause)))
    return decided


@examples(15, long=60)
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
