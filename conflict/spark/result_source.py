"""
The Spark data source `ndb_result`: a table of a result as a DataFrame, from a folder or from object storage.

    from conflict.spark.data_source import register
    register(spark)
    outcomes = spark.read.format("ndb_result").option("table", "outcomes").load("s3://lake/result")

    path         the result
    table        a folder of it, or a file: ``outcomes``, ``rows/A/shop.orders``, ``exceptions/A/shop.orders$EX``

Each file of the table is a partition, which its task reads where it is; nothing is fetched before or kept afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from conflict.decoding.common_types import common_schema
from conflict.engine.ledger.result_tables import ResultTable, TableFile, find_table
from conflict.errors import ConfigurationError
from conflict.history.grid.stored_folder import folder_of
from conflict.spark.source_options import given_options, keep_options, place_here

_NAMES = ("path", "table")


@attrs.frozen
class _File(InputPartition):
    """A file of the table."""

    file: TableFile


class ResultReader(DataSourceReader):
    """Reads some columns of a table."""

    def __init__(self, table: ResultTable, names: Sequence[str]) -> None:
        self._files = table.files
        self._schema = common_schema(pa.schema([table.schema.field(name) for name in names]))

    def partitions(self) -> Sequence[_File]:
        """Return the files."""
        return [_File(each) for each in self._files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """
        Yield the rows of one file.

        Raises:
            HistoryError: It is damaged, or not there any more.
        """
        if isinstance(partition, _File):  # Spark makes a partition of its own where there are none
            yield from partition.file.batches(self._schema)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a task needs: not the other files."""
        return {**self.__dict__, "_files": ()}


class NdbResultDataSource(DataSource):
    """
    See the module.

    Attributes:
        folder: Where relative paths begin; by default where Spark's workers are.
    """

    folder: ClassVar[str] = ""
    _known: ResultTable | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "ndb_result"

    def schema(self) -> StructType:
        """Return the columns of the table; unsigned integers of 64 bits are decimals."""
        given = given_options(self.name(), self.options, _NAMES, None)
        self._known = self._found(given)  # Spark hands this object on: nothing is looked up again
        return keep_options(self.name(), self.options, given, from_arrow_schema(common_schema(self._known.schema)))

    def reader(self, schema: StructType) -> ResultReader:
        """Return a reader of the columns that are wanted."""
        given = given_options(self.name(), self.options, _NAMES, schema)
        return ResultReader(self._known or self._found(given), schema.names)

    def _found(self, given: Mapping[str, str]) -> ResultTable:
        if given.keys() != set(_NAMES):
            message = f"ndb_result: options are {' and '.join(_NAMES)}; {', '.join(sorted(given)) or 'none'} given"
            raise ConfigurationError(message)
        folder = folder_of(place_here(given["path"].removeprefix("file:"), self.folder, "ndb_result: the path"))
        try:
            return find_table(folder, given["table"])
        finally:
            folder.forget()
