"""
Definitions of tables: their columns and keys; database and table as one name.

`create_table` parses them from SQL; `ndb_formats.events.table_map` is what a binlog has of a table.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cached_property

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.types.values import ABSENT, MaybeValue

_QUOTED = re.compile(r"(?P<first>`(?:[^`]|``)*`|[^.`]*)\.(?P<second>`(?:[^`]|``)*`|[^.`]*)")


def full_name(database: str, table: str) -> str:
    """Return ``database.table``; two different tables never have the same full name."""
    return f"{_part(database)}.{_part(table)}"


def split_full_name(name: str) -> tuple[str, str]:
    """Return database and table; the inverse of `full_name`. What is no full name is divided at its first dot."""
    found = _QUOTED.fullmatch(name)
    if found is None:
        database, _, table = name.partition(".")
        return database, table
    return _plain(found["first"]), _plain(found["second"])


def _part(name: str) -> str:
    return "`" + name.replace("`", "``") + "`" if "." in name or "`" in name else name


def _plain(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


TEXT_TYPES = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
BLOB_TYPES = frozenset(
    {
        "tinyblob", "blob", "mediumblob", "longblob",
        "tinytext", "text", "mediumtext", "longtext",
        "json", "geometry", "vector",
    }
)  # fmt: skip


@attrs.frozen
class Column:
    """
    One column as declared.

    Attributes:
        name: Its name, in the letter case of the declaration.
        type: Base type in MySQL's canonical lower-case spelling, without arguments (``int``, ``varchar``).
        length: Declared length, precision or digits of a fraction, if any.
        scale: Digits after the point of DECIMAL, FLOAT and DOUBLE, if declared.
        unsigned: Declared UNSIGNED.
        charset: Character set of text, ENUM and SET columns; None for all other types.
        collation: Collation of text, ENUM and SET columns; None for all other types.
        members: Strings of an ENUM or SET.
        nullable: Whether it may be NULL.
        default: Declared constant default as text or bytes; None for DEFAULT NULL; ABSENT if none is declared.
        generated: ``stored`` or ``virtual`` for a generated column.
        depends_on: Names of the columns in the expression of a generated column.
        auto_increment: Declared AUTO_INCREMENT.
        computed_default: Whether the declared default is not a constant, but an expression such as CURRENT_TIMESTAMP.
        on_update: Declared ON UPDATE CURRENT_TIMESTAMP.
        expression: The expression of a generated column or of a default, its words in lower case; None without one.
        invisible: Declared INVISIBLE.
        geometry: Declared kind of a ``geometry`` column in lower case, such as ``point``; empty for other types.
        key_prefix: In a key, how many of its characters count, or of its bytes if it has no character set; 0 for all.
        inexact_key: Whether it may be part of a key though equality under its collation is not known exactly.
    """

    name: str
    type: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    charset: str | None = None
    collation: str | None = None
    members: tuple[str, ...] = ()
    nullable: bool = True
    default: MaybeValue = ABSENT
    generated: str | None = None
    depends_on: tuple[str, ...] = ()
    auto_increment: bool = False
    computed_default: bool = False
    on_update: bool = False
    expression: str | None = None
    invisible: bool = False
    geometry: str = ""
    key_prefix: int = 0
    inexact_key: bool = False

    @property
    def must_be_given(self) -> bool:
        """Whether a data node refuses a new row without it: it knows constant defaults only."""
        return not self.nullable and self.default is ABSENT and self.generated != "virtual"

    @property
    def is_computed(self) -> bool:
        """Whether the server computes a value that is not given, so that nobody else knows it."""
        return self.generated is not None or self.computed_default or self.auto_increment

    @property
    def is_blob(self) -> bool:
        """Whether NDB stores it as a blob, outside the row; a vector is in the row, as a VARBINARY is (recorded)."""
        return self.type in BLOB_TYPES and self.type != "vector"

    @property
    def sql_type(self) -> str:
        """The type as MySQL's `information_schema.COLUMNS.COLUMN_TYPE` spells it."""
        arguments = ""
        if self.members:
            arguments = "(" + ",".join("'" + member.replace("'", "''") + "'" for member in self.members) + ")"
        elif self.length is not None and self.scale is not None:
            arguments = f"({self.length},{self.scale})"
        elif self.length is not None:
            arguments = f"({self.length})"
        return f"{self.type}{arguments}{' unsigned' if self.unsigned else ''}"


class ReferenceAction(Enum):
    """What becomes of the rows that refer to a row that is deleted, or to a value that is updated."""

    NO_ACTION = "NO ACTION"
    RESTRICT = "RESTRICT"
    CASCADE = "CASCADE"
    SET_NULL = "SET NULL"

    @property
    def refuses(self) -> bool:
        """Whether the change is refused; NDB checks that at the latest when the transaction commits."""
        return self in (ReferenceAction.NO_ACTION, ReferenceAction.RESTRICT)


@attrs.frozen
class ForeignKey:
    """
    A foreign key of a table: its columns hold a key of a row of the parent table, or a NULL.

    Attributes:
        name: Name of the constraint.
        columns: Names of its columns.
        parent_database: Database of the parent; empty for that of the table itself.
        parent: Name of the parent table.
        references: Names of the parent's columns, in any letter case; empty for its primary key.
        on_delete: What ON DELETE says.
        on_update: What ON UPDATE says.
        inline: Whether REFERENCES stands in the definition of its column, which servers before MySQL 9.0 ignore.
    """

    name: str
    columns: tuple[str, ...]
    parent_database: str
    parent: str
    references: tuple[str, ...] = ()
    on_delete: ReferenceAction = ReferenceAction.NO_ACTION
    on_update: ReferenceAction = ReferenceAction.NO_ACTION
    inline: bool = False

    def __str__(self) -> str:
        """Return it as SHOW CREATE TABLE has it, without its database."""
        columns, references = (", ".join(f"`{name}`" for name in names) for names in (self.columns, self.references))
        parent = f"`{self.parent_database}`.`{self.parent}`" if self.parent_database else f"`{self.parent}`"
        actions = f"ON DELETE {self.on_delete.value} ON UPDATE {self.on_update.value}"
        return f"CONSTRAINT `{self.name}` FOREIGN KEY ({columns}) REFERENCES {parent} ({references}) {actions}"

    def referenced(self, parent: Table) -> tuple[int, ...]:
        """
        Return the ordinals of the columns of the parent that it refers to; empty if they are not all there.

        Args:
            parent: The parent table.
        """
        ordinals = {column.name.lower(): ordinal for ordinal, column in enumerate(parent.columns)}
        wanted = [name.lower() for name in self.references or parent.primary_key]
        found = tuple(ordinals[name] for name in wanted if name in ordinals)
        return found if len(found) == len(wanted) == len(self.columns) else ()


@attrs.frozen
class KeyPart:
    """
    A part of a unique key.

    Attributes:
        column: Name of its column; empty if it is an expression.
        prefix: How many of the column's characters count, or of its bytes if it has no character set; 0 for all.
        expression: The expression, its words in lower case; empty if it is a column.
    """

    column: str = ""
    prefix: int = 0
    expression: str = ""

    def __str__(self) -> str:
        """Return it as a definition has it."""
        if self.expression:
            return f"({self.expression})"
        return f"{self.column}({self.prefix})" if self.prefix else self.column


@attrs.frozen
class Period:
    """
    The application-time period of a table (MariaDB): neither of its columns can be NULL.

    Attributes:
        name: Its name; empty if there is none.
        start: Name of the column of its start.
        end: Name of the column of its end.
    """

    name: str = ""
    start: str = ""
    end: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""
        return (self.start, self.end) if self.name else ()


@attrs.frozen
class Table:
    """
    One table as declared.

    Attributes:
        database: Database name.
        name: Table name.
        columns: Columns in order.
        primary_key: Names of the primary key columns, in key order; empty if there is none.
        unique_keys: Names of the columns of each other unique key.
        engine: Declared storage engine in upper case, or None.
        primary_key_prefixes: Per primary key column, the declared length of its prefix in characters, 0 for the whole
            column; empty if all are whole.
        collation: Collation of text columns that declare none; None if it is not known.
        unique_names: Name of each of the other unique keys.
        unique_prefixes: Name and column, in lower case, of each part of these that is a prefix of its column, and the
            length of the prefix.
        functional_keys: Name and parts of each unique key that has an expression; its name is among `indexes`, too.
        foreign_keys: Its foreign keys.
        serving: Name of the unique key that serves as the primary key; empty if the primary key is declared, or none.
        indexes: Name and columns of each index that identifies no row: statements name them, and new keys have to have
            other names.
        period: Its application-time period (MariaDB).
    """

    database: str
    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    unique_keys: tuple[tuple[str, ...], ...] = ()
    engine: str | None = None
    primary_key_prefixes: tuple[int, ...] = ()
    collation: str | None = attrs.field(default=None, eq=False, repr=False)
    unique_names: tuple[str, ...] = attrs.field(default=(), eq=False, repr=False)
    unique_prefixes: frozenset[tuple[str, str, int]] = attrs.field(default=frozenset(), eq=False, repr=False)
    functional_keys: tuple[tuple[str, tuple[KeyPart, ...]], ...] = attrs.field(default=(), eq=False, repr=False)
    foreign_keys: tuple[ForeignKey, ...] = attrs.field(default=(), eq=False, repr=False)
    serving: str = attrs.field(default="", eq=False, repr=False)
    indexes: tuple[tuple[str, tuple[str, ...]], ...] = attrs.field(default=(), eq=False, repr=False)
    period: Period = attrs.field(default=Period(), eq=False, repr=False)

    def with_unique_key(self, name: str, columns: tuple[str, ...]) -> Table:
        """Return the table with one more unique key; without a name, the server names it after its first column."""
        names = (*self.unique_names, name or self.free_name(columns[0]))
        return attrs.evolve(self, unique_keys=(*self.unique_keys, columns), unique_names=names)

    def with_index(self, name: str, columns: tuple[str, ...]) -> Table:
        """Return the table with one more index that identifies no row."""
        return attrs.evolve(self, indexes=(*self.indexes, (name, columns)))

    def has_key(self, name: str) -> bool:
        """Whether there is a key or index of a name, which may be in any letter case."""
        return name.lower() in {each.lower() for each in (*self.unique_names, *(name for name, _ in self.indexes))}

    def free_name(self, column: str) -> str:
        """Return the name that the server gives a key whose first column is `column`."""
        given, number = column, 1
        while given.lower() == "primary" or self.has_key(given):
            number += 1
            given = f"{column}_{number}"
        return given

    def parent_of(self, key: ForeignKey) -> tuple[str, str]:
        """Return database and name of the table that a foreign key refers to."""
        return key.parent_database or self.database, key.parent

    @property
    def unique_parts(self) -> tuple[tuple[KeyPart, ...], ...]:
        """The parts of each unique key, the primary key first."""
        primary = zip(self.primary_key, self.primary_key_prefixes or (0,) * len(self.primary_key), strict=True)
        lengths = {(key, column): length for key, column, length in self.unique_prefixes}
        keys = [tuple(KeyPart(column, length) for column, length in primary)] if self.primary_key else []
        for name, columns in zip(self.unique_names, self.unique_keys, strict=True):
            keys.append(tuple(KeyPart(each, lengths.get((name.lower(), each.lower()), 0)) for each in columns))
        return (*keys, *(parts for _, parts in self.functional_keys))

    @property
    def full_name(self) -> str:
        """``database.table``; see `ndb_formats.schema.tables`."""
        return full_name(self.database, self.name)

    @cached_property
    def key_ordinals(self) -> tuple[int, ...]:
        """Ordinals of the primary key columns, in key order."""
        return tuple(self.ordinal(name) for name in self.primary_key)

    @cached_property
    def key_columns(self) -> tuple[Column, ...]:
        """The primary key columns, in key order, as their key has them."""
        prefixes = self.primary_key_prefixes or (0,) * len(self.primary_key)
        columns = (self.columns[ordinal] for ordinal in self.key_ordinals)
        return tuple(
            attrs.evolve(column, key_prefix=prefix) if prefix else column
            for column, prefix in zip(columns, prefixes, strict=True)
        )

    def find(self, name: str) -> Column | None:
        """Return the column of a name, which is case-sensitive as in NDB, or None."""
        return next((column for column in self.columns if column.name == name), None)

    def ordinal(self, name: str) -> int:
        """
        Return the ordinal of a column, from 0.

        Raises:
            SchemaError: There is no such column.
        """
        found = self._ordinals.get(name)
        if found is not None:
            return found
        message = f"no such column; the table has {', '.join(self._ordinals)}"
        raise SchemaError(message, table=self.full_name, column=name)

    @cached_property
    def _ordinals(self) -> dict[str, int]:
        return {column.name: ordinal for ordinal, column in enumerate(self.columns)}


@attrs.frozen
class Schema:
    """
    A set of tables, found by database and name; a table without a database is found in each.

    Attributes:
        tables: The tables.
        inexact_keys: Whether all columns are allowed in keys (`Column.inexact_key`), also those of tables that a log
            adds.
        gone: Database and name of tables for which one without a database does not stand: a log dropped or renamed
            them, or changed them in a way that cannot be followed.
        of_servers: Definitions of single servers, by id, whose logs have other ones.
    """

    tables: tuple[Table, ...] = ()
    inexact_keys: bool = False
    gone: frozenset[tuple[str, str]] = frozenset()
    of_servers: tuple[tuple[int, Schema], ...] = ()

    @property
    def has_tables(self) -> bool:
        """Whether it defines anything."""
        return bool(self.tables) or any(schema.has_tables for _, schema in self.of_servers)

    def of_server(self, server: int | None) -> Schema:
        """Return the definitions that hold for the log of a server."""
        return next((schema for number, schema in self.of_servers if number == server), self)

    def find(self, database: str, name: str, *, any_case: bool = False) -> Table | None:
        """
        Return the table of that name, or None.

        A definition that names no database stands for the tables of its name in every database.

        Args:
            database: The database.
            name: The name.
            any_case: Whether a name that no table has is that of the one table that has it in other letters:
                lower_case_table_names makes statements and logs differ so.
        """
        named = {table.database: table for table in reversed(self.tables) if table.name == name}
        if database in named:
            return named[database]
        if (database, name) in self.gone:
            return None
        if "" in named:
            return attrs.evolve(named[""], database=database)
        found = self._in_other_letters(database, name) if any_case else None
        return None if found is None else attrs.evolve(found, database=database, name=name)

    def _in_other_letters(self, database: str, name: str) -> Table | None:
        """Return the one table whose name differs in letter case only, as under lower_case_table_names; or None."""
        wanted = (database.lower(), name.lower())
        found = {
            (table.database, table.name): table
            for table in self.tables
            if (table.database.lower() or wanted[0], table.name.lower()) == wanted
        }
        return next(iter(found.values())) if len(found) == 1 else None

    def __add__(self, other: Schema) -> Schema:
        return Schema(self.tables + other.tables, self.inexact_keys or other.inexact_keys, self.gone | other.gone)
