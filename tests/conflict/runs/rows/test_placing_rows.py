"""A few rows of an epoch after all traces tell that it was not applied; where they do not, all of them are read."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.configuration import Configuration
from conflict.config.run_file import load_run_file
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.readings import read_cluster
from conflict.history.tasks import Shared
from conflict.judge.case import ConflictCase
from conflict.runs.pipeline import run_by
from conflict.runs.resolving.settling import Settling
from conflict.runs.rows import placing_rows
from conflict.runs.rows.row_spans import WantedRows
from tests.conflict.runs.resolving.test_moments import FUNCTIONS, world
from tests.conflict.world_binlogs import write_world
from tests.conflict.worlds import random_steps
from tests.corpora import RECORDINGS
from tests.examples import examples


def ends(configuration: Configuration) -> list[tuple[str, int]]:
    """Return all own epochs of both clusters but their last ones."""
    clusters = configuration.clusters
    return [
        (each.name, epoch.number)
        for each in clusters
        for epoch in read_cluster(each, make_run(configuration)).epochs[:-1]
    ]


def readings(configuration: Configuration, end: tuple[str, int], folder: Path) -> int:
    """
    Resolve logs of which one ends after an epoch, with one row of each bucket read first.

    Return how often rows were read to place epochs of which few rows were to tell; the result is the reference
    engine's, which reads all of them.
    """
    name, last = end
    run = make_run(attrs.evolve(configuration, span=attrs.evolve(configuration.span, last={name: last})))
    read, wanted_rows = list[bool](), Settling._wanted

    def noted(*arguments: object) -> Shared[Mapping[str, WantedRows]]:
        found = wanted_rows(*arguments)  # type: ignore[arg-type]
        read.append(any(own.few.any() for own in found.load().values()))
        return found

    with patch.object(Settling, "_wanted", noted), patch.object(placing_rows, "FEW", 1):
        found = run_by("local", run, Folder(str(folder / f"found-{name}-{last}")))
    expected = run_by("reference", run, Folder(str(folder / f"expected-{name}-{last}")))
    assert found.summary.to_json() == expected.summary.to_json()
    assert found.summary.counters == expected.summary.counters
    return len(read) if any(read) else 0


@examples(6, long=100)
@given(st.sampled_from(FUNCTIONS), st.integers(0, 10_000), st.floats(0, 1))
def test_one_row_is_as_good_as_all(function: str, seed: int, cut: float) -> None:
    """Wherever a log of random changes ends."""
    made = world(function)
    made.run(random_steps(seed, 60, "tn"))
    for cluster in (0, 1):
        made.close(cluster)
    with tempfile.TemporaryDirectory() as folder:
        run = load_run_file(write_world(made, function, Path(folder))).configuration
        found = ends(run)
        readings(run, found[int(cut * (len(found) - 1))], Path(folder))


@pytest.mark.parametrize(
    "name",
    [
        "conflict/max/concurrent_5020_type7",
        pytest.param("conflict/epoch/hot_3020_type9", marks=pytest.mark.slow),
        pytest.param("conflict/epoch_trans/hot_3020_type8", marks=pytest.mark.slow),
        pytest.param("conflict/epoch2/concurrent_5021_type8", marks=pytest.mark.slow),
    ],
)
def test_recordings_that_end_earlier(name: str, tmp_path: Path) -> None:
    """After any epoch; sometimes the first row tells, and sometimes all have to be read."""
    configuration = ConflictCase.load(RECORDINGS / name).configuration()
    counted = Counter(readings(configuration, end, tmp_path) for end in ends(configuration)[::3])
    assert counted[1], "the first rows tell"
    assert counted[2], "all rows are read"


def test_first_ones_of_each_group() -> None:
    """Those with the least rank."""
    group, rank = np.array([5, 7, 5, 5, 7]), np.array([1, 0, -1, 0, 2])
    with patch.object(placing_rows, "FEW", 2):
        found = placing_rows._first_ones(group, rank)
    assert found.tolist() == [False, True, True, True, True]
