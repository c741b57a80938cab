"""
Columns that MariaDB hides: the hash of each unique key that is too long for an index, or has a whole BLOB or TEXT.

They are columns of the table in a log, the last ones: BIGINT UNSIGNED, NULL or not by the columns of their key.

Source: MariaDB, "CREATE TABLE", unique indexes on BLOB and TEXT; `sql_table.cc` (`add_hash_field`).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ndb_formats.constants import ColumnCode
from ndb_formats.events.table_map import TableMap
from ndb_formats.schema.tables import BLOB_TYPES, Column, Table
from ndb_formats.types.collation_names import max_bytes

__all__ = ["with_hidden_hashes"]

_SHORTEST_TOO_LONG = 1_000  # bytes; of MyISAM, other engines take longer keys


def with_hidden_hashes(table: Table, table_map: TableMap) -> Table:
    """Return a table with the columns that MariaDB hides, if its Table_map event has more columns and all are such."""
    more = table_map.types[len(table.columns) :]
    if not more or not table_map.mariadb or any(wire.code is not ColumnCode.LONGLONG for wire in more):
        return table
    if len(more) > sum(_may_be_a_hash(table, key) for key in table.unique_keys):
        return table
    nullable = table_map.nullable[len(table.columns) :]
    hashes = [
        Column(f"DB_ROW_HASH_{number}", "bigint", unsigned=True, nullable=may, invisible=True)
        for number, may in enumerate(nullable, 1)
    ]
    return attrs.evolve(table, columns=(*table.columns, *hashes))


def _may_be_a_hash(table: Table, key: Sequence[str]) -> bool:
    columns = [column for column in map(table.find, key) if column is not None]
    return any(column.type in BLOB_TYPES for column in columns) or sum(map(_size, columns)) > _SHORTEST_TOO_LONG


def _size(column: Column) -> int:
    is_text = column.type in ("char", "varchar", "binary", "varbinary")
    return (column.length or 0) * (max_bytes(column.charset) if column.charset else 1) if is_text else 8
