"""
CREATE TABLE statements of tables: what `ndb_formats.schema.create_table` reads, written again.

Indexes that identify no row are left out, and so are keys with expressions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ndb_formats.errors import SchemaError
from ndb_formats.schema.tables import Column, KeyPart, Schema, Table
from ndb_formats.types.values import ABSENT


def sql_of_tables(schema: Schema) -> str:
    """
    Return the statements that create some tables.

    Raises:
        SchemaError: A column is generated.
    """
    return "".join(f"{_create(table)};\n" for table in schema.tables)


def _create(table: Table) -> str:
    lines = [*map(_column, table.columns), *_keys(table), *map(str, table.foreign_keys)]
    body = ",\n".join(f"  {line}" for line in lines)
    engine = f" ENGINE={table.engine}" if table.engine else ""
    name = ".".join(map(_name, filter(None, (table.database, table.name))))
    return f"CREATE TABLE {name} (\n{body}\n){engine}"


def _keys(table: Table) -> Iterator[str]:
    parts = table.unique_parts
    if table.primary_key:
        yield f"PRIMARY KEY ({_parts(parts[0])})"
        parts = parts[1:]
    for name, each in zip(table.unique_names, parts, strict=False):
        yield f"UNIQUE KEY {_name(name)} ({_parts(each)})"


def _parts(parts: tuple[KeyPart, ...]) -> str:
    return ", ".join(f"{_name(part.column)}({part.prefix})" if part.prefix else _name(part.column) for part in parts)


def _column(column: Column) -> str:
    if column.generated:
        message = "it is generated, and its expression is not known as it was written"
        raise SchemaError(message, column=column.name)
    kind = column.geometry or column.sql_type
    charset = (
        f" CHARACTER SET {column.charset} COLLATE {column.collation}" if column.charset and column.collation else ""
    )
    null = "" if column.nullable else " NOT NULL"
    return f"{_name(column.name)} {kind}{charset}{null}{_default(column)}{' AUTO_INCREMENT' * column.auto_increment}"


def _default(column: Column) -> str:
    if column.computed_default:
        return f" DEFAULT ({column.expression})" if column.expression else ""
    if column.default is ABSENT:
        return ""
    if column.default is None:
        return " DEFAULT NULL" if column.nullable else ""
    if isinstance(column.default, bytes):
        return f" DEFAULT x'{column.default.hex()}'"
    return f" DEFAULT {_text(str(column.default))}"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
