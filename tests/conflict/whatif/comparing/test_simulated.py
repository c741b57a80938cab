"""A comparison of simulated binlogs finds what the simulation counted, which decides in another way."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.config.run_file import load_run_file
from conflict.whatif.comparing.comparison import Comparison, ComparisonWanted, compare_run
from conflict.whatif.simulating.report import figures_of
from conflict.whatif.simulating.run import Simulated, simulate
from conflict.whatif.simulating.run_folder import RUN_FILE, run_folder, write_run
from tests.conflict.whatif.simulating.models import random_model
from tests.examples import examples

ROWS = ("rejected_transactions", "partly_rejected_transactions")


def compared(run: Simulated, folder: Path) -> Comparison:
    """Compare the binlogs of a simulation."""
    with run_folder(folder, replace=folder.exists()) as work:
        write_run(run, work, schedule=True)
    return compare_run(load_run_file(folder / RUN_FILE), ComparisonWanted("OVERWRITE"), engine="local")


def assert_same(seed: int, folder: Path) -> None:
    """Lost changes and transactions are those of the simulation; appliers log as many rows as the binlogs show."""
    run = simulate(random_model(seed), seed)
    found = compared(run, folder)
    (figures,) = [row.figures for row in found.rows if row.used]
    assert figures is not None
    sites = figures_of(run)["clusters"]
    counted = {name: sum(site[name] for site in sites.values()) for name in ROWS}
    assert {name: getattr(figures, name) for name in ROWS} == counted
    for name, (rejected, _, lost) in figures.lost.items():
        assert rejected == sites[name]["rejected"]
        # Images with all columns do not show which of them a user set.
        if not run.world.tables["whole"].any():
            assert lost - rejected == sites[name]["overwritten"]
    assert sum(figures.logged.values()) == found.run.checks()["compared_with_binlogs"]


@given(seed=st.integers(0, 2**32 - 1))
@examples(4)
def test_simulated_binlogs(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of random models, with the schedule of the simulation."""
    assert_same(seed, tmp_path_factory.mktemp("simulated") / "run")


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_many_simulated_binlogs(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same, many times."""
    assert_same(seed, tmp_path_factory.mktemp("simulated") / "run")
