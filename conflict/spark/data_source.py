"""
The Spark data source `ndb_binlog`: row changes of binlog files as a DataFrame.

    from conflict.spark.data_source import register
    register(spark)
    changes = spark.read.format("ndb_binlog").option("schema", "schema.sql").load("binlogs/")

The options are in `binlog_options`.

Warnings of Spark's workers reach nobody. So a query fails where `read_binlog` warns of a log, unless an option says
otherwise: at its start, or of unknown signs in the task that meets a doubtful value.

Without ``table``, images are maps from column name to text: a column that an image does not carry has no entry, NULL is
an entry with null, and an empty text is an entry with an empty text. With it, ``before_columns`` and ``after_columns``
name the columns that an image carries.

Arrow types that Spark does not have, as types that it has and that hold the same values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from conflict.config.text_file import place_of, refuse_address
from conflict.decoding.inputs import opened_inputs
from conflict.decoding.one_table import joined_schema
from conflict.errors import ConfigurationError
from conflict.spark.binlog_options import KNOWN, BinlogOptions, read_options
from conflict.spark.binlog_reader import BinlogReader, EnvelopeReader, Plan, TableReader
from conflict.spark.binlog_stream import BinlogStream
from conflict.spark.envelope import envelope_schema
from ndb_formats.columnar.records import RECORDS
from ndb_formats.stored import is_address, path_of

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.timestamp("ms", tz="UTC"): pa.timestamp("us", tz="UTC"),
    pa.null(): pa.string(),
}


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that Spark reads values of a type as."""
    if pa.types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _spark_type(field.type)) for field in kind])
    return pa.string() if pa.types.is_decimal256(kind) else _WIDER.get(kind, kind)


_PROVIDER, _OPTIONS = "provider", "ndb_binlog"


class NdbBinlogDataSource(DataSource):
    """
    See the module.

    Attributes:
        folder: Where relative paths begin; by default where Spark's workers are.
    """

    folder: ClassVar[str] = ""
    _known: tuple[pa.Schema, Plan] | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "ndb_binlog"

    def schema(self) -> StructType:
        """Return the columns of the DataFrame."""
        given = self._given(None)
        columns = RECORDS
        if given.keys() & {"table", "envelope"}:
            options = self._checked(given)
            self._known = _read_of_table(options)  # Spark hands this object on: files are not read again
            columns = envelope_schema(self._known[0]) if options.envelope else self._known[0]
        found = from_arrow_schema(columns)
        if _PROVIDER in self.options:
            found.fields[0].metadata = {_OPTIONS: given}
        return found

    def reader(self, schema: StructType) -> BinlogReader:
        """Return a reader for the options given."""
        options = self._checked(self._given(schema))
        if options.table is None:
            return BinlogReader(options, schema.names)
        columns, plan = self._known or _read_of_table(options)
        if options.envelope:
            return EnvelopeReader(options, columns, schema.names, plan)
        return TableReader(options, pa.schema([columns.field(name) for name in schema.names]), plan)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Return a reader of files that grow, for the options given."""
        reader = self.reader(schema)
        for path in reader.options.paths:
            refuse_address(path.removeprefix("file:"), "ndb_binlog: the path of a stream")
        return BinlogStream(reader)

    def _given(self, schema: StructType | None) -> dict[str, str]:
        """
        Return the options by their names in lower-case letters.

        A table of a catalog has its options when it is created, among what the catalog says of it. Those who read it
        have only its columns, so the first one keeps them.
        """
        if schema is not None and not self.options:
            return dict(schema.fields[0].metadata.get(_OPTIONS, {}))
        given = {name.lower(): value for name, value in self.options.items()}
        if _PROVIDER not in given:
            return given
        return {name: value for name, value in given.items() if name in KNOWN}

    def _checked(self, given: Mapping[str, str]) -> BinlogOptions:
        options = dict(given)
        for name in options.keys() & {"path", "schema", "badrecordspath"}:
            options[name] = self._here(options[name], stored=name != "badrecordspath")
        if "paths" in options:
            options["paths"] = json.dumps([self._here(each) for each in json.loads(options["paths"])])
        return read_options(options)

    def _here(self, path: str, *, stored: bool = True) -> str:
        local = path.removeprefix("file:")
        if stored and is_address(local):
            return str(place_of(local, "ndb_binlog: a path"))
        refuse_address(local, "ndb_binlog: a path")
        return path if path != local else str(Path(self.folder, path))


def _read_of_table(options: BinlogOptions) -> tuple[pa.Schema, Plan]:
    """
    Return the schema of the one table that is read, in the types of Spark, and the plan.

    Raises:
        ConfigurationError: See `joined_schema`.
    """
    assert options.table is not None
    try:
        with opened_inputs(list(map(path_of, options.files))) as inputs:
            schema = joined_schema(
                inputs.paths,
                options.table,
                options.schema,
                columns=options.columns,
                moments=options.moments,
                kind_of=_spark_type,
            )
            return schema, BinlogReader(options, ()).plan(inputs)
    except ConfigurationError as error:
        message = f"ndb_binlog: {error}"
        raise ConfigurationError(message) from None


def register(spark: SparkSession) -> None:
    """Register the format ``ndb_binlog`` with a session; relative paths begin where this process is now."""
    here = type(NdbBinlogDataSource.__name__, (NdbBinlogDataSource,), {"folder": str(Path.cwd())})
    spark.dataSource.register(here)
