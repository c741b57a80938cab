"""
What the words of a statement say, as data.
"""

from __future__ import annotations

from enum import Enum

import attrs

from ndb_formats.rules.statement_logging.table_references import Reference

__all__ = ["Action", "StatementFacts"]


class Action(Enum):
    """What a statement does, as far as its logging differs."""

    INSERT = "INSERT"
    REPLACE = "REPLACE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    LOAD = "LOAD DATA"
    QUERY = "query"  # SELECT, DO and SET: logged if a stored function changes rows
    CALL = "CALL"
    CREATE_TABLE = "CREATE TABLE"
    TABLE_DEFINITION = "definition of tables"  # DROP, TRUNCATE, ALTER TABLE and indexes: not logged for temporary ones
    DEFINITION = "definition"
    BINLOG = "BINLOG"
    CONTROL = "control"  # of transactions and of the session
    OTHER = "other"  # never logged
    UNKNOWN = "unknown"


@attrs.frozen
class StatementFacts:
    """
    What the words of a statement say.

    Attributes:
        action: What it does.
        targets: Tables that it writes to, or can write to (UPDATE and DELETE of several tables name them by alias).
        reads: Tables in its FROM clauses and subqueries.
        assigned: Alias (empty for none) and name of each column that an UPDATE sets.
        columns: Columns that an INSERT names; None if it names none, and so all.
        functions: Database (empty for none) and name of what it calls.
        variables: System variables that it reads and that are not written to the log.
        marks: Which of LIMIT, IGNORE, SELECT (rows come from a query), ON DUPLICATE KEY UPDATE, SKIP LOCKED, NOWAIT,
            MATCH, DEFAULT, TEMPORARY, IF EXISTS, IF NOT EXISTS, REPLACE it has.
        rows: Whether it changes rows, if the text tells.
    """

    action: Action
    targets: tuple[Reference, ...] = ()
    reads: tuple[Reference, ...] = ()
    assigned: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] | None = None
    functions: tuple[tuple[str, str], ...] = ()
    variables: tuple[str, ...] = ()
    marks: frozenset[str] = frozenset()
    rows: bool | None = None
