"""`ndb-conflict decode`: text, JSON lines, CSV and Parquet."""

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from conflict.cli.app import REFUSED, app

RECORDINGS = Path(__file__).parents[1] / "recordings"
DEMO = RECORDINGS / "demo" / "A.binlog.000001"
SCHEMA = RECORDINGS / "demo" / "schema.sql"


def _decode(*arguments: object, code: int = 0) -> bytes:
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
    assert recorded == [line for line in _decode("-vv", binlog).split(b"\n") if line.startswith(b"###")]


def test_json_lines_leave_absent_columns_out() -> None:
    """An update of type 9 has its key alone before, all else after; NULL is null; flags have names."""
    lines = [json.loads(line) for line in _decode("--format", "json", "--schema", SCHEMA, DEMO).splitlines()]
    updates = [line for line in lines if line["operation"] == "UPDATE_ROW" and line["table"] == "t1"]
    assert {("k",)} == {tuple(line["before"]) for line in updates}
    assert {("x", "v", "s")} == {tuple(line["after"]) for line in updates}
    # The first row of the recording: INSERT INTO t1 (k,x,v,s) VALUES (1,101,-480,NULL)
    assert lines[0]["after"] == {"k": 1, "x": 101, "v": -480, "s": None}
    assert sum(line["flags"] == ["REFRESH"] for line in lines) == 18


def test_epochs_tables_and_positions_select() -> None:
    """Only what was asked for is shown."""
    every = [json.loads(line) for line in _decode("--format", "json", DEMO).splitlines()]
    epochs = sorted({line["epoch"] for line in every})
    some = _decode("--format", "json", "--start-epoch", epochs[1], "--stop-epoch", epochs[2], DEMO).splitlines()
    assert {epochs[1], epochs[2]} == {json.loads(line)["epoch"] for line in some}
    plain = _decode("--format", "json", "--table", "cft.plain", DEMO).splitlines()
    assert [line for line in every if line["table"] == "plain"] == [json.loads(line) for line in plain]
    assert _decode("--format", "json", "--database", "nowhere", DEMO) == b""
    place = every[20]["position"]
    before = [json.loads(line) for line in _decode("--format", "json", "--stop-position", place, DEMO).splitlines()]
    assert [line for line in every if line["position"] < place] == before


def test_csv_and_parquet_hold_the_same_rows(tmp_path: Path) -> None:
    """Both have the columns of the data source, images as maps."""
    file = tmp_path / "rows.parquet"
    _decode("--format", "parquet", "-r", file, DEMO)
    rows = pq.read_table(file).to_pylist(maps_as_pydicts="strict")
    table = list(csv.DictReader(io.StringIO(_decode("--format", "csv", DEMO).decode())))
    assert len(_decode("--format", "json", DEMO).splitlines()) == len(rows) == len(table) > 0
    assert [row["after"] for row in rows] == [json.loads(row["after"]) if row["after"] else None for row in table]


def test_a_cut_file_ends_with_a_warning_and_a_damaged_one_with_an_error(tmp_path: Path) -> None:
    """As mysqlbinlog does: everything before is shown; a wrong checksum counts only if asked to."""
    cut, damaged = tmp_path / "cut.000001", tmp_path / "damaged.000001"
    data = DEMO.read_bytes()
    cut.write_bytes(data[:5000])
    shown = _decode("--format", "json", cut).splitlines()
    assert shown == [line for line in _whole(cut) if json.loads(line)["position"] < 5000][: len(shown)]
    damaged.write_bytes(data[:640] + bytes([data[640] ^ 1]) + data[641:])
    assert _decode("--format", "json", damaged)
    _decode("--format", "json", "-c", damaged, code=REFUSED)


def _whole(path: Path) -> list[bytes]:
    return [
        line.replace(str(DEMO).encode(), str(path).encode()) for line in _decode("--format", "json", DEMO).splitlines()
    ]


def test_a_file_that_is_read_is_never_written_over(tmp_path: Path) -> None:
    """An input, a link to it and the schema are refused as result files, in every format; nothing of them changes."""
    binlog, link, schema = tmp_path / "binlog.000001", tmp_path / "link", tmp_path / "schema.sql"
    binlog.write_bytes(DEMO.read_bytes())
    link.hardlink_to(binlog)
    schema.write_text(SCHEMA.read_text("utf-8"), "utf-8")
    for form in ("text", "json", "csv", "parquet"):
        for target in (binlog, link, schema):
            _decode("--format", form, "--schema", schema, "-r", target, binlog, code=REFUSED)
    assert DEMO.read_bytes() == binlog.read_bytes()
    assert SCHEMA.read_text("utf-8") == schema.read_text("utf-8")
