"""
Table_map: the table of the rows events that refer to it, and the types of its columns.

    table id          u48
    flags             u16
    database          length u8, name, NUL
    table             length u8, name, NUL
    column count      packed integer
    column types      one type code per column
    metadata          packed length, then 0 to 2 bytes per column
    nullable columns  one bit per column
    optional metadata see `ndb_formats.events.table_metadata`

MariaDB hides columns that a log has: the hash of each unique key that is too long for an index, or has a whole BLOB or
TEXT. They are the last ones, BIGINT UNSIGNED, NULL or not by the columns of their key.

Source: MySQL `rows_event.h` (`Table_map_event`); MariaDB, "CREATE TABLE", unique indexes on BLOB and TEXT;
`sql_table.cc` (`add_hash_field`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from ndb_formats.constants import ColumnCode
from ndb_formats.cursor import Cursor, packed
from ndb_formats.events.table_metadata import MetadataField
from ndb_formats.schema.session import ServerVersion
from ndb_formats.schema.tables import BLOB_TYPES, Column, Table, full_name
from ndb_formats.types.collation_names import max_bytes
from ndb_formats.types.column_types import WireType, put_wire_types, read_wire_types

NUMERIC_CODES = frozenset(
    {ColumnCode.TINY, ColumnCode.SHORT, ColumnCode.INT24, ColumnCode.LONG, ColumnCode.LONGLONG}
    | {ColumnCode.FLOAT, ColumnCode.DOUBLE, ColumnCode.DECIMAL, ColumnCode.NEWDECIMAL, ColumnCode.YEAR}
)
CHARACTER_CODES = frozenset(
    {ColumnCode.STRING, ColumnCode.VAR_STRING, ColumnCode.VARCHAR, ColumnCode.BLOB, ColumnCode.TINY_BLOB}
    | {ColumnCode.MEDIUM_BLOB, ColumnCode.LONG_BLOB}
    | {ColumnCode.BLOB_COMPRESSED, ColumnCode.VARCHAR_COMPRESSED}
    | {ColumnCode.VECTOR}  # its collation in the event is `binary`
)
# MariaDB gives GEOMETRY columns a collation as well: `binary`.
CHARACTER_CODES_OF_MARIADB = CHARACTER_CODES | {ColumnCode.GEOMETRY}


@attrs.frozen
class TableMap:
    """
    One Table_map event.

    Attributes:
        table_id: Number that rows events refer to.
        database: Database name.
        table: Table name.
        types: Wire type of each column.
        nullable: Per column, whether it may be NULL.
        unsigned: Per column, whether it is UNSIGNED; None if that is not in the event.
        collations: Per column, the collation number of its text, or None; None if that is not in the event.
        names: Column names; None if they are not in the event.
        flags: Flags of the event.
        metadata: The optional metadata, as encoded in the event (see `ndb_formats.events.table_metadata`).
        spare_nullable: The unused bits of the bitmap of nullable columns.
        mariadb: Whether MariaDB wrote it.
    """

    table_id: int
    database: str
    table: str
    types: tuple[WireType, ...]
    nullable: tuple[bool, ...]
    unsigned: tuple[bool, ...] | None = None
    collations: tuple[int | None, ...] | None = None
    names: tuple[str, ...] | None = None
    flags: int = 0
    metadata: bytes = attrs.field(default=b"", repr=False)
    spare_nullable: int = attrs.field(default=0, repr=False)
    mariadb: bool = attrs.field(default=False, eq=False, repr=False)

    @property
    def full_name(self) -> str:
        """``database.table``."""
        return full_name(self.database, self.table)


def bits(data: bytes, count: int) -> tuple[bool, ...]:
    """Return the first `count` bits of a bitmap, the lowest bit of each byte first."""
    number = int.from_bytes(data, "little")
    return tuple(bool(number >> bit & 1) for bit in range(count))


def decode_table_map(body: bytes, server: str = "") -> TableMap:
    """
    Decode the body of a Table_map event.

    Args:
        body: The body.
        server: Version text of the server that wrote it, which decides what columns have a collation in the metadata;
            empty for MySQL.

    Raises:
        TruncatedError: The body ends too early.
        UnsupportedError: A column type is not known.
    """
    cursor = Cursor(body)
    table_id, flags = cursor.uint(6), cursor.uint(2)
    database = cursor.text(cursor.uint(1))
    cursor.skip(1)
    table = cursor.text(cursor.uint(1))
    cursor.skip(1)
    count = cursor.packed()
    codes = cursor.take(count)
    types = read_wire_types(codes, Cursor(cursor.take(cursor.packed())))
    bitmap = cursor.take((count + 7) // 8)
    metadata = cursor.rest()
    mariadb = ServerVersion.of(server).mariadb
    table_map = TableMap(
        table_id,
        database,
        table,
        types,
        bits(bitmap, count),
        flags=flags,
        metadata=metadata,
        spare_nullable=int.from_bytes(bitmap, "little") >> count,
        mariadb=mariadb,
    )
    return _with_metadata(table_map, Cursor(metadata), CHARACTER_CODES_OF_MARIADB if mariadb else CHARACTER_CODES)


def encode_table_map(table_map: TableMap) -> bytes:
    """Return the body of a Table_map event; the inverse of `decode_table_map`."""
    codes, metadata = put_wire_types(table_map.types)
    nullable = sum(1 << position for position, may in enumerate(table_map.nullable) if may)
    nullable |= table_map.spare_nullable << len(table_map.types)
    return b"".join(
        [
            table_map.table_id.to_bytes(6, "little"),
            table_map.flags.to_bytes(2, "little"),
            name_bytes(table_map),
            packed(len(codes)) + codes,
            packed(len(metadata)) + metadata,
            nullable.to_bytes((len(codes) + 7) // 8, "little"),
            table_map.metadata,
        ]
    )


def name_bytes(table_map: TableMap) -> bytes:
    """Return database and table as the event has them."""
    return _name(table_map.database) + _name(table_map.table)


def _name(name: str) -> bytes:
    text = name.encode("utf-8", "surrogateescape")
    return bytes([len(text)]) + text + b"\0"


def _with_metadata(table_map: TableMap, cursor: Cursor, character: Collection[ColumnCode]) -> TableMap:
    """
    Add the optional metadata that decides how values are read; all other fields are skipped.

    `character` are the types of columns that have a collation in it.
    """
    is_character = [wire.code in character for wire in table_map.types]
    while cursor.remaining:
        kind = cursor.uint(1)
        value = Cursor(cursor.take(cursor.packed()))
        if kind == MetadataField.SIGNEDNESS:
            table_map = attrs.evolve(table_map, unsigned=_signedness(value, table_map.types))
        elif kind == MetadataField.DEFAULT_CHARSET:
            table_map = attrs.evolve(table_map, collations=_default_charset(value, is_character))
        elif kind == MetadataField.COLUMN_CHARSET:
            table_map = attrs.evolve(table_map, collations=_column_charsets(value, is_character))
        elif kind == MetadataField.COLUMN_NAME:
            table_map = attrs.evolve(table_map, names=_column_names(value))
    return table_map


def _column_names(value: Cursor) -> tuple[str, ...]:
    names = []
    while value.remaining:
        names.append(value.text(value.packed()))
    return tuple(names)


def _signedness(value: Cursor, types: Sequence[WireType]) -> tuple[bool, ...]:
    """Read one bit per numeric column, the highest bit of each byte first."""
    data = value.take((sum(wire.code in NUMERIC_CODES for wire in types) + 7) // 8)
    unsigned, position = [], 0
    for wire in types:
        if wire.code in NUMERIC_CODES:
            unsigned.append(bool(data[position // 8] >> (7 - position % 8) & 1))
            position += 1
        else:
            unsigned.append(False)
    return tuple(unsigned)


def _default_charset(value: Cursor, is_character: Sequence[bool]) -> tuple[int | None, ...]:
    """Read one collation for all character columns, then a character column and a collation for each that differs."""
    default = value.packed()
    others = {}
    while value.remaining:
        position = value.packed()
        others[position] = value.packed()
    character = 0
    collations: list[int | None] = []
    for each in is_character:
        if each:
            collations.append(others.get(character, default))
            character += 1
        else:
            collations.append(None)
    return tuple(collations)


def _column_charsets(value: Cursor, is_character: Sequence[bool]) -> tuple[int | None, ...]:
    return tuple(value.packed() if each else None for each in is_character)


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
