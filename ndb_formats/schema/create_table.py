"""
Files of definitions: the tables that there are after all of their statements.
"""

from __future__ import annotations

from ndb_formats.constants import DEFAULT_CHARSET
from ndb_formats.errors import SchemaError
from ndb_formats.schema.definitions import Definitions, Statement, defines_tables
from ndb_formats.schema.script import split_script
from ndb_formats.schema.session import ServerVersion, Session
from ndb_formats.schema.tables import Schema, Table

__all__ = ["parse_create_table", "parse_schema"]


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


def parse_create_table(
    sql: str, *, database: str = "", charset: str = DEFAULT_CHARSET, server: ServerVersion | None = None
) -> Table:
    """
    Return the one table that `sql` creates; see `parse_schema`.

    Raises:
        SchemaError: It creates no table or several, or cannot be read.
    """
    tables = parse_schema(sql, database=database, charset=charset, server=server).tables
    if len(tables) != 1:
        message = f"expected one CREATE TABLE, found {len(tables)}"
        raise SchemaError(message)
    return tables[0]
