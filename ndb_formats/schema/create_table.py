"""
Tables from many statements: those that there are after a file of definitions, and those before the statements of a log.

Only what a statement says can be taken back: an added column is dropped again, a new name gives way to the old one.
What a statement removed is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ndb_formats.constants import DEFAULT_CHARSET
from ndb_formats.errors import SchemaError
from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.lexer import Words
from ndb_formats.schema.scripts import split_script
from ndb_formats.schema.session import ServerVersion, Session
from ndb_formats.schema.statements import Statement, TableStep, defines_tables
from ndb_formats.schema.table_body import take_name
from ndb_formats.schema.table_keys import is_key_item, take_index
from ndb_formats.schema.tables import ForeignKey, Schema, Table


def parse_schema(
    sql: str, *, database: str = "", charset: str = DEFAULT_CHARSET, server: ServerVersion | None = None
) -> Schema:
    """
    Return every table that there is after the statements of `sql`; USE sets the database.

    Statements that define no table are ignored, and so are temporary tables and the bodies of stored programs.

    Args:
        sql: Statements as for the mysql client, such as a dump.
        database: Database of tables that are not qualified, until a USE statement.
        charset: Character set of tables that declare none.
        server: The server that made the tables; None for a MySQL server of today.

    Raises:
        SchemaError: A definition cannot be read.
    """
    known = Definitions(unnamed_everywhere=False)
    for statement in split_script(sql, Session.of(server or ServerVersion(), charset)):
        if statement.text[:4].upper() == "USE ":
            words = statement.words()
            words.accept("USE")
            database = words.step()
        elif defines_tables(statement.text):
            known = known.after(Statement(statement.text, database, statement.session))[0]
    return known.schema


def parse_create_table(sql: str, *, database: str = "", charset: str = DEFAULT_CHARSET) -> Table:
    """
    Return the one table that `sql` creates; see `parse_schema`.

    Raises:
        SchemaError: It creates no table or several, or cannot be read.
    """
    tables = parse_schema(sql, database=database, charset=charset).tables
    if len(tables) != 1:
        message = f"expected one CREATE TABLE, found {len(tables)}"
        raise SchemaError(message)
    return tables[0]


def definitions_before(end: Definitions, made: Sequence[Statement]) -> Definitions:
    """
    Return the definitions before statements whose result is `end`.

    A table that was dropped among them is not known before.

    Raises:
        SchemaError: A statement cannot be taken back.
    """
    tables = dict(end.tables)
    for statement in reversed(made):
        _undo(tables, statement.words(), statement)
    return attrs.evolve(end, tables=tables)


def _undo(tables: dict[tuple[str, str], Table], words: Words, statement: Statement) -> None:
    if words.accept("CREATE", "TABLE"):
        words.accept("IF", "NOT", "EXISTS")
        tables.pop(take_name(words, statement.database), None)
    elif words.accept("RENAME", "TABLE") or words.accept("RENAME", "TABLES"):
        pairs = []
        for item in words.rest().items():
            old = take_name(item, statement.database)
            item.accept("TO")
            pairs.append((old, take_name(item, statement.database)))
        for old, new in reversed(pairs):
            table = tables.get(new)
            if table is not None:
                before = attrs.evolve(table, database=old[0], name=old[1])
                renamed = Definitions(tables).with_steps([TableStep(table, before)])
                tables.clear()
                tables.update(renamed.tables)
    elif words.accept("ALTER", "TABLE"):
        name = take_name(words, statement.database)
        if name in tables:
            tables[name] = _unaltered(tables[name], words.rest(), statement)


def _unaltered(table: Table, clauses: Words, statement: Statement) -> Table:
    """Return a table without what a statement added."""
    kept, foreign = list(table.columns), list(table.foreign_keys)
    for clause in clauses.items():
        if clause.accept("ADD"):
            clause.accept("COLUMN")
            if is_key_item(clause) and clause.upper != "PRIMARY":
                added_key = take_index(clause).foreign
                foreign = [key for key in foreign if added_key is None or not _is(key, added_key)]
                continue
            added = clause.word.lower()
            kept = [column for column in kept if column.name.lower() != added]
        elif clause.upper not in ("ALGORITHM", "LOCK", "COMMENT"):
            message = (
                "the statement cannot be taken back from the definition at the end: give the definition at the start "
                f"of the binlogs. The statement: {statement.text[:200]}"
            )
            raise SchemaError(message, table=table.full_name)
    foreign = [key for key in foreign if {name.lower() for name in key.columns} <= {each.name.lower() for each in kept}]
    return attrs.evolve(table, columns=tuple(kept), foreign_keys=tuple(foreign))


def _is(key: ForeignKey, added: ForeignKey) -> bool:
    """Whether a statement that adds a foreign key added this one; one without a name is known by columns and parent."""
    if added.name:
        return key.name.lower() == added.name.lower()
    columns = [name.lower() for name in added.columns]
    return ([name.lower() for name in key.columns], key.parent) == (columns, added.parent)
