"""
Commands that ask running servers, asked of a pair of real clusters: `check`, `init` and `conflicts` with `--server`.

`make test-ndb` runs this; the name keeps it out of other test runs.
"""

import json
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
    """A pair that works has no finding but notes; its run file and binlogs give what it counted and recorded."""
    clusters, folder = recorded(pool, RUNS)
    run("check", *addresses(clusters))
    file = run_file(clusters, folder, tmp_path)
    run("resolve", file, "--out", tmp_path / "result", "--engine", "reference")
    given = ConflictCase.load(folder).recorded.values()
    rows = sum(len(table["rows"]) for each in given for table in each["exceptions"].values())
    said = run("conflicts", tmp_path / "result", *addresses(clusters))
    assert said.startswith("The servers show what the result derived"), said
    assert f" and {rows} rows of exceptions tables." in said


@pytest.mark.usefixtures("password")
def test_what_will_stop_is_foretold(pool: Pool, tmp_path: Path) -> None:
    """Of a pair whose applier stopped at a delete, `check` warns of such deletes, and of the applier."""
    clusters, folder = recorded(pool, STOPS)
    stopped = {name: each["applier"]["errno"] for name, each in ConflictCase.load(folder).recorded.items()}
    assert stopped == {"A": 1296, "B": 0}  # B was stopped by hand
    run("check", *addresses(clusters), "--json", tmp_path / "check.json", code=4)
    found = json.loads((tmp_path / "check.json").read_text("utf-8"))["findings"]
    about = {each["code"]: each for each in found}
    assert {"cluster": "A", "table": "cft.t1"} in about["NDB-E013"]["places"]
    assert about["NDB-E013"]["error"] == 1296
    (stands,) = (each for each in found if each["code"] == "NDB-E103" and "1296" in each["sentence"])
    assert [place["cluster"] for place in stands["places"]] == ["A"]
