"""What `resolve` says to type next."""

import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow.dataset as pads
import pytest
from typer.testing import CliRunner

import conflict
from conflict.cli.app import app
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO


def said_next(*arguments: object, code: int = 0) -> tuple[list[list[str]], str]:
    """Resolve; return the commands to type next, and the call in Python."""
    done = CliRunner().invoke(app, ["resolve", *map(str, arguments)])
    assert done.exit_code == code, done.output
    assert "ndb-conflict" not in done.stdout
    commands = re.findall(r"^  ndb-conflict (.*)$", done.stderr, re.MULTILINE)
    (call,) = re.findall(r"^  Python: (.*)$", done.stderr, re.MULTILINE)
    return [shlex.split(command, comments=True) for command in commands], call


def called(call: str) -> Any:
    """Return what a call of the library returns."""
    return eval(call, {"conflict": conflict})  # it is what is tested


def test_each_command_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is in its default folder; paths with blanks are quoted, and the row that is explained was rejected."""
    monkeypatch.chdir(tmp_path)
    commands, _ = said_next(DEMO / "run.toml")
    assert [command[:2] for command in commands] == [
        [name, "result"] for name in ("conflicts", "explain", "lost", "explain", "report")
    ] + [["compare", str(DEMO / "run.toml")]]
    assert all(invoke(*command)[0] == 0 for command in commands)
    assert "rejects" in invoke(*commands[1])[1]
    assert (tmp_path / "report.html").exists()
    commands, _ = said_next(DEMO / "run.toml", "--out", "of us/last night")
    assert invoke(*commands[0])[0] == 0


def test_the_call_gives_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all options that were given, and none that was not."""
    monkeypatch.chdir(tmp_path)
    additions = ["--schema", DEMO / "schema.sql", "--conflict-fn", "cft.t*=NDB$EPOCH()", "--primary", "server1"]
    commands, _ = said_next(DEMO, *additions)
    assert commands[-1] == ["compare", str(DEMO), *map(str, additions)]
    assert invoke(*commands[-1])[0] == 0
    commands, call = said_next(
        DEMO, *additions, "--force", "--stop-epoch", "server1=5321464479747", "--engine", "reference"
    )
    assert "compare" not in [command[0] for command in commands]  # it takes the whole of the logs
    given = {"schema", "conflict_fn", "primary", "stop_epoch", "engine", "force", "out"}
    assert {*re.findall(r"(\w+)=", call)} == given
    (tmp_path / "result").rename(tmp_path / "first")
    again = called(call)
    first = conflict.read_result("first")
    assert again.counters == first.counters
    assert again.outcomes().equals(first.outcomes())


def test_a_contradicted_row_is_explained_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The binlogs of the demo under another function: a row that they show otherwise has a story."""
    monkeypatch.chdir(tmp_path)
    additions = ["--schema", DEMO / "schema.sql", "--conflict-fn", "cft.t1=NDB$MAX(x)", "--policy", "needs"]
    commands, _ = said_next(DEMO, *additions, code=1)
    assert len({tuple(command) for command in commands}) == len(commands)
    assert commands[0][:2] == ["explain", "result"]
    options = dict(zip(commands[0][2::2], commands[0][3::2], strict=True))
    contradicted = pads.dataset("result/contradictions").to_table(["table", "key"]).to_pylist()
    assert {"table": options["--table"], "key": options["--key"]} in contradicted
    assert invoke(*commands[0])[0] == 0
