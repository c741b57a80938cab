"""
Commands that ask running servers, asked of a pair of real clusters: `check`, `init` and `conflicts` with `--server`.

`make test-ndb` runs this; the name keeps it out of other test runs.
"""

import shutil
from pathlib import Path

import pytest

from conflict.judge.case import ConflictCase
from tests.corpora import RECORDINGS
from tests.recorder.asking import addresses, run, run_file
from tests.recorder.clusters import Clusters, Pool
from tests.recorder.conftest import OUT
from tests.recorder.recording import Scenario, record

RUNS = "conflict/epoch_trans/dependent_chain_type8"
STOPS = "conflict/max/probe_type8"


def recorded(pool: Pool, name: str) -> tuple[Clusters, Path]:
    """Record a scenario on servers that have counted nothing before; return them, and the folder."""
    scenario, target = Scenario.load(RECORDINGS / name), OUT / "asked" / name
    clusters = pool.clusters(scenario.topology, scenario.epoch_ms)
    for node in clusters.nodes:
        clusters.restart_server(node)
    shutil.rmtree(target, ignore_errors=True)
    record(scenario, clusters, target)
    return clusters, target


@pytest.mark.usefixtures("password")
def test_a_pair_is_asked(pool: Pool, tmp_path: Path) -> None:
    """A pair that works has no error; the result of its run file and binlogs is what it counted and recorded."""
    clusters, folder = recorded(pool, RUNS)
    run("check", *addresses(clusters))
    file = run_file(clusters, folder, tmp_path)
    run("resolve", file, "--out", tmp_path / "result", "--engine", "reference")
    assert "0 differences" in run("conflicts", tmp_path / "result", *addresses(clusters))


@pytest.mark.usefixtures("password")
def test_what_will_stop_is_foretold(pool: Pool) -> None:
    """Of a pair whose applier stopped, `check` finds the cause."""
    clusters, folder = recorded(pool, STOPS)
    stopped = {name: each["applier"]["errno"] for name, each in ConflictCase.load(folder).recorded.items()}
    assert 1296 in stopped.values()
    assert "1296" in run("check", *addresses(clusters), code=1)
