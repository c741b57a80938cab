"""
A folder with a folder of Parquet or CSV files per table.

A table gets a new file when its columns change in the binlog, and when so many tables are written that one had to be
closed. Changes are collected before they are written, because long row groups make small files; the largest ones are
written first when all of them together take too much memory.

CSV has a column for every field, those of images as ``before.x`` and ``after.x``. Numbers stand without quotes and all
texts in quotes; NULL and absent are nothing at all, and an empty text is ``""``. Bytes are hexadecimal digits after
``0x``. A text that a spreadsheet would take for a formula has ``'`` before it, and so has one that starts with ``'``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from conflict.history.grid.path_names import table_folder
from ndb_formats.columnar.selected_changes import Block
from ndb_formats.columnar.table_changes import IMAGES, change_schema, in_order, table_changes
from ndb_formats.columnar.table_rows import TableRows
from ndb_formats.columnar.value_texts import decimal_texts

_STARTS = "^[=+@\t\r'-]"
_PLAIN_PLACES = 6
_NUMBER = "^[+-][0-9 .:,]*$"


class _CsvWriter:
    """Writes one CSV file, or to a stream."""

    def __init__(self, target: Path | BinaryIO, schema: pa.Schema) -> None:
        """Write the names of the columns of a schema."""
        flat = _flat_table(schema.empty_table())
        options = pyarrow.csv.WriteOptions(quoting_style="needed")
        self._writer = pyarrow.csv.CSVWriter(target, flat.schema, write_options=options)

    def write_table(self, table: pa.Table) -> None:
        """Write rows."""
        self._writer.write_table(_flat_table(table))

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


def _flat_table(table: pa.Table) -> pa.Table:
    """Return rows with a column for every field of their images, in types that CSV has."""
    flat = table.flatten()
    return pa.Table.from_arrays([_plain(column) for column in flat.columns], flat.schema.names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return no_formulas(column)
    if pa.types.is_binary(kind):
        return pa.chunked_array([hexadecimal(chunk) for chunk in column.chunks], pa.string())
    if pa.types.is_decimal256(kind) or (pa.types.is_decimal(kind) and kind.scale > _PLAIN_PLACES):
        # Arrow writes small numbers of so many digits after the point with an exponent.
        return pa.chunked_array([decimal_texts(chunk) for chunk in column.chunks], pa.string())
    return column


def no_formulas(texts: Any) -> Any:
    """
    Return an array of texts with ``'`` before those that a spreadsheet would take for a formula.

    Numbers and times are none.
    """
    starts = pc.match_substring_regex(texts, _STARTS)
    if not pc.any(starts).as_py():
        return texts
    formulas = pc.and_not(starts, pc.match_substring_regex(texts, _NUMBER))
    mark = pa.scalar("'", texts.type)
    return pc.if_else(formulas, pc.binary_join_element_wise(mark, texts, pa.scalar("", texts.type)), texts)


def hexadecimal(values: pa.BinaryArray) -> pa.Array:
    """Return bytes as text: hexadecimal digits after ``0x``."""
    encoded = values.dictionary_encode()
    texts = ["0x" + value.hex().upper() for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


_MOST_OPEN = 200
_MOST_BYTES = 1 << 28
_GROUP_BYTES = 1 << 26
_WRITTEN_ROWS = 1 << 16  # pyarrow's default, 1024, spends a tenth of the time on going from column to column


class TableFormat(StrEnum):
    """The format of files with tables; also their suffix."""

    PARQUET = "parquet"
    CSV = "csv"


class Writer(Protocol):
    """What writes one file."""

    def write_table(self, table: pa.Table) -> None:
        """Write rows."""

    def close(self) -> None:
        """Finish the file."""


def _parquet_writer(target: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of a Parquet file with few distinct values in some columns, and many in the images."""
    repeated = [
        "committed",
        *(field.name for field in schema if pa.types.is_dictionary(field.type)),
        *(f"{image}.{field.name}" for image in IMAGES for field in _fields(schema, image) if _repeats(field.type)),
    ]
    facts = [field.name for field in schema if not pa.types.is_nested(field.type)]
    return pq.ParquetWriter(
        target,
        schema,
        compression="snappy",
        use_dictionary=repeated,
        write_statistics=facts,
        write_batch_size=_WRITTEN_ROWS,
    )


def _fields(schema: pa.Schema, image: str) -> list[pa.Field]:
    kind = schema.field(image).type if image in schema.names else pa.null()
    return list(kind) if pa.types.is_struct(kind) else []


def _repeats(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def _csv_writer(target: Path, schema: pa.Schema) -> _CsvWriter:
    return _CsvWriter(target, schema)


_WRITERS: dict[TableFormat, Callable[[Path, pa.Schema], Writer]] = {
    TableFormat.PARQUET: _parquet_writer,
    TableFormat.CSV: _csv_writer,
}


@attrs.define(eq=False)
class _Table:
    """What is known of one table that is being written."""

    schema: pa.Schema
    files: int = 0
    rows: int = 0
    writer: Writer | None = None
    waiting: list[pa.RecordBatch] = attrs.field(factory=list)
    waiting_bytes: int = 0


class TableFiles:
    """Writes changes into a folder."""

    def __init__(self, folder: Path, form: TableFormat, *, moments: bool) -> None:
        """
        Write nothing yet.

        Args:
            folder: An empty folder.
            form: The format of its files.
            moments: As for `change_schema`.
        """
        self._folder = folder
        self._form = form
        self._moments = moments
        self._tables: dict[tuple[str, str], _Table] = {}
        self._waiting_bytes = 0
        self._open: dict[tuple[str, str], None] = {}

    def add(self, block: Block[TableRows]) -> None:
        """Add the changes of a block, those of each table in the order of the log."""
        versions: dict[tuple[str, str, pa.Schema], list[TableRows]] = {}
        for batch in block.batches:
            schema = change_schema(batch.layout, moments=self._moments)
            versions.setdefault((batch.database, batch.table, schema), []).append(batch)
        for (database, name, schema), batches in versions.items():
            self._add((database, name), schema, batches, block.file)

    def _add(self, name: tuple[str, str], schema: pa.Schema, batches: list[TableRows], file: str) -> None:
        """Add changes of one version of a table."""
        table = self._tables.setdefault(name, _Table(schema))
        if table.schema != schema:
            self._close(name)
            table.schema = schema
        rows = in_order(
            [table_changes(batch, file, table.schema) for batch in batches], [batch.places for batch in batches]
        )
        table.waiting.append(rows)
        table.waiting_bytes += rows.nbytes
        table.rows += len(rows)
        self._waiting_bytes += rows.nbytes
        if table.waiting_bytes > _GROUP_BYTES:
            self._flush(name)
        while self._waiting_bytes > _MOST_BYTES:
            self._flush(max(self._tables, key=lambda each: self._tables[each].waiting_bytes))

    def finish(self) -> list[dict[str, object]]:
        """Write what is left; return what was written of each table."""
        for name in self._tables:
            self._close(name)
        return [
            {
                "database": database,
                "table": name,
                "folder": str(table_folder(database, name)),
                "files": table.files,
                "rows": table.rows,
            }
            for (database, name), table in self._tables.items()
        ]

    def _flush(self, name: tuple[str, str]) -> None:
        table = self._tables[name]
        if not table.waiting:
            return
        if table.writer is None:
            while len(self._open) >= _MOST_OPEN:
                self._close(next(iter(self._open)))
            folder = self._folder / table_folder(*name)
            folder.mkdir(parents=True, exist_ok=True)
            table.writer = _WRITERS[self._form](folder / f"{table.files:05d}.{self._form}", table.schema)
            table.files += 1
            self._open[name] = None
        rows, size = pa.Table.from_batches(table.waiting, table.schema), table.waiting_bytes
        table.waiting, table.waiting_bytes = [], 0
        self._waiting_bytes -= size
        table.writer.write_table(rows)

    def _close(self, name: tuple[str, str]) -> None:
        self._flush(name)
        table = self._tables[name]
        if table.writer is not None:
            table.writer.close()
            table.writer = None
        self._open.pop(name, None)
