"""
Where a table's definition and its Table_map event contradict each other.

The event has the number and types of the columns and whether each may be NULL; with the metadata that every server
since 8.0 writes, signs and character sets too; with ``binlog_row_metadata=FULL`` names, members and the primary key.
What the event lacks is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ndb_formats.constants import ColumnCode
from ndb_formats.errors import SchemaError, WrongKeyError
from ndb_formats.events.hidden_hashes import with_hidden_hashes
from ndb_formats.events.row_image import CODES_OF_TYPE
from ndb_formats.events.table_definition import definition_of
from ndb_formats.events.table_map import NUMERIC_CODES, TableMap
from ndb_formats.events.table_map_of_table import wire_type_of
from ndb_formats.schema.serving_key import serving_key
from ndb_formats.schema.tables import BLOB_TYPES, Column, Table
from ndb_formats.types.collation_names import collation_of
from ndb_formats.types.column_types import WireType

__all__ = ["Difference", "check_definition", "differences"]


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
