"""Commands on binlogs whose definitions change, as someone gives them who has little more than the binlogs."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conflict.cli.app import app
from tests.corpora import RECORDINGS, schema_file

CREATED = RECORDINGS / "everyday/max/ddl_drop_and_create_type7"
COPIED = RECORDINGS / "everyday/epoch2/ddl_drop_column_type8"


def run(*arguments: object, code: int = 0) -> str:
    """Run a command, and return what it prints, without line breaks."""
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert (code, None) == (done.exit_code, done.exception if done.exit_code != code else None), done.output
    return " ".join(done.output.split())


@pytest.fixture
def bare(tmp_path: Path) -> list[Path]:
    """Give the folders of both servers' binlogs, in which t1 is dropped and created again."""
    folders = [tmp_path / side for side in "AB"]
    for folder in folders:
        folder.mkdir()
        shutil.copy(CREATED / f"{folder.name}.binlog.000001", folder / "binlog.000001")
    return folders


def test_a_table_that_only_the_binlogs_define(bare: list[Path], tmp_path: Path) -> None:
    """Its conflicts are shown and its function is named; recorded: k=3 is on A alone at the end."""
    options = ["--engine", "local", "--conflict-fn", "day.t1=NDB$MAX(x)"]
    said = run("resolve", *bare, *options, "--out", tmp_path / "out")
    assert "it brings 53, which does not win over the row's 140." in said
    assert re.search(r" day\.t1 +NDB\$MAX\(x\) +\d+ +\d+ +1 ", said)
    assert "day.t1 k=3" in run("explain", tmp_path / "out", "--differences")
    run("conflicts", tmp_path / "out")
    run("report", tmp_path / "out", "--out", tmp_path / "report.html")


def test_comparing_a_table_that_only_the_binlogs_define(bare: list[Path], tmp_path: Path) -> None:
    """The functions are tried on it, and its own is marked."""
    options = ["--engine", "local", "--conflict-fn", "day.t1=NDB$MAX(x)", "--json", tmp_path / "pairs.json"]
    run("compare", *bare, *options)
    pairs = json.loads((tmp_path / "pairs.json").read_text())["pairs"]
    assert [pair["function"] for pair in pairs if pair["used"]] == ["NDB$MAX(x)"]
    assert not any(pair["error"] for pair in pairs)
    rejected = {pair["function"]: pair["conflicts"] for pair in pairs}
    # Nothing is rejected where every change is applied, but for those that find no row or one that is there.
    assert rejected["OVERWRITE"] < rejected["NDB$MAX(x)"]


def test_a_function_that_a_statement_took_away(tmp_path: Path) -> None:
    """The summary, the document and the report say which function there was."""
    folders = [tmp_path / side for side in "AB"]
    for folder in folders:
        folder.mkdir()
        shutil.copy(COPIED / f"{folder.name}.binlog.000001", folder / "binlog.000001")
    options = [
        "--engine",
        "local",
        "--schema",
        schema_file(COPIED, tmp_path),
        "--conflict-fn",
        "day.t*=NDB$EPOCH2()",
        "--primary",
        "A",
    ]
    said = run("resolve", *folders, *options, "--out", tmp_path / "out")
    assert re.search(r" day\.t1 +NDB\$EPOCH2\(6\) until a statement +\d+ +\d+ +1 ", said)
    configuration = json.loads((tmp_path / "out/run.json").read_text())["configuration"]
    assert [found["day.t1"] for found in configuration["earlier_functions"].values()] == [["NDB$EPOCH2(6)"]] * 2
    run("report", tmp_path / "out", "--out", tmp_path / "report.html")
    assert "until a statement" in (tmp_path / "report.html").read_text()
