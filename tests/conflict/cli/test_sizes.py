"""`ndb-conflict sizes`: the answer, as text, JSON and chart."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conflict.cli import app as cli
from conflict.cli.refusals import ExitCode
from tests.corpora import DEMO, RECORDINGS

FOLDER = RECORDINGS / "ndb_formats" / "composite_type7"
LOG, SCHEMA = str(FOLDER / "binlog.000001"), str(FOLDER / "schema.sql")
FILE = 1, "2026-11-20T15:36:53+00:00", "2026-11-20T15:36:54+00:00"  # server, first and last rows event


def test_the_document(tmp_path: Path) -> None:
    """Bytes by format, table and kind of change; type 7 is the log as it is, and type 9 what a server recorded."""
    target = tmp_path / "sizes.json"
    done = CliRunner().invoke(cli.app, ["sizes", LOG, "--schema", SCHEMA, "--json", str(target)])
    assert done.exit_code == ExitCode.DONE, done.output
    found = json.loads(target.read_text("utf-8"))
    assert found["total"] == found["file_bytes"] == Path(LOG).stat().st_size
    recorded = (FOLDER.with_name("composite_type9") / "binlog.000001").stat().st_size
    for name, size in (("7", Path(LOG).stat().st_size), ("9", recorded)):
        amounts = found["totals"]["formats"][name]
        assert found["frame"] + amounts["least"]["bytes"] == found["frame"] + amounts["most"]["bytes"] == size
    assert [table["table"] for table in found["tables"]] == ["fmt.composite", "fmt.second"]
    assert found["tables"][0]["changes"]["update"]["rows"] == 7
    assert found["every_column_set"]["8"] > 0
    assert len(found["columns"]) == 8
    assert found["compression"]["compressed"] < found["compression"]["plain"]
    (file,) = found["files"]
    assert file["bytes"] == found["file_bytes"]
    assert (file["server_id"], file["first_change"], file["last_change"]) == FILE, "as mysqlbinlog prints them"


def test_the_sizes_of_each_file(tmp_path: Path) -> None:
    """They are those of the file alone, and add up to those of the log; the files are of one server each."""
    logs, target = [str(DEMO / f"{name}.binlog.000001") for name in "AB"], tmp_path / "sizes.json"

    def measured(*files: str) -> dict[str, Any]:
        options = ["--schema", str(DEMO / "schema.sql"), "--json", str(target), "--force"]
        done = CliRunner().invoke(cli.app, ["sizes", *files, *options])
        assert done.exit_code == ExitCode.DONE, done.output
        document: dict[str, Any] = json.loads(target.read_text("utf-8"))
        return document

    both, alone = measured(*logs), [measured(each) for each in logs]
    assert [each["server_id"] for each in both["files"]] == [1, 2]
    for each, own in zip(both["files"], alone, strict=True):
        assert each["frame"] + each["logged"] == each["bytes"]
        assert (each["frame"], each["logged"]) == (own["frame"], own["totals"]["logged"]["bytes"])
        bounds = {
            name: {bound: of[bound]["bytes"] for bound in each["formats"][name]}
            for name, of in own["totals"]["formats"].items()
        }
        assert each["formats"] == bounds
    assert (
        sum(each["formats"]["8"]["most"] for each in both["files"]) == both["totals"]["formats"]["8"]["most"]["bytes"]
    )


def test_without_any_definition_the_log_is_refused(tmp_path: Path) -> None:
    """The tables are named, with what to do; nothing is written."""
    target = tmp_path / "sizes.json"
    done = CliRunner().invoke(cli.app, ["sizes", LOG, "--json", str(target)])
    assert done.exit_code == ExitCode.REFUSED
    assert "no definition of fmt.composite, fmt.second" in done.output
    assert not target.exists()


def test_rows_of_a_table_without_a_definition_count_as_they_are(tmp_path: Path) -> None:
    """The table is named, and the exit code warns; a definition without a database stands for the other table."""
    target, schema = tmp_path / "sizes.json", tmp_path / "schema.sql"
    schema.write_text(Path(SCHEMA).read_text("utf-8").split("CREATE TABLE second")[0], "utf-8")
    done = CliRunner().invoke(cli.app, ["sizes", LOG, "--schema", str(schema), "--json", str(target)])
    assert done.exit_code == ExitCode.WARNED
    assert "No definition of fmt.second:" in done.output
    changes = json.loads(target.read_text("utf-8"))["tables"][1]["changes"].values()
    assert {each["formats"]["8"]["most"]["bytes"] - each["logged"]["bytes"] for each in changes} == {0}


def test_each_table_with_its_binlog_type(tmp_path: Path) -> None:
    """The sizes are those of each table in the type of its row; servers that differ are told apart."""
    rows, target = tmp_path / "rows.csv", tmp_path / "sizes.json"
    asked = ["--ndb-replication", str(rows), "--json", str(target), "--force"]
    for types in ({"composite": "8", "second": "9"}, {"composite": "7", "second": "7"}):
        lines = [f"fmt,{table},0,{number},\\N" for table, number in types.items()]
        rows.write_text("\n".join(["db,table_name,server_id,binlog_type,conflict_fn", *lines]))
        done = CliRunner().invoke(cli.app, ["sizes", LOG, "--schema", SCHEMA, *asked])
        assert done.exit_code == ExitCode.DONE, done.output
        found = json.loads(target.read_text("utf-8"))
        every = {table["table"].removeprefix("fmt."): table["changes"].values() for table in found["tables"]}
        for bound in ("least", "most"):
            expected = [each["formats"][types[name]][bound]["bytes"] for name in types for each in every[name]]
            assert found["configured"][bound]["bytes"] == sum(expected)
    rows.write_text("db,table_name,server_id,binlog_type,conflict_fn\ncft,t1,1,7,\\N\ncft,t1,2,8,\\N\n")
    logs = [str(DEMO / f"{name}.binlog.000001") for name in "AB"]
    done = CliRunner().invoke(cli.app, ["sizes", *logs, "--schema", str(DEMO / "schema.sql"), *asked])
    assert (done.exit_code, "cft.t1 types 7 and 8" in done.output) == (ExitCode.REFUSED, True)


@pytest.mark.parametrize(("name", "magic"), [("chart.png", b"\x89PNG"), ("chart.svg", b"<?xml")])
def test_the_chart(tmp_path: Path, name: str, magic: bytes) -> None:
    """By the ending of its name; nothing is left beside it."""
    done = CliRunner().invoke(cli.app, ["sizes", LOG, "--schema", SCHEMA, "--plot", str(tmp_path / name)])
    assert done.exit_code == ExitCode.DONE, done.output
    assert done.output.endswith(f"The chart is in {tmp_path / name}.\n")
    assert (tmp_path / name).read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Before anything is read."""
    for target in (tmp_path / "absent" / "sizes.json", tmp_path / "absent" / "sizes.png"):
        option = "--json" if target.suffix == ".json" else "--plot"
        done = CliRunner().invoke(cli.app, ["sizes", LOG, option, str(target)])
        assert done.exit_code == ExitCode.REFUSED
        assert "there is no folder" in done.output


def test_a_chart_of_an_unknown_format_is_refused(tmp_path: Path) -> None:
    """Before anything is read."""
    done = CliRunner().invoke(cli.app, ["sizes", LOG, "--plot", str(tmp_path / "chart.gif")])
    assert done.exit_code == ExitCode.REFUSED
    assert "*.png or *.svg" in done.output


def test_a_cut_file(tmp_path: Path) -> None:
    """The sizes are of what comes before, and the exit code says so."""
    cut = tmp_path / "cut.000001"
    cut.write_bytes(Path(LOG).read_bytes()[:-100])
    done = CliRunner().invoke(cli.app, ["sizes", str(cut), "--schema", SCHEMA])
    assert done.exit_code == ExitCode.CUT_SHORT
    assert "the sizes are of what comes before" in done.output
    titles = [
        line for line in done.output.splitlines() if line.startswith(("Bytes by", "Rows events by", "The columns"))
    ]
    assert len(titles) == 4
    assert all("bytes" in title.lower() for title in titles)


@pytest.mark.parametrize("folder", sorted((RECORDINGS / "everyday").glob("*/ddl_*")), ids=lambda folder: folder.name)
def test_definitions_follow_the_log(folder: Path, tmp_path: Path) -> None:
    """Tables are altered in the middle: all have definitions, and their own binlog type has the bytes of the log."""
    scenario = json.loads((folder / "scenario.json").read_text("utf-8"))
    target, schema = tmp_path / "sizes.json", tmp_path / "schema.sql"
    creates = (text for table in scenario["tables"] for text in (table["create"], table.get("ex")) if text)
    schema.write_text(";\n".join([f"USE {scenario['database']}", *creates]), "utf-8")
    logs = [str(file) for file in sorted(folder.glob("A.binlog.0*"))]
    done = CliRunner().invoke(cli.app, ["sizes", *logs, "--schema", str(schema), "--json", str(target)])
    assert done.exit_code == ExitCode.DONE, done.output
    found = json.loads(target.read_text("utf-8"))
    assert found["total"] == found["file_bytes"]
    own, logged = found["totals"]["formats"][folder.name[-1]], found["totals"]["logged"]
    assert own["least"]["bytes"] <= own["most"]["bytes"] == logged["bytes"]
