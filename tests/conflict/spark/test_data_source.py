"""`spark.read.format("ndb_binlog")`: row changes as a DataFrame."""

import gzip
import json
from datetime import UTC
from decimal import Decimal
from pathlib import Path

import pytest
import zstandard
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import conflict
from conflict.errors import ConfigurationError, LogWarning
from conflict.spark.data_source import NdbBinlogDataSource, register
from ndb_formats.errors import FormatError
from ndb_formats.events.control_events import IncidentEvent, encode_incident
from tests.conflict.cli.test_besides_rows import insert, query
from tests.conflict.raw_events import Raw, payload
from tests.conflict.spliced_logs import spliced
from tests.corpora import schema_file
from tests.ndb_formats.rewritten import rewritten

DEMO = Path(__file__).parents[3] / "conflict" / "demo"
RECORDINGS = Path(__file__).parents[2] / "recordings"
REPORTS = RECORDINGS / "reports"
PROBE = RECORDINGS / "conflict" / "max" / "probe_type8"


def _read(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    register(spark)
    return spark.read.format("ndb_binlog").options(**options).load(str(path))


def test_rows_are_read_with_epoch_transaction_and_images(spark: SparkSession) -> None:
    """A delete of type 8 holds its key alone, in the before image; epochs and transaction ids are exact decimals."""
    rows = _read(spark, PROBE / "B.binlog.000001").where("operation = 'DELETE_ROW'").collect()
    (row,) = [row for row in rows if row.server_id == 2]
    assert row.before == {"@1": "2"}
    assert row.after is None
    assert (row.database, row.table, row.flags) == ("cft", "t1", [])
    assert Decimal(3079491551268) == row.epoch
    assert isinstance(row.transaction_id, Decimal)


def test_absent_null_and_empty_are_three_things(spark: SparkSession) -> None:
    """An absent column is not in the map; a NULL is a null in it."""
    frame = _read(spark, DEMO / "A.binlog.000001", schema=str(DEMO / "schema.sql"), tables="cft.t1")
    updates = frame.where("operation = 'UPDATE_ROW'").collect()
    assert all("k" in row.before and "k" not in row.after for row in updates)
    nulls = [row.after for row in frame.collect() if row.after and "s" in row.after and row.after["s"] is None]
    assert nulls


def test_epochs_can_be_chosen(spark: SparkSession) -> None:
    """startEpoch and endEpoch are inclusive."""
    every = _read(spark, DEMO)
    epochs = sorted({row.epoch for row in every.select("epoch").collect()})
    some = _read(spark, DEMO, startEpoch=str(epochs[2]), endEpoch=str(epochs[4]))
    assert epochs[2:5] == sorted({row.epoch for row in some.select("epoch").collect()})


def test_times_can_be_chosen(spark: SparkSession) -> None:
    """startTime is inclusive and endTime is not; what is no moment and no epoch is refused."""
    every = _read(spark, DEMO).collect()
    first, last = min(row.timestamp for row in every), max(row.timestamp for row in every)
    times = {"startTime": first.astimezone(UTC).isoformat(), "endTime": f"{last.astimezone(UTC):%Y-%m-%d %H:%M:%S}"}
    some = _read(spark, DEMO, **times).collect()
    assert sorted(some) == sorted(row for row in every if row.timestamp < last)
    assert len(some) < len(every)
    for name, text in (("startTime", "noon"), ("endEpoch", "-1")):
        with pytest.raises(PySparkException, match=f"{name} is {text}"):
            _read(spark, DEMO, **{name: text}).collect()


def test_tables_can_be_chosen(spark: SparkSession) -> None:
    """Only the tables that are named are read; mysql.ndb_apply_status only if it is named."""
    assert {"t2"} == {row.table for row in _read(spark, DEMO, tables="cft.t2").collect()}
    assert {"t1", "t2", "plain"} == {row.table for row in _read(spark, DEMO).select("table").collect()}
    status = _read(spark, DEMO / "A.binlog.000001", tables="mysql.ndb_apply_status")
    assert {"ndb_apply_status"} == {row.table for row in status.collect()}


def test_flags_are_named(spark: SparkSession) -> None:
    """Refresh operations have the flag REFRESH."""
    flags = [row.flags for row in _read(spark, DEMO / "A.binlog.000001").collect()]
    assert [] in flags
    assert flags.count(["REFRESH"]) == 18


def test_a_cut_file_is_an_error_that_names_the_place(spark: SparkSession, tmp_path: Path) -> None:
    """Reading to the end fails with file and position; reading up to an epoch before the cut does not."""
    file = tmp_path / "binlog.000001"
    file.write_bytes((DEMO / "A.binlog.000001").read_bytes()[:9000])
    with pytest.raises(PySparkException, match=r"binlog\.000001, position \d+"):
        _read(spark, file).collect()
    first = min(row.epoch for row in _read(spark, DEMO / "A.binlog.000001").select("epoch").collect())
    assert _read(spark, file, endEpoch=str(first)).count() > 0


def test_what_cannot_be_read_is_left_out_if_that_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    """A damaged event: what comes before it is read, and file, position and reason are written; else it is an error."""
    damaged, bad = bytearray((DEMO / "A.binlog.000001").read_bytes()), tmp_path / "bad"
    damaged[9000] ^= 0xFF
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/A.binlog.000001").write_bytes(damaged)
    (tmp_path / "logs/B.binlog.000001").write_bytes((DEMO / "B.binlog.000001").read_bytes())
    with pytest.raises(PySparkException, match=r"A\.binlog\.000001, position \d+"):
        _read(spark, tmp_path / "logs").collect()
    rows = _read(spark, tmp_path / "logs", mode="permissive", badRecordsPath=str(bad)).collect()
    (told,) = [json.loads(line) for file in bad.iterdir() for line in file.read_text("utf-8").splitlines()]
    assert told["file"] == str(tmp_path / "logs/A.binlog.000001")
    assert told["position"] <= 9000
    assert str(told["position"]) in told["why"]
    expected = [
        row for row in _read(spark, DEMO).collect() if "B.binlog" in row.file or row.position < told["position"]
    ]
    assert len(rows) == len(expected)
    with pytest.raises(PySparkException, match="PERMISSIVE with badRecordsPath"):
        _read(spark, DEMO, mode="PERMISSIVE").collect()


def test_files_that_are_no_binlogs_are_left_out_if_that_is_asked_for(tmp_path: Path) -> None:
    """A folder with none, a file that is none, one that ends in its first event: a line for each; else an error."""
    log, bad = (DEMO / "A.binlog.000001").read_bytes(), tmp_path / "bad"
    contents = {
        "none/A.binlog.000007": b"\0\0\0\0" + log[4:],
        "text": b"no binlog at all",
        "some/A.binlog.000001": log,
        "some/A.binlog.000002": log[:4] + b"\xff" * 40,
    }
    for name, data in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)

    def count(path: Path | None = None, **options: str) -> int:
        given = {"paths": json.dumps([str(tmp_path / name) for name in ("none", "text", "some")])}
        source = NdbBinlogDataSource({**(given if path is None else {"path": str(path)}), **options})
        reader = source.reader(source.schema())
        return sum(len(batch) for each in reader.partitions() for batch in reader.read(each))

    permissive = {"mode": "PERMISSIVE", "badRecordsPath": str(bad)}
    for name in ("none", "text"):
        with pytest.raises((ConfigurationError, FormatError), match=r"no binlog|not a binlog"):
            count(tmp_path / name)
    assert count(**permissive) == count(DEMO / "A.binlog.000001") > 0
    told = {each["file"]: each["why"] for file in bad.iterdir() for each in [json.loads(file.read_text("utf-8"))]}
    assert {*told} == {str(tmp_path / name) for name in contents if name != "some/A.binlog.000001"}
    assert all(told.values())
    assert count(tmp_path / "none", **permissive) == 0
    assert count(tmp_path / "some", **permissive, table="cft.t1") > 0
    with pytest.raises(ConfigurationError, match="no such file or folder"):
        count(tmp_path / "nowhere", **permissive)


@pytest.mark.parametrize("table", [None, "cft.t1"])
def test_compressed_files_and_several_paths(table: str | None, spark: SparkSession, tmp_path: Path) -> None:
    """Files of gzip and Zstandard, in a list of paths; the rows are those of the files as they were."""
    options = {"schema": str(DEMO / "schema.sql")} | ({} if table is None else {"table": table})
    first, second = ((DEMO / f"{name}.binlog.000001").read_bytes() for name in "AB")
    (tmp_path / "A.binlog.000001.gz").write_bytes(gzip.compress(first))
    (tmp_path / "B.binlog.000001.zst").write_bytes(zstandard.ZstdCompressor().compress(second))
    register(spark)
    paths = [str(tmp_path / "A.binlog.000001.gz"), str(tmp_path / "B.binlog.000001.zst")]
    packed = spark.read.format("ndb_binlog").options(**options).load(paths).collect()
    whole = [_read(spark, DEMO / f"{name}.binlog.000001", **options).collect() for name in "AB"]
    assert [row.file for row in packed] == [path for path, rows in zip(paths, whole, strict=True) for _ in rows]
    assert [row[1:] for row in packed] == [row[1:] for rows in whole for row in rows]
    assert packed


def test_unknown_options_are_refused(spark: SparkSession) -> None:
    """A misspelt option is an error that lists the options there are."""
    options = (
        "path, table, columns, temporals, envelope, tables, servers, startEpoch, endEpoch, startTime, endTime, schema"
    )
    with pytest.raises(PySparkException, match=f"options are {options}"):
        _read(spark, DEMO, startepochs="1").collect()


@pytest.mark.parametrize("table", [None, "cft.t1"])
def test_some_columns(table: str | None, spark: SparkSession) -> None:
    """A schema chooses them; without images nothing is decoded, so a value that cannot be is no obstacle."""
    register(spark)
    file, options = DEMO / "A.binlog.000001", {} if table is None else {"table": table}
    whole = _read(spark, file, **options)
    for names in (["epoch"], ["row", "position", "committed", "gtid"], ["position", "after"]):
        chosen = StructType([whole.schema[name] for name in names])
        some = spark.read.schema(chosen).format("ndb_binlog").options(**options).load(str(file))
        assert sorted(map(str, some.collect())) == sorted(map(str, whole.select(names).collect()))
    doubtful = REPORTS / "unsigned-without-definition.binlog"
    rows = spark.read.schema("row int").format("ndb_binlog").load(str(doubtful)).count()
    assert rows == _read(spark, doubtful, remarks="ignore").count() > 0


def test_a_table_of_a_catalog(spark: SparkSession, tmp_path: Path) -> None:
    """It keeps the options with which it was created; unknown ones are refused then."""
    register(spark)
    file, schema = DEMO / "A.binlog.000001", DEMO / "schema.sql"
    options = f"path '{file}', schema '{schema}', 'table' 'cft.t1'"
    spark.sql(f"CREATE DATABASE logs LOCATION '{tmp_path}'")
    try:
        spark.sql(f"CREATE TABLE logs.t1 USING ndb_binlog OPTIONS ({options})")
        found = spark.sql("SELECT position, `row`, after.v FROM logs.t1").collect()
        expected = _read(spark, file, schema=str(schema), table="cft.t1").select("position", "row", "after.v")
        assert sorted(map(str, found)) == sorted(map(str, expected.collect()))
        spark.sql(f"CREATE TABLE logs.every USING ndb_binlog LOCATION '{file}'")
        assert spark.table("logs.every").count() == _read(spark, file).count() > len(found) > 0
    finally:
        spark.sql("DROP DATABASE logs CASCADE")


def test_one_table_has_its_columns(spark: SparkSession) -> None:
    """Images are structs, columns that an image does not carry are not among its names, and filters are applied."""
    options = {"schema": str(DEMO / "schema.sql"), "table": "cft.t1"}
    frame = _read(spark, DEMO / "A.binlog.000001", **options)
    maps = _read(spark, DEMO / "A.binlog.000001", schema=options["schema"], tables="cft.t1")
    every = maps.collect()
    texts = {(row.position, row.row): row.after for row in every}
    rows = frame.collect()
    assert len(rows) == len(texts)
    assert {row.committed for row in rows} == {row.committed for row in every} != {None}
    for row in rows:
        names = [] if row.after_columns is None else row.after_columns.split(",")
        image = None if row.after is None else {name: row.after[name] for name in names}
        found = image and {name: None if value is None else str(value) for name, value in image.items()}
        assert found == texts[row.position, row.row]
    epoch = max(row.epoch for row in rows)
    late = frame.where(f"epoch >= {epoch} and operation = 'WRITE_ROW' and after.k is not null").collect()
    assert late == [row for row in rows if row.epoch == epoch and row.operation == "WRITE_ROW"]
    some = _read(spark, DEMO / "A.binlog.000001", columns="v,k", **options)
    assert [field.name for field in some.schema["after"].dataType] == ["k", "v"]
    with pytest.raises(PySparkException, match=r"no file has changes of table cft\.nope"):
        _read(spark, DEMO, table="cft.nope").collect()
    with pytest.raises(PySparkException, match=r"table cft\.t1 has no column z"):
        _read(spark, DEMO, columns="k,z", **options).collect()


def test_definitions_that_change(spark: SparkSession, tmp_path: Path) -> None:
    """Both logs of a folder are followed from the schema; the rows are those of `read_binlog`."""
    case = RECORDINGS / "everyday" / "epoch2" / "ddl_add_column_type8"
    schema = schema_file(case, tmp_path)
    files = [case / f"{side}.binlog.000001" for side in "AB"]
    rows = _read(spark, case / "*.binlog.000001", schema=str(schema), table="day.t1").collect()
    expected = conflict.read_binlog(files, "day.t1", schema=schema).to_arrow().to_pylist()
    assert any("n1" in row["after_columns"] for row in expected if row["after_columns"])
    shown = sorted(
        (row.file, row.position, row.row, row.after_columns, row.after and row.after.asDict()) for row in rows
    )
    assert shown == sorted(
        (row["file"], row["position"], row["row"], row["after_columns"], row["after"]) for row in expected
    )


INCIDENT = (26, 1, encode_incident(IncidentEvent(1, "cluster disconnect")))
BACK = [*insert(b"u")[:3], query(b"ROLLBACK")]
REMARKS: dict[str, tuple[Path | list[Raw], str]] = {
    "statements": (REPORTS / "15-statement-format.binlog", "3 changes are logged as statements and are not among"),
    "incident": ([INCIDENT], "incident 1, LOST_EVENTS (cluster disconnect): the log may lack changes from here on"),
    "signs": (REPORTS / "unsigned-without-definition.binlog", "columns @2, @3: the log does not say which integers"),
    "rollback": (REPORTS / "savepoint.mariadb.binlog", "1 rollback is logged after the changes that were undone"),
    "compressed": ([payload(BACK)], "1 rollback is logged after the changes that were undone"),
    "several": ([*BACK, INCIDENT, query(b"DELETE FROM u")], "1 change is logged as a statement"),
}


@pytest.mark.parametrize("name", REMARKS)
def test_what_python_warns_of_is_an_error(name: str, spark: SparkSession, tmp_path: Path) -> None:
    """In the same words, with the same places; the rows can be read nevertheless."""
    log, said = REMARKS[name]
    if isinstance(log, list):
        (tmp_path / "binlog.000001").write_bytes(spliced(DEMO / "A.binlog.000001", log, after=3))
        log = tmp_path / "binlog.000001"
    with pytest.warns(LogWarning) as warned:
        expected = conflict.read_binlog(log.absolute()).to_arrow()
    with pytest.raises(PySparkException) as failed:
        _read(spark, log.absolute()).collect()
    sentences = [str(warning.message) for warning in warned]
    assert len(sentences) == (3 if name == "several" else 1)
    assert said in " ".join(sentences)
    assert f"ndb_binlog: {'; '.join(sentences)}. To read the rows nevertheless" in str(failed.value)
    rows = _read(spark, log.absolute(), remarks="ignore").collect()
    assert sorted((row.position, row.payload_position, row.row) for row in rows) == sorted(
        zip(*(expected[column].to_pylist() for column in ("position", "payload_position", "row")), strict=True)
    )


def test_remarks_are_failed_with_or_ignored(spark: SparkSession) -> None:
    """Nothing else."""
    with pytest.raises(PySparkException, match="remarks is warn; give fail or ignore"):
        _read(spark, DEMO, remarks="warn").collect()


@pytest.mark.slow
def test_a_statement_that_cannot_be_followed(spark: SparkSession, tmp_path: Path) -> None:
    """It concerns its table from there on: its rows come with the names of the log, and all that came before stays."""
    case = RECORDINGS / "everyday" / "epoch2" / "ddl_add_column_type8"
    schema, file = schema_file(case, tmp_path), tmp_path / "A.binlog.000001"
    wrong = "ALTER TABLE t1 DROP COLUMN nowhere"
    file.write_bytes(rewritten(case / file.name, lambda text: wrong if "ALTER" in text else text))
    with pytest.warns(LogWarning, match=wrong):
        expected = conflict.read_binlog(file, schema=schema).to_arrow().to_pylist()
    with pytest.raises(PySparkException, match=wrong):
        _read(spark, file, schema=str(schema)).collect()
    rows = _read(spark, file, schema=str(schema), remarks="ignore").collect()
    assert sorted((row.position, row.row, row.table) for row in rows) == sorted(
        (row["position"], row["row"], row["table"]) for row in expected
    )
    whole = _read(spark, case / file.name, schema=str(schema)).collect()
    first = min(row.epoch for row in whole)
    before = [row.after for row in rows if row.epoch == first]
    assert before == [row.after for row in whole if row.epoch == first]
