"""What the explanation takes from binlogs is what the engines went by."""

from hypothesis import given
from hypothesis import strategies as st

from conflict.explaining.drafts import StoryFacts
from conflict.explaining.outcomes import Applied
from conflict.explaining.row_changes import RowLog
from conflict.history.model import Cluster
from conflict.history.timeline import EpochApply
from tests.conflict.engine.columnar.one_bucket import plan_applies
from tests.conflict.random_histories import make_history
from tests.examples import examples


def applies_of(cluster: Cluster) -> list[EpochApply]:
    """Return the epoch applies of a cluster, in order."""
    return [item for item in cluster.timeline if isinstance(item, EpochApply)]


@given(st.integers(0, 2**32 - 1), st.integers(0, 120))
@examples(15, long=60)
def test_max_replicated_epoch(seed: int, steps: int) -> None:
    """From one epoch apply on, it is what the kernels have before the next one."""
    history = make_history(seed, steps, complete=True)
    ids = {each.name: each.server_id for each in history.clusters}
    logs = {each.name: RowLog(each.name) for each in history.clusters}
    applied = {}
    for cluster in history.clusters:
        for apply in applies_of(cluster):
            if apply.traced and apply.reported:
                logs[cluster.name].reported.setdefault(apply.epoch, []).append((ids[apply.source], apply.foreign_epoch))
        applied[cluster.name] = [
            Applied(each.source, each.foreign_epoch, each.epoch, each.group) for each in applies_of(cluster)
        ]
    facts = StoryFacts(logs, applied, (), ids, {})
    planned = plan_applies(history.clusters)
    for number, cluster in enumerate(history.clusters):
        before = planned.max_replicated_epoch[planned.applier == number].tolist()
        assert [back for _, back in facts.came_back[cluster.name]][:-1] == before[1:]
