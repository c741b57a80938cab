"""
Rows of a table as Arrow, in types that lose nothing. Computes docs/formats.md, "Column types".

Temporal values are text: zero dates and times beyond a day have no Arrow type. BIGINT UNSIGNED is
uint64, which Spark reads as DECIMAL(20, 0). JSON is the text that MySQL prints. GEOMETRY is binary:
four bytes of SRID, then WKB. VECTOR is binary too, floats of four bytes, since a list of floats would
not keep every NaN; ``numpy.frombuffer(value, "<f4")`` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.values import Geometry, Value, Vector

_INTEGERS = {
    "tinyint": (pa.int8(), pa.uint8()),
    "smallint": (pa.int16(), pa.uint16()),
    "mediumint": (pa.int32(), pa.uint32()),
    "int": (pa.int32(), pa.uint32()),
    "bigint": (pa.int64(), pa.uint64()),
}
_TEXT_TYPES = ("date", "time", "datetime", "timestamp", "json")
_MAX_DECIMAL128 = 38


def _arrow_type(column: Column) -> pa.DataType:
    if column.type in _INTEGERS:
        return _INTEGERS[column.type][column.unsigned]
    if column.type == "decimal":
        precision, scale = column.length or 10, column.scale or 0
        kind = pa.decimal128 if precision <= _MAX_DECIMAL128 else pa.decimal256
        return kind(precision, scale)
    if column.type in ("float", "double"):
        return pa.float32() if column.type == "float" else pa.float64()
    if column.type == "bit":
        return pa.uint64()
    if column.type == "year":
        return pa.int16()
    is_text = column.charset is not None or column.type in _TEXT_TYPES
    return pa.string() if is_text else pa.binary()


def row_schema(table: Table) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return pa.schema([(column.name, _arrow_type(column)) for column in table.columns])


def _arrow_value(value: Value) -> object:
    """Return a value in a form that Arrow accepts."""
    if isinstance(value, JsonDocument):
        return value.text
    return value.data if isinstance(value, Geometry | Vector) else value


def arrow_array(values: Iterable[Value], kind: pa.DataType) -> pa.Array:
    """
    Return values of a column as Arrow, in the type of the schema.

    Raises:
        FormatError: A JSON value is no document.
    """
    return pa.array([_arrow_value(value) for value in values], kind)


# The names of the columns of a row whose values are not known; they are NULL in the row itself.
NOT_KNOWN_IN = pa.field("NDB$not_known", pa.list_(pa.string()))


def with_unknown(rows: pa.Table, unknown: npt.NDArray[np.bool_]) -> pa.Table:
    """
    Return rows that are known in part: NULL where a value is not known, and the column `NOT_KNOWN_IN`.

    Args:
        rows: The rows, with any values where these are not known.
        unknown: Which values are not known. Shape (rows, columns).
    """
    names, plain = np.array(rows.column_names, object), rows.schema
    columns = [
        pc.if_else(pa.array(missing), pa.scalar(None, field.type), column)
        for missing, field, column in zip(unknown.T, plain, rows.columns, strict=True)
    ]
    lists = pa.array([names[missing].tolist() for missing in unknown], NOT_KNOWN_IN.type)
    return pa.table(columns, schema=plain).append_column(NOT_KNOWN_IN, lists)


def rows_to_arrow(table: Table, rows: Sequence[Sequence[Value]]) -> pa.Table:
    """
    Return rows, whose values are in column order, as Arrow.

    Raises:
        FormatError: A JSON value is no document.
    """
    schema = row_schema(table)
    columns = zip(*rows, strict=True) if rows else [() for _ in schema]
    return pa.table(
        [arrow_array(column, field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
