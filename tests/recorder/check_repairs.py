"""
Repairs of a pair of real clusters that diverged: their SQL makes all rows equal, and does nothing when it runs again.

`make test-ndb` runs this; the name keeps it out of other test runs.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import attrs
import pytest

from conflict import repair, resolve
from conflict.judge.case import ConflictCase
from tests.corpora import RECORDINGS
from tests.recorder import contents
from tests.recorder.appliers import Appliers
from tests.recorder.asking import run_file
from tests.recorder.clusters import Clusters, Pool
from tests.recorder.conftest import OUT
from tests.recorder.programs import program
from tests.recorder.recording import Scenario, record
from tests.recorder.sql_node import SqlNode

NOTES, DONE = "ndb_conflict_repairs", "all: done by an earlier run"
DIVERGED = (
    *("conflict/max/upd_upd_a_first_type7", "conflict/epoch/delete_delete_insert_type8"),
    *("conflict/max/random_1029_type9", "conflict/max_del_win_ins/upd_upd_a_first_type7"),
    "conflict/epoch_trans/delete_delete_type8",
)


@attrs.frozen
class Pair:
    """A pair that diverged, with its appliers running, and the recording of it."""

    clusters: Clusters
    nodes: dict[str, SqlNode]
    appliers: Appliers
    case: ConflictCase

    @property
    def database(self) -> str:
        return str(self.case.scenario["database"])

    def tables(self, name: str) -> dict[str, Any]:
        return contents.tables_of(self.nodes[name], self.database)[0]

    def run(self, client: Path, file: Path) -> list[list[str]]:
        """Run a file of a plan as its head says; return its report, a line for each transaction."""
        node = self.nodes[file.stem.partition("-")[2]]
        command = [str(client), "--no-defaults", "--user=root", f"--socket={node.folder / 'sock'}", "--batch"]
        command += ["--skip-column-names", "--default-character-set=utf8mb4"]
        environment = {name: value for name, value in os.environ.items() if name != "MYSQL_PWD"}
        done = subprocess.run(command, input=file.read_bytes(), capture_output=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr.decode()
        assert self.appliers.quiesce() == ""
        return [line.split("\t") for line in done.stdout.decode().splitlines()]

    def places(self) -> list[object]:
        return [node.position() for node in self.nodes.values()]


@pytest.fixture
def client() -> Path:
    """Return the program mysql."""
    return program(Path(os.environ["NDB"]), "mysql")


def diverged(pool: Pool, name: str, target: Path) -> Pair:
    """Record a scenario, and let its appliers go on."""
    scenario = Scenario.load(RECORDINGS / name)
    clusters = pool.clusters(scenario.topology, scenario.epoch_ms)
    shutil.rmtree(target, ignore_errors=True)
    record(scenario, clusters, target)
    nodes = dict(zip(scenario.servers, clusters.nodes, strict=True))
    return Pair(clusters, nodes, Appliers(nodes, scenario.links), ConflictCase.load(target))


@pytest.mark.usefixtures("password")
@pytest.mark.parametrize("name", DIVERGED)
def test_repairs_make_rows_equal(pool: Pool, client: Path, tmp_path: Path, name: str) -> None:
    """The files of a plan make all rows equal; of a second run and of the notes, no log has anything."""
    pair = diverged(pool, name, OUT / "repaired" / name)
    assert pair.tables("A") != pair.tables("B")
    file = run_file(pair.clusters, pair.case.path, tmp_path)
    result = resolve(file, out=tmp_path / "result", engine="reference", policy="needs")
    repair(result, {"*": "newest"}, deletes=True, out=tmp_path / "plan")
    files = sorted((tmp_path / "plan").glob("*.sql"))
    assert files
    reports = [pair.run(client, file) for file in files]
    assert all(left == "0" for report in reports for _, _, left, _ in report)
    assert pair.tables("A") == pair.tables("B")
    before = pair.places()
    again = [pair.run(client, file) for file in files]
    assert {tuple(line[1:]) for report in again for line in report} == {("0", line[2], DONE) for line in again[0]}
    assert pair.places() == before
    for node in pair.nodes.values():
        for file, *_ in node.rows("SHOW BINARY LOGS"):
            assert NOTES.encode() not in (node.folder / "data" / file).read_bytes()
    assert [pair.appliers.error(each) for each in pair.nodes] == [(0, "")] * 2
