"""`conflict.read_binlog`: row changes of binlog files as Arrow, pandas and polars."""

import gzip
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import conflict
from conflict.cli.app import app
from conflict.decoding.binlog_table import BinlogSummary, TableChanges
from conflict.errors import LogWarning
from ndb_formats.errors import FormatError
from tests.corpora import DEMO, RECORDINGS, schema_file
from tests.ndb_formats.rewritten import rewritten

BINLOG, SCHEMA = DEMO / "A.binlog.000001", DEMO / "schema.sql"
TYPES = RECORDINGS / "ndb_formats/types_type8"
UNSIGNED_MOST = 2**64 - 1


def test_one_table_has_the_columns_that_decode_writes(tmp_path: Path) -> None:
    """The same rows as in the folder of `decode`, in the order of the file."""
    changes = conflict.read_binlog(BINLOG, "cft.t1", schema=SCHEMA).to_arrow()
    command = ["decode", "--format", "parquet", "-r", str(tmp_path / "out"), "--schema", str(SCHEMA), str(BINLOG)]
    assert CliRunner().invoke(app, command).exit_code == 0
    written = pq.read_table(tmp_path / "out/cft/t1").sort_by([("position", "ascending"), ("row", "ascending")])
    assert changes.to_pylist() == written.to_pylist()
    assert changes.schema.equals(written.schema)
    # The first row of the recording: INSERT INTO t1 (k,x,v,s) VALUES (1,101,-480,NULL)
    assert changes["after"][0].as_py() == {"k": 1, "x": 101, "v": -480, "s": None}
    assert (
        pc.sum(pc.equal(conflict.read_binlog(BINLOG).to_arrow()["flags"].combine_chunks().value_lengths(), 1)).as_py()
        == 18
    )


def test_batches_are_bounded_and_are_the_whole() -> None:
    """Iterating gives the rows of the table, at most so many at a time."""
    changes = conflict.read_binlog([BINLOG], "cft.t1", schema=SCHEMA, batch_rows=7)
    batches = list(changes)
    assert max(batch.num_rows for batch in batches) <= 7
    assert pa.Table.from_batches(batches).to_pylist() == changes.to_arrow().to_pylist()


def test_absent_columns_are_not_in_the_maps_of_all_tables() -> None:
    """Without a table, NULL is an entry with nothing, and epochs are integers."""
    rows = conflict.read_binlog(BINLOG, schema=SCHEMA).to_arrow()
    assert (rows.schema.field("epoch").type, rows.schema.field("transaction_id").type) == (pa.uint64(), pa.uint64())
    assert dict(rows["after"][0].as_py()) == {"k": "1", "x": "101", "v": "-480", "s": None}
    updates = [row for row in rows.to_pylist() if row["operation"] == "UPDATE_ROW" and row["table"] == "t1"]
    assert {tuple(name for name, _ in row["before"]) for row in updates} == {("k",)}


def test_pandas_keeps_integers_exact() -> None:
    """Although other images do not carry the column; the largest unsigned integer is in the recording."""
    changes = conflict.read_binlog(TYPES / "binlog.000001", schema=TYPES / "schema.sql", temporals="text")
    (name,) = [table for table in changes.tables if table.endswith(".types")]
    frame = changes[name].to_pandas()
    assert str(frame.dtypes["epoch"]) == str(frame.dtypes["after.u8"]) == "UInt64"
    assert UNSIGNED_MOST in set(frame["after.u8"].dropna())
    assert frame["before.u8"].isna().any()
    assert frame["epoch"].tolist() == changes[name].to_arrow()["epoch"].to_pylist()
    assert conflict.read_binlog(BINLOG).to_pandas()["after"][0]["@1"] == "1"


def test_pandas_filters_by_several_columns() -> None:
    """Integers, texts and the kind of the change, joined by and and or; a row without the column is not selected."""
    frame = conflict.read_binlog(DEMO, "cft.t2", schema=SCHEMA).to_pandas()
    a, b, operation = frame["after.a"] == 0, frame["after.b"] == "w3", frame["operation"] == "WRITE_ROW"
    wanted = [row for row in frame.to_dict("records") if (row["after.a"], row["after.b"]) == (0, "w3")]
    assert len(frame[a & b]) == len(frame[b & a]) == len(frame.query("`after.a` == 0 and `after.b` == 'w3'"))
    assert len(frame[a & b]) == len(wanted) > 0
    assert frame[a & b & operation].equals(frame[(a & b) & (operation | False)])
    assert frame["after.b"].isna().any()
    assert not frame[frame["after.b"] != "w3"]["after.b"].isna().any()


def test_polars_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the Arrow table; where it is missing, the error says what to install."""
    changes = conflict.read_binlog(BINLOG, "cft.t1")
    stand_in = ModuleType("polars")
    stand_in.from_arrow = lambda table: ("frame", table.num_rows)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "polars", stand_in)
    assert changes.to_polars() == ("frame", changes.summary.changes)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(conflict.ConfigurationError, match="pip install 'polars>=1'"):
        changes.to_polars()


def test_it_answers_at_a_glance() -> None:
    """Files, tables, changes, times and epochs; names are no markup and break no line."""
    text = repr(conflict.read_binlog(DEMO))
    assert text.splitlines()[0] == "2 files: 171 row changes of 3 tables."
    assert "From 2026-11-20 16:00:14 to 2026-11-20 16:00:18 UTC." in text
    assert "29 NDB epochs with changes, 5308579577895 to 5325759447052." in text
    when = datetime(2026, 1, 1, tzinfo=UTC)
    odd = BinlogSummary((Path("a\nb"),), (TableChanges("d.<i>\n\x1b", 1, 1, 0, 0),), when, when, 1, 7, 7)
    assert repr(odd).splitlines()[0] == r"a\nb: 1 row change of 1 table."
    assert r"d.<i>\n\x1b" in repr(odd)
    assert r">d.&lt;i&gt;\n\x1b</td>" in odd._repr_html_()
    assert ">cft.t1</td>" in conflict.read_binlog(BINLOG)._repr_html_()


def test_changes_are_selected() -> None:
    """By epochs, key, columns, server and time; an empty selection has the same columns."""
    every = conflict.read_binlog(BINLOG, "cft.t1", schema=SCHEMA)
    epochs = sorted(set(every.to_arrow()["epoch"].to_pylist()))
    some = conflict.read_binlog(BINLOG, "cft.t1", schema=SCHEMA, start_epoch=epochs[1], stop_epoch=epochs[1])
    assert set(some.to_arrow()["epoch"].to_pylist()) == {epochs[1]}
    keys = conflict.read_binlog(BINLOG, "cft.t1", schema=SCHEMA, columns=["v"], key={"k": 1}).to_arrow()
    assert [field.name for field in keys.schema.field("after").type] == ["v"]
    assert 0 < keys.num_rows < every.summary.changes
    none = conflict.read_binlog(BINLOG, "cft.t1", schema=SCHEMA, stop_time=datetime(2020, 1, 1)).to_arrow()  # noqa: DTZ001  # as users write it
    assert (none.num_rows, none.schema) == (0, every.schema)
    servers = conflict.read_binlog(BINLOG, server_ids=[2]).to_arrow()
    assert set(servers["server_id"].to_pylist()) == {2}


def test_compressed_files_have_their_own_names(tmp_path: Path) -> None:
    """Rows and errors name the file that was given, and what comes before an error is there."""
    packed = tmp_path / "a.gz"
    packed.write_bytes(gzip.compress(BINLOG.read_bytes()[:9000]))
    batches = iter(conflict.read_binlog(packed))
    assert next(batches)["file"][0].as_py() == str(packed)
    with pytest.warns(
        LogWarning, match=r"a\.gz, position \d+.*what comes after it in the log of its server is not read"
    ):
        list(batches)


def test_a_cut_file_ends_the_log_of_its_server_alone(tmp_path: Path) -> None:
    """Its later files are not read, those of other servers are; a file without a whole event is an error."""
    a, b = DEMO / "A.binlog.000001", DEMO / "B.binlog.000001"
    cut = tmp_path / "A.binlog.000001"
    cut.write_bytes(a.read_bytes()[:9000])
    with pytest.warns(LogWarning, match="what comes after it in the log of its server is not read"):
        found = conflict.read_binlog([cut, a, b], "cft.t1").to_arrow()
    assert found["file"].unique().to_pylist() == [str(cut), str(b.absolute())]
    cut.write_bytes(a.read_bytes()[:30])
    with pytest.raises(FormatError, match="position 4"):
        list(conflict.read_binlog([cut, b]))


def test_what_is_not_there_is_refused() -> None:
    """With a sentence: a table, a column, a path, an argument."""
    for arguments, message in (
        ({"table": "cft.nope"}, r"no file has changes of table cft\.nope"),
        ({"table": "cft.t9"}, r"no file has changes of table cft\.t9 \(did you mean cft\.t"),
        ({"table": "t1x"}, r"the log has no table t1x \(did you mean cft\.t1\?\); it has cft\.plain, cft\.t1"),
        ({"table": "cft.t1", "columns": ["nope"]}, r"has no column nope; it has @1, @2"),
        ({"columns": ["k"]}, "columns needs table"),
        ({"temporals": "none"}, "typed or text"),
    ):
        with pytest.raises(conflict.ConfigurationError, match=message):
            conflict.read_binlog(BINLOG, **arguments).to_arrow()  # type: ignore[arg-type]
    with pytest.raises(conflict.ConfigurationError, match="no such file"):
        conflict.read_binlog(DEMO / "none")


def test_lists_as_on_the_command_line() -> None:
    """Texts with commas are as good as sequences, and a number as good as a sequence of one."""
    texts = conflict.read_binlog(BINLOG, "cft.t1", columns="@1, @2", server_ids="1, 2")
    assert texts == conflict.read_binlog(BINLOG, "cft.t1", columns=["@1", "@2"], server_ids=[1, 2])
    assert conflict.decode(BINLOG, server_id=1) == conflict.read_binlog(BINLOG, server_ids=[1])


def test_definitions_that_change(tmp_path: Path) -> None:
    """A table has the columns of all its versions; where a version lacks one, it is not among the names."""
    case = RECORDINGS / "everyday/max/ddl_drop_column_type7"
    changes = conflict.read_binlog(case / "A.binlog.000001", "day.t1", schema=schema_file(case, tmp_path))
    rows = changes.to_arrow().to_pylist()
    assert [field.name for field in changes.schema.field("after").type] == ["k", "x", "v", "s"]
    carried = [row["after_columns"] for row in rows if row["operation"] == "WRITE_ROW"]
    assert carried == ["k,x,v,s"] * 6  # recorded: the rows were inserted before the column was dropped
    later = [row for row in rows if row["after_columns"] == "k,x,v"]
    assert later
    assert {row["after"]["s"] for row in later} == {None}


def test_definitions_of_the_end(tmp_path: Path) -> None:
    """They are taken back; a word that is no moment is refused."""
    case, end = RECORDINGS / "everyday/epoch2/ddl_add_column_type8", tmp_path / "end.sql"
    start = schema_file(case, tmp_path)
    end.write_text(start.read_text().replace("PRIMARY KEY", "n1 INT, PRIMARY KEY", 1))
    expected = conflict.read_binlog(case / "A.binlog.000001", "day.t1", schema=start).to_arrow()
    found = conflict.read_binlog(case / "A.binlog.000001", "day.t1", schema=end, schema_at="end").to_arrow()
    assert "n1" in [field.name for field in found.schema.field("after").type]
    assert found.equals(expected)
    with pytest.raises(conflict.errors.ConfigurationError, match="schema_at is start or end"):
        conflict.read_binlog(case / "A.binlog.000001", schema_at="middle")


def test_a_column_that_gets_a_wider_type(tmp_path: Path) -> None:
    """One type holds the values of both versions."""
    case = RECORDINGS / "everyday/max_ins/ddl_widen_column_type7"
    changes = conflict.read_binlog(case / "A.binlog.000001", "day.t1", schema=schema_file(case, tmp_path))
    apart = conflict.read_binlog(case / "A.binlog.000001", schema=schema_file(case, tmp_path)).to_arrow()
    shown = [
        {name: None if value is None else str(value) for name, value in row["after"].items()}
        for row in changes.to_arrow().to_pylist()
        if row["after"]
    ]
    texts = [dict(row["after"]) for row in apart.to_pylist() if row["table"] == "t1" and row["after"]]
    assert shown == texts


def test_a_statement_that_cannot_be_followed(tmp_path: Path) -> None:
    """A warning names it, and all changes are given."""
    case = RECORDINGS / "everyday/epoch2/ddl_add_column_type8"
    file = tmp_path / "A.binlog.000001"
    wrong = "ALTER TABLE t1 DROP COLUMN nowhere"
    file.write_bytes(rewritten(case / file.name, lambda text: wrong if "ALTER" in text else text))
    with pytest.warns(LogWarning, match=wrong):
        found = conflict.read_binlog(file, schema=schema_file(case, tmp_path)).to_arrow()
    assert len(found) == len(conflict.read_binlog(case / file.name).to_arrow())
