"""`ndb-conflict decode`: text, JSON lines, CSV and Parquet."""

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from conflict.cli.app import app
from conflict.cli.common import ExitCode
from tests.corpora import DEMO, RECORDINGS

BINLOG = DEMO / "A.binlog.000001"
SCHEMA = DEMO / "schema.sql"


def decode(*arguments: object, code: int = 0) -> bytes:
    done = CliRunner().invoke(app, ["decode", *(str(argument) for argument in arguments)])
    assert code == done.exit_code, done.output
    return done.stdout_bytes


@pytest.mark.parametrize(
    "case", sorted(path.parent for path in RECORDINGS.rglob("mysqlbinlog.txt")), ids=lambda p: p.name
)
def test_rows_are_shown_as_mysqlbinlog_shows_them(case: Path) -> None:
    """The ### lines are those that mysqlbinlog -vv printed."""
    (binlog,) = case.glob("*binlog.0*")
    recorded = [line for line in (case / "mysqlbinlog.txt").read_bytes().split(b"\n") if line.startswith(b"###")]
    assert recorded == [line for line in decode("-vv", binlog).split(b"\n") if line.startswith(b"###")]


def test_json_lines_leave_absent_columns_out() -> None:
    """An update of type 9 has its key alone before, all else after; NULL is null; flags have names."""
    lines = [json.loads(line) for line in decode("--format", "json", "--schema", SCHEMA, BINLOG).splitlines()]
    updates = [line for line in lines if line["operation"] == "UPDATE_ROW" and line["table"] == "t1"]
    assert {("k",)} == {tuple(line["before"]) for line in updates}
    assert {("x", "v", "s")} == {tuple(line["after"]) for line in updates}
    # The first row of the recording: INSERT INTO t1 (k,x,v,s) VALUES (1,101,-480,NULL)
    assert lines[0]["after"] == {"k": 1, "x": 101, "v": -480, "s": None}
    assert sum(line["flags"] == ["REFRESH"] for line in lines) == 18


def test_epochs_tables_and_positions_select_rows() -> None:
    """Only the selected rows are shown."""
    every = [json.loads(line) for line in decode("--format", "json", BINLOG).splitlines()]
    epochs = sorted({line["epoch"] for line in every})
    some = decode("--format", "json", "--start-epoch", epochs[1], "--stop-epoch", epochs[2], BINLOG).splitlines()
    assert {epochs[1], epochs[2]} == {json.loads(line)["epoch"] for line in some}
    plain = decode("--format", "json", "--table", "cft.plain", BINLOG).splitlines()
    assert [line for line in every if line["table"] == "plain"] == [json.loads(line) for line in plain]
    assert decode("--format", "json", "--database", "nowhere", BINLOG) == b""
    place = every[20]["position"]
    before = [json.loads(line) for line in decode("--format", "json", "--stop-position", place, BINLOG).splitlines()]
    assert [line for line in every if line["position"] < place] == before


def test_csv_and_parquet_hold_the_same_rows(tmp_path: Path) -> None:
    """Both have the columns of the data source, images as maps."""
    file = tmp_path / "rows.parquet"
    decode("--format", "parquet", "-r", file, BINLOG)
    rows = pq.read_table(file).to_pylist(maps_as_pydicts="strict")
    table = list(csv.DictReader(io.StringIO(decode("--format", "csv", BINLOG).decode())))
    assert len(decode("--format", "json", BINLOG).splitlines()) == len(rows) == len(table) > 0
    assert [row["after"] for row in rows] == [json.loads(row["after"]) if row["after"] else None for row in table]


def test_a_cut_file_gives_a_warning_and_a_wrong_checksum_an_error_if_asked(tmp_path: Path) -> None:
    """Everything before the cut is shown, as by mysqlbinlog; the exit code says that something is missing."""
    cut, damaged = tmp_path / "cut.000001", tmp_path / "damaged.000001"
    data = BINLOG.read_bytes()
    cut.write_bytes(data[:5000])
    shown = decode("--format", "json", cut, code=ExitCode.CUT_SHORT).splitlines()
    assert shown == [line for line in whole_as(cut) if json.loads(line)["position"] < 5000][: len(shown)]
    damaged.write_bytes(data[:640] + bytes([data[640] ^ 1]) + data[641:])
    assert decode("--format", "json", damaged)
    decode("--format", "json", "-c", damaged, code=ExitCode.REFUSED)


def whole_as(path: Path) -> list[bytes]:
    return [
        line.replace(str(BINLOG).encode(), str(path).encode())
        for line in decode("--format", "json", BINLOG).splitlines()
    ]
