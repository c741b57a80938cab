"""
Commands that ask running servers, asked of a pair of real clusters: `check`, `init` and `conflicts` with `--server`.

`make test-ndb` runs this; the name keeps it out of other test runs.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from conflict.judge.case import ConflictCase
from tests.conflict.cli.commands import invoke
from tests.corpora import RECORDINGS
from tests.recorder.clusters import READER, Clusters, Pool
from tests.recorder.conftest import OUT
from tests.recorder.recording import Scenario, record

RUNS = "conflict/epoch_trans/dependent_chain_type8"
STOPS = "conflict/max/probe_type8"


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the password of the account that reads."""
    monkeypatch.setenv("MYSQL_PWD", READER)


def recorded(pool: Pool, name: str) -> tuple[Clusters, Path]:
    """Record a scenario on servers that have counted nothing before; return them, and the folder."""
    scenario, target = Scenario.load(RECORDINGS / name), OUT / "asked" / name
    clusters = pool.clusters(scenario.topology, scenario.epoch_ms)
    for node in clusters.nodes:
        clusters.restart_server(node)
    shutil.rmtree(target, ignore_errors=True)
    record(scenario, clusters, target)
    return clusters, target


def addresses(clusters: Clusters) -> Iterator[str]:
    for node in clusters.nodes:
        yield from ("--server", f"{node.cluster}=mysql://{READER}@127.0.0.1:{node.port}/")


def run(*arguments: object, code: int = 0) -> str:
    """Run a command, and return its output."""
    exit_code, output = invoke(*arguments)
    assert exit_code == code, output
    return output


@pytest.mark.usefixtures("password")
def test_a_pair_is_asked(pool: Pool, tmp_path: Path) -> None:
    """A pair that works has no error; the result of its run file and binlogs is what it counted and recorded."""
    clusters, folder = recorded(pool, RUNS)
    run("check", *addresses(clusters))
    file = tmp_path / "run.toml"
    run("init", *addresses(clusters), "--out", file)
    for name, files in ConflictCase.load(folder).scenario["binlog_files"].items():
        for log in files:
            shutil.copy(folder / log, tmp_path / name / log.partition(".")[2])
    run("resolve", file, "--out", tmp_path / "result", "--engine", "reference")
    assert "0 differences" in run("conflicts", tmp_path / "result", *addresses(clusters))


@pytest.mark.usefixtures("password")
def test_what_will_stop_is_foretold(pool: Pool) -> None:
    """Of a pair whose applier stopped, `check` finds the cause."""
    clusters, folder = recorded(pool, STOPS)
    stopped = {name: each["applier"]["errno"] for name, each in ConflictCase.load(folder).recorded.items()}
    assert 1296 in stopped.values()
    assert "1296" in run("check", *addresses(clusters), code=1)
