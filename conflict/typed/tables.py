"""
The tables of a typed History: what a step names is looked up here, and its values get the types of their columns.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from conflict.engine.ledger.table_keys import TableKey
from conflict.errors import ConfigurationError
from conflict.rules.table_setup import is_exceptions_table
from conflict.typed.steps import Change
from ndb_formats.errors import FormatError, SchemaError, did_you_mean
from ndb_formats.events.row_image import RowLayout, layout_of
from ndb_formats.events.rows_event import Operation
from ndb_formats.events.table_map_of_table import table_map_of
from ndb_formats.rules.update_format import is_of_other_engine
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.default_values import value_of_insert
from ndb_formats.schema.given_values import given_value
from ndb_formats.schema.tables import Column, Schema, Table
from ndb_formats.types.values import ABSENT, Value

DATABASE = "d"
DEFAULT_TABLES = """
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT, x INT UNSIGNED) ENGINE=NDB;
CREATE TABLE t$EX (
  NDB$server_id INT UNSIGNED NOT NULL, NDB$source_server_id INT UNSIGNED NOT NULL,
  NDB$source_epoch BIGINT UNSIGNED NOT NULL, NDB$count INT UNSIGNED NOT NULL,
  id INT NOT NULL,
  NDB$OP_TYPE ENUM('WRITE_ROW', 'UPDATE_ROW', 'DELETE_ROW', 'REFRESH_ROW', 'READ_ROW') NOT NULL,
  NDB$CFT_CAUSE ENUM('ROW_DOES_NOT_EXIST', 'ROW_ALREADY_EXISTS', 'DATA_IN_CONFLICT', 'TRANS_IN_CONFLICT') NOT NULL,
  NDB$ORIG_TRANSID BIGINT UNSIGNED NOT NULL,
  v$OLD INT, v$NEW INT, x$OLD INT UNSIGNED, x$NEW INT UNSIGNED,
  PRIMARY KEY (NDB$server_id, NDB$source_server_id, NDB$source_epoch, NDB$count)
) ENGINE=NDB;
"""
_NOT_TYPED = frozenset({"json", "geometry", "vector"})

Payloads = Mapping[int, bytes | None]


@attrs.frozen
class TypedTable:
    """
    A table.

    Attributes:
        table: Its definition.
        layout: How its rows are encoded.
        key: Its primary key.
    """

    table: Table
    layout: RowLayout = attrs.field(repr=False, eq=False)
    key: TableKey = attrs.field(repr=False, eq=False)

    @classmethod
    def of(cls, table: Table) -> TypedTable:
        """
        Return a table.

        Raises:
            ConfigurationError: It has no primary key, or another engine than NDB.
        """
        if not table.primary_key:
            message = f"table {table.full_name} has no primary key; give it one: the steps name rows by it"
            raise ConfigurationError(message)
        layout = layout_of(table_map_of(table, 1), table)
        return cls(table, layout, TableKey.of(table, layout))

    @property
    def name(self) -> str:
        """``database.table``."""
        return self.table.full_name

    def column(self, name: str) -> int:
        """
        Return the ordinal of a column.

        Raises:
            ConfigurationError: There is no such column.
        """
        names = {column.name.lower(): ordinal for ordinal, column in enumerate(self.table.columns)}
        if name.lower() not in names:
            known = [column.name for column in self.table.columns]
            message = f"table {self.name} has no column {name}{did_you_mean(name, known)}; it has {', '.join(known)}"
            raise ConfigurationError(message)
        return names[name.lower()]

    def payload(self, ordinal: int, value: object) -> bytes | None:
        """
        Return the bytes of a value.

        Raises:
            ConfigurationError: It is no value of the column.
        """
        column, codec = self.table.columns[ordinal], self.layout.codecs[ordinal]
        if column.type in _NOT_TYPED and value is not None:
            message = f"column {column.name} is {column.type.upper()}, which cannot be typed; leave the column out"
            raise ConfigurationError(message)
        if value is None and not column.nullable:
            message = f"column {column.name} is NOT NULL"
            raise ConfigurationError(message)
        try:
            given = given_value(column, int(value) if isinstance(value, bool) else value)
            return None if given is None else codec.encode(given)
        except (ValueError, OverflowError, struct.error, FormatError) as error:
            message = f"{value!r} is no value of column {column.name}, {column.sql_type}"
            raise ConfigurationError(message) from error

    def value(self, ordinal: int, payload: bytes | None) -> Value:
        """Return the value of bytes."""
        return None if payload is None else self.layout.codecs[ordinal].decode(payload)

    def row(self, payloads: Payloads) -> dict[str, Value]:
        """Return a row as values by column."""
        return {self.table.columns[place].name: self.value(place, each) for place, each in sorted(payloads.items())}

    def identity(self, key: tuple[Any, ...]) -> bytes:
        """
        Return the identity of the row with a key.

        Raises:
            ConfigurationError: The key has another number of columns, or a value is none of its column.
        """
        names = self.table.primary_key
        if len(key) != len(names):
            example = "(" + ", ".join(names) + ")" if len(names) > 1 else names[0]
            message = f"the key of {self.name} is {example}; {len(key)} values are given for it"
            raise ConfigurationError(message)
        values = [self.value(*place) for place in self.key_payloads(key).items()]
        return self.key.identity(values)

    def key_payloads(self, key: tuple[Any, ...]) -> dict[int, bytes | None]:
        """Return the bytes of the columns of a key."""
        return {place: self.payload(place, each) for place, each in zip(self.table.key_ordinals, key, strict=True)}

    def new_row(self, change: Change) -> dict[int, bytes | None]:
        """
        Return the row that an insert makes: columns that it does not name have their defaults.

        Raises:
            ConfigurationError: A column has no default.
        """
        row = {**self.key_payloads(change.key), **self.written(change)}
        for ordinal, column in enumerate(self.table.columns):
            if ordinal not in row and column.generated != "virtual":
                value = value_of_insert(column)
                if value is ABSENT:
                    message = f"column {column.name} has no constant default; give it a value, as in {column.name}=..."
                    raise ConfigurationError(message)
                row[ordinal] = None if value is None else self.layout.codecs[ordinal].encode(value)
        return row

    def written(self, change: Change) -> dict[int, bytes | None]:
        """Return the bytes of the columns that a change names besides the key."""
        return {self.column(name): self.payload(self.column(name), value) for name, value in change.values}

    def checked(self, change: Change) -> Change:
        """
        Return a change with names as declared, and values of the types of their columns, in the order of columns.

        Raises:
            ConfigurationError: It does not fit the table.
        """
        self.identity(change.key)
        key = tuple(self.value(*place) for place in self.key_payloads(change.key).items())
        written = self.written(change)
        names = [self.column(name) for name, _ in change.values]
        if len(names) != len(written):
            message = "a column is given twice"
            raise ConfigurationError(message)
        for ordinal in written:
            self._refuse(self.table.columns[ordinal], change)
        if change.operation is Operation.WRITE_ROW:
            self.new_row(change)
        values = tuple(
            (self.table.columns[place].name, self.value(place, each)) for place, each in sorted(written.items())
        )
        return attrs.evolve(change, key=key, values=values, table=self.name)

    def _refuse(self, column: Column, change: Change) -> None:
        if column.generated:
            message = f"column {column.name} is generated; leave it out"
            raise ConfigurationError(message)
        if column.name in self.table.primary_key and change.operation is Operation.WRITE_ROW:
            message = f"column {column.name} belongs to the key, which stands before the columns; leave it out here"
            raise ConfigurationError(message)


@attrs.frozen
class Tables:
    """
    The tables of a History, the exceptions tables among them.

    Attributes:
        sql: Their definitions.
        schema: The same, read.
        by_name: The tables that steps can change, by ``database.table``.
    """

    sql: str = attrs.field(eq=False)
    schema: Schema
    by_name: Mapping[str, TypedTable] = attrs.field(eq=False, repr=False)

    @classmethod
    def of(cls, sql: str | None = None) -> Tables:
        """
        Return the tables of CREATE TABLE statements; without any, table `t` of ``id``, ``v`` and ``x``.

        Raises:
            ConfigurationError: There is none, or one that no History can have.
            SchemaError: A statement cannot be read.
        """
        sql = DEFAULT_TABLES if sql is None else sql
        schema = parse_schema(sql, database=DATABASE)
        return cls(sql, *_of_schema(schema))

    @classmethod
    def of_schema(cls, schema: Schema, sql: str) -> Tables:
        """Return the tables of a schema."""
        return cls(sql, *_of_schema(schema))

    @property
    def first(self) -> TypedTable:
        """The table that steps change which name none."""
        return next(iter(self.by_name.values()))

    @property
    def is_default(self) -> bool:
        """Whether they are those of a History that names none."""
        return self.sql == DEFAULT_TABLES

    @property
    def layouts(self) -> dict[str, RowLayout]:
        """How the rows of each table are encoded."""
        return {name: each.layout for name, each in self.by_name.items()}

    def named(self, name: str) -> TypedTable:
        """
        Return the table of a name, with or without its database; the first one for none.

        Raises:
            ConfigurationError: There is no such table, or several.
        """
        if not name:
            return self.first
        plain = name.replace("`", "")
        found = [each for full, each in self.by_name.items() if name == full or plain in (full, each.table.name)]
        if len(found) != 1:
            known = ", ".join(self.by_name)
            what = "names several tables" if found else f"is no table{did_you_mean(plain, self._short())}"
            message = f"{name} {what}; there are {known}"
            raise ConfigurationError(message)
        return found[0]

    def _short(self) -> Iterable[str]:
        return [each.table.name for each in self.by_name.values()]

    def checked(self, change: Change) -> Change:
        """Return a change as `TypedTable.checked` does, of any of the tables."""
        return self.named(change.table).checked(change)


def _of_schema(schema: Schema) -> Iterator[Any]:
    """Yield the schema as NDB has it, and the tables that steps can change."""
    for table in schema.tables:
        if is_of_other_engine(table):
            message = (
                f"table {table.full_name} is of engine {table.engine}; the rules are those of NDB tables: ENGINE=NDB"
            )
            raise ConfigurationError(message)
    tables = tuple(attrs.evolve(table, engine="NDB") for table in schema.tables)
    found = {table.full_name: TypedTable.of(table) for table in tables if not is_exceptions_table(table)}
    if not found:
        message = "tables holds no CREATE TABLE statement of a table with rows"
        raise SchemaError(message)
    yield attrs.evolve(schema, tables=tables)
    yield found
