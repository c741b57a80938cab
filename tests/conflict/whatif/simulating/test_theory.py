"""Simulated conflicts against the closed form, within sampling error."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest

from conflict.whatif.simulating.kernels.world import Stamp
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.report import figures_of, intervals_of
from conflict.whatif.simulating.run import simulate
from conflict.whatif.simulating.theory import _share, predictions

UNIFORM: dict[str, Any] = {
    "seconds": 150,
    "tables": [{"name": "t", "recordcount": 500}],
    "clusters": {
        "A": {"link": {"latency": "lognormal", "latency_ms": 40, "spread": 0.5}},
        "B": {"link": {"latency_ms": 25}},
    },
}
WORKS = [
    {"transactions_per_second": 60},
    {"transactions_per_second": 300},
    {"transactions_per_second": 100, "rowspertransaction": 3, "readproportion": 0.3, "updateproportion": 0.7},
]


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("function", ["NDB$MAX(x)", "NDB$EPOCH()", "NDB$EPOCH2()"])
def test_uniform_rows_are_in_conflict_as_often_as_the_closed_form_says(function: str, work: dict[str, float]) -> None:
    """Within four standard deviations of a Poisson count, and 3 percent for what the closed form leaves out."""
    model = parse_model({**UNIFORM, "function": function, "workload": work})
    found = predictions(model, intervals_of([figures_of(simulate(model, 11))]))
    assert len(found) == (2 if "MAX" in function else 1)
    for each in found:
        assert each.expected > 50
        assert each.simulated == pytest.approx(each.expected, abs=4 * each.expected**0.5 + 0.03 * each.expected)


def test_a_clock_that_is_ahead() -> None:
    """Its cluster's changes win for as much longer: the other one's are in conflict more often, its own less often."""
    clusters = {"A": {**UNIFORM["clusters"]["A"], "clock_skew_ms": 60}, "B": UNIFORM["clusters"]["B"]}
    model = parse_model({**UNIFORM, "clusters": clusters, "function": "NDB$MAX(x)", "workload": WORKS[1]})
    found = {each.applier: each for each in predictions(model, intervals_of([figures_of(simulate(model, 11))]))}
    assert found["A"].expected > 2 * found["B"].expected > 100
    for each in found.values():
        assert each.simulated == pytest.approx(each.expected, abs=4 * each.expected**0.5 + 0.03 * each.expected)


@pytest.mark.parametrize(
    ("skews", "window"),
    [((0, 0), 0.1), ((50_000, 0), 0.15), ((0, 50_000), 0.05), ((70_000, 50_000), 0.12), ((0, 200_000), 0.0)],
)
def test_the_window_of_clocks_that_differ(skews: tuple[int, int], window: float) -> None:
    """
    A change from there that takes 0.1 s loses to one that was made here up to that long before, by the clocks.

    Worked out by hand: it is stamped t + skew there, and a change here at u with u + skew here. So it loses to those
    with u of at least t + skew there - skew here, up to its arrival at t + 0.1.
    """
    model = parse_model({"function": "NDB$MAX(x)", "clusters": {"A": {}, "B": {}}})
    here, there = (attrs.evolve(site, skew=skew) for site, skew in zip(model.sites, skews, strict=True))
    function = next(iter(model.setups["A"].values())).function
    assert function is not None
    share = _share(function, Stamp.CLOCK, here, there, (2.0, 3.0), (0.1, 9.0))
    assert share == pytest.approx(1 - math.exp(-2.0 * window))


def test_what_has_no_closed_form() -> None:
    """Transactions that are judged, rows that are not alike, rows that come and go."""
    for change in (
        {"function": "NDB$EPOCH_TRANS()"},
        {"function": "NDB$MAX(x)", "workload": {"requestdistribution": "zipfian"}},
        {"function": "NDB$EPOCH()", "workload": {"insertproportion": 0.5, "deleteproportion": 0.5}},
    ):
        model = parse_model({**UNIFORM, "seconds": 1, **change})
        assert predictions(model, intervals_of([figures_of(simulate(model, 1))])) == []


def test_windows_that_never_close() -> None:
    """After an outage of hours every change is in conflict; the length of the window is no number that overflows."""
    model = parse_model({"function": "NDB$EPOCH()", "clusters": {"A": {}, "B": {}}})
    site, other = model.sites
    function = next(iter(model.setups["A"].values())).function
    assert function is not None
    share = [_share(function, Stamp.NONE, site, other, (1.0, 1.0), (1.0, back)) for back in (0.0, 1e-9, 1e4)]
    assert share == [0.0, pytest.approx(1e-9), 1.0]
