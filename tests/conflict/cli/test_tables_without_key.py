"""Commands on recordings of a table without a primary key: what they do, or why they do not."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conflict.cli.app import app
from conflict.whatif.comparing import comparison
from tests.conflict.judge.test_options import write_run_file

# A's applier stops at the first epoch that it takes, so A's binlog shows nothing of it.
STOPPED = "max_ins/no_primary_key_type8"
SECOND = 124554051585  # epoch of A


def run(*arguments: object, code: int = 0) -> str:
    """Run a command, and return what it prints, without line breaks."""
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def test_a_stop_explains_that_nothing_was_applied(tmp_path: Path) -> None:
    """The stop is said, and no other cause is looked for; rows that differ are named though they have no stories."""
    said = run("resolve", write_run_file(STOPPED, tmp_path), "--policy", "needs", "--out", tmp_path / "out")
    assert "The applier of A stopped: error 1032" in said
    assert "log_replica_updates" not in said
    document = json.loads((tmp_path / "out/run.json").read_text())
    assert (document["likely_causes"], document["differing_rows"]["day.t1"] > 0) == ([], True)
    said = run("explain", tmp_path / "out", "--differences")
    assert "day.t1 has no primary key, so nothing tells which changes are of one row" in said


def test_a_start_in_the_middle_leaves_an_applier_without_a_trace(tmp_path: Path) -> None:
    """Both engines count the rows of tables without a primary key, and say that the binlog shows nothing of it."""
    path, causes = write_run_file(STOPPED, tmp_path), []
    for engine in ("reference", "local"):
        options = ["--policy", "needs", "--engine", engine, "--start-epoch", f"A={SECOND}", "--out", tmp_path / engine]
        said = run("resolve", path, *options)
        assert "The binlog of A shows no change of its applier" in said
        causes.append(json.loads((tmp_path / engine / "run.json").read_text())["likely_causes"])
    assert causes[0] == causes[1]


@pytest.mark.parametrize(
    ("command", "options", "reason"),
    [
        ("compare", ["--engine", "local"], "day.t1 without a primary key"),
        ("workload", ["--out", "{folder}/model.toml"], "no table of cluster A has a primary key"),
    ],
)
def test_commands_that_need_keys(command: str, options: list[str], reason: str, tmp_path: Path) -> None:
    """They refuse such a table, and say why."""
    path = write_run_file(STOPPED, tmp_path)
    assert reason in run(command, path, *(each.format(folder=tmp_path) for each in options), code=2)


def test_compare_refuses_before_it_resolves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables that have rows are named, others are not, and what is read of the binlogs goes again."""
    path = write_run_file(STOPPED, tmp_path)
    with (tmp_path / "schema.sql").open("a") as schema:
        schema.write("CREATE TABLE unused (a INT) ENGINE=NDB;\nCREATE TABLE keyed (a INT PRIMARY KEY) ENGINE=NDB;\n")
    monkeypatch.setattr(comparison, "settled", lambda *_: pytest.fail("it is resolved"))
    said = run("compare", path, "--out", tmp_path / "out", code=2)
    assert "day.t1" in said
    assert not any(name in said for name in ("day.unused", "day.keyed"))
    assert not (tmp_path / "out").exists()
    run("ingest", path, "--out", tmp_path / "history")
    assert "day.t1" in run("compare", path, "--history", tmp_path / "history", code=2)
