"""Chains, rings and stars of clusters: worked by hand, and their laws."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ndb_formats.events.rows_event import Operation
from tests.conflict.histories import CLUSTERS, TABLES, Setups, setups
from tests.conflict.reference.test_placement import FUNCTIONS, check
from tests.conflict.worlds import Step, World, steps, world

MAX, OLD = "NDB$MAX(x)", "NDB$OLD(x)"
UPDATE, DELETE = Operation.UPDATE_ROW, Operation.DELETE_ROW


@attrs.frozen
class Network:
    """
    Clusters, and from which each one replicates.

    Attributes:
        sources: Per cluster, its sources.
        ignored: Per cluster and source, server ids that are left out: where a hub takes changes from several clusters,
            each of them would send those of the others back.
    """

    sources: tuple[tuple[int, ...], ...]
    ignored: dict[tuple[int, int], frozenset[int]] = attrs.field(factory=dict)

    def world(self, function: str | None) -> World:
        """Return clusters in this network."""
        size = len(self.sources)
        return world(function, clusters=size, sources=self.sources, ignored=self.ignored)


def star(size: int) -> Network:
    """Return a hub, A, that replicates with each of the others, both ways."""
    others = range(1, size)
    ignored = {(0, source): frozenset(each + 1 for each in others if each != source) for source in others}
    return Network((tuple(others), *((0,) for _ in others)), ignored)


NETWORKS = {
    "chain": Network(((), (0,), (1,))),
    "long chain": Network(((), (0,), (1,), (2,))),
    "ring": Network(((2,), (0,), (1,))),
    "ring of four": Network(((3,), (0,), (1,), (2,))),
    "star": star(3),
    "star of four": star(4),
    "one source": Network(((), (0,), (0,))),
}
BOTH_WAYS = ["ring", "ring of four", "star", "star of four"]


def tables(function: str | None, size: int) -> Setups:
    """Return the setups of a world's tables."""
    return setups(function, function, tables=TABLES, others=CLUSTERS[2:size])


@pytest.mark.parametrize("name", NETWORKS)
@settings(max_examples=25)
@given(function=st.sampled_from(FUNCTIONS), done=steps("tn"))
def test_what_happened_is_found_from_binlogs_alone(name: str, function: str, done: list[Step]) -> None:
    """Rows are right, no effect is contradicted, counters are within their ranges, and the answers go together."""
    made = NETWORKS[name].world(function)
    made.run(done)
    for cluster in range(len(made.replayed)):
        made.close(cluster)
    check(made, tables(function, len(made.replayed)), {})
