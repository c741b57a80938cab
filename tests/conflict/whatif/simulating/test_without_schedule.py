"""The binlogs of a simulation come to the same in both engines when nothing but the binlogs tells the schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

from conflict.config.run_file import load_run_file
from conflict.runs.pipeline import resolve
from conflict.whatif.simulating.run import simulate
from conflict.whatif.simulating.run_folder import write_run
from tests.conflict.whatif.simulating.models import random_model


# Rows that are sent back several times in one epoch (75, 98, 461); an applier that changed nothing (146).
@pytest.mark.parametrize("seed", [75, 98, 146, 461])
def test_both_engines_find_the_same(tmp_path: Path, seed: int) -> None:
    """What is decided, what stays open, and what the binlogs say about their servers."""
    write_run(simulate(random_model(seed, 700_000), seed), tmp_path)
    text = (tmp_path / "run.toml").read_text("utf-8")
    (tmp_path / "bare.toml").write_text(text[: text.index("[[schedule")], "utf-8")
    found = [
        resolve(load_run_file(tmp_path / "bare.toml"), str(tmp_path / engine), engine=engine)
        for engine in ("local", "reference")
    ]
    columnar, reference = (
        (run.summary.counters, run.summary.undecided, run.summary.counter_ranges, run.summary.rows, run.likely_causes)
        for run in found
    )
    assert columnar == reference
