"""
The Spark data source `ndb_binlog`: row changes of binlog files as a DataFrame.

    from conflict.jobs.data_source import register
    register(spark)
    changes = spark.read.format("ndb_binlog").option("schema", "schema.sql").load("binlogs/")

Options:

    path         a file, a folder or a pattern; every binlog in it is read
    table        one ``database.table``: images are structs of its columns
    columns      with table: the columns to decode, separated by commas
    temporals    with table: ``typed`` (dates and timestamps, which hold no zero dates) or ``text``
    tables       ``database.table`` names, separated by commas; by default all user tables
    startEpoch   first NDB epoch, inclusive
    endEpoch     last NDB epoch, inclusive; errors after it are ignored
    schema       file of CREATE TABLE statements, for column names that are not in the binlog

Without ``table``, images are maps from column name to text: a column that an image does not carry has no entry, NULL is
an entry with null, and an empty text is an entry with an empty text. With it, ``before_columns`` and ``after_columns``
name the columns that an image carries.
"""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator, Sequence
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
from conflict.jobs.spark_types import spark_array, spark_type
from ndb_formats.columnar.batches import RowBatch, read_batches
from ndb_formats.columnar.records import records_of
from ndb_formats.columnar.table_changes import IMAGES, change_schema, table_changes
from ndb_formats.columnar.table_search import table_layouts
from ndb_formats.constants import APPLY_STATUS, BINLOG_MAGIC, ENCRYPTED_MAGIC
from ndb_formats.errors import FormatError
from ndb_formats.row_reader import read_rows
from ndb_formats.row_records import RECORDS, record_batches
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema

__all__ = ["SCHEMA", "NdbBinlogDataSource", "register"]

SCHEMA = RECORDS
_NAMES = ("path", "table", "columns", "temporals", "tables", "startEpoch", "endEpoch", "schema")
_BATCH_ROWS = 1 << 14
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
    table: str | None = None
    columns: frozenset[str] | None = None
    moments: bool = True

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
        if "table" not in {name.lower() for name in self.options}:
            return from_arrow_schema(SCHEMA)
        return from_arrow_schema(_table_schema(self._checked()))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader for the options given."""
        options = self._checked()
        if options.table is None:
            return _Reader(options)
        return _TableReader(options, _table_schema(options, frozenset(schema.names)))

    def _checked(self) -> _Options:
        return _read_options({name.lower(): value for name, value in self.options.items()})


class _Reader(DataSourceReader):
    """
    Reads the changes of all tables, images as maps.

    Filters are not taken from Spark (`pushFilters`): Spark keeps the reader of a DataFrame, so the filter of one query
    would hold for the next one on the same DataFrame. The options choose what is read.
    """

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
        try:
            for batch in self._batches(partition):
                found += len(batch)
                if len(batch):
                    yield self._records(batch, partition.file)
        except FormatError:
            if options.end_epoch is None or found != _rows_in_range(partition, options):
                raise

    def _batches(self, piece: _Piece) -> Iterator[RowBatch]:
        """Yield the changes of a segment in the range of epochs."""
        options = self._options
        for batch in read_batches(
            piece.file,
            start=piece.start,
            stop=piece.stop,
            schema=options.schema,
            tables=options.tables,
            columns=options.columns,
            moments=options.table is not None and options.moments,
            batch_rows=_BATCH_ROWS,
        ):
            in_range = _in_range(batch.records.column("epoch"), options)
            yield batch.where(in_range.to_numpy(zero_copy_only=False))

    def _records(self, batch: RowBatch, file: str) -> pa.RecordBatch:
        return records_of(batch, file)


class _TableReader(_Reader):
    """Reads the changes of one table, images as structs of its columns."""

    def __init__(self, options: _Options, schema: pa.Schema) -> None:
        super().__init__(options)
        self._schema = schema

    def _records(self, batch: RowBatch, file: str) -> pa.RecordBatch:
        own = _chosen(change_schema(batch.layout, moments=self._options.moments), self._options.columns)
        rows = table_changes(batch, file, own)
        arrays = [_fitted(rows, field) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _fitted(rows: pa.RecordBatch, field: pa.Field) -> pa.Array:
    """Return a column as Spark has it; a column of an image that its table did not have then is null."""
    if field.name not in rows.schema.names:
        return pa.nulls(len(rows), field.type)
    values = rows.column(field.name)
    if not pa.types.is_struct(field.type) or values.null_count == len(values):
        return spark_array(values, field.type) if values.null_count < len(values) else pa.nulls(len(rows), field.type)
    parts = [
        pa.nulls(len(rows), part.type)
        if values.type.get_field_index(part.name) < 0
        else spark_array(values.field(part.name), part.type)
        for part in field.type
    ]
    return pa.StructArray.from_arrays(parts, fields=list(field.type))


def _table_schema(options: _Options, wanted: Collection[str] | None = None) -> pa.Schema:
    """
    Return the schema of the one table that is read: every column that it has in any of the files.

    Raises:
        ConfigurationError: No file has changes of it, or a column changes its type.
    """
    assert options.table is not None
    layouts = table_layouts(options.files, options.table, options.schema)
    if not layouts:
        message = f"ndb_binlog: no file has changes of table {options.table}; names are database.table"
        raise ConfigurationError(message)
    every = [_chosen(change_schema(each, moments=options.moments), options.columns) for each in reversed(layouts)]
    fields: list[pa.Field] = []
    for name in dict.fromkeys(name for schema in every for name in schema.names):
        kinds = [schema.field(name).type for schema in every if name in schema.names]
        kind = spark_type(kinds[0])
        if pa.types.is_struct(kind) and name in IMAGES:
            kind = pa.struct(list(_joined_columns(options.table, kinds)))
        if wanted is None or name in wanted:
            fields.append(pa.field(name, kind))
    return pa.schema(fields)


def _joined_columns(table: str, images: Sequence[pa.StructType]) -> Iterator[pa.Field]:
    kinds: dict[str, pa.DataType] = {}
    for image in images:
        for field in image:
            kind = spark_type(field.type)
            if kinds.setdefault(field.name, kind) != kind:
                message = (
                    f"ndb_binlog: column {field.name} of {table} is {kind} in some events and {kinds[field.name]} in "
                    "others; read the files before and after that change apart, or without the option table"
                )
                raise ConfigurationError(message)
    return (pa.field(name, kind) for name, kind in kinds.items())


def _chosen(schema: pa.Schema, columns: Collection[str] | None) -> pa.Schema:
    """Return a schema whose images have the chosen columns."""
    if columns is None:
        return schema
    return pa.schema(
        [
            pa.field(field.name, pa.struct([part for part in field.type if part.name in columns]))
            if field.name in IMAGES
            else field
            for field in schema
        ]
    )


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
    unknown = sorted(set(options) - {name.lower() for name in _NAMES})
    if unknown or "path" not in options:
        problem = f"unknown options {', '.join(unknown)}" if unknown else "no path given"
        message = f"ndb_binlog: {problem}; options are {', '.join(_NAMES)}"
        raise ConfigurationError(message)
    table, tables, columns = (options.get(name) for name in ("table", "tables", "columns"))
    temporals = options.get("temporals", "typed")
    if (table and tables) or (columns and not table) or temporals not in ("typed", "text"):
        message = "ndb_binlog: give table or tables; columns needs table; temporals is typed or text"
        raise ConfigurationError(message)
    schema_file = options.get("schema")
    names = table or tables
    return _Options(
        tuple(_files(options["path"])),
        None if names is None else frozenset(name.strip() for name in names.split(",")),
        int(options.get("startepoch", "0")),
        int(options["endepoch"]) if "endepoch" in options else None,
        Schema() if schema_file is None else parse_schema(Path(schema_file).read_text("utf-8")),
        table,
        None if columns is None else frozenset(name.strip() for name in columns.split(",")),
        temporals == "typed",
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
