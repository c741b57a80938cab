"""
CREATE TABLE statements, as typed or as SHOW CREATE TABLE prints them, to a `Table`.

Of the options, those matter that name the storage engine, the character set, or row versions. Parts of a definition
that do not matter here are skipped, so that options of other servers do no harm.
"""

from __future__ import annotations

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.schema.column_definition import (
    ROW_END,
    ROW_START,
    ColumnItem,
    take_column,
    with_implicit_timestamps,
)
from ndb_formats.schema.declared_type import charset_name, collation_name
from ndb_formats.schema.lexer import WordKind, Words
from ndb_formats.schema.session import Session, Text
from ndb_formats.schema.table_keys import (
    IndexItem,
    complete,
    is_key_item,
    take_index,
    take_period,
    with_foreign_key,
    with_key,
)
from ndb_formats.schema.tables import Column, Period, Table


@attrs.frozen
class Options:
    """
    What options say.

    Attributes:
        engine: Storage engine in upper case; None if none is named.
        charset: Character set and collation; None if none is named.
        versioned: Whether they ask for row versions (MariaDB).
    """

    engine: str | None = None
    charset: Text | None = None
    versioned: bool = False


def take_options(words: Words, session: Session, default: Text) -> Options:
    """
    Read options to the end of the words; those that do not matter, or are not known, are passed over.

    Args:
        words: The options.
        session: The session that gives them.
        default: Character set and collation that DEFAULT stands for.

    Raises:
        SchemaError: Columns come from a query, which they do not tell.
    """
    found = Options()
    while words.word:
        if words.accept("ENGINE"):
            words.accept("=")
            found = attrs.evolve(found, engine=words.step().upper())
        elif (charset := take_charset(words, found.charset, session, default)) is not None:
            found = attrs.evolve(found, charset=charset)
        elif words.accept("WITH", "SYSTEM", "VERSIONING"):
            found = attrs.evolve(found, versioned=True)
        elif words.upper == "SELECT":
            message = "CREATE TABLE ... SELECT cannot be read; give what SHOW CREATE TABLE prints"
            raise SchemaError(message)
        elif words.accept("PARTITION"):
            words.to_the_end()
        else:
            words.step()
    return found


def take_charset(words: Words, before: Text | None, session: Session, default: Text) -> Text | None:
    """
    Read CHARACTER SET or COLLATE, if it comes next, and return character set and collation.

    Args:
        words: The options.
        before: What an earlier option said, if one did: a collation that was given stays if it fits the character set.
        session: The session that gives them.
        default: Character set and collation that DEFAULT stands for.
    """
    if words.accept("CHARSET") or words.accept("CHARACTER", "SET") or words.accept("CHAR", "SET"):
        words.accept("=")
        named = not words.accept("DEFAULT")
        if not named and not session.server.mariadb:
            return default
        charset = charset_name(words.step()) if named else default[0]  # MariaDB: with the set's own collation
        return before if before is not None and before[0] == charset else session.text_of(charset, None, default)
    if words.accept("COLLATE"):
        words.accept("=")
        if words.accept("DEFAULT"):
            return session.text_of(default[0], None, default) if session.server.mariadb else default
        return session.text_of(None if before is None else before[0], collation_name(words.step()), default)
    return None


# What MariaDB logs of a sequence.
_SEQUENCE = (
    "next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size",
    "cycle_option", "cycle_count",
)  # fmt: skip


def take_name(words: Words, database: str) -> tuple[str, str]:
    """Read the name of a table or routine; return its database, `database` if it names none, and its name."""
    name = words.step()
    if words.kind is WordKind.DOT:
        words.step()
        return name, words.step()
    return database, name


def create_table(words: Words, name: tuple[str, str], text: Text, session: Session) -> Table:
    """
    Return the table that a list of columns and the options after it define.

    Args:
        words: What follows the table's name.
        name: Database and name.
        text: Character set and collation of a table that declares none.
        session: The session that makes it.

    Raises:
        SchemaError: It cannot be read.
    """
    if words.kind is not WordKind.L_PAREN:
        message = "only CREATE TABLE with a column list can be read"
        raise SchemaError(message)
    body, options = words.group(), take_options(words, session, text)
    text = options.charset or text
    items, keys, period = list[ColumnItem](), list[IndexItem](), Period()
    for part in body.items():
        if part.accept("PERIOD", "FOR"):
            period = take_period(part) or period
            continue
        if is_key_item(part):
            keys.append(take_index(part))
            continue
        item = take_column(part, text, session)
        items.append(item)
        keys += keys_of(item)
    items = with_implicit_timestamps(items, session)
    table = Table(*name, tuple(item.column for item in items), engine=options.engine, collation=text[1], period=period)
    for key in keys:
        table = with_key(table, key) if key.foreign is None else with_foreign_key(table, key.foreign)
    versioned = options.versioned or any(item.versioned for item in items)
    return complete(with_row_versions(table) if versioned else table)


def keys_of(item: ColumnItem) -> list[IndexItem]:
    """Return the keys that the definition of a column declares."""
    columns = (item.column.name,)
    found = [IndexItem("PRIMARY", "PRIMARY", columns, inline=True)] if item.primary else []
    found += [IndexItem("UNIQUE", "", columns, inline=True)] if item.unique else []
    return found + (
        [] if item.reference is None else [IndexItem("FOREIGN", "", columns, foreign=item.reference, inline=True)]
    )


def with_row_versions(table: Table) -> Table:
    """
    Return a table with the columns that MariaDB adds for row versions, if it declares none, and with them in its keys.

    Source: MariaDB, "System-Versioned Tables".
    """
    columns, end = table.columns, next((each.name for each in table.columns if each.expression == ROW_END), None)
    if end is None:
        bounds = (("row_start", ROW_START), ("row_end", ROW_END))
        added = [
            Column(name, "timestamp", 6, nullable=False, generated="stored", expression=bound, invisible=True)
            for name, bound in bounds
        ]
        columns, end = (*columns, *added), "row_end"
    keys = tuple((*key, end) for key in table.unique_keys)
    primary, prefixes = table.primary_key, table.primary_key_prefixes
    if primary and end not in primary:
        primary, prefixes = (*primary, end), (*prefixes, 0) if prefixes else ()
    return attrs.evolve(table, columns=columns, primary_key=primary, primary_key_prefixes=prefixes, unique_keys=keys)


def sequence_table(name: tuple[str, str]) -> Table:
    """Return the table that MariaDB logs the changes of a sequence in."""
    kinds = {"cache_size": "bigint", "cycle_option": "tinyint"}
    columns = tuple(
        Column(each, kinds.get(each, "bigint"), unsigned=each in kinds, nullable=False) for each in _SEQUENCE
    )
    return Table(*name, columns)
