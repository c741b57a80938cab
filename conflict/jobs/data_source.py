"""
The Spark data source `ndb_binlog`: row changes of binlog files as a DataFrame.

    from conflict.jobs.data_source import register
    register(spark)
    changes = spark.read.format("ndb_binlog").option("schema", "schema.sql").load("binlogs/")

Options:

    path         a file, a folder or a pattern; every binlog in it is read
    tables       ``database.table`` names, separated by commas; by default all user tables
    startEpoch   first NDB epoch, inclusive
    endEpoch     last NDB epoch, inclusive; errors after it are ignored
    schema       file of CREATE TABLE statements, for column names that are not in the binlog

Images are maps from column name to text: a column that an image does not carry has no entry, NULL is an entry with
null, and an empty text is an entry with an empty text.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from conflict.errors import ConfigurationError
from conflict.ingestion.segments import plan_segments
from ndb_formats.columnar.batches import read_batches
from ndb_formats.columnar.records import records_of
from ndb_formats.constants import APPLY_STATUS, BINLOG_MAGIC, ENCRYPTED_MAGIC
from ndb_formats.errors import FormatError
from ndb_formats.row_reader import read_rows
from ndb_formats.row_records import RECORDS, record_batches
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema

__all__ = ["SCHEMA", "NdbBinlogDataSource", "register"]

SCHEMA = RECORDS
_MAX_EPOCH = 2**64 - 1


@attrs.frozen
class _Piece(InputPartition):
    """A segment of one file."""

    file: str
    start: int
    stop: int


@attrs.frozen
class _Options:
    """The checked options."""

    files: tuple[str, ...]
    tables: frozenset[str] | None
    start_epoch: int
    end_epoch: int | None
    schema: Schema

    def wants(self, table: str) -> bool:
        """Whether the changes of a table are read."""
        return table in self.tables if self.tables is not None else table != APPLY_STATUS


class NdbBinlogDataSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "ndb_binlog"

    def schema(self) -> StructType:
        """Return the columns of the DataFrame."""
        return from_arrow_schema(SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader for the options given."""
        del schema
        return _Reader(_read_options({name.lower(): value for name, value in self.options.items()}))


class _Reader(DataSourceReader):
    def __init__(self, options: _Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[_Piece]:
        """Divide the files into segments. An error in a file is raised by the task that meets it."""
        return [
            _Piece(str(segment.file), segment.start, segment.stop)
            for file in self._options.files
            for segment in plan_segments([Path(file)]).segments
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the row changes of one segment."""
        assert isinstance(partition, _Piece)
        options = self._options
        found = 0
        batches = read_batches(
            partition.file,
            start=partition.start,
            stop=partition.stop,
            schema=options.schema,
            tables=options.tables,
        )
        try:
            for batch in batches:
                records = records_of(batch, partition.file).filter(_in_range(batch.records.column("epoch"), options))
                found += len(records)
                if len(records):
                    yield records
        except FormatError:
            if options.end_epoch is None or found != _rows_in_range(partition, options):
                raise


def _in_range(epochs: pa.UInt64Array, options: _Options) -> pa.BooleanArray:
    """Return which rows belong to the range of epochs; rows without an epoch do only if there is no range."""
    if options.start_epoch == 0 and options.end_epoch is None:
        return pa.repeat(pa.scalar(True), len(epochs))
    first = pa.scalar(min(options.start_epoch, _MAX_EPOCH), pa.uint64())
    last = pa.scalar(_MAX_EPOCH if options.end_epoch is None else min(options.end_epoch, _MAX_EPOCH), pa.uint64())
    return pc.and_(pc.greater_equal(epochs, first), pc.less_equal(epochs, last)).fill_null(False)


def _rows_in_range(piece: _Piece, options: _Options) -> int:
    """
    Return how many rows the range of epochs has, counted by the scalar reader, which stops after the last epoch.

    Raises:
        FormatError: There is an error before that.
    """
    rows = read_rows(
        piece.file,
        start=piece.start,
        stop=piece.stop,
        schema=options.schema,
        wanted=options.wants,
        last_epoch=options.end_epoch,
    )
    last = options.end_epoch or 0
    in_range = (row for row in rows if row.epoch is not None and options.start_epoch <= row.epoch <= last)
    return sum(len(batch) for batch in record_batches(in_range))


def _read_options(options: dict[str, str]) -> _Options:
    known = {"path", "tables", "startepoch", "endepoch", "schema"}
    unknown = sorted(set(options) - known)
    if unknown or "path" not in options:
        problem = f"unknown options {', '.join(unknown)}" if unknown else "no path given"
        message = f"ndb_binlog: {problem}; options are path, tables, startEpoch, endEpoch, schema"
        raise ConfigurationError(message)
    tables = options.get("tables")
    schema_file = options.get("schema")
    return _Options(
        tuple(_files(options["path"])),
        None if tables is None else frozenset(name.strip() for name in tables.split(",")),
        int(options.get("startepoch", "0")),
        int(options["endepoch"]) if "endepoch" in options else None,
        Schema() if schema_file is None else parse_schema(Path(schema_file).read_text("utf-8")),
    )


def _files(pattern: str) -> list[str]:
    path = Path(pattern.removeprefix("file:"))
    if path.is_dir():
        candidates = sorted(str(file) for file in path.rglob("*") if file.is_file())
        found = [file for file in candidates if _is_binlog(file)]
    else:
        found = sorted(glob.glob(str(path)))
    if not found:
        message = f"ndb_binlog: no binlog found at {pattern}"
        raise ConfigurationError(message)
    return found


def _is_binlog(file: str) -> bool:
    with open(file, "rb") as stream:
        return stream.read(len(BINLOG_MAGIC)) in (BINLOG_MAGIC, ENCRYPTED_MAGIC)


def register(spark: SparkSession) -> None:
    """Register the format ``ndb_binlog`` with a session."""
    spark.dataSource.register(NdbBinlogDataSource)
