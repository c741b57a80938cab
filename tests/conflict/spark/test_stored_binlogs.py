"""The data source with binlogs on object storage: an S3 server on loopback."""

import gzip
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

import conflict
from conflict.errors import ConfigurationError
from conflict.spark.binlog_reader import BinlogReader, Piece
from conflict.spark.data_source import NdbBinlogDataSource
from tests.conflict.object_storage import BUCKET, S3, s3_server
from tests.corpora import DEMO

LOGS = f"s3a://{BUCKET}/logs"
TABLE = {"table": "cft.t1"}


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Give a server with the logs of the demo, one of them compressed, and its schema."""
    with pytest.MonkeyPatch.context() as patch, s3_server(patch.setenv) as server:
        one, two = (DEMO / f"{name}.binlog.000001" for name in "AB")
        server.put([(f"logs/{one.name}", one.read_bytes()), (f"logs/{two.name}.gz", gzip.compress(two.read_bytes()))])
        server.put([("schema.sql", (DEMO / "schema.sql").read_bytes())])
        yield server


def rows(path: str, schema: str, **options: str) -> Counter[str]:
    """Return the rows that the tasks of a query read, without the names of files."""
    source = NdbBinlogDataSource({"path": path, "schema": schema, **options})
    reader = source.reader(source.schema())
    found = Counter[str]()
    for piece in reader.partitions():
        for batch in reader.read(piece):
            found.update(map(str, batch.drop_columns(["file"]).to_pylist()))
    return found


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize("options", [{}, TABLE], ids=["all tables", "one table"])
def test_the_rows_are_those_of_files_here(options: dict[str, str]) -> None:
    """Below an address, with the schema at another one."""
    expected = rows(str(DEMO), str(DEMO / "schema.sql"), **options)
    assert rows(LOGS, f"s3://{BUCKET}/schema.sql", **options) == expected
    assert expected.total() > 40


def test_a_task_reads_its_piece(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """By two requests, where the process that plans has fetched the file."""
    monkeypatch.setattr("conflict.spark.binlog_reader._PIECE_BYTES", 8192)
    source = NdbBinlogDataSource({"path": f"{LOGS}/A.binlog.000001", "schema": str(DEMO / "schema.sql")})
    reader = source.reader(source.schema())
    assert isinstance(reader, BinlogReader)
    pieces = [piece for piece in reader.partitions() if isinstance(piece, Piece)]
    assert len(pieces) > 2
    monkeypatch.setattr("ndb_formats.stored._Copies._held", {})  # as in the process of a task
    s3.requests.clear()
    found = sum(batch.num_rows for piece in pieces for batch in reader.read(piece))
    assert found == sum(rows(str(DEMO / "A.binlog.000001"), str(DEMO / "schema.sql")).values())
    assert len([each for each in s3.requests if each.startswith("GET")]) <= 2 * len(pieces)


@pytest.mark.usefixtures("s3")
def test_a_stream_is_refused() -> None:
    """Its files grow, and what is on object storage does not."""
    source = NdbBinlogDataSource({"path": LOGS, "schema": str(DEMO / "schema.sql")})
    with pytest.raises(ConfigurationError, match="the path of a stream is s3://"):
        source.streamReader(source.schema())


QUERY = """
import sys
from conflict.spark.data_source import register
from conflict.spark.session import spark_session

spark = spark_session("2")
register(spark)
changes = spark.read.format("ndb_binlog").option("schema", sys.argv[2]).load(sys.argv[1])
print(changes.count(), changes.where("after is not null").count())
"""


@pytest.mark.slow
@pytest.mark.usefixtures("s3")
def test_a_query_of_spark() -> None:
    """Its workers read the storage themselves."""
    schema = f"s3://{BUCKET}/schema.sql"
    done = subprocess.run([sys.executable, "-c", QUERY, LOGS, schema], capture_output=True, text=True, check=True)
    changes = conflict.read_binlog(DEMO, schema=DEMO / "schema.sql").to_arrow()
    expected = changes.num_rows, changes.num_rows - changes["after"].null_count
    assert tuple(map(int, done.stdout.split())) == expected
