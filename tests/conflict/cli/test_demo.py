"""`ndb-conflict demo`: what somebody sees who has the program and nothing else."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conflict.cli.app import app
from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

ROOT = Path(__file__).parents[3]


def said_next() -> list[list[str]]:
    """Run the demo in its default folder, and return the commands that it says to type next."""
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == ExitCode.DONE, done.output
    return [shlex.split(command) for command in re.findall(r"^    ndb-conflict (.*)$", done.output, re.MULTILINE)]


def test_what_it_says_to_type_next_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs no checkout, and each command that it prints runs as it stands."""
    monkeypatch.chdir(tmp_path)
    commands = said_next()
    assert [command[0] for command in commands] == ["explain", "conflicts", "lost", "explain", "compare", "report"]
    for command in commands:
        assert invoke(*command)[0] == ExitCode.DONE, command
    assert (tmp_path / "build/demo/report.html").exists()


def test_the_row_that_it_explains_lost_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thing that it says to type shows a rejected update."""
    monkeypatch.chdir(tmp_path)
    assert "A rejects B's update (event 3)" in invoke(*said_next()[0])[1]


def test_it_runs_again_and_keeps_to_its_own_files(tmp_path: Path) -> None:
    """A demo that is there is made again; a folder with other files is refused, and nothing in it is changed."""
    assert invoke("demo", tmp_path / "of us")[0] == ExitCode.DONE
    assert invoke("demo", tmp_path / "of us")[0] == ExitCode.DONE
    (tmp_path / "of us/recording/run.toml").write_text("mine", encoding="utf-8")
    code, output = invoke("demo", tmp_path / "of us")
    assert code == ExitCode.REFUSED
    assert "is not that of the demo; give another folder" in " ".join(output.split())
    assert (tmp_path / "of us/recording/run.toml").read_text(encoding="utf-8") == "mine"


def test_a_wheel_has_every_file_of_the_packages() -> None:
    """What is not Python, the recording of the demo among it, is named as data of its package."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-data"]
    for package, patterns in named.items():
        data = {path for pattern in patterns for path in (ROOT / package).glob(pattern)}
        every = {path for path in (ROOT / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
        assert {path for path in every if path.suffix != ".py"} == data
    assert DEMO.parent == ROOT / "conflict"
    assert sum(path.stat().st_size for path in DEMO.iterdir()) < 100_000
