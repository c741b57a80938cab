"""
Finds the databases of definitions that name none, as SHOW CREATE TABLE and a dump of one database print them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import attrs

from conflict.rules.table_setup import is_exceptions_table
from ndb_formats.schema.tables import Schema, Table

__all__ = ["in_databases", "logged_name", "named_as"]

Name = tuple[str, str]


def in_databases(schema: Schema, known: Collection[Name]) -> Schema:
    """
    Return a schema in which each table that names no database stands in those that are known to have its name.

    An exceptions table stands where its table does. A table that no database is known to have stands in the only one
    that is known at all; if there are several or none, it is left as it is.

    Args:
        schema: The tables.
        known: Database and name of each table that the binlogs change, or that has a row in mysql.ndb_replication.
    """
    qualified = {(table.database, table.name) for table in schema.tables if table.database}
    if len(qualified) == len(schema.tables):
        return schema
    tables = [each for table in schema.tables for each in _placed(table, known, qualified)]
    return attrs.evolve(schema, tables=tuple(tables))


def _placed(table: Table, known: Collection[Name], qualified: Collection[Name]) -> Iterator[Table]:
    """Yield a table in its databases, but for those of which the schema has a definition of its own."""
    if table.database:
        yield table
        return
    name = table.name[: -len("$EX")] if is_exceptions_table(table) else table.name
    all_databases = sorted({database for database, _ in known})
    databases = [database for database in all_databases if (database, name) in known]
    if not databases:
        databases = all_databases if len(all_databases) == 1 else [""]
    for database in databases:
        if (database, table.name) not in qualified:
            yield attrs.evolve(table, database=database)


def named_as(schema: Schema, known: Collection[Name]) -> Schema:
    """
    Return a schema whose tables have the names that logs give them.

    Under lower_case_table_names a log has them in small letters, whatever statements and dumps say.

    Args:
        schema: The tables.
        known: Database and name of each table of the logs.
    """
    tables = []
    for table in schema.tables:
        database, name = logged_name((table.database, table.name), known)
        tables.append(attrs.evolve(table, database=database, name=name))
    return attrs.evolve(schema, tables=tuple(tables))


def logged_name(name: Name, known: Collection[Name]) -> Name:
    """
    Return the name that logs give a table: its own, unless they have it in small letters only.

    An exceptions table keeps its name, of which the letters count.
    """
    small = name[0].lower(), name[1].lower()
    other = name not in known and small in known and not small[1].endswith("$ex")
    return small if other else name
