"""`decode` with definitions that change in the middle of a log: recordings, and random logs cut at each change."""

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from conflict.cli.app import app
from conflict.cli.refusals import ExitCode
from conflict.decoding.decoding import Decoding
from conflict.decoding.inputs import Inputs
from conflict.judge.case import ConflictCase
from conflict.judge.result_differences import recorded_value
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection
from ndb_formats.text.row_printer import TextOptions
from tests.conflict.changing_logs import write_cut_logs
from tests.corpora import RECORDINGS, schema_file
from tests.examples import examples
from tests.ndb_formats.rewritten import rewritten

CHANGING = sorted(path.parent for path in RECORDINGS.glob("everyday/*/ddl_*/scenario.json"))
ADDED, DROPPED = RECORDINGS / "everyday/epoch2/ddl_add_column_type8", RECORDINGS / "everyday/max/ddl_drop_column_type7"
CREATED, WIDENED = (
    RECORDINGS / "everyday/max/ddl_drop_and_create_type7",
    RECORDINGS / "everyday/max_ins/ddl_widen_column_type7",
)
Line = dict[str, Any]


def decode(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["decode", *(str(argument) for argument in arguments)])
    assert code == done.exit_code, done.output
    return done.output if code else done.stdout


def json_lines(*arguments: object, code: int = 0) -> list[Line]:
    text = decode("--format", "json", *arguments, code=code)
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def rows_at_the_end(lines: Sequence[Line], table: str, key: Sequence[str]) -> dict[tuple[object, ...], Line]:
    """Return the rows of a table that changes leave, each with the columns that they gave it."""
    rows: dict[tuple[object, ...], Line] = {}
    for line in lines:
        if line["table"] == table:
            images = {**line.get("before", {}), **line.get("after", {})}
            place = tuple(images[name] for name in key)
            known = rows.pop(place, {}) if line["operation"] == "UPDATE_ROW" else {}
            rows.pop(place, None)
            if line["operation"] != "DELETE_ROW":
                rows[place] = {**known, **images}
    return rows


@pytest.mark.parametrize("case", CHANGING, ids=lambda case: case.name)
@pytest.mark.parametrize("side", ["A", "B"])
def test_the_changes_leave_the_recorded_rows(case: Path, side: str, tmp_path: Path) -> None:
    """By their names in the log, the values of all columns come to what was read from the servers at the end."""
    lines = json_lines("--schema", schema_file(case, tmp_path), case / f"{side}.binlog.000001")
    compared = 0
    for table, expected in json.loads((case / "expected.json").read_text())[side]["tables"].items():
        found = rows_at_the_end(lines, table, expected["primary_key"])
        for values in expected["rows"]:
            row = {
                name: recorded_value(value, kind)
                for name, value, kind in zip(expected["columns"], values, expected["types"], strict=True)
            }
            given = found[tuple(row[name] for name in expected["primary_key"])]
            assert {name: row[name] for name in given if name in row} == {
                name: value for name, value in given.items() if name in row
            }
            compared += len(given)
    assert compared


@pytest.mark.parametrize("case", CHANGING, ids=lambda case: case.name)
def test_all_formats_say_the_same(case: Path, tmp_path: Path) -> None:
    """Parquet and CSV have a file for each version of a table, and nothing is lost; --wide and text have all names."""
    schema, binlog = schema_file(case, tmp_path), case / "B.binlog.000001"
    lines = json_lines("--schema", schema, binlog)
    decode("--format", "parquet", "-r", tmp_path / "typed", "--schema", schema, binlog)
    assert sorted(map(str, lines)) == sorted(map(str, parquet_lines(tmp_path / "typed", lines)))
    decode("--format", "csv", "-r", tmp_path / "csv", "--schema", schema, binlog)
    written = [file.read_text().splitlines() for file in (tmp_path / "csv").rglob("*.csv")]
    assert sum(len(rows) - 1 for rows in written) == len(lines)
    decode("--format", "parquet", "--wide", "-r", tmp_path / "wide.parquet", "--schema", schema, binlog)
    wide = pq.read_table(tmp_path / "wide.parquet").to_pylist()
    assert [list(line.get("after", {})) for line in lines] == [list(dict(row["after"] or {})) for row in wide]
    rows = re.split("### (?:INSERT INTO|UPDATE|DELETE FROM) ", decode("-vv", "--schema", schema, binlog))
    ours = [row for row in rows if row.startswith("`day`")]
    assert (len(ours), [row for row in ours if "###   @" in row]) == (len(lines), [])


def parquet_lines(folder: Path, lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the rows of a folder of tables as JSON lines show them."""
    known = {(line["position"], line["row"]): line for line in lines}
    for file in sorted(folder.rglob("*.parquet")):
        for row in pq.ParquetFile(file).read().to_pylist():
            line = dict(known[row["position"], row["row"]])
            assert line["table"] == file.parent.name
            for image in ("before", "after"):
                if row[image] is not None:
                    line[image] = {name: row[image][name] for name in row[f"{image}_columns"].split(",")}
            yield line


def test_a_table_gets_a_file_per_version(tmp_path: Path) -> None:
    """The dropped column is in the first file alone."""
    decode(
        *("--format", "parquet", "-r", tmp_path / "out", "--schema", schema_file(DROPPED, tmp_path)),
        DROPPED / "A.binlog.000001",
    )
    files = sorted((tmp_path / "out/day/t1").iterdir())
    columns = [[field.name for field in pq.read_schema(file).field("after").type] for file in files]
    assert columns == [["k", "x", "v", "s"], ["k", "x", "v"]]


def test_both_logs_at_once(tmp_path: Path) -> None:
    """Each server's log starts with the schema: the statement that both have is followed in each."""
    schema, files = schema_file(ADDED, tmp_path), [ADDED / f"{side}.binlog.000001" for side in "AB"]
    apart = [line for file in files for line in json_lines("--schema", schema, file)]
    assert apart == json_lines("--schema", schema, *files)


def test_a_start_after_the_statement(tmp_path: Path) -> None:
    """The schema is that at the start of the file, wherever the selection begins."""
    schema, file = schema_file(ADDED, tmp_path), ADDED / "A.binlog.000001"
    every = json_lines("--schema", schema, file)
    place = next(line["position"] for line in every if "n1" in line.get("after", {}))
    assert [line for line in every if line["position"] >= place] == json_lines("--schema", schema, "-j", place, file)


def test_definitions_of_the_end(tmp_path: Path) -> None:
    """With --schema-at end they are taken back; without, the log is right, and a warning says so."""
    schema, file = schema_file(ADDED, tmp_path), ADDED / "A.binlog.000001"
    every = json_lines("--schema", schema, file)
    end = tmp_path / "end.sql"
    end.write_text(schema.read_text().replace("PRIMARY KEY", "n1 INT, PRIMARY KEY", 1))
    assert every == json_lines("--schema", end, "--schema-at", "end", file)
    said = decode("--format", "json", "-r", tmp_path / "lines", "--schema", end, file, code=ExitCode.WARNED)
    assert "its definition has 5 columns and the binlog 4" in said
    first = json.loads((tmp_path / "lines").read_text().splitlines()[0])
    assert list(first["after"]) == ["@1", "@2", "@3", "@4"]


def test_a_table_that_the_log_creates_is_what_the_statement_says(tmp_path: Path) -> None:
    """Also where the schema knows another one of that name, which can only be of a later time."""
    schema, file = schema_file(CREATED, tmp_path), CREATED / "A.binlog.000001"
    every = json_lines("--schema", schema, file)
    changed = tmp_path / "A.binlog.000001"
    changed.write_bytes(rewritten(file, lambda text: None if "DROP TABLE" in text else text))
    assert [strip(line) for line in every] == [strip(line) for line in json_lines("--schema", schema, changed)]


@pytest.mark.parametrize("form", [["json"], ["csv"], ["parquet"], ["csv", "--wide"], ["text", "-v"]], ids=" ".join)
def test_a_statement_that_cannot_be_followed(form: list[str], tmp_path: Path) -> None:
    """It concerns its table from there on; a warning names place, table, column and statement, and the code is 4."""
    schema, file = schema_file(ADDED, tmp_path), tmp_path / "A.binlog.000001"
    wrong = "ALTER TABLE t1 MODIFY COLUMN nowhere INT"
    file.write_bytes(rewritten(ADDED / file.name, lambda text: wrong if "ALTER" in text else text))
    out = tmp_path / "out"
    said = decode("--format", *form, "-r", out, "--schema", schema, file, code=ExitCode.WARNED)
    for part in (str(file), "position 2741", "table day.t1", "column nowhere", wrong):
        assert part in " ".join(said.split())
    assert out.is_file() if form in (["json"], ["csv", "--wide"], ["text", "-v"]) else (out / "day/t1").is_dir()
    if form == ["json"]:
        kept = out.read_text().splitlines()
        every = json_lines("--schema", schema, ADDED / file.name)
        assert len(kept) == len(every)
        for line, expected in zip(map(json.loads, kept), every, strict=True):
            unknown = line["table"] == "t1" and line["position"] > 2741
            assert unknown == any(name.startswith("@") for name in {**line.get("before", {}), **line.get("after", {})})
            assert unknown or strip(line) == strip(expected)
        assert {json.loads(line)["table"] for line in kept if json.loads(line)["position"] > 2741} > {"t1"}


def test_a_table_that_nobody_defined_stays_without_names(tmp_path: Path) -> None:
    """A new table like one that is not known is not known either, and stops nothing."""
    schema, file = schema_file(CREATED, tmp_path), tmp_path / "A.binlog.000001"

    def edit(text: str) -> str:
        return "CREATE TABLE t9 LIKE nowhere" if text.startswith("DROP TABLE") else text

    file.write_bytes(rewritten(CREATED / file.name, edit))
    assert len(json_lines("--schema", schema, file)) == len(json_lines(CREATED / file.name))


def strip(line: Line) -> Line:
    """Return a line without the place of its event."""
    return {name: value for name, value in line.items() if name not in ("file", "position")}


def decoding(file: Path, schema: Schema) -> Decoding:
    return Decoding(Inputs((file,), (str(file),)), Selection(), schema, TextOptions(2, names=True), verify=True)


@examples(6, long=25)
@given(st.integers(0, 2**32), st.integers(40, 150), st.integers(1, 6))
def test_a_log_is_decoded_as_its_parts_are(seed: int, steps: int, statements: int) -> None:
    """With the schema at its start, as if it were cut at each statement, each part with the schema then in force."""
    with tempfile.TemporaryDirectory() as folder:
        for log in write_cut_logs(Path(folder), seed, steps, statements):
            whole = decoding(log.whole, log.schema)
            parts = [decoding(*part) for part in log.parts]
            lines = [strip(json.loads(line)) for block in whole.json_lines() for line in block.splitlines()]
            assert lines == [
                strip(json.loads(line)) for part in parts for block in part.json_lines() for line in block.splitlines()
            ]
            assert row_text(whole) == [line for part in parts for line in row_text(part)]


def row_text(of: Decoding) -> list[bytes]:
    return [line for block in of.text() for line in block.splitlines() if line.startswith(b"###")]


def test_the_cases_are_there() -> None:
    """Every kind of change that is bundled."""
    kinds = {ConflictCase.load(case).path.name.rpartition("_")[0] for case in CHANGING}
    assert kinds >= {"ddl_add_column", "ddl_drop_column", "ddl_truncate", "ddl_rename_and_back", "ddl_widen_column"}
