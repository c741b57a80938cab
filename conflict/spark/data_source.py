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

from conflict.config.text_file import refuse_address
from conflict.decoding.common_types import common_type
from conflict.decoding.inputs import opened_inputs
from conflict.decoding.one_table import joined_schema
from conflict.errors import ConfigurationError
from conflict.spark.binlog_options import KNOWN, BinlogOptions, read_options
from conflict.spark.binlog_reader import BinlogReader, EnvelopeReader, Plan, TableReader
from conflict.spark.binlog_stream import BinlogStream
from conflict.spark.envelope import envelope_schema
from conflict.spark.result_source import NdbResultDataSource
from conflict.spark.source_options import given_options, keep_options, place_here
from ndb_formats.columnar.records import RECORDS
from ndb_formats.stored import path_of


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
        return keep_options(self.name(), self.options, given, from_arrow_schema(columns))

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
        return given_options(self.name(), self.options, KNOWN, schema)

    def _checked(self, given: Mapping[str, str]) -> BinlogOptions:
        options = dict(given)
        for name in options.keys() & {"path", "schema", "badrecordspath"}:
            options[name] = self._here(options[name], stored=name != "badrecordspath")
        if "paths" in options:
            options["paths"] = json.dumps([self._here(each) for each in json.loads(options["paths"])])
        return read_options(options)

    def _here(self, path: str, *, stored: bool = True) -> str:
        return place_here(path, self.folder, "ndb_binlog: a path", stored=stored)


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
                kind_of=common_type,
            )
            return schema, BinlogReader(options, ()).plan(inputs)
    except ConfigurationError as error:
        message = f"ndb_binlog: {error}"
        raise ConfigurationError(message) from None


def register(spark: SparkSession) -> None:
    """
    Register the formats ``ndb_binlog`` and ``ndb_result`` with a session.

    Relative paths begin where this process is now.
    """
    for source in (NdbBinlogDataSource, NdbResultDataSource):
        spark.dataSource.register(type(source.__name__, (source,), {"folder": str(Path.cwd())}))
