"""A run goes on until what its outages hold up is settled, or says what is not."""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.errors import ConfigurationError
from conflict.whatif.simulating.configuration import Model
from conflict.whatif.simulating.kernels.world import FOREVER
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.report import figures_of
from conflict.whatif.simulating.run import simulate
from tests.conflict.whatif.simulating.models import random_model
from tests.examples import examples

SECOND = 1_000_000
PAIR: dict[str, Any] = {
    "seconds": 4,
    "function": "NDB$EPOCH()",
    "recordcount": 20,
    "workload": {"transactions_per_second": 50},
    "clusters": {"A": {"link": {"outages": [[2, 6]]}}, "B": {"link": {"outages": [[2, 6]]}}},
}
RING: dict[str, Any] = {
    "seconds": 1,
    "function": "NDB$MAX(x)",
    "recordcount": 5,
    "workload": {"transactions_per_second": 20},
    "clusters": {
        "A": {"replicates_from": ["C"], "link": {"outages": [[0.5, 3]]}},
        "B": {"replicates_from": ["A"]},
        "C": {"replicates_from": ["B"]},
    },
}


def figures(model: Model, seed: int = 1) -> dict[str, Any]:
    """Return the figures of a run."""
    return figures_of(simulate(model, seed))


def total(found: dict[str, Any], *names: str) -> int:
    """Return the sum of some figures of all clusters."""
    return sum(site[name] for site in found["clusters"].values() for name in names)


def lost(found: dict[str, Any]) -> int:
    """Return how many changes were lost."""
    return total(found, "rejected", "overwritten")


@given(seed=st.integers(0, 2**32 - 1))
@examples(5, long=12)
def test_losses_never_fall_because_the_same_outage_is_watched_for_longer(seed: int) -> None:
    """A run that ends later has lost no less, and one that ends when it will has lost most; unsettled changes fall."""
    chance, model = Random(seed), random_model(seed, 1_500_000)
    outage = (chance.randrange(1_500_000), 1_500_000 + chance.randrange(30) * SECOND)
    link = attrs.evolve(model.sites[0].link, outages=(outage,))
    model = attrs.evolve(model, sites=(attrs.evolve(model.sites[0], link=link), model.sites[1]))
    drains = [*sorted(chance.randrange(40) * SECOND for _ in range(2)), None]
    runs = [figures(attrs.evolve(model, drain=drain), seed) for drain in drains]
    assert [lost(run) for run in runs] == sorted(lost(run) for run in runs)
    left = [total(run, "unsettled") for run in runs]
    assert left == sorted(left, reverse=True)
    stopped = any(site["applier"]["stopped_at_ms"] is not None for site in runs[-1]["clusters"].values())
    assert stopped or left[-1] == 0


@pytest.mark.parametrize("document", [PAIR, RING])
def test_a_run_goes_on_until_all_is_applied(document: dict[str, Any]) -> None:
    """However long the outage is: if it outlasts the users, neither their changes nor the losses depend on it."""
    found = {}
    for stop in (6, 600):
        clusters = {name: dict(each) for name, each in document["clusters"].items()}
        for each in clusters.values():
            if "link" in each:
                each["link"] = {"outages": [[each["link"]["outages"][0][0], stop]]}
        run = figures(parse_model({**document, "clusters": clusters}))
        assert (run["quiet_at_the_end"], total(run, "unsettled"), run["rows_that_end_different"]) == (1, 0, 0)
        found[stop] = (total(run, "changes"), lost(run))
    assert found[6] == found[600]
    assert found[6][1] > 0


@pytest.mark.parametrize("document", [PAIR, RING])
def test_a_run_that_ends_early_counts_what_is_not_settled(document: dict[str, Any]) -> None:
    """Of a cluster whose link is down until after the end, all changes since then, and those already on their way."""
    run = figures(parse_model({**document, "drain_seconds": 0}))
    left = {name: site["unsettled"] for name, site in run["clusters"].items()}
    assert run["quiet_at_the_end"] == 0
    for name, site in run["clusters"].items():
        down = document["clusters"][name].get("link")
        # Users work evenly; they do nothing else but change rows.
        assert 0.2 * site["changes"] < left[name] < 0.9 * site["changes"] or down is None


@pytest.mark.parametrize("document", [PAIR, RING])
def test_an_outage_without_an_end_leaves_changes_unsettled(document: dict[str, Any]) -> None:
    """The run ends when nothing else is left to happen, and says what waits."""
    clusters = {**document["clusters"], "A": {**document["clusters"]["A"], "link": {"outages": [[0.5]]}}}
    model = parse_model({**document, "clusters": clusters})
    assert model.sites[0].link.outages == ((SECOND // 2, FOREVER),)
    assert model.endless == ("the link from A stays down",)
    run = figures(model)
    assert run["quiet_at_the_end"] == 0
    assert 0 < run["clusters"]["A"]["unsettled"] < run["clusters"]["A"]["changes"]
    assert run["simulated_seconds"] < 60


def test_an_applier_that_stops_for_good_leaves_changes_unsettled() -> None:
    """Those of the other cluster."""
    clusters = {"A": {"applier": {"stops": [[1]]}}, "B": {}}
    model = parse_model({**PAIR, "clusters": clusters})
    run = figures(model)
    assert model.endless == ("the applier of A stays stopped",)
    assert run["clusters"]["A"]["unsettled"] == 0
    assert 0.5 * run["clusters"]["B"]["changes"] < run["clusters"]["B"]["unsettled"]


def test_clusters_that_never_come_to_rest_end() -> None:
    """Two that both take themselves for the primary reflect to each other without end, and lose nothing more by it."""
    clusters = {"A": {"role": "PRIMARY"}, "B": {"role": "PRIMARY"}}
    run = figures(parse_model({**PAIR, "function": "NDB$EPOCH2()", "clusters": clusters}))
    assert total(run, "unsettled") == 0
    assert run["simulated_seconds"] <= 64


@pytest.mark.parametrize(
    ("outages", "said"),
    [
        ([[2, 1]], r"outages#1 is \[2, 1\]; it must be \[from, to\] in seconds, or \[from\] for what has no end"),
        ([[1, 2], []], r"outages#2 is \[\]; it must be \[from, to\] in seconds, or \[from\]"),
        ([[1, 2, 3]], r"outages#1 is \[1, 2, 3\]; it must be \[from, to\] in seconds, or \[from\]"),
        ([["1"]], r"outages#1#1 is '1'; it must be a number from 0 to 1,000,000,000"),
        ([1], r"outages#1 is 1; it must be \[from, to\] in seconds, or \[from\]"),
        (1, r"outages is 1; it must be a list"),
    ],
)
def test_what_is_no_span_is_refused(outages: object, said: str) -> None:
    """With what one is."""
    with pytest.raises(ConfigurationError, match=said):
        parse_model({"clusters": {"A": {"link": {"outages": outages}}, "B": {}}})


def test_an_outage_of_too_many_epochs_is_refused() -> None:
    """With what to write for one that does not end."""
    with pytest.raises(ConfigurationError, match=r"one that has no end is \[from\]"):
        parse_model({"clusters": {"A": {"link": {"outages": [[1, 1e8]]}}, "B": {}}})
