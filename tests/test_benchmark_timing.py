"""Runs in turns."""

import itertools

import pytest

from benchmarks import timing
from benchmarks.timing import Run, in_turns


def works(order: list[str]) -> dict[str, object]:
    """Return two works that note when they run; each takes as many seconds as there were runs before."""

    def run(name: str) -> Run:
        order.append(name)
        return Run(float(len(order)), 0.0)

    return {name: lambda name=name: run(name) for name in ("job", "peer")}


def test_a_quiet_machine_runs_each_round_once(monkeypatch: pytest.MonkeyPatch):
    """Works take turns."""
    monkeypatch.setattr(timing, "_stolen_seconds", lambda: 0.0)
    order: list[str] = []
    found = in_turns(works(order), 3, again=2)
    assert order == ["job", "peer"] * 3
    assert {name: [run.wall for run in runs] for name, runs in found.items()} == {"job": [1, 3, 5], "peer": [2, 4, 6]}


def test_rounds_of_which_least_was_stolen_count(monkeypatch: pytest.MonkeyPatch):
    """They count for all works alike, whatever these took."""
    stolen = itertools.accumulate([0, 5e12, 0, 7e12, 0, 1.0, 0, 1e5, 0])
    monkeypatch.setattr(timing, "_stolen_seconds", lambda: next(stolen))
    found = in_turns(works([]), 2, again=2)
    assert {name: [run.wall for run in runs] for name, runs in found.items()} == {"job": [5, 7], "peer": [6, 8]}
    first, second = (run.stolen for run in found["job"])
    assert first < second
