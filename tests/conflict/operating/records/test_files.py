"""Records in their formats: the same values, exact integers, NULL that is not absent; and the command that writes."""

import copy
import csv
import io
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import conflict
from conflict.cli.app import app
from conflict.config.option_values import RecordFormat
from conflict.errors import ConfigurationError, HistoryError
from conflict.operating.records.files import format_of, write_records
from conflict.operating.records.layout import JSON_TEXTS, RECORD, json_schema
from ndb_formats.columnar.lines import json_objects
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

NUMBERS = st.sampled_from([0, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
SIMPLE = st.one_of(st.none(), NUMBERS, TEXTS)
MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def values(field: pa.Field) -> st.SearchStrategy[Any]:
    """Return values of a column, NULL among them."""
    if field.name in JSON_TEXTS:
        found: st.SearchStrategy[Any] = st.dictionaries(TEXTS, SIMPLE, max_size=3).map(json.dumps)
    elif pa.types.is_timestamp(field.type):
        found = MOMENTS
    elif pa.types.is_boolean(field.type):
        found = st.booleans()
    elif pa.types.is_string(field.type):
        found = TEXTS
    else:
        top = 2 ** (field.type.bit_width - pa.types.is_signed_integer(field.type)) - 1
        found = NUMBERS.map(lambda number: min(number, top))
    return st.none() | found


BATCHES = st.lists(st.fixed_dictionaries({field.name: values(field) for field in RECORD}), min_size=1, max_size=4)


def written(rows: list[dict[str, Any]], form: RecordFormat) -> bytes:
    """Return rows, in two batches, as a file of a format."""
    batches = [pa.RecordBatch.from_pylist(part, RECORD) for part in (rows[:1], rows[1:])]
    out = io.BytesIO()
    write_records(pa.RecordBatchReader.from_batches(RECORD, batches), form, out)
    return out.getvalue()


@given(BATCHES)
def test_json_lines_and_parquet_hold_the_same(rows: list[dict[str, Any]]) -> None:
    """Whatever the values are; texts of JSON are values of JSON in JSON Lines."""
    lines = [json.loads(line) for line in written(rows, RecordFormat.JSONL).splitlines()]
    assert [list(line) for line in lines] == [RECORD.names] * len(rows)
    for line in lines:
        line["time"] = None if line["time"] is None else datetime.fromisoformat(line["time"])
    expected = [
        {name: json.loads(each) if name in JSON_TEXTS and each is not None else each for name, each in row.items()}
        for row in rows
    ]
    assert lines == expected
    parquet = pq.read_table(pa.BufferReader(written(rows, RecordFormat.PARQUET)))
    assert parquet.schema.equals(RECORD)
    assert parquet.to_pylist() == rows


@given(BATCHES)
def test_csv_quotes_all_texts(rows: list[dict[str, Any]]) -> None:
    """A reader of the standard library finds each value; NULL is nothing, and so an empty text to it."""
    text = written(rows, RecordFormat.CSV).decode()
    names, *found = csv.reader(io.StringIO(text, newline=""))
    assert names == RECORD.names
    for line, row in zip(found, rows, strict=True):
        for name, cell in zip(names, line, strict=True):
            value = row[name]
            if isinstance(value, bool):
                assert cell == str(value).lower()
            elif isinstance(value, datetime):
                assert datetime.fromisoformat(cell) == value
            elif isinstance(value, str) and name not in JSON_TEXTS:
                assert cell in (value, f"'{value}")
            else:
                assert cell == ("" if value is None else str(value))


def test_values_of_images_are_exact() -> None:
    """Integers to their last digit; NULL is null; bytes are hexadecimal; floats have the shortest text."""
    image = pa.StructArray.from_arrays(
        [
            pa.array([2**64 - 1, 2**63], pa.uint64()),
            pa.array([-(2**63), None], pa.int64()),
            pa.array(["a\n\"\\'\u2028", ""]),
            pa.array([b"\0\xff", None]),
            pa.array([0.1, -0.0]),
        ],
        ["u", "s", 'a"b', "b", "f"],
    )
    text = r'"a\"b": "a\n\"\\' + "'\u2028\""
    assert json_objects(image).to_pylist() == [
        '{"u": 18446744073709551615, "s": -9223372036854775808, ' + text + ', "b": "0x00FF", "f": 0.1}',
        '{"u": 9223372036854775808, "s": null, "a\\"b": "", "b": null, "f": -0.0}',
    ]


def test_the_schema_has_the_columns() -> None:
    """In their order, each with its type."""
    assert list(json_schema()["properties"]) == json_schema()["required"] == RECORD.names


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of a copy of the demo."""
    folder = tmp_path_factory.mktemp("records")
    shutil.copytree(DEMO, folder / "demo")
    conflict.resolve(folder / "demo" / "run.toml", out=folder / "result", engine="reference")
    return folder / "result"


def test_a_conflict_of_the_demo(demo: Path) -> None:
    """One that was read off its binlogs by hand."""
    rows = conflict.records(demo).read_all().to_pylist()
    (row,) = [
        row for row in rows if (Path(row["file"]).name, row["position"], row["row"]) == ("B.binlog.000001", 1448, 1)
    ]
    assert (row["kind"], row["lost"], row["lost_by"], row["applier"], row["source"]) == (
        *("conflict", True, "rejected"),
        *("A", "B"),
    )
    assert (row["table"], row["operation"], row["cause"]) == ("cft.t2", "UPDATE_ROW", "ROW_IN_CONFLICT")
    assert (row["function"], row["server_id"], row["overwritten_in"]) == ("NDB$EPOCH(6)", 2, None)
    assert (row["incoming"], row["stored"]) == (5317169512456, 5321464479744)
    assert json.loads(row["key"]) == json.loads(row["before"]) == {"a": 2, "b": "z2"}
    assert json.loads(row["after"]) == {"b": "z2", "d": "884.00", "x": 122, "f": 184.0, "w": "yew53"}
    assert (row["winner_cluster"], row["winner_position"], row["winner_refresh"]) == ("A", 2419, False)


def test_filters(demo: Path) -> None:
    """What is chosen is what all records have of it."""
    rows = conflict.records(demo).read_all().to_pylist()
    moment = sorted(row["time"] for row in rows)[len(rows) // 2]
    for options, keeps in (
        ({"since": moment}, lambda row: row["time"] >= moment),
        ({"until": moment}, lambda row: row["time"] < moment),
        ({"table": "t1"}, lambda row: row["table"] == "cft.t1"),
    ):
        expected = [row for row in rows if keeps(row)]
        assert 0 < len(expected) < len(rows)
        assert conflict.records(demo, **options).read_all().to_pylist() == expected


@pytest.mark.parametrize("form", list(RecordFormat))
def test_the_command_writes_what_python_returns(demo: Path, form: RecordFormat, tmp_path: Path) -> None:
    """To a file, whose suffix is the format if none is given."""
    target = tmp_path / f"records.{form}"
    assert invoke("conflicts", demo, "--table", "t2", "--out", target) == (0, "")
    expected = written(conflict.records(demo, table="cft.t2").read_all().to_pylist(), form)
    if form is RecordFormat.PARQUET:
        assert pq.read_table(target).equals(pq.read_table(pa.BufferReader(expected)))
    else:
        assert target.read_bytes() == expected


def test_standard_output(demo: Path) -> None:
    """JSON Lines and nothing else."""
    done = CliRunner().invoke(app, ["conflicts", str(demo), "--format", "jsonl"])
    assert done.exit_code == 0
    assert done.stdout_bytes == written(conflict.records(demo).read_all().to_pylist(), RecordFormat.JSONL)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--format", "jsonl", "--by", "key"], "--by is about counts"),
        (["--format", "jsonl", "--observed", "A=x"], "--observed is about counts"),
        (["--format", "parquet"], "--format parquet writes a file"),
        (["--out", "records.txt"], "its suffix says no format"),
    ],
)
def test_what_is_refused(demo: Path, options: list[str], said: str) -> None:
    """Counts beside records, and files without a format."""
    code, output = invoke("conflicts", demo, *options)
    assert code == 2
    assert said in output


def test_a_format_goes_before_the_suffix() -> None:
    """As for other programs: a file of any name."""
    assert format_of(RecordFormat.CSV, Path("x.txt")) is RecordFormat.CSV
    with pytest.raises(ConfigurationError, match="suffix"):
        format_of(None, Path("csv"))


def test_after_a_missing_binlog(demo: Path) -> None:
    """Those that follow it are read, unless columns changed in the logs: it may have the statement that did it."""
    result = conflict.read_result(str(demo))
    whole, gone = conflict.records(result).read_all(), str(demo.parent / "demo" / "A.binlog.000000")
    run = copy.deepcopy(result.run)
    run["configuration"]["clusters"]["A"]["binlogs"].insert(0, gone)
    run["inputs"]["files"].append({"path": gone, "bytes": 1, "digest": ""})
    with pytest.warns(UserWarning, match="A.binlog.000000: missing, so .* are NULL in records of changes in them.$"):
        assert conflict.records(attrs.evolve(result, run=run)).read_all().equals(whole)
    run["configuration"]["tables"]["cft.t1"]["more"] = "int"
    with pytest.warns(UserWarning, match="in those of .*A.binlog.000001, whose tables may have been others"):
        found = conflict.records(attrs.evolve(result, run=run)).read_all()
    logged, of_a = ["server_id", "before", "after"], pc.equal(found["source"], "A")
    assert found.drop_columns(logged).equals(whole.drop_columns(logged))
    assert found.filter(pc.invert(of_a)).equals(whole.filter(pc.invert(of_a)))
    assert found.filter(of_a)["server_id"].null_count == len(found.filter(of_a)) > 0


def test_without_a_binlog(demo: Path, tmp_path: Path) -> None:
    """Images in it are NULL, all else stays, and it is said once; a binlog that changed is refused."""
    whole = conflict.records(demo).read_all()
    logged = ["server_id", "before", "after"]
    log = demo.parent / "demo" / "B.binlog.000001"
    data = log.read_bytes()
    log.unlink()
    try:
        with pytest.warns(UserWarning, match="B.binlog.000001: missing, so server_id"):
            found = conflict.records(demo).read_all()
        code, output = invoke("conflicts", demo, "--out", tmp_path / "records.csv")
        log.write_bytes(data + b"x")
        with pytest.raises(HistoryError, match="bytes, and had"):
            conflict.records(demo)
    finally:
        log.write_bytes(data)
    assert found.drop_columns(logged).equals(whole.drop_columns(logged))
    there = pc.equal(found["file"], str(log)).to_numpy()
    assert 0 < there.sum() < len(found)
    assert found.filter(~there).equals(whole.filter(~there))
    assert [found.filter(there)[name].null_count for name in logged] == [there.sum()] * 3
    assert code == 0
    assert output == f"{log}: missing, so server_id, before and after are NULL in records of changes in them."
