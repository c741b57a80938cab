"""`spark.read.format("ndb_result")`: tables of a result, from a folder and from an S3 server on loopback."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import conflict
from conflict.decoding.common_types import common_type
from conflict.engine.ledger.result_tables import TableFile
from conflict.errors import ConfigurationError, HistoryError
from conflict.results.result import Result
from conflict.spark.data_source import register
from conflict.spark.result_source import NdbResultDataSource
from tests.conflict.object_storage import BUCKET, S3, s3_server
from tests.corpora import DEMO

ADDRESS = f"s3://{BUCKET}/result"
LABELLED = ("outcomes", "applied_epochs", "contradictions", "overwritten", "undecided")
OTHERS = ("rows/A/cft.t1", "rows/B/cft.t2", "exceptions/A/cft.t1$EX")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Resolve the demo into a folder."""
    out = tmp_path_factory.mktemp("result") / "of-demo"
    return conflict.resolve(DEMO / "run.toml", out=out, engine="local", all_outcomes=True)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Give a server with a result of the demo's recording."""
    with pytest.MonkeyPatch.context() as patch, s3_server(patch.setenv) as server:
        conflict.resolve(DEMO / "run.toml", out=ADDRESS, engine="local", all_outcomes=True)
        yield server


def read(path: str, table: str, names: list[str] | None = None) -> list[dict[str, object]]:
    """Return the rows that the tasks of a query read."""
    source = NdbResultDataSource({"path": path, "table": table})
    schema = source.schema()
    reader = source.reader(schema if names is None else StructType([schema[name] for name in names]))
    return [row for each in reader.partitions() for batch in reader.read(each) for row in batch.to_pylist()]


def written(result: Result, table: str) -> Counter[str]:
    """Return the rows of a table of a result in a folder, as its files have them, without the columns of paths."""
    place = Path(result.folder.uri, table)
    files = sorted(place.rglob("*.parquet")) if place.is_dir() else [Path(f"{place}.parquet")]
    return shown(row for file in files for row in pq.read_table(file, partitioning=None).to_pylist())


def shown(rows: Iterator[dict[str, object]] | list[dict[str, object]]) -> Counter[str]:
    """Return rows without the columns that paths give, and with whole numbers in one form."""
    return Counter(json.dumps(_plain(row), default=str, sort_keys=True) for row in rows)


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if name not in ("applier", "cluster")}
    whole = isinstance(value, Decimal) and value == int(value)
    return int(value) if whole else value  # type: ignore[call-overload]


@pytest.mark.parametrize("table", [*LABELLED, *OTHERS])
def test_the_rows_are_those_of_the_files(table: str, here: Result) -> None:
    """Of a folder; columns that paths give come after the others."""
    found = read(here.folder.uri, table)
    assert shown(found) == (written(here, table) if found else Counter())
    assert bool(found) == Path(here.folder.uri, table).exists() or table in OTHERS
    if table == "outcomes":
        assert {row["applier"] for row in found} == {"A", "B"}
        assert len(found) > 80


@pytest.mark.usefixtures("s3")
def test_the_rows_on_object_storage(here: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the folder, and nothing of them stays here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for table in ("outcomes", *OTHERS):
        names = [each for each in read(here.folder.uri, table)[0] if each not in ("file", "winner_file")]
        assert shown(read(ADDRESS, table, names)) == shown(read(here.folder.uri, table, names))
    assert [*tmp_path.iterdir()] == []


def test_other_programs_read_a_table_by_its_address(s3: S3, here: Result) -> None:
    """Below one prefix, which the version names; another result has another one, and the old one is removed."""
    found = conflict.read_result(ADDRESS)
    place = found.address("outcomes")
    (version,) = s3.keys("result/versions/")
    prefix = place.removeprefix(f"s3://{BUCKET}/").removesuffix("outcomes")
    assert prefix.startswith("result/v000001-")
    assert {*s3.keys("result/")} == {version, *s3.keys(prefix)}
    storage = fsspec.filesystem("s3")
    table = pads.dataset(place.removeprefix("s3://"), filesystem=storage, partitioning="hive").to_table()
    assert table.num_rows == here.outcomes().num_rows
    assert {*table["applier"].to_pylist()} == {"A", "B"}
    conflict.resolve(DEMO / "run.toml", out=f"s3://{BUCKET}/again", engine="local")
    first = conflict.read_result(f"s3://{BUCKET}/again").address("outcomes")
    conflict.resolve(DEMO / "run.toml", out=f"s3://{BUCKET}/again", engine="local", force=True)
    second = conflict.read_result(f"s3://{BUCKET}/again").address("outcomes")
    assert "/v000002-" in second
    assert not storage.exists(first)
    with pytest.raises(HistoryError, match="no nothing at one place"):
        found.address("nothing")


def test_unsigned_integers_are_exact(tmp_path: Path) -> None:
    """Those above 2^63, and those that no float holds; in structs and lists, too."""
    numbers = [2**64 - 1, 2**63, 2**53 + 1, 0, None]
    kind = pa.struct([("n", pa.uint64()), ("l", pa.list_(pa.uint64()))])
    nested = pa.array([{"n": each, "l": [each]} for each in numbers], kind)
    pq.write_table(pa.table({"n": pa.array(numbers, pa.uint64()), "s": nested}), tmp_path / "a.parquet")
    file = TableFile(str(tmp_path / "a.parquet"), len(numbers), 1, {})
    schema = pa.schema([("n", common_type(pa.uint64())), ("s", common_type(kind))])
    (batch,) = file.batches(schema)
    assert batch.column("n").to_pylist() == numbers
    assert batch.column("s").to_pylist() == [{"n": each, "l": [each]} for each in numbers]
    assert str(batch.schema.field("n").type) == "decimal128(20, 0)"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "rows"}, "several tables; give one: rows/A/cft.plain, rows/A/cft.t1, "),
        ({"table": "outcome"}, "has no table outcome; it has applied_epochs, contradictions, exceptions/A/cft.t1$EX, "),
        ({"table": "rows/A/cft.none"}, "has no table rows/A/cft.none"),
        ({}, "options are path and table; path given"),
        ({"table": "outcomes", "part": "x"}, "options are path and table; part, path, table given"),
    ],
)
def test_what_is_refused(options: dict[str, str], said: str, here: Result) -> None:
    """A table that is not there is named, with those that are."""
    with pytest.raises((ConfigurationError, HistoryError)) as refused:
        NdbResultDataSource({"path": here.folder.uri, **options}).schema()
    assert said in str(refused.value)


def test_what_is_damaged_or_no_result(here: Result, tmp_path: Path) -> None:
    """A file that is cut is found when the query is planned, one that is replaced or goes when it is read."""
    with pytest.raises(HistoryError, match="there is no result in"):
        NdbResultDataSource({"path": str(tmp_path), "table": "outcomes"}).schema()
    copy = tmp_path / "copy"
    fsspec.filesystem("file").put(f"{here.folder.uri}/", f"{copy}/", recursive=True)
    file = min(copy.rglob("outcomes/applier=A/*.parquet"))
    source = NdbResultDataSource({"path": str(copy), "table": "outcomes"})
    reader = source.reader(source.schema())
    other, data = pq.read_table(file, partitioning=None).slice(1), file.read_bytes()
    pq.write_table(other, file)
    with pytest.raises(HistoryError, match=rf"has {len(other)} rows, but {len(other) + 1} were written"):
        [*reader.read(reader.partitions()[0])]
    file.unlink()
    with pytest.raises(HistoryError, match="it is gone: the result may have been replaced"):
        [*reader.read(reader.partitions()[0])]
    file.write_bytes(data[:-1])
    with pytest.raises(HistoryError, match=r"outcomes/applier=A/.*parquet is missing or cut"):
        NdbResultDataSource({"path": str(copy), "table": "outcomes"}).schema()


def test_a_dataframe(spark: SparkSession, here: Result) -> None:
    """By the format, by a view, and by `Result.spark`; no rows are a table with its columns."""
    register(spark)
    frame = spark.read.format("ndb_result").option("table", "outcomes").load(here.folder.uri)
    expected = Counter(here.outcomes()["verdict"].to_pylist())
    assert Counter(row.verdict for row in frame.collect()) == expected
    spark.sql(f"CREATE TEMPORARY VIEW outcomes USING ndb_result OPTIONS (path '{here.folder.uri}', 'table' 'outcomes')")
    sums = spark.sql("SELECT applier, sum(epoch) AS s FROM outcomes GROUP BY applier").collect()
    assert {row.applier: int(row.s) for row in sums} == {
        each: sum(here.outcomes(each)["epoch"].to_pylist()) for each in here.clusters
    }
    none = here.spark("undecided")
    assert isinstance(none, DataFrame)
    assert (none.count(), none.columns[0], none.columns[-1]) == (0, "source_epoch", "applier")
    some = spark.read.schema("epoch decimal(20,0)").format("ndb_result").option("table", "outcomes")
    assert some.load(here.folder.uri).count() == sum(expected.values())
    with pytest.raises(PySparkException, match="has no table outcome;"):
        here.spark("outcome")
