"""
Rows of a table as Arrow, with a type per column that loses nothing.

Temporal values are text: zero dates and times beyond a day have no Arrow type. BIGINT UNSIGNED is
uint64, which Spark reads as DECIMAL(20, 0). Columns of a type that cannot be decoded are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ndb_formats.schema import Column, Table
from ndb_formats.values import Value

__all__ = ["UNREADABLE_TYPES", "readable", "row_schema", "rows_to_arrow"]

UNREADABLE_TYPES = frozenset({"json", "geometry", "vector"})
_INTEGERS = {
    "tinyint": (pa.int8(), pa.uint8()),
    "smallint": (pa.int16(), pa.uint16()),
    "mediumint": (pa.int32(), pa.uint32()),
    "int": (pa.int32(), pa.uint32()),
    "bigint": (pa.int64(), pa.uint64()),
}
_MAX_DECIMAL128 = 38


def readable(table: Table) -> list[int]:
    """Return the positions of the columns whose values can be decoded."""
    return [place for place, column in enumerate(table.columns) if column.type not in UNREADABLE_TYPES]


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
    is_text = column.charset is not None or column.type in ("date", "time", "datetime", "timestamp")
    return pa.string() if is_text else pa.binary()


def row_schema(table: Table) -> pa.Schema:
    """Return the Arrow schema of a table's readable columns."""
    return pa.schema([(table.columns[place].name, _arrow_type(table.columns[place])) for place in readable(table)])


def rows_to_arrow(table: Table, rows: Sequence[Sequence[Value]]) -> pa.Table:
    """Return rows, values in the order of `readable`, as Arrow."""
    schema = row_schema(table)
    columns = zip(*rows, strict=True) if rows else [() for _ in schema]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )
