"""Runs with the same seed have the same users and the same journeys of epochs, whatever their functions decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.run import Simulated, simulate
from conflict.whatif.sweeping.sweep_file import document_at

MODEL: dict[str, Any] = {
    "seconds": 3,
    "recordcount": 30,
    "workload": {
        "transactions_per_second": 80,
        "insertproportion": 0.1,
        "updateproportion": 0.6,
        "deleteproportion": 0.1,
        "readproportion": 0.2,
        "requestdistribution": "zipfian",
        "rowspertransaction": {"1": 2, "3": 1},
        "retries": 2,
        "retry_delay_ms": 20,
        "think_ms": 5,
        "check_reads": True,
    },
    "clusters": {
        "A": {"link": {"latency": "lognormal", "latency_ms": 40, "spread": 0.5}},
        "B": {"link": {"latency": "normal", "latency_ms": 60, "spread": 20}},
    },
}
FUNCTIONS = ["NDB$MAX(x)", "NDB$EPOCH()", "NDB$EPOCH2_TRANS()", "NDB$MAX_DEL_WIN_INS(x)", None]


def simulated(function: str | None, seed: int = 3, **others: Any) -> Simulated:
    """Return a run under a function."""
    point = {**({} if function is None else {"function": function}), **others}
    return simulate(parse_model(document_at(MODEL, point)), seed)


@pytest.fixture(scope="module")
def runs() -> list[Simulated]:
    return [simulated(function) for function in FUNCTIONS]


def test_users_want_the_same(runs: list[Simulated]) -> None:
    """When, which rows, what of them, which columns."""
    first, *others = (run.world.intentions for run in runs)
    for other in others:
        for one, two in zip(first, other, strict=True):
            assert np.array_equal(one, two)


def test_epochs_have_the_same_journeys(runs: list[Simulated]) -> None:
    """By their numbers; functions differ in which epochs are logged at all, and each logged one took as long."""
    took: dict[tuple[int, int], set[int]] = {}
    for run in runs:
        for side in (0, 1):
            epochs = run.world.epochs[side, : int(run.world.site[side]["logged"])]
            for epoch in epochs[epochs["closed"] > run.start]:
                place = (side, int(epoch["closed"]))
                took.setdefault(place, set()).add(int(run.world.latency[side, _tick(run, side, epoch)]))
    assert max(map(len, took.values())) == 1
    assert len(took) > 50
    assert len({next(iter(each)) for each in took.values()}) > 50, "they are drawn"


def _tick(run: Simulated, side: int, epoch: np.void) -> int:
    """Return which epoch of its cluster one is, from its end and the first one's beginning."""
    settings = run.world.settings[side]
    return int((epoch["closed"] - settings["phase"]) // settings["epoch"]) - 1


def test_what_happens_differs(runs: list[Simulated]) -> None:
    """It is the functions that make the difference: conflicts and logged epochs are not the same."""
    conflicts = {int(run.world.run[0]["made"]) for run in runs}
    assert len(conflicts) > 3


def test_another_seed_draws_anew() -> None:
    """For the users and for the journeys."""
    one, other = (simulated("NDB$EPOCH()", seed) for seed in (3, 4))
    assert not np.array_equal(one.world.intentions.start, other.world.intentions.start)
    assert not np.array_equal(one.world.latency, other.world.latency)


@pytest.mark.parametrize("axis", [{"latency_ms": 90}, {"binlog_type": 8}, {"clock_skew_ms": 30}])
def test_other_axes_draw_the_same(axis: dict[str, Any], runs: list[Simulated]) -> None:
    """Users want the same along a link that is longer, too; its journeys are as much longer."""
    found = simulated("NDB$MAX(x)", **axis)
    for one, two in zip(runs[0].world.intentions, found.world.intentions, strict=True):
        assert np.array_equal(one, two)
    if "latency_ms" in axis:
        longer = found.world.latency[0] / runs[0].world.latency[0]
        assert longer == pytest.approx(np.full(len(longer), 90 / 40), rel=1e-3)
