"""
Statements as a log has them, and what they do to definitions that are read along with it.
"""

from __future__ import annotations

from ndb_formats.errors import FormatError
from ndb_formats.events.query_event import QueryEvent, session_of
from ndb_formats.schema.definitions import Definitions, Statement, defines_tables
from ndb_formats.schema.full_names import split_full_name

__all__ = ["definitions_following", "definitions_without_faults", "statement_of"]


def statement_of(query: QueryEvent) -> Statement | None:
    """Return the statement of an event with its session; None for one that changes no definition."""
    if query.error or not defines_tables(query.statement):
        return None
    return Statement(query.statement, query.database, session_of(query))


def definitions_following(known: Definitions, statement: Statement) -> Definitions:
    """
    Return definitions after a statement.

    A table that it creates is what it says, whatever was known of it before; if that cannot be read, the table is one
    that is not known.

    Raises:
        FormatError: What it does to a known table cannot be followed; the error shows it.
    """
    try:
        return known.after(statement)[0]
    except FormatError as error:
        made = _created(_without(known, error.table), statement)
        if error.table is not None and (_knows(made, error.table) or not _knows(known, error.table)):
            return made
        raise statement.shown_in(error) from None


def _knows(known: Definitions, table: str) -> bool:
    return known.find(*split_full_name(table)) is not None


def _created(known: Definitions, statement: Statement) -> Definitions:
    """Return definitions after a statement, as they are if it cannot be followed."""
    try:
        return known.after(statement)[0]
    except FormatError:
        return known


def definitions_without_faults(known: Definitions, statement: Statement) -> Definitions:
    """Return `definitions_following`; a table whose statement cannot be followed is not known afterwards."""
    try:
        return definitions_following(known, statement)
    except FormatError as error:
        return _created(_without(known, error.table), statement)


def _without(known: Definitions, table: str | None) -> Definitions:
    found = None if table is None else known.find(*split_full_name(table))  # in other letters, if there is no other
    return known if found is None else known.without(found)
