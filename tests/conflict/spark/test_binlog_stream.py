"""`spark.readStream.format("ndb_binlog")`: batches of files that grow are the rows of whole files, each once."""

import gzip
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles

from conflict.errors import ConfigurationError, LogWarning
from conflict.spark.binlog_stream import BinlogStream, Offset
from conflict.spark.data_source import NdbBinlogDataSource, register
from ndb_formats.binlog_reader import FIRST_POSITION
from ndb_formats.columnar.log_scan import LoggedIncident, scan_log
from ndb_formats.columnar.settled import settled_positions
from ndb_formats.events.control_events import IncidentEvent, encode_incident
from tests.conflict.spliced_logs import spliced
from tests.corpora import DEMO, schema_file
from tests.examples import examples

LOG = DEMO / "A.binlog.000001"
SCHEMA = str(DEMO / "schema.sql")
CHANGING = Path(__file__).parents[2] / "recordings/everyday/epoch2/ddl_add_column_type8"


def stream_of(folder: Path, **options: str) -> BinlogStream:
    """Return a reader as Spark makes one when a query starts."""
    source = NdbBinlogDataSource({"path": str(folder), **options})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, BinlogStream)
    return reader


def rows_between(stream: BinlogStream, start: Offset, end: Offset) -> Counter[str]:
    """Return the rows of a batch."""
    batches = (batch for piece in stream.partitions(start, end) for batch in stream.read(piece))
    return Counter(str(row) for batch in batches for row in batch.to_pylist())


def rows_in(folder: Path, **options: str) -> list[dict[str, Any]]:
    """Return the rows of all files, as a query on closed files reads them."""
    source = NdbBinlogDataSource({"path": str(folder), **options})
    reader = source.reader(source.schema())
    batches = (batch for piece in reader.partitions() for batch in reader.read(piece))
    return [row for batch in batches for row in batch.to_pylist()]


def place_of(row: Mapping[str, Any]) -> tuple[str, int, int]:
    """Return where a row is."""
    return row["file"], int(row["position"]), row["row"]


def rotated(folder: Path, case: Path = DEMO) -> list[tuple[Path, bytes]]:
    """Return files of two servers, each log in three parts, with their contents: the later ones start anew."""
    files = []
    for log in (case / f"{name}.binlog.000001" for name in "AB"):
        data, positions = log.read_bytes(), settled_positions(log).tolist()
        head = data[: positions[1]]
        bounds = [0, *(positions[len(positions) * part // 3] for part in (1, 2)), len(data)]
        for number in range(3):
            part = data[bounds[number] : bounds[number + 1]]
            start = b"" if number == 0 else head
            files.append((folder / f"{log.name[:-6]}{number + 1:06}", start + part))
    return files


class TestBatches:
    """Without Spark: what it asks of the reader, in its order."""

    @examples(5)
    @given(st.integers(0, 2**32 - 1))
    def test_every_row_is_in_one_batch(self, seed: int) -> None:
        """
        While files grow byte by byte and others begin; whatever the limit, and wherever the stream starts again.

        A batch that was planned and not finished is read again as it was. Definitions may change meanwhile.
        """
        chosen = random.Random(seed)
        with tempfile.TemporaryDirectory() as name:
            folder, case = Path(name) / "logs", chosen.choice([DEMO, CHANGING])
            folder.mkdir()
            schema = SCHEMA if case == DEMO else str(schema_file(case, Path(name)))
            limit = chosen.choice([{}, {"maxFilesPerTrigger": "1"}, {"maxBytesPerTrigger": "900"}])
            options = {"schema": schema, **limit}
            growing = self._growing(chosen, rotated(folder, case))
            next(growing)
            stream, start, found, grows = stream_of(folder, **options), Offset(), Counter[str](), True
            while True:
                grows = grows and next(growing, "whole") is None
                end = stream.latestOffset(start, stream.getDefaultReadLimit())
                if chosen.random() < 0.2:
                    rows_between(stream, start, end)
                    stream = stream_of(folder, **options)
                if end == start and not grows:
                    break
                found += rows_between(stream, start, end)
                start = end
            assert found == Counter(map(str, rows_in(folder, schema=schema)))
            assert stream.latestOffset(start, ReadAllAvailable()) == start == stream.reportLatestOffset()

    def _growing(self, chosen: random.Random, files: list[tuple[Path, bytes]]) -> Iterator[None]:
        """Write the files of each server one after the other, in pieces."""
        logs = [[each for each in files if each[0].name.startswith(server)] for server in "AB"]
        for log in logs:
            log[0][0].write_bytes(log[0][1][:200])
        yield
        while any(logs):
            log = chosen.choice([each for each in logs if each])
            file, data = log[0]
            size = file.stat().st_size if file.exists() else 0
            with file.open("ab") as out:
                out.write(data[size : size + chosen.choice([1, 50, 1000, 5000])])
            if file.stat().st_size == len(data):
                log.pop(0)
            yield

    def test_a_file_that_is_gone(self, tmp_path: Path) -> None:
        """It is named, with how far it was read; so is one that is shorter than that."""
        file = tmp_path / "A.000001"
        file.write_bytes(LOG.read_bytes())
        stream = stream_of(tmp_path)
        end = stream.latestOffset({}, ReadAllAvailable())
        file.write_bytes(file.read_bytes()[:5000])
        with pytest.raises(ConfigurationError, match=r"A\.000001 ends at \d+, and the stream has read it up to 14370"):
            stream.latestOffset(end, ReadAllAvailable())
        file.rename(tmp_path / "A.000002")
        with pytest.raises(ConfigurationError, match=r"A\.000001 is gone, which the stream has read up to 14370"):
            stream.latestOffset(end, ReadAllAvailable())
        with pytest.raises(ConfigurationError, match=r"A\.000001 is gone"):
            stream.partitions({}, end)

    def test_a_compressed_file(self, tmp_path: Path) -> None:
        """It is refused by name."""
        (tmp_path / "A.000001.gz").write_bytes(gzip.compress(LOG.read_bytes()))
        with pytest.raises(ConfigurationError, match=r"A\.000001\.gz is compressed, .* unpack it first"):
            stream_of(tmp_path).latestOffset({}, ReadAllAvailable())

    def test_ranges_and_tables(self, tmp_path: Path) -> None:
        """Parts without rows that are wanted are not read here either; a batch may be without any."""
        for file, data in rotated(tmp_path):
            file.write_bytes(data)
        epoch = sorted({row["epoch"] for row in rows_in(tmp_path)})[9]
        for options in ({"startEpoch": str(epoch), "endEpoch": str(epoch)}, {"tables": "cft.plain"}):
            stream, start, found = stream_of(tmp_path, maxBytesPerTrigger="900", **options), Offset(), Counter[str]()
            while (end := stream.latestOffset(start, stream.getDefaultReadLimit())) != start:
                found += rows_between(stream, start, end)
                start = end
            assert found == Counter(map(str, rows_in(tmp_path, **options)))
            assert found

    def test_what_is_not_among_the_rows(self, tmp_path: Path) -> None:
        """The batch fails in which it is, and not those beside it."""
        file = tmp_path / "A.000001"
        file.write_bytes(spliced(LOG, [(26, 1, encode_incident(IncidentEvent(1, "disconnect")))], after=3))
        stream = stream_of(tmp_path, maxBytesPerTrigger="1")
        start, bounds = Offset(), list[tuple[Offset, Offset]]()
        while (end := stream.latestOffset(start, stream.getDefaultReadLimit())) != start:
            bounds.append((start, end))
            start = end
        place = next(item.position for item in scan_log([file], verify=False) if isinstance(item, LoggedIncident))
        ends = [end["1"]["position"] for _, end in bounds]
        number = next(number for number, end in enumerate(ends) if end > place)
        assert 0 < number < len(bounds) - 1
        with pytest.raises(LogWarning, match=r"incident 1, LOST_EVENTS \(disconnect\)"):
            stream.partitions(*bounds.pop(number))
        for others in bounds:
            stream.partitions(*others)

    def test_limits(self, tmp_path: Path) -> None:
        """One file of one server each time, in turns; so many bytes, but a transaction at least; else all."""
        for file, data in rotated(tmp_path):
            file.write_bytes(data)
        every = stream_of(tmp_path).reportLatestOffset()
        assert {Path(place["file"]).name for place in every.values()} == {"A.binlog.000003", "B.binlog.000003"}
        one = stream_of(tmp_path, maxFilesPerTrigger="1")
        assert one.getDefaultReadLimit() == ReadMaxFiles(1)
        start, seen = Offset(), []
        while (end := one.latestOffset(start, one.getDefaultReadLimit())) != start:
            seen += [Path(place["file"]).name for server, place in end.items() if place != start.get(server)]
            start = end
        assert sorted(seen) == [f"{name}.binlog.00000{number}" for name in "AB" for number in (1, 2, 3)]
        assert [name[0] for name in seen] in ([*"ABABAB"], [*"BABABA"])
        few = stream_of(tmp_path, maxBytesPerTrigger="1500")
        assert few.getDefaultReadLimit() == ReadMaxBytes(1500)
        first = few.latestOffset({}, few.getDefaultReadLimit()).values()
        assert 0 < sum(place["position"] - FIRST_POSITION for place in first) <= 1500
        assert few.latestOffset({}, ReadAllAvailable()) == every

    def test_a_file_that_an_executor_does_not_see(self, tmp_path: Path) -> None:
        """It is said that it is the executor, and on which machine."""
        file = tmp_path / "A.000001"
        file.write_bytes(LOG.read_bytes())
        stream = stream_of(tmp_path)
        (piece,) = stream.partitions({}, stream.reportLatestOffset())
        file.unlink()
        with pytest.raises(ConfigurationError, match=r"A\.000001 is not there for the executor on "):
            list(stream.read(piece))

    def test_a_stream_that_ends_reads_what_was_there_at_its_start(self, tmp_path: Path) -> None:
        """Not what was written since."""
        file, data = tmp_path / "A.000001", LOG.read_bytes()
        file.write_bytes(data[:9000])
        stream = stream_of(tmp_path)
        expected = stream.reportLatestOffset()
        stream.prepareForTriggerAvailableNow()
        file.write_bytes(data)
        assert stream.latestOffset({}, ReadAllAvailable()) == expected
        assert stream.latestOffset(expected, ReadAllAvailable()) == expected
        assert stream.reportLatestOffset() != expected


def rows_of(frame: DataFrame) -> Counter[str]:
    """Return the rows of a data frame."""
    return Counter(map(str, frame.collect()))


@pytest.mark.parametrize(
    ("table", "whole_ones"),
    [({}, [6]), pytest.param({"table": "cft.t1"}, [2, 6], marks=pytest.mark.slow)],
)
def test_a_query(spark: SparkSession, tmp_path: Path, table: dict[str, str], whole_ones: list[int]) -> None:
    """It goes on from its checkpoint, over the rotation of files; all tables, or one with its columns."""
    register(spark)
    options, logs, out = {"schema": SCHEMA, **table}, tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    parts = rotated(logs)
    for count in whole_ones:
        for number, (file, data) in enumerate(parts):
            file.write_bytes(data if number % 3 < count else data[:500])
        changes = spark.readStream.format("ndb_binlog").options(maxFilesPerTrigger="3", **options).load(str(logs))
        assert changes.isStreaming
        sink = changes.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        sink.trigger(availableNow=True).start(str(out)).awaitTermination()
    found = Counter(place_of(row.asDict()) for row in spark.read.parquet(str(out)).collect())
    assert found == Counter(place_of(row) for row in rows_in(logs, **options))
    assert found.total() > 20


STREAM = """
import sys
from conflict.spark.data_source import register
from conflict.spark.session import spark_session

logs, schema, out, checkpoint, ends = sys.argv[1:]
spark = spark_session("2")
register(spark)
changes = spark.readStream.format("ndb_binlog").option("schema", schema).option("maxBytesPerTrigger", "3000").load(logs)
sink = changes.writeStream.format("parquet").option("checkpointLocation", checkpoint)
how = {"availableNow": True} if ends == "ends" else {"processingTime": "0 seconds"}
query = sink.trigger(**how).start(out)
print("begun", flush=True)
query.awaitTermination()
"""


@pytest.mark.slow
def test_a_query_that_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    """With its JVM and workers, at moments that a seed tells, while files grow; then every row is there once."""
    seed = secrets.randbits(32)
    chosen, logs, out = random.Random(seed), tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    parts = rotated(logs)
    arguments = [sys.executable, "-c", STREAM, str(logs), SCHEMA, str(out), str(tmp_path / "checkpoint")]
    kills = 6
    for number in range(kills + 1):
        for place, (file, data) in enumerate(parts):
            if place % 3 <= number * 3 // kills:
                last = place % 3 < number * 3 // kills
                file.write_bytes(data if last else data[: max(200, len(data) * (number * 3 % kills) // kills)])
        ends = "ends" if number == kills else "goes on"
        with subprocess.Popen([*arguments, ends], stdout=subprocess.PIPE, start_new_session=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            if number < kills:
                time.sleep(chosen.uniform(0, 6))
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    register(spark)
    expected = rows_of(spark.read.format("ndb_binlog").option("schema", SCHEMA).load(str(logs)))
    assert rows_of(spark.read.parquet(str(out))) == expected, f"seed {seed}"
    assert len(expected) > 100
