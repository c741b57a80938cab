"""
The definition of a table and its Table_map event: what each says, where they contradict each other, and what is agreed.

The event has the number and types of the columns and whether each may be NULL; with the metadata that every server
since 8.0 writes, signs and character sets too; with ``binlog_row_metadata=FULL`` names, members and the primary key.
Engine, defaults, other keys, generated columns and ON UPDATE are not in it. What the event lacks is not compared.

The event is the server's own word, so it wins wherever it says something; the definition gives the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import attrs

from ndb_formats.constants import ColumnCode
from ndb_formats.errors import FormatError, SchemaError, WrongKeyError
from ndb_formats.events.row_image import CODES_OF_TYPE, RowLayout, is_unknown, layout_of
from ndb_formats.events.table_map import NUMERIC_CODES, TableMap, with_hidden_hashes
from ndb_formats.events.table_map_of_table import wire_type_of
from ndb_formats.events.table_metadata import decode_table_metadata
from ndb_formats.schema.row_keys import serving_key
from ndb_formats.schema.tables import BLOB_TYPES, Column, Table
from ndb_formats.types.collation_names import collation_of
from ndb_formats.types.column_types import WireType, codec_of

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


@attrs.frozen
class Difference:
    """
    One contradiction.

    Attributes:
        table: ``database.table``.
        column: The column; None for the whole table.
        schema: What the definition says.
        binlog: What the event says.
        matters: Whether an answer may depend on it.
        of_key: Whether it is about the primary key.
    """

    table: str
    column: str | None
    schema: str
    binlog: str
    matters: bool = True
    of_key: bool = False

    def __str__(self) -> str:
        return f"the definition says {self.schema}, the binlog {self.binlog}"


def check_definition(table_map: TableMap, table: Table) -> tuple[Difference, ...]:
    """
    Return the contradictions that change no answer.

    Raises:
        WrongKeyError: The primary keys differ; the error names all that changes answers.
        SchemaError: Something else changes answers.
    """
    found = tuple(differences(table_map, table))
    serious = [each for each in found if each.matters]
    if serious:
        first, others = serious[0], "".join(f"; {each.column or 'table'}: {each}" for each in serious[1:])
        message = f"{first}{others}; give the definition that was in force when the binlog was written"
        kind = WrongKeyError if any(each.of_key for each in serious) else SchemaError
        raise kind(message, table=first.table, column=first.column)
    return found


def differences(table_map: TableMap, table: Table) -> Iterator[Difference]:
    """Yield where an event and a definition contradict each other; after different numbers of columns no more."""
    table = with_hidden_hashes(table, table_map)
    name, wires = table.full_name, table_map.types
    if len(table.columns) != len(wires):
        yield Difference(name, None, f"{len(table.columns)} columns", f"{len(wires)} columns")
        return
    for ordinal, (column, wire) in enumerate(zip(table.columns, wires, strict=True)):
        for schema, binlog, matters in _of_column(column, wire, table_map, ordinal):
            yield Difference(name, column.name, schema, binlog, matters)
    full = definition_of(table_map)
    if full is not None:
        yield from _full(table, full)


def _of_column(column: Column, wire: WireType, table_map: TableMap, ordinal: int) -> Iterator[tuple[str, str, bool]]:
    if wire.code not in CODES_OF_TYPE.get(column.type, (wire.code,)):
        yield column.sql_type, wire.code.name, True
        return
    expected = wire_type_of(column)
    sized = column.type not in BLOB_TYPES and column.type not in ("float", "double")
    if sized and expected.code is wire.code and (expected.length, expected.scale) != (wire.length, wire.scale):
        yield f"{column.sql_type}, which is {_size(expected)}", _size(wire), wire.code is ColumnCode.NEWDECIMAL
    # Without explicit_defaults_for_timestamp a TIMESTAMP is NOT NULL where nothing is declared.
    if column.nullable != table_map.nullable[ordinal] and column.type != "timestamp":
        yield _nullable(allowed=column.nullable), _nullable(allowed=table_map.nullable[ordinal]), True
    signed = table_map.unsigned is not None and wire.code in NUMERIC_CODES and column.type != "year"
    if signed and table_map.unsigned is not None and column.unsigned != table_map.unsigned[ordinal]:
        yield ("UNSIGNED", "signed", True) if column.unsigned else ("signed", "UNSIGNED", True)
    number = None if table_map.collations is None else table_map.collations[ordinal]
    known = None if number is None else collation_of(number)
    if known is not None and not column.members and (column.collation or "binary") != known.name:
        yield f"collation {column.collation or 'binary'}", f"collation {known.name}", True


def _size(wire: WireType) -> str:
    if wire.code is ColumnCode.NEWDECIMAL:
        return f"DECIMAL({wire.length},{wire.scale})"
    return f"{wire.code.name} of length {wire.length}"


def _full(table: Table, full: Table) -> Iterator[Difference]:
    for column, other in zip(table.columns, full.columns, strict=True):
        if column.name != other.name:
            yield Difference(table.full_name, column.name, f"column {column.name}", f"column {other.name}")
        if column.members and other.members and column.members != other.members:
            mine, theirs = (", ".join(each.members) for each in (column, other))
            yield Difference(table.full_name, column.name, f"members {mine}", f"members {theirs}")
    if full.primary_key not in (table.primary_key, _serving(table)):
        yield Difference(table.full_name, None, _key(table), _key(full), of_key=True)


def _serving(table: Table) -> tuple[str, ...]:
    """Return the unique key that a server logs as the primary key of a table of any engine that declares none."""
    place = None if table.primary_key else serving_key(table)
    return table.primary_key if place is None else table.unique_keys[place]


def _nullable(*, allowed: bool) -> str:
    return "NULL" if allowed else "NOT NULL"


def _key(table: Table) -> str:
    return f"PRIMARY KEY ({', '.join(table.primary_key)})" if table.primary_key else "no primary key"


def agreed_definition(table_map: TableMap, table: Table | None) -> Table | None:
    """
    Return the definition of a table, if it fits its Table_map event, else what the event's full metadata tells.

    None is a table that neither tells.
    """
    fits = table is not None and not any(each.matters and not each.of_key for each in differences(table_map, table))
    if table is not None and fits:
        return with_hidden_hashes(table, table_map)
    with suppress(FormatError):
        return definition_of(table_map)
    return None


def agreed_layout(table_map: TableMap, table: Table | None) -> tuple[RowLayout, str]:
    """
    Return the layout of a table's rows, and what is to be said about the definition; empty if it fits.

    Args:
        table_map: Its Table_map event.
        table: Its definition; None if it is not known.

    Raises:
        CorruptError: The event's metadata names more or fewer columns than it has.
        UnsupportedError: The layout of a column type is not known.
    """
    logged = layout_of(table_map)
    if table is None:
        return logged, _unknown_text(table_map, logged)
    try:
        declared = layout_of(table_map, table)
    except SchemaError as error:
        names = "" if table_map.names is None else "; the binlog names the columns"
        return logged, f"{error.message}{names}"
    found = [each for each in differences(table_map, table) if each.matters and not each.of_key]
    if not found:
        return declared, ""
    first = found[0]
    column = "" if first.column is None else f"column {first.column}: "
    return _merged(table_map, logged, declared), f"{column}{first}; the binlog is right"


def _unknown_text(table_map: TableMap, logged: RowLayout) -> str:
    """Return what is to be said of the first column whose collation is not known; empty if there is none."""
    for name, number in zip(logged.names, table_map.collations or (), strict=False):
        if number is not None and is_unknown(number):
            return f"column {name}: collation number {number} is not known; its text comes as bytes"
    return ""


def _merged(table_map: TableMap, logged: RowLayout, declared: RowLayout) -> RowLayout:
    """Return a layout with what the event says, and the rest from the definition."""
    names = declared.names if table_map.names is None else logged.names
    codecs = []
    for ordinal, (event, definition) in enumerate(zip(logged.codecs, declared.codecs, strict=True)):
        ours, theirs = definition.meaning, event.meaning
        assert ours is not None
        assert theirs is not None
        known = table_map.collations is not None and table_map.collations[ordinal] is not None
        codecs.append(
            codec_of(
                ours.wire,
                unsigned=ours.unsigned if table_map.unsigned is None else theirs.unsigned,
                charset=theirs.charset if known else ours.charset,
                members=theirs.members or ours.members,
            )
        )
    return RowLayout(logged.table, names, logged.types, tuple(codecs))
