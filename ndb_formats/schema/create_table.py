"""
CREATE TABLE statements, as typed or as SHOW CREATE TABLE prints them, to a `Table`.

Parts of a definition that do not matter here are skipped, so that options of other servers do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from sqlglot.tokenizer_core import TokenType

from ndb_formats.constants import DEFAULT_CHARSET
from ndb_formats.errors import SchemaError
from ndb_formats.schema.column_definition import charset_name, take_column
from ndb_formats.schema.foreign_keys import split_reference, take_foreign_key, with_foreign_key
from ndb_formats.schema.full_names import full_name
from ndb_formats.schema.serving_key import with_serving_key
from ndb_formats.schema.sql_words import Words, statements
from ndb_formats.schema.tables import Column, ForeignKey, Schema, Table
from ndb_formats.types.charsets import charset_of_collation, default_collation
from ndb_formats.types.digits import whole_number

__all__ = [
    "TABLE_ITEMS",
    "IndexItem",
    "complete",
    "key_columns",
    "options_charset",
    "parse_create_table",
    "parse_schema",
    "take_index",
    "take_name",
    "take_table",
]


TABLE_ITEMS = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK"})


def parse_schema(sql: str, *, database: str = "", charset: str = DEFAULT_CHARSET) -> Schema:
    """
    Return every table that `sql` creates; USE sets the database, and other statements are ignored.

    Args:
        sql: Statements, separated by semicolons.
        database: Database of tables that are not qualified, until a USE statement.
        charset: Character set of tables that declare none.

    Raises:
        SchemaError: A definition cannot be read.
    """
    tables = []
    for words in statements(sql):
        if words.accept("USE"):
            database = words.step()
        elif words.accept("CREATE", "TABLE") or words.accept("CREATE", "TEMPORARY", "TABLE"):
            tables.append(take_table(words, database, (charset, default_collation(charset))))
    return Schema(tuple(tables))


def parse_create_table(sql: str, *, database: str = "", charset: str = DEFAULT_CHARSET) -> Table:
    """
    Return the one table that `sql` creates.

    Raises:
        SchemaError: It creates no table or several, or cannot be read.
    """
    tables = parse_schema(sql, database=database, charset=charset).tables
    if len(tables) != 1:
        message = f"expected one CREATE TABLE, found {len(tables)}"
        raise SchemaError(message)
    return tables[0]


def take_name(words: Words, database: str) -> tuple[str, str]:
    """Read the name of a table and return its database, `database` if it names none, and its name."""
    name = words.step()
    if words.kind is TokenType.DOT:
        words.step()
        return name, words.step()
    return database, name


def take_table(words: Words, database: str, text: tuple[str, str]) -> Table:
    """
    Read what follows CREATE TABLE.

    Args:
        words: The rest of the statement.
        database: Database of a table that is not qualified.
        text: Character set and collation of a table that declares none.

    Raises:
        SchemaError: It cannot be read.
    """
    words.accept("IF", "NOT", "EXISTS")
    database, name = take_name(words, database)
    try:
        if words.kind is not TokenType.L_PAREN:
            message = "only CREATE TABLE with a column list can be read"
            raise SchemaError(message)
        body = words.group()
        engine, text = _table_options(words, text)
        return _table_of_items(database, name, body, engine, text)
    except SchemaError as error:
        raise error.located(table=full_name(database, name)) from None


def _table_options(words: Words, text: tuple[str, str]) -> tuple[str | None, tuple[str, str]]:
    engine, charset = None, None
    while words.word:
        if words.accept("ENGINE"):
            words.accept("=")
            engine = words.step().upper()
        elif (found := options_charset(words, charset)) is not None:
            charset = found
        elif words.upper == "SELECT":
            message = "CREATE TABLE ... SELECT cannot be read; give what SHOW CREATE TABLE prints"
            raise SchemaError(message)
        else:
            words.step()
    return engine, charset or text


def options_charset(words: Words, before: tuple[str, str] | None) -> tuple[str, str] | None:
    """
    Read CHARACTER SET or COLLATE of a table or database, if it comes next, and return character set and collation.

    Args:
        words: The options.
        before: What an earlier option said, if one did: a collation that was given stays if it fits the character set.
    """
    if words.accept("CHARSET") or words.accept("CHARACTER", "SET"):
        words.accept("=")
        charset = charset_name(words.step())
        return before if before is not None and before[0] == charset else (charset, default_collation(charset))
    if words.accept("COLLATE"):
        words.accept("=")
        collation = words.step().lower()
        return charset_of_collation(collation), collation
    return None


@attrs.frozen
class IndexItem:
    """
    A key in a definition.

    Attributes:
        kind: ``PRIMARY``, ``UNIQUE``, ``FOREIGN``, or empty for other indexes and checks.
        name: Its name; empty if it has none.
        columns: Its columns, for the first two kinds.
        prefixes: The lengths of their prefixes; empty if all are whole.
        foreign: The foreign key that it is.
    """

    kind: str
    name: str = ""
    columns: tuple[str, ...] = ()
    prefixes: tuple[int, ...] = ()
    foreign: ForeignKey | None = None


def take_index(item: Words) -> IndexItem:
    """Read a key, an index or a constraint; see `TABLE_ITEMS`."""
    name = ""
    if item.accept("CONSTRAINT") and item.upper not in TABLE_ITEMS:
        name = item.step()
    if item.accept("PRIMARY", "KEY"):
        return IndexItem("PRIMARY", "PRIMARY", *key_columns(item))
    if item.accept("FOREIGN", "KEY"):
        return IndexItem("FOREIGN", name, foreign=take_foreign_key(item, name))
    if not item.accept("UNIQUE"):
        return IndexItem("")
    item.accept("KEY") or item.accept("INDEX")
    if item.kind is not TokenType.L_PAREN and item.upper != "USING":
        name = item.step()
    return IndexItem("UNIQUE", name, key_columns(item)[0])


def _table_of_items(database: str, name: str, body: Words, engine: str | None, text: tuple[str, str]) -> Table:
    columns: list[Column] = []
    primary_key: tuple[str, ...] = ()
    prefixes: tuple[int, ...] = ()
    unique: list[IndexItem] = []
    foreign: list[ForeignKey] = []
    for item in body.items():
        if item.upper == "LIKE":
            message = "CREATE TABLE ... LIKE cannot be read; give what SHOW CREATE TABLE prints"
            raise SchemaError(message)
        if item.upper not in TABLE_ITEMS:
            definition, reference = split_reference(item)
            column, keys = take_column(definition, text)
            columns.append(column)
            foreign += [reference] if reference is not None else []
            primary_key = (column.name,) if "primary" in keys else primary_key
            unique += [IndexItem("UNIQUE", "", (column.name,))] if "unique" in keys else []
            continue
        index = take_index(item)
        if index.kind == "PRIMARY":
            primary_key, prefixes = index.columns, index.prefixes
        elif index.kind == "UNIQUE":
            unique.append(index)
        elif index.foreign is not None:
            foreign.append(index.foreign)
    table = Table(database, name, tuple(columns), primary_key, (), engine, prefixes, text[1])
    for index in unique:
        table = table.with_unique_key(index.name, index.columns)
    for key in foreign:
        table = with_foreign_key(table, key)
    return complete(table)


def complete(table: Table) -> Table:
    """Return a table with what follows from its keys and expressions: names as declared, key columns NOT NULL."""
    primary_key = _as_declared(table.primary_key, table.columns)
    unique_keys = tuple(_as_declared(names, table.columns) for names in table.unique_keys)
    foreign = [attrs.evolve(each, columns=_as_declared(each.columns, table.columns)) for each in table.foreign_keys]
    table = attrs.evolve(table, foreign_keys=tuple(foreign))
    key = set(primary_key)
    columns = [attrs.evolve(column, nullable=column.nullable and column.name not in key) for column in table.columns]
    columns = [attrs.evolve(column, depends_on=_mentioned(column.depends_on, columns)) for column in columns]
    return with_serving_key(
        attrs.evolve(table, columns=tuple(columns), primary_key=primary_key, unique_keys=unique_keys)
    )


def _as_declared(names: tuple[str, ...], columns: Sequence[Column]) -> tuple[str, ...]:
    """Return column names of a key, which MySQL takes in any letter case, as they were declared."""
    declared = {column.name.lower(): column.name for column in columns}
    return tuple(declared.get(name.lower(), name) for name in names)


def _mentioned(words: tuple[str, ...], columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(column.name for column in columns if column.name.lower() in {word.lower() for word in words})


def key_columns(item: Words) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the columns of a key and the lengths of their prefixes, none if all are whole."""
    while item.kind is not TokenType.L_PAREN:
        item.step()
    parts = [(part.step(), _prefix(part)) for part in item.group().items()]
    prefixes = tuple(prefix for _, prefix in parts)
    return tuple(name for name, _ in parts), prefixes if any(prefixes) else ()


def _prefix(part: Words) -> int:
    length = part.group().step() if part.kind is TokenType.L_PAREN else ""
    return whole_number(length) or 0
