"""
Statements as a log has them, and what they do to definitions that are read along with it.
"""

from __future__ import annotations

import attrs

from ndb_formats.errors import FormatError
from ndb_formats.events.query_event import QueryEvent, has_ansi_quotes, session_collation
from ndb_formats.schema.definitions import Definitions, Statement, defines_tables
from ndb_formats.schema.tables import Schema
from ndb_formats.types.collation_names import collation_of

__all__ = ["schema_after", "schema_following", "statement_of"]


def statement_of(query: QueryEvent) -> Statement | None:
    """Return the statement of an event, with its character set; None for one that changes no definition."""
    if query.error or not defines_tables(query.statement):
        return None
    number = session_collation(query)
    collation = None if number is None else collation_of(number)
    statement = Statement(query.statement, query.database, ansi_quotes=has_ansi_quotes(query))
    return statement if collation is None else attrs.evolve(statement, charset=(collation.charset, collation.name))


def schema_after(schema: Schema, query: QueryEvent) -> Schema:
    """
    Return definitions after an event; a table whose statement cannot be followed is not known afterwards.

    A table that is created is what the statement says, whatever was known of it before.
    """
    statement = statement_of(query)
    return schema if statement is None else schema_following(schema, statement)


def schema_following(schema: Schema, statement: Statement) -> Schema:
    """Return definitions after a statement; see `schema_after`."""
    known = Definitions.of(schema.tables, inexact_keys=schema.inexact_keys)
    for _ in range(2):
        try:
            return known.after(statement)[0].schema
        except FormatError as error:
            kept = {name: table for name, table in known.tables.items() if table.full_name != error.table}
            known = attrs.evolve(known, tables=kept)
    return known.schema
