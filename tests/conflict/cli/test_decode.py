"""`ndb-conflict decode`: text, JSON lines, CSV and Parquet."""

import csv
import gzip
import io
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard
from typer.testing import CliRunner

from conflict.cli.app import app
from conflict.cli.refusals import ExitCode
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


def test_bytes_are_hexadecimal_digits_in_capitals() -> None:
    """After ``0x``, two for each byte."""
    folder = RECORDINGS / "ndb_formats/types_type8"
    shown = decode("--format", "json", "--schema", folder / "schema.sql", folder / "binlog.000001").decode()
    found = set(re.findall(r'"(0x[^"]+)"', shown))
    assert found
    assert all(re.fullmatch("0x([0-9A-F]{2})+", text) for text in found)
    assert any(set(text[2:]) & set("ABCDEF") for text in found)


def test_epochs_tables_and_positions_select_rows() -> None:
    """Only the selected rows are shown."""
    every = [json.loads(line) for line in decode("--format", "json", BINLOG).splitlines()]
    epochs = sorted({line["epoch"] for line in every})
    some = decode("--format", "json", "--start-epoch", epochs[1], "--stop-epoch", epochs[2], BINLOG).splitlines()
    assert {epochs[1], epochs[2]} == {json.loads(line)["epoch"] for line in some}
    plain = decode("--format", "json", "--table", "cft.plain", BINLOG).splitlines()
    assert [line for line in every if line["table"] == "plain"] == [json.loads(line) for line in plain]
    assert decode("--format", "json", "--database", "nowhere", BINLOG, code=ExitCode.WARNED) == b""
    place = every[20]["position"]
    before = [json.loads(line) for line in decode("--format", "json", "--stop-position", place, BINLOG).splitlines()]
    assert [line for line in every if line["position"] < place] == before


def test_wide_csv_and_parquet_hold_the_same_rows(tmp_path: Path) -> None:
    """Both have the columns of the data source and the order of the file: images as maps, or as JSON."""
    file = tmp_path / "rows.parquet"
    decode("--format", "parquet", "--wide", "-r", file, BINLOG)
    rows = pq.read_table(file).select(["position", "row"]).to_pylist()
    table = list(csv.DictReader(io.StringIO(decode("--format", "csv", "--wide", BINLOG).decode())))
    lines = [json.loads(line) for line in decode("--format", "json", BINLOG).splitlines()]
    assert len(lines) == len(rows) == len(table) > 0
    assert [(row["position"], row["row"]) for row in rows] == [(line["position"], line["row"]) for line in lines]
    assert [json.loads(row["after"]) if row["after"] else None for row in table] == [
        line.get("after") for line in lines
    ]


def test_every_table_has_a_folder(tmp_path: Path) -> None:
    """Parquet and CSV hold the rows of JSON lines, with the columns of the table; `tables.json` lists them."""
    lines = [json.loads(line) for line in decode("--format", "json", "--schema", SCHEMA, BINLOG).splitlines()]
    mine = [line for line in lines if line["table"] == "t2"]
    parquet, text = tmp_path / "parquet", tmp_path / "csv"
    decode("--format", "parquet", "--schema", SCHEMA, "-r", parquet, BINLOG)
    decode("--format", "csv", "--schema", SCHEMA, "-r", text, BINLOG)
    contents = json.loads((parquet / "tables.json").read_text("utf-8"))
    assert {(each["folder"], each["rows"]) for each in contents["tables"]} == {
        (f"cft/{name}", sum(line["table"] == name for line in lines)) for name in ("t1", "t2", "plain")
    }
    rows = pq.read_table(parquet / "cft/t2").to_pylist()
    rows.sort(key=lambda row: (row["position"], row["row"]))
    assert [image_of(row) for row in rows] == [line.get("after") for line in mine]
    (file,) = (text / "cft/t2").iterdir()
    table = list(csv.DictReader(file.open(encoding="utf-8")))
    table.sort(key=lambda row: (int(row["position"]), int(row["row"])))
    assert [row["after.x"] for row in table] == [str((line.get("after") or {}).get("x", "")) for line in mine]


def image_of(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the after image of a row of Parquet as JSON lines have it."""
    if row["after"] is None:
        return None
    carried = {name: row["after"][name] for name in row["after_columns"].split(",")}
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in carried.items()}


def test_nothing_is_replaced_without_force(tmp_path: Path) -> None:
    """Nor with it, if it is an input, holds one, or is a folder that was not written by the command."""
    out, file = tmp_path / "out", tmp_path / "out.json"
    parquet = ("--format", "parquet", "-r", out)
    decode(*parquet, BINLOG)
    decode(*parquet, BINLOG, code=ExitCode.REFUSED)
    decode(*parquet, "--force", "--table", "cft.t1", BINLOG)
    assert [path.name for path in (out / "cft").iterdir()] == ["t1"]
    inside = out / "binlog.000001"
    inside.write_bytes(BINLOG.read_bytes())
    decode(*parquet, "--force", inside, code=ExitCode.REFUSED)
    (out / "tables.json").unlink()
    decode(*parquet, "--force", BINLOG, code=ExitCode.REFUSED)
    decode("--format", "json", "-r", file, BINLOG)
    decode("--format", "json", "-r", file, BINLOG, code=ExitCode.REFUSED)
    decode("--format", "parquet", BINLOG, code=ExitCode.REFUSED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.json"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    """A file with a wrong checksum: the message names it, and no output is there."""
    damaged = tmp_path / "damaged.000001"
    data = BINLOG.read_bytes()
    damaged.write_bytes(data[:640] + bytes([data[640] ^ 1]) + data[641:])
    for form in ("parquet", "json", "text"):
        decode("--format", form, "-c", "-r", tmp_path / "out", damaged, code=ExitCode.REFUSED)
    assert [path.name for path in tmp_path.iterdir()] == ["damaged.000001"]


def test_compressed_files_and_pipes_are_read(tmp_path: Path) -> None:
    """gzip, Zstandard and standard input give the same rows, under the names that were given."""
    data, whole = BINLOG.read_bytes(), decode("-vv", BINLOG)
    packed = {"a.gz": gzip.compress(data), "a.zst": zstandard.compress(data)}
    for name, content in packed.items():
        (tmp_path / name).write_bytes(content)
        assert decode("-vv", tmp_path / name) == whole
    done = CliRunner().invoke(app, ["decode", "-vv", "-"], input=data)
    assert done.stdout_bytes == whole
    (tmp_path / "half.gz").write_bytes(packed["a.gz"][:500])
    done = CliRunner().invoke(app, ["decode", str(tmp_path / "half.gz")])
    assert (done.exit_code, "half.gz" in done.output) == (ExitCode.REFUSED, True)


def test_moments_may_have_offsets_and_zones() -> None:
    """The same moment in three spellings selects the same rows; the recording starts at 16:00:14 UTC."""
    lines = decode("--format", "json", BINLOG).splitlines()
    late = [line for line in lines if json.loads(line)["timestamp"] >= 1795190415]
    assert 0 < len(late) < len(lines)
    zoned = ("2026-11-20 17:00:15", "--timezone", "+01:00")
    for moment in (("2026-11-20 16:00:15",), ("2026-11-20T17:00:15+01:00",), zoned):
        assert decode("--format", "json", "--start-datetime", *moment, BINLOG).splitlines() == late
    decode("--start-datetime", "yesterday", BINLOG, code=ExitCode.REFUSED)
    decode("--start-datetime", "2026-11-20", "--timezone", "Mars/Base", BINLOG, code=ExitCode.REFUSED)


def test_filters_that_match_nothing_are_said() -> None:
    """The tables that are there are named."""
    done = CliRunner().invoke(app, ["decode", "--table", "cft.nope", "--table", "cft.t1", str(BINLOG)])
    assert done.exit_code == ExitCode.WARNED
    assert "--table cft.nope matches nothing" in done.output
    assert "cft.t1 matches" not in done.output
    decode("--format", "json", "--server-id", 77, BINLOG, code=ExitCode.WARNED)
    decode("--key", "k", BINLOG, code=ExitCode.REFUSED)


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


@pytest.mark.parametrize(
    ("table", "schema", "keys"),
    [
        ("cft.t2", True, [["a=0, b=w3"], ["b=w3,a=0"], ["a=0", "b=w3"], ['{"b": "w3", "a": 0}']]),
        ("cft.t1", True, [["3"], ["k=3"]]),
        ("cft.t1", False, [["@1=3"]]),
    ],
)
def test_a_key_has_the_forms_that_explain_takes(table: str, schema: bool, keys: list[list[str]]) -> None:
    """All select the rows whose images hold the values, found here in the whole log."""
    given = ("--format", "json", "--table", table, *(("--schema", SCHEMA) if schema else ()))
    names = {"a": 0, "b": "w3"} if table == "cft.t2" else {"k" if schema else "@1": 3}
    wanted = [
        line
        for line in decode(*given, BINLOG).splitlines()
        if all(
            any((json.loads(line).get(image) or {}).get(name) == value for image in ("before", "after"))
            for name, value in names.items()
        )
    ]
    assert wanted
    for parts in keys:
        asked = [part for key in parts for part in ("--key", key)]
        assert decode(*given, *asked, BINLOG).splitlines() == wanted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--table", "t1", "--key", "k=3"), "the names of the columns of cft.t1 are not known: give --schema FILE, or"),
        (("--table", "t1", "--key", "3"), "@1=3 for the first one"),
        (
            ("--table", "t1", "--key", "kk=3", "--schema", SCHEMA),
            "table cft.t1 has no column kk; its columns are k, x, v, s (did you mean k?)",
        ),
        (("--table", "t2", "--key", "3", "--schema", SCHEMA), "--key 3: give a column and its value"),
        (("--key", "idd=3", "--schema", SCHEMA), "cft.t2 has a column idd (did you mean id?)"),
    ],
)
def test_a_key_that_names_no_column_is_refused(options: tuple[object, ...], words: str) -> None:
    """The message says which columns there are, or that their names are not known."""
    done = CliRunner().invoke(app, ["decode", *map(str, options), str(BINLOG)])
    assert done.exit_code == ExitCode.REFUSED
    assert words in " ".join(done.output.split())
