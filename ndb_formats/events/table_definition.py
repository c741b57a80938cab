"""
The definition of a table as far as its Table_map event has it, with ``binlog_row_metadata=FULL``.

Names, types, the primary key and whether columns may be NULL are there. Engine, defaults, other keys, generated columns
and ON UPDATE are not.
"""

from __future__ import annotations

from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowLayout, layout_of
from ndb_formats.events.table_map import TableMap
from ndb_formats.events.table_metadata import decode_table_metadata
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.collation_names import collation_of

__all__ = ["definition_of"]

_BLOB_TYPES = ("tinyblob", "blob", "mediumblob", "longblob")  # by the bytes of the length, from 1
_TYPES = {
    ColumnCode.TINY: "tinyint",
    ColumnCode.SHORT: "smallint",
    ColumnCode.INT24: "mediumint",
    ColumnCode.LONG: "int",
    ColumnCode.LONGLONG: "bigint",
    ColumnCode.FLOAT: "float",
    ColumnCode.DOUBLE: "double",
    ColumnCode.NEWDECIMAL: "decimal",
    ColumnCode.DATE: "date",
    ColumnCode.NEWDATE: "date",
    ColumnCode.TIME: "time",
    ColumnCode.TIME2: "time",
    ColumnCode.DATETIME: "datetime",
    ColumnCode.DATETIME2: "datetime",
    ColumnCode.TIMESTAMP: "timestamp",
    ColumnCode.TIMESTAMP2: "timestamp",
    ColumnCode.YEAR: "year",
    ColumnCode.BIT: "bit",
    ColumnCode.ENUM: "enum",
    ColumnCode.SET: "set",
    ColumnCode.JSON: "json",
    ColumnCode.GEOMETRY: "geometry",
    ColumnCode.VECTOR: "vector",
    ColumnCode.STRING: "char",
    ColumnCode.VAR_STRING: "varchar",
    ColumnCode.VARCHAR: "varchar",
    ColumnCode.VARCHAR_COMPRESSED: "varchar",
}


def definition_of(table_map: TableMap) -> Table | None:
    """
    Return a table's definition; None if the event does not name its columns.

    Raises:
        FormatError: The event's metadata cannot be read.
    """
    if table_map.names is None:
        return None
    layout, metadata = layout_of(table_map), decode_table_metadata(table_map.metadata)
    columns = tuple(_column(table_map, layout, ordinal) for ordinal in range(len(layout.names)))
    key = tuple(layout.names[ordinal] for ordinal, _ in metadata.primary_key)
    return Table(table_map.database, table_map.table, columns, key)


def _column(table_map: TableMap, layout: RowLayout, ordinal: int) -> Column:
    wire, meaning = layout.types[ordinal], layout.codecs[ordinal].meaning
    assert meaning is not None
    number = None if table_map.collations is None else table_map.collations[ordinal]
    collation = None if number is None or meaning.charset is None else collation_of(number)
    kind = _TYPES.get(wire.code) or _BLOB_TYPES[wire.length - 1]
    return Column(
        layout.names[ordinal],
        kind.replace("blob", "text") if meaning.charset is not None else kind,
        unsigned=meaning.unsigned,
        charset=meaning.charset,
        collation=None if collation is None else collation.name,
        members=meaning.members,
        nullable=table_map.nullable[ordinal],
    )
