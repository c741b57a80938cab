"""
Rows without columns: ``INSERT INTO t VALUES ()`` under ``binlog_row_image=MINIMAL`` is an event without a body.

A log that is written here has two of them between others in one statement; the recording has those of a server.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import conflict
from conflict.cli.refusals import ExitCode
from ndb_formats.binlog_reader import read_events
from ndb_formats.columnar.selected_changes import ChangeReading
from ndb_formats.row_reader import read_rows
from ndb_formats.rules.formats import FORMATS
from ndb_formats.rules.images import Logging
from ndb_formats.rules.row_image_rules import RowImageRule
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection
from ndb_formats.sizes.log_sizes import LEAST, MOST, size_log
from ndb_formats.text.log_text import log_text
from ndb_formats.text.row_printer import TextOptions
from ndb_formats.writing.binlog_writer import BinlogSettings, BinlogWriter, WrittenChange
from ndb_formats.writing.round_trip import encode_file
from tests.conflict.cli.commands import invoke
from tests.corpora import RECORDINGS

TEXT = "CREATE TABLE t (a INT, b VARCHAR(10)) ENGINE=InnoDB DEFAULT CHARSET=latin1"
TABLE = parse_create_table(TEXT, database="d")
NONE = {0: None, 1: None}
STATEMENT = [
    WrittenChange(TABLE, None, {0: 1, 1: "x"}, {0, 1}),
    WrittenChange(TABLE, None, NONE, frozenset()),
    WrittenChange(TABLE, None, NONE, frozenset()),
    WrittenChange(TABLE, None, {0: 2, 1: "y"}, {0, 1}),
]
AFTER: list[dict[str, object]] = [{"a": 1, "b": "x"}, {}, {}, {"a": 2, "b": "y"}]
LINES = b"""### INSERT INTO `d`.`t`
### SET
###   @1=1
###   @2='x'
### INSERT INTO `d`.`t` VALUES ()
### INSERT INTO `d`.`t` VALUES ()
### INSERT INTO `d`.`t`
### SET
###   @1=2
###   @2='y'""".split(b"\n")
NAMES = [form.name for form in FORMATS]


def write(path: Path, rule: RowImageRule) -> Path:
    """Write the statement as a server with this ``binlog_row_image``."""
    with path.open("wb") as out:
        writer = BinlogWriter(out, BinlogSettings(Logging(row_image=rule)))
        writer.start(1_000_000)
        writer.write_statement(TEXT, "d", 1_000_000)
        writer.write_transaction([STATEMENT], 1_000_000, transaction_id=1)
        writer.finish()
    return path


@pytest.fixture
def binlog(tmp_path: Path) -> Path:
    return write(tmp_path / "binlog.000001", RowImageRule.MINIMAL)


@pytest.mark.parametrize("rows", [1, 2, 4096])
def test_text(binlog: Path, rows: int) -> None:
    """A block may end anywhere."""
    shown = b"".join(log_text([str(binlog)], Selection(), ChangeReading(Schema(), rows=rows), TextOptions(1)))
    assert [line for line in shown.split(b"\n") if line.startswith(b"###")] == LINES


def test_rows_in_python(binlog: Path) -> None:
    """They are read one by one, and in columns of all tables and of theirs."""
    after = [row.after.by_name() for row in read_rows(binlog, schema=Schema((TABLE,))) if row.after is not None]
    assert after == AFTER
    both = conflict.read_binlog(binlog).to_arrow()["after"].to_pylist()
    assert [dict(row) for row in both] == [{name: str(value) for name, value in row.items()} for row in AFTER]
    for batch_rows in (1, 4096):
        own = conflict.read_binlog(binlog, "d.t", batch_rows=batch_rows).to_arrow()
        assert own["after_columns"].to_pylist() == ["a,b", "", "", "a,b"]
        assert [row for row in own["after"].to_pylist() if row["a"] is not None] == [AFTER[0], AFTER[3]]


def test_decoded_files(binlog: Path, tmp_path: Path) -> None:
    """JSON has an empty object; in CSV and Parquet the list of columns is empty, and not NULL."""
    out = tmp_path / "rows"
    assert invoke("decode", "--format", "json", "-r", out, binlog)[0] == 0
    assert [json.loads(line)["after"] for line in out.read_bytes().splitlines()] == AFTER
    assert invoke("decode", "--format", "csv", "-r", tmp_path / "csv", binlog)[0] == 0
    lines = (tmp_path / "csv/d/t/00000.csv").read_text("utf-8").splitlines()
    for line, end in zip(lines[1:], [',1,"x","a,b"', ',,,""', ',,,""', ',2,"y","a,b"'], strict=True):
        assert line.endswith(end)
    assert invoke("decode", "--format", "csv", "--wide", "-r", tmp_path / "wide.csv", binlog)[0] == 0
    with (tmp_path / "wide.csv").open(newline="", encoding="utf-8") as file:
        assert [json.loads(row["after"]) for row in csv.DictReader(file)] == AFTER
    assert invoke("decode", "--format", "parquet", "-r", tmp_path / "parquet", binlog)[0] == 0
    assert pq.read_table(tmp_path / "parquet/d/t")["after_columns"].to_pylist() == ["a,b", "", "", "a,b"]


def test_sizes(binlog: Path, tmp_path: Path) -> None:
    """
    Minimal images take four events of 35 bytes, header to checksum, two of them with 7 bytes of images more.

    Full images take one such event: two images of 7 bytes, and two of one byte that says that both columns are NULL.
    """
    tally = size_log(binlog).tally
    minimal, full = NAMES.index("MINIMAL"), NAMES.index("FULL")
    assert tally.rows.sum(axis=0)[0] == 4
    assert tally.logged.sum(axis=0).tolist() == [4 * 35 + 2 * 7, 4]
    for bound in (LEAST, MOST):
        assert tally.bytes[bound].sum(axis=-1)[minimal] == 4 * 35 + 2 * 7
        assert tally.events[bound].sum(axis=-1)[minimal] == 4
        assert tally.bytes[bound].sum(axis=-1)[full] == 35 + 2 * 7 + 2
    found = size_log(write(tmp_path / "full", RowImageRule.FULL)).tally
    assert found.logged.sum(axis=0).tolist() == [35 + 2 * 7 + 2, 1]


def test_rewriting(binlog: Path, tmp_path: Path) -> None:
    """In its own format, and through a round trip of its events, the file comes back byte for byte."""
    assert b"".join(encode_file(read_events(binlog))) == binlog.read_bytes()
    assert invoke("rewrite", binlog, "--row-image", "MINIMAL", "--out", tmp_path / "out")[0] == 0
    assert (tmp_path / "out/binlog.000001").read_bytes() == binlog.read_bytes()


def test_rows_that_lose_their_columns(tmp_path: Path) -> None:
    """One event of full images becomes four of minimal ones, since columns that have their default are left out."""
    full = write(tmp_path / "binlog.000001", RowImageRule.FULL)
    assert len({row.position for row in read_rows(full)}) == 1
    assert invoke("rewrite", full, "--row-image", "minimal", "--out", tmp_path / "out")[0] == ExitCode.DONE
    found = list(read_rows(tmp_path / "out/binlog.000001", schema=Schema((TABLE,))))
    assert [row.after.by_name() for row in found if row.after is not None] == AFTER
    assert len({row.position for row in found}) == 4


RECORDED = RECORDINGS / "servers/mysql_9_7_rows_without_columns"


def test_recorded_rows_are_those_that_the_tool_printed() -> None:
    """A row of a trigger, rows of a transaction, of a table with a TEXT alone under NOBLOB, and of a compressed one."""
    printed = (RECORDED / "mysqlbinlog.txt").read_text("utf-8")
    expected = re.findall(r"^### (?:INSERT INTO|DELETE FROM) `er`\.`(.)`( VALUES \(\))?$", printed, re.MULTILINE)
    assert len(expected) == 10
    scalar = [
        (row.table, row.after is not None and not row.after.present) for row in read_rows(RECORDED / "binlog.000001")
    ]
    rows = conflict.read_binlog(RECORDED / "binlog.000001").to_arrow().to_pylist()
    columnar = [(row["table"], row["after"] == []) for row in rows]
    assert scalar == columnar == [(table, bool(bare)) for table, bare in expected]
