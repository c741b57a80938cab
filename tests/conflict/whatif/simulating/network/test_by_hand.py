"""Rings of three clusters small enough to be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from conflict.errors import ConfigurationError
from conflict.whatif.simulating.figures import final_rows
from conflict.whatif.simulating.kernels.world import RESOLVE_BIT, Wish
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.report import figures_of
from conflict.whatif.simulating.run import Simulated, simulate
from conflict.whatif.simulating.workload import Drawn

MILLISECOND = 1000
RING = {"A": "C", "B": "A", "C": "B"}


def document(sources: dict[str, str] = RING, **entries: object) -> dict[str, object]:
    """A simulation of a table with two rows; links of 150 ms, appliers that take no time."""
    clusters = {
        name: {
            "replicates_from": [source] if source else [],
            "link": {"latency_ms": 150},
            "applier": {"epoch_ms": 0, "row_us": 0},
        }
        for name, source in sources.items()
    }
    return {"seconds": 5, "recordcount": 2, "columns": 1, "clusters": clusters, **entries}


def updates(*moments: int, key: int = 0) -> Drawn:
    """Updates of a row at some milliseconds, which set all columns."""
    start = np.array(moments, np.int64) * MILLISECOND
    count = len(start)
    writes = np.full(count, np.uint64(1) | RESOLVE_BIT)
    kinds = np.full(count, int(Wish.UPDATE), np.int8)
    zeros = np.zeros(count, np.int64)
    return Drawn(start, np.ones(count, np.int64), kinds, zeros, zeros + key, writes)


def payloads(run: Simulated) -> list[list[int | None]]:
    """The data column of each row on each cluster, in order of keys."""
    table = run.model.schema.tables[0].full_name
    return [[row[1] for row in final_rows(run, site.name, table)] for site in run.model.sites]


@pytest.mark.parametrize("seed", range(3))
def test_the_later_of_two_changes_wins_all_round(seed: int) -> None:
    """
    A changes the row at 1000 ms, B at 1010 ms. A's change is rejected on B, so C never sees it; B's goes to C and A.

    Changes wait up to 100 ms for the end of the epoch and 150 ms on the link; from B to A that happens twice. When A's
    change comes to B, the epoch of B's own is over.
    """
    model = parse_model(document(function="NDB$MAX(x)"))
    run = simulate(model, seed, wanted=[updates(1000), updates(1010), updates()])
    found = figures_of(run)
    sites = found["clusters"]
    assert {name: site["counters"] for name, site in sites.items()} == {
        "A": {},
        "B": {"Ndb_conflict_fn_max": 1},
        "C": {},
    }
    assert {name: site["applier"]["received"] for name, site in sites.items()} == {"A": 1, "B": 1, "C": 1}
    assert {name: site["rejected"] for name, site in sites.items()} == {"A": 1, "B": 0, "C": 0}
    assert not any(site["overwritten"] for site in sites.values())
    assert found["rows_that_end_different"] == 0
    assert payloads(run)[0] == payloads(run)[1] == payloads(run)[2]
    # Nothing of A's epoch changed on B, so it was not logged there, and A's change never came to all clusters.
    assert sites["A"]["everywhere_ms"]["max"] == 0
    assert 150 < sites["A"]["window_ms"]["mean"] <= 250
    assert 150 < sites["B"]["window_ms"]["mean"] <= 250
    assert 300 < sites["B"]["everywhere_ms"]["max"] <= 500
    # From 1000 ms until A has B's change, which it took at 1010 ms.
    assert found["stale_ms"]["max"] == pytest.approx(sites["B"]["everywhere_ms"]["max"] + 10)


@pytest.mark.parametrize("seed", range(3))
def test_without_a_function_both_changes_are_overwritten(seed: int) -> None:
    """B's change is overwritten on B by A's, and again on C; A's on A by B's: the row ends different on A."""
    run = simulate(parse_model(document(x="none")), seed, wanted=[updates(1000), updates(1010), updates()])
    found = figures_of(run)
    sites = found["clusters"]
    assert {name: site["overwritten"] for name, site in sites.items()} == {"A": 1, "B": 1, "C": 0}
    assert not any(site["rejected"] for site in sites.values())
    # A receives B's change; B receives A's; C receives both.
    assert {name: site["applier"]["applied"] for name, site in sites.items()} == {"A": 1, "B": 1, "C": 2}
    assert found["rows_that_end_different"] == 1
    first, second, third = payloads(run)
    assert first[0] != second[0] == third[0]


def test_a_change_that_saw_the_other_overwrites_nothing() -> None:
    """A's change is on C within 500 ms, and C changes the row after 1 s."""
    run = simulate(parse_model(document(x="none")), 1, wanted=[updates(1000), updates(), updates(2000)])
    found = figures_of(run)
    assert not any(site["overwritten"] or site["rejected"] for site in found["clusters"].values())
    assert found["rows_that_end_different"] == 0
    assert found["clusters"]["A"]["window_ms"]["back"] > found["clusters"]["A"]["everywhere_ms"]["max"] > 100


def test_a_chain_does_not_go_back() -> None:
    """C's change stays there; A's goes to both others."""
    model = parse_model(document({"A": "", "B": "A", "C": "B"}, x="none"))
    found = figures_of(simulate(model, 1, wanted=[updates(1000), updates(), updates(1000, key=1)]))
    received = {name: site["applier"]["received"] for name, site in found["clusters"].items()}
    assert received == {"A": 0, "B": 1, "C": 1}
    assert found["rows_that_end_different"] == 1
    assert found["clusters"]["C"]["window_ms"]["max"] == 0


def test_a_run_is_a_function_of_its_seed() -> None:
    """The same figures for the same seed, others for another."""
    model = parse_model(document(function="NDB$OLD(x)", x="version"))
    first, again, other = (figures_of(simulate(model, seed)) for seed in (7, 7, 8))
    assert first == again != other


def test_an_outage_that_outlasts_the_run_leaves_epochs_unapplied() -> None:
    """What A changed in the meantime reaches nobody."""
    made = document(function="NDB$MAX(x)", drain_seconds=1)
    clusters = {**made["clusters"], "A": {**made["clusters"]["A"], "link": {"outages": [[0, 1000]]}}}  # type: ignore[index, dict-item]
    found = figures_of(simulate(parse_model({**made, "clusters": clusters}), 1))
    assert not found["quiet_at_the_end"]
    assert found["clusters"]["A"]["epochs"]["never_applied"] == found["clusters"]["A"]["epochs"]["logged"] > 0
    assert found["clusters"]["B"]["applier"]["received"] == 0


def test_figures_have_the_names_of_a_pair() -> None:
    """All but the bytes in other formats; what a pair lacks is the time to all clusters."""
    pair = simulate(parse_model({"seconds": 1, "recordcount": 10}), 1)
    ring = simulate(parse_model(document()), 1)
    mine, theirs = figures_of(ring), figures_of(pair)
    assert mine.keys() == theirs.keys()
    assert theirs["clusters"]["A"].keys() ^ mine["clusters"]["A"].keys() == {"row_event_bytes", "everywhere_ms"}
    for name in ("applier", "epochs", "window_ms"):
        assert mine["clusters"]["A"][name].keys() == theirs["clusters"]["A"][name].keys()


WRONG = [
    (document(function="NDB$EPOCH()"), "works between two clusters, and the run has 3"),
    (document({"A": "", "B": "", "C": "B"}), "no cluster reaches all others: B does not reach A"),
    ({"clusters": {"A": {}, "B": {}, "C": {}}}, "needs replicates_from"),
    ({"clusters": {"A": {"replicates_from": ["B"]}, "B": {"replicates_from": ["A"]}}}, "leave out replicates_from"),
    (document({"A": "D", "B": "A", "C": "B"}), "replicates_from of cluster A has 'D'"),
    (document({"A": "B", "B": "A", "C": "D", "D": "C"}), "no cluster reaches all others: A does not reach C"),
    ({"clusters": {"A": {}}}, "two or more clusters"),
    ({"clusters": {"A": {}, "../B": {}}}, "is no name for a cluster"),
    ({"clusters": {"A": {"server_id": 2}, "B": {}}}, "have server_id 2"),
    ({"clusters": {"A": {"replicates_from": "B"}, "B": {}}}, "a list of names"),
]


@pytest.mark.parametrize(("made", "message"), WRONG)
def test_what_cannot_be_simulated_is_refused(made: dict[str, object], message: str) -> None:
    """With a sentence."""
    with pytest.raises(ConfigurationError, match=message):
        parse_model(made)


def test_a_hub_is_refused() -> None:
    """Each cluster has one source."""
    made = document()
    clusters = made["clusters"]
    assert isinstance(clusters, dict)
    clusters["A"]["replicates_from"] = ["B", "C"]
    with pytest.raises(ConfigurationError, match="each replicates from one other"):
        parse_model(made)
