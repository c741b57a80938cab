"""
The Table_map event that a server writes for a declared table, with the optional metadata of ``binlog_row_metadata``.

Source: MySQL `field.cc` (`do_save_field_metadata`), `log_event.cc` (`init_metadata_fields`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

import attrs

from ndb_formats.constants import ColumnCode
from ndb_formats.errors import SchemaError
from ndb_formats.events.table_map import CHARACTER_CODES, NUMERIC_CODES, TableMap, decode_table_map, encode_table_map
from ndb_formats.events.table_metadata import DefaultCharset, TableMetadata, encode_table_metadata
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.charsets import encode_text
from ndb_formats.types.collation_names import BINARY, collation_named, max_bytes
from ndb_formats.types.column_types import WireType

_TRANSACTIONAL = 1  # flag of the event, set by every server: the field has the right size
_BYTE = 255
_DIMENSIONS = 2048


class RowMetadata(StrEnum):
    """The values of ``binlog_row_metadata``; NONE is what servers before 8.0 write."""

    NONE = "none"
    MINIMAL = "minimal"
    FULL = "full"


_FIXED = {
    "tinyint": WireType(ColumnCode.TINY),
    "smallint": WireType(ColumnCode.SHORT),
    "mediumint": WireType(ColumnCode.INT24),
    "int": WireType(ColumnCode.LONG),
    "bigint": WireType(ColumnCode.LONGLONG),
    "float": WireType(ColumnCode.FLOAT, 4),
    "double": WireType(ColumnCode.DOUBLE, 8),
    "year": WireType(ColumnCode.YEAR),
    "date": WireType(ColumnCode.DATE),
    "json": WireType(ColumnCode.JSON, 4),
    "geometry": WireType(ColumnCode.GEOMETRY, 4),
    "vector": WireType(ColumnCode.VECTOR, 4),
    **{f"{size}{kind}": WireType(ColumnCode.BLOB, width)
       for width, size in enumerate(("tiny", "", "medium", "long"), start=1) for kind in ("blob", "text")},
}  # fmt: skip
_GEOMETRIES = "geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection"
_KINDS = {name: number for number, name in enumerate(_GEOMETRIES.split())} | {"geomcollection": 7}
_BY_LENGTH = {
    "bit": ColumnCode.BIT,
    "time": ColumnCode.TIME2,
    "datetime": ColumnCode.DATETIME2,
    "timestamp": ColumnCode.TIMESTAMP2,
    "char": ColumnCode.STRING,
    "binary": ColumnCode.STRING,
    "varchar": ColumnCode.VARCHAR,
    "varbinary": ColumnCode.VARCHAR,
}


def wire_type_of(column: Column) -> WireType:
    """
    Return the wire type of a declared column.

    Raises:
        SchemaError: Its type is not known.
    """
    if column.type in _FIXED:
        return _FIXED[column.type]
    if column.type in _BY_LENGTH:
        return WireType(_BY_LENGTH[column.type], (column.length or 0) * max_bytes(column.charset or ""))
    if column.type == "decimal":
        return WireType(ColumnCode.NEWDECIMAL, column.length or 10, column.scale or 0)
    if column.type == "enum":
        return WireType(ColumnCode.ENUM, 1 if len(column.members) <= _BYTE else 2)
    if column.type == "set":
        width = -(-len(column.members) // 8)
        return WireType(ColumnCode.SET, width if width <= 4 else 8)
    message = f"a column of type {column.type} cannot be written"
    raise SchemaError(message, column=column.name)


def table_map_of(table: Table, table_id: int, metadata: RowMetadata = RowMetadata.MINIMAL) -> TableMap:
    """
    Return the Table_map event of a table.

    Args:
        table: The table.
        table_id: Number that its rows events refer to.
        metadata: How much optional metadata it has.

    Raises:
        SchemaError: A type or collation is not known.
    """
    try:
        types = tuple(wire_type_of(column) for column in table.columns)
        optional = _OPTIONAL[metadata](table, types)
    except SchemaError as error:
        raise error.located(table=table.full_name) from None
    event = TableMap(
        table_id,
        table.database,
        table.name,
        types,
        tuple(column.nullable for column in table.columns),
        flags=_TRANSACTIONAL,
        metadata=encode_table_metadata(optional),
    )
    return decode_table_map(encode_table_map(event))


def _minimal(table: Table, types: Sequence[WireType]) -> TableMetadata:
    columns = list(zip(table.columns, types, strict=True))
    numeric = [column.unsigned or column.type == "year" for column, wire in columns if wire.code in NUMERIC_CODES]
    default, each = _collations([_collation(column) for column, wire in columns if wire.code in CHARACTER_CODES])
    return TableMetadata(
        signedness=tuple(numeric) or None,
        default_charset=default,
        column_charset=each,
        geometry_type=tuple(_KINDS.get(c.geometry, 0) for c in table.columns if c.type == "geometry") or None,
        vector_dimensionality=tuple(c.length or _DIMENSIONS for c in table.columns if c.type == "vector") or None,
    )


def _full(table: Table, types: Sequence[WireType]) -> TableMetadata:
    lists = [column for column in table.columns if column.members]
    default, each = _collations([_collation(column) for column in lists])
    members = {
        kind: tuple(
            tuple(encode_text(member, column.charset or "utf8mb4") for member in column.members)
            for column in lists
            if column.type == kind
        )
        for kind in ("set", "enum")
    }
    return attrs.evolve(
        _minimal(table, types),
        column_name=tuple(column.name for column in table.columns),
        set_str_value=members["set"] or None,
        enum_str_value=members["enum"] or None,
        enum_and_set_default_charset=default,
        enum_and_set_column_charset=each,
        simple_primary_key=None if table.primary_key_prefixes else table.key_ordinals or None,
        primary_key_with_prefix=tuple(zip(table.key_ordinals, table.primary_key_prefixes, strict=False)) or None,
        column_visibility=tuple(not column.invisible for column in table.columns),
    )


_OPTIONAL = {
    RowMetadata.NONE: lambda table, types: TableMetadata(),
    RowMetadata.MINIMAL: _minimal,
    RowMetadata.FULL: _full,
}


def _collation(column: Column) -> int:
    if column.collation is None:
        return BINARY
    found = collation_named(column.collation)
    if found is None:
        message = f"collation {column.collation} is not known"
        raise SchemaError(message, column=column.name)
    return found.number


def _collations(numbers: Sequence[int]) -> tuple[DefaultCharset | None, tuple[int, ...] | None]:
    """Return collations as a default and exceptions, or one by one, whichever the server takes as shorter."""
    if not numbers:
        return None, None
    counts = Counter(sorted(numbers))  # of equally frequent ones the lowest is the default
    default, uses = counts.most_common(1)[0]
    if len(numbers) < 1 + 2 * (len(numbers) - uses):
        return None, tuple(numbers)
    others = tuple((place, number) for place, number in enumerate(numbers) if number != default)
    return DefaultCharset(default, others), None
