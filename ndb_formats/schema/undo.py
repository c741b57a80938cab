"""
Definitions at the start of a log, from those at its end.

Only what a statement says can be taken back: an added column is dropped again, a new name gives way to the old one.
What a statement removed is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.schema.create_table import take_name
from ndb_formats.schema.definitions import Definitions, Statement
from ndb_formats.schema.sql_words import Words, statements
from ndb_formats.schema.tables import Table

__all__ = ["definitions_before"]


def definitions_before(end: Definitions, made: Sequence[Statement]) -> Definitions:
    """
    Return the definitions before statements of which `end` is the result.

    A table that was dropped among them is not known before.

    Raises:
        SchemaError: A statement cannot be taken back.
    """
    tables = dict(end.tables)
    for statement in reversed(made):
        for words in statements(statement.text):
            _undo(tables, words, statement)
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
            table = tables.pop(new, None)
            if table is not None:
                tables[old] = attrs.evolve(table, database=old[0], name=old[1])
    elif words.accept("ALTER", "TABLE"):
        name = take_name(words, statement.database)
        if name in tables:
            tables[name] = _unaltered(tables[name], words.rest(), statement)


def _unaltered(table: Table, clauses: Words, statement: Statement) -> Table:
    """Return a table without what a statement added."""
    kept = list(table.columns)
    for clause in clauses.items():
        if clause.accept("ADD"):
            clause.accept("COLUMN")
            if clause.upper in ("INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK"):
                continue
            added = clause.word.lower()
            kept = [column for column in kept if column.name.lower() != added]
        elif clause.upper not in ("ALGORITHM", "LOCK", "COMMENT"):
            message = (
                "the statement cannot be taken back from the definition at the end: give the definition at the start "
                f"of the binlogs. The statement: {statement.text[:200]}"
            )
            raise SchemaError(message, table=table.full_name)
    return attrs.evolve(table, columns=tuple(kept))
