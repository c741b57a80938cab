"""
The rows that tables held when a log starts: files of the user's, as bytes of columns.

A dump in SQL can hold the rows of several tables. A file of CSV, of tabs or of Parquet holds those of one table, and is
named after it: ``t.csv`` or ``database.t.parquet``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import attrs
import pyarrow.parquet as pq

from conflict.config.table_rows import InputRow, delimited_rows
from conflict.config.text_file import located, read_text
from conflict.errors import ConfigurationError
from ndb_formats.errors import FormatError, did_you_mean
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Column, Schema, Table
from ndb_formats.types.column_types import Codec

_INTEGERS = {"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"}
_NOT_READ = {"json", "geometry", "vector"}
_NUMBERS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys(("float", "double"), float),
    "decimal": Decimal,
}


@attrs.frozen
class GivenRows:
    """
    The rows of some tables.

    Attributes:
        tables: ``database.table`` of each table whose rows are all given.
        rows: By table and key, bytes per column position; None is NULL.
    """

    tables: frozenset[str] = frozenset()
    rows: Mapping[tuple[str, bytes], Mapping[int, bytes | None]] = attrs.field(factory=dict, repr=False)


def load_given_rows(
    files: Sequence[Path],
    schema: Schema,
    layouts: Mapping[str, RowLayout],
    own_name: Callable[[str], str] = str,
) -> GivenRows:
    """
    Read the rows of files. Tables that no binlog mentions are passed over.

    Args:
        files: The files.
        schema: The tables.
        layouts: Layout of each table that a binlog mentions.
        own_name: Returns the full name that the cluster uses for a table.

    Raises:
        ConfigurationError: A file cannot be read, or holds what is no row of its table.
    """
    tables: set[str] = set()
    rows: dict[tuple[str, bytes], Mapping[int, bytes | None]] = {}
    for file in files:
        for table, found in _rows_of_file(file, schema, own_name):
            layout = layouts.get(table.full_name)
            if layout is None:
                continue
            tables.add(table.full_name)
            with located(file):
                for row in found:
                    payloads = {
                        place: _payload(row, column, layout.codecs[place])
                        for place, column in enumerate(table.columns)
                        if column.name.lower() in row.cells and column.type not in _NOT_READ
                    }
                    rows[table.full_name, _key(row, table, payloads)] = payloads
    return GivenRows(frozenset(tables), rows)


def _rows_of_file(
    file: Path, schema: Schema, own_name: Callable[[str], str]
) -> Iterator[tuple[Table, Iterator[InputRow]]]:
    """Yield each table that a file holds rows of, with these."""
    if file.suffix == ".sql":
        from conflict.config.statement_rows import created_columns, inserted_values  # noqa: PLC0415  # loads sqlglot

        text, found = read_text(file), False
        for table in schema.tables:
            with located(file):
                created = created_columns(text, table.name.lower())
                columns = created or tuple(column.name.lower() for column in table.columns)
                values = list(inserted_values(text, table.name.lower()))
            if values or created is not None:
                found = True
                yield table, (each.named(each.columns or columns) for each in values)
        if not found:
            message = f"{file} holds no INSERT, REPLACE or CREATE TABLE statement of a table of the run"
            raise ConfigurationError(message)
        return
    table = _table_of(file, schema, own_name)
    if file.suffix == ".parquet":
        data = pq.read_table(file).to_pylist()
        yield (
            table,
            (
                InputRow(f"row {number}", {name.lower(): value for name, value in row.items()})
                for number, row in enumerate(data, start=1)
            ),
        )
    else:
        text = read_text(file)
        with located(file):
            yield table, delimited_rows(text, [name.lower() for name in table.primary_key])


def _table_of(file: Path, schema: Schema, own_name: Callable[[str], str]) -> Table:
    """Return the table that a file is named after."""
    named = [table for table in schema.tables if file.stem in {table.name, own_name(table.full_name)}]
    if len(named) != 1:
        meant = did_you_mean(file.stem, (own_name(table.full_name) for table in schema.tables))
        message = f"{file}: it is named after no table, or after several{meant}; name it database.table{file.suffix}"
        raise ConfigurationError(message)
    return named[0]


def _payload(row: InputRow, column: Column, codec: Codec) -> bytes | None:
    value = row.cells[column.name.lower()]
    if value is None:
        return None
    try:
        if isinstance(value, str):
            value = _NUMBERS.get(column.type, str)(value)
        elif isinstance(value, bytes) and column.charset is not None:
            return value
        if isinstance(value, str) and column.charset is None and column.type in {"binary", "varbinary", "blob"}:
            value = value.encode()
        return codec.encode(value)
    except (ValueError, TypeError, ArithmeticError, FormatError) as error:
        message = f"{row.place}: {value!r} is no value of column {column.name} ({column.sql_type}): {error}"
        raise ConfigurationError(message) from error


def _key(row: InputRow, table: Table, payloads: Mapping[int, bytes | None]) -> bytes:
    for ordinal in table.key_ordinals:
        if ordinal not in payloads:
            message = f"{row.place}: the primary key column {table.columns[ordinal].name} is missing"
            raise ConfigurationError(message)
    return key_of(
        [table.columns[ordinal] for ordinal in table.key_ordinals], [payloads[each] for each in table.key_ordinals]
    )
