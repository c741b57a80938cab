"""
The tables of Table_map events as text, in the format of ``mysqlbinlog --print-table-metadata``, byte for byte.

    # Columns(`id` INT UNSIGNED NOT NULL,
    #         `name` VARCHAR(20) CHARSET latin1 COLLATE latin1_swedish_ci)
    # Primary Key(id)

What is not in the event is left out: column names, members, visibility and the primary key are there only with
``binlog_row_metadata=FULL``. Lines are bytes without newlines, as members are printed in the character set of their
column.

Choices: types of servers before 5.6 have no name here, and as in the tool nothing separates them from the next column.

Source: MySQL `log_event.cc` (`Table_map_log_event::print`, `print_columns`, `print_primary_key`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar

import attrs

from ndb_formats.constants import ColumnCode
from ndb_formats.events.table_map import CHARACTER_CODES, CHARACTER_CODES_OF_MARIADB, TableMap
from ndb_formats.events.table_metadata import DefaultCharset, TableMetadata, decode_table_metadata
from ndb_formats.types.collation_names import BINARY, Collation, collation_of
from ndb_formats.types.column_types import WireType

_HIDDEN_KEY = 0x4  # flag of a Table_map event: its first column is a generated invisible primary key
_HIDDEN_KEY_NAME = b"my_row_id"
_GEOMETRIES = (
    "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
)  # fmt: skip
_BLOBS = {
    1: ("TINYBLOB", "TINYTEXT"),
    2: ("BLOB", "TEXT"),
    3: ("MEDIUMBLOB", "MEDIUMTEXT"),
    4: ("LONGBLOB", "LONGTEXT"),
}
_ESCAPES = {b"\\": rb"\\", b"\n": rb"\n", b"\r": rb"\r", b"\b": rb"\b", b"\t": rb"\t", b"'": rb"\'", b"\0": rb"\0"}
_T = TypeVar("_T")


@attrs.frozen
class _Column:
    """
    What is known of a column; None or empty if it is not in the event.

    Attributes:
        wire: Its type.
        nullable: Whether it may be NULL.
        hidden_key: Whether it is a generated invisible primary key.
        name: Its name.
        unsigned: Whether it is UNSIGNED.
        collation: The collation of a character, ENUM or SET column.
        members: Members of an ENUM or SET.
        geometry: The name of the kind of a geometry.
        elements: Maximum of elements of a vector.
        visible: Whether it is visible.
    """

    wire: WireType
    nullable: bool
    hidden_key: bool
    name: str | None
    unsigned: bool | None
    collation: Collation | None
    members: tuple[bytes, ...] | None
    geometry: str
    elements: int
    visible: bool | None

    @property
    def is_text(self) -> bool:
        """Whether it holds text, not bytes."""
        return self.collation is not None and self.collation.number != BINARY

    @property
    def characters(self) -> int:
        """Its length, in characters for text and else in bytes."""
        collation = self.collation
        return self.wire.length if collation is None else self.wire.length // collation.max_bytes


def table_metadata_lines(table_map: TableMap) -> list[bytes]:
    """
    Return the lines of columns and primary key.

    Raises:
        FormatError: The event's optional metadata cannot be read.
    """
    metadata = decode_table_metadata(table_map.metadata)
    text = b"# Columns("
    columns = _columns(table_map, metadata)
    separator = b"," if table_map.mariadb else b", "
    for number, column in enumerate(columns, 1):
        if column.wire.code not in _TYPES:
            text += _name(column) + b"INVALID_TYPE(%d)" % column.wire.code
            continue
        text += (
            _name(column) + b"".join(_parts(column, separator)) + (b",\n#         " if number < len(columns) else b"")
        )
    lines = (text + b")").split(b"\n")
    key = _primary_key(table_map, metadata)
    return [*lines, b"# Primary Key(%s)" % key] if key else lines


def _name(column: _Column) -> bytes:
    if column.name is not None:
        return _escaped(_bytes(column.name)).replace(b"`", b"``").join((b"`", b"` "))
    return b"`%s` " % _HIDDEN_KEY_NAME if column.hidden_key else b""


def _parts(column: _Column, separator: bytes) -> Iterator[bytes]:
    """Yield type and properties of a column, in the order of the tool; `separator` stands between members."""
    yield _TYPES[column.wire.code](column).encode()
    if column.wire.code in _NUMERIC and column.unsigned is not None:
        yield b" UNSIGNED" if column.unsigned and column.wire.code is not ColumnCode.YEAR else b""
    elif column.hidden_key:
        yield b" UNSIGNED"
    if not column.nullable or column.hidden_key:
        yield b" NOT NULL"
    if column.members:
        yield b"(%s)" % separator.join(b"'%s'" % _escaped(member) for member in column.members)
    if column.collation is not None and (column.is_text or column.wire.code in _MEMBERS):
        yield f" CHARSET {column.collation.charset} COLLATE {column.collation.name}".encode()
    if column.visible is False or (column.visible is None and column.hidden_key):
        yield b" INVISIBLE"
    if column.hidden_key:
        yield b" AUTO_INCREMENT"


def _primary_key(table_map: TableMap, metadata: TableMetadata) -> bytes:
    if table_map.flags & _HIDDEN_KEY:
        return _HIDDEN_KEY_NAME
    names = [_bytes(name) for name in metadata.column_name or ()]
    return b", ".join(
        (names[ordinal] if ordinal < len(names) else b"%d" % ordinal) + (b"(%d)" % prefix if prefix else b"")
        for ordinal, prefix in metadata.primary_key
    )


def _columns(table_map: TableMap, metadata: TableMetadata) -> list[_Column]:
    types = table_map.types
    codes = CHARACTER_CODES_OF_MARIADB if table_map.mariadb else CHARACTER_CODES
    texts = _collations(metadata.default_charset, metadata.column_charset, types, codes)
    choices = _collations(metadata.enum_and_set_default_charset, metadata.enum_and_set_column_charset, types, _MEMBERS)
    enums = _spread(metadata.enum_str_value, types, (ColumnCode.ENUM,))
    sets = _spread(metadata.set_str_value, types, (ColumnCode.SET,))
    names = _spread(metadata.column_name, types, frozenset(ColumnCode))
    unsigned = _spread(metadata.signedness, types, _NUMERIC)
    geometries = _spread(metadata.geometry_type, types, (ColumnCode.GEOMETRY,))
    elements = _spread(metadata.vector_dimensionality, types, (ColumnCode.VECTOR,))
    visible = _spread(metadata.column_visibility, types, _TYPES)
    return [
        _Column(
            wire=wire,
            nullable=table_map.nullable[ordinal],
            hidden_key=ordinal == 0 and bool(table_map.flags & _HIDDEN_KEY),
            name=names[ordinal],
            unsigned=unsigned[ordinal],
            collation=collation_of(texts[ordinal] or choices[ordinal] or 0),
            members=enums[ordinal] if enums[ordinal] is not None else sets[ordinal],
            geometry=_geometry_name(geometries[ordinal] or 0, mariadb=table_map.mariadb),
            elements=elements[ordinal] or 0,
            visible=visible[ordinal],
        )
        for ordinal, wire in enumerate(types)
    ]


def _spread(values: Iterable[_T] | None, types: Iterable[WireType], codes: Collection[ColumnCode]) -> list[_T | None]:
    """Return a value per column: the next one for columns of the types in `codes`, while there are any, else None."""
    rest = iter(values or ())
    return [next(rest, None) if wire.code in codes else None for wire in types]


def _collations(
    default: DefaultCharset | None,
    each: tuple[int, ...] | None,
    types: Sequence[WireType],
    codes: Collection[ColumnCode],
) -> list[int | None]:
    """Return a collation per column: for columns of the types in `codes`, in either form that the event can have."""
    count = sum(wire.code in codes for wire in types)
    return _spread(each if default is None else default.of(count), types, codes)


def _escaped(text: bytes) -> bytes:
    return b"".join(
        _ESCAPES.get(text[ordinal : ordinal + 1], text[ordinal : ordinal + 1]) for ordinal in range(len(text))
    )


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogateescape")


def _plain(name: str) -> Callable[[_Column], str]:
    return lambda column: name


def _string(text: str, binary: str) -> Callable[[_Column], str]:
    return lambda column: f"{text if column.is_text else binary}({column.characters})"


def _fractional(name: str) -> Callable[[_Column], str]:
    return lambda column: f"{name}({column.wire.length})" if column.wire.length else name


def _blob(column: _Column) -> str:
    invalid = (f"INVALID_BLOB({column.wire.length})", f"INVALID_TEXT({column.wire.length})")
    return _BLOBS.get(column.wire.length, invalid)[column.is_text]


def _geometry_name(kind: int, *, mariadb: bool) -> str:
    if kind == len(_GEOMETRIES):
        return "GEOMETRYCOLLECTION" if mariadb else "GEOMCOLLECTION"
    return _GEOMETRIES[kind] if kind < len(_GEOMETRIES) else f"INVALID_GEOMETRY_TYPE({kind})"


_TYPES: dict[ColumnCode, Callable[[_Column], str]] = {
    ColumnCode.TINY: _plain("TINYINT"),
    ColumnCode.SHORT: _plain("SMALLINT"),
    ColumnCode.INT24: _plain("MEDIUMINT"),
    ColumnCode.LONG: _plain("INT"),
    ColumnCode.LONGLONG: _plain("BIGINT"),
    ColumnCode.NEWDECIMAL: lambda column: f"DECIMAL({column.wire.length},{column.wire.scale})",
    ColumnCode.FLOAT: _plain("FLOAT"),
    ColumnCode.DOUBLE: _plain("DOUBLE"),
    ColumnCode.BIT: lambda column: f"BIT({column.wire.length})",
    ColumnCode.YEAR: _plain("YEAR"),
    ColumnCode.DATE: _plain("DATE"),
    ColumnCode.NEWDATE: _plain("DATE"),
    ColumnCode.TIME2: _fractional("TIME"),
    ColumnCode.DATETIME2: _fractional("DATETIME"),
    ColumnCode.TIMESTAMP2: _fractional("TIMESTAMP"),
    ColumnCode.VARCHAR: _string("VARCHAR", "VARBINARY"),
    ColumnCode.VAR_STRING: _string("VARCHAR", "VARBINARY"),
    ColumnCode.STRING: _string("CHAR", "BINARY"),
    ColumnCode.BLOB: _blob,
    ColumnCode.ENUM: _plain("ENUM"),
    ColumnCode.SET: _plain("SET"),
    ColumnCode.JSON: _plain("JSON"),
    ColumnCode.GEOMETRY: lambda column: column.geometry,
    ColumnCode.VECTOR: lambda column: f"VECTOR({column.elements})",
}
_NUMERIC = frozenset(
    {ColumnCode.TINY, ColumnCode.SHORT, ColumnCode.INT24, ColumnCode.LONG, ColumnCode.LONGLONG}
    | {ColumnCode.FLOAT, ColumnCode.DOUBLE, ColumnCode.NEWDECIMAL, ColumnCode.YEAR}
)
_MEMBERS = frozenset({ColumnCode.ENUM, ColumnCode.SET})
