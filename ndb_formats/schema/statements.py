"""
Statements of a log or a file, and what one does to the definition of each table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from ndb_formats.errors import FormatError
from ndb_formats.schema.lexer import Words, words_of
from ndb_formats.schema.session import Session
from ndb_formats.schema.tables import ForeignKey, Table

Name = tuple[str, str]  # database and table
_MOST_SHOWN = 200  # characters of a statement in a message
# Their first words; before and between these may be comments.
_DEFINES = re.compile(r"[\s(]*(?:[/#-]|CREATE|ALTER|DROP|RENAME|TRUNCATE|SET\s*(?:[/#-]|STATEMENT))", re.IGNORECASE)


@attrs.frozen
class Statement:
    """
    A statement in a log or a file: one, whatever semicolons it holds.

    Attributes:
        text: The statement.
        database: The database that it ran in.
        session: What it depends on besides.
    """

    text: str
    database: str
    session: Session = attrs.field(factory=Session)

    def words(self) -> Words:
        """
        Return its words, without what stands before the statement proper (SET STATEMENT ... FOR of MariaDB).

        Raises:
            SchemaError: A quote or comment has no end.
        """
        words = words_of(self.text, self.session)
        if words.accept("SET", "STATEMENT"):
            while words.word and not words.accept("FOR"):
                words.step()
        return words.rest()

    def shown_in(self, error: FormatError) -> FormatError:
        """Add the statement to the message of an error, and return the error."""
        error.message = f"{error.message}. The statement: {self.text[:_MOST_SHOWN]}"
        return error


@attrs.frozen
class TableStep:
    """
    What a statement did to one table.

    Attributes:
        before: The table before; None for a new one.
        after: The table afterwards; None for one that is gone.
        sources: Per column of `after`, the ordinal of the column of `before` that it was, None for a new one; empty for
            a new table.
        emptied: Whether none of its rows is left.
        copied: Whether the rows were copied into a new table, so that data nodes forgot author and epoch.
        added_only: Whether only columns and keys were added.
    """

    before: Table | None
    after: Table | None
    sources: tuple[int | None, ...] = ()
    emptied: bool = False
    copied: bool = False
    added_only: bool = False


def defines_tables(text: str) -> bool:
    """Whether a statement may change definitions, by its first word: quick, for statements that mostly do not."""
    return _DEFINES.match(text) is not None


def with_references(tables: dict[Name, Table], steps: Sequence[TableStep]) -> dict[Name, Table]:
    """Return tables whose foreign keys follow what steps renamed: tables and columns."""
    changed = [(step.before, step.after, step.sources) for step in steps if step.before and step.after]
    parents, homes = dict[Name, tuple[Table, dict[str, str]]](), dict[Name, Table]()
    for before, after, sources in changed:
        columns = {
            before.columns[source].name.lower(): column.name
            for column, source in zip(after.columns, sources, strict=False)
            if source is not None
        }
        parents[before.database, before.name] = after, columns
        homes[after.database, after.name] = before
    for name, table in tables.items():
        if table.foreign_keys:
            home = homes.get(name, table)
            keys = tuple(_following(key, home, table, parents) for key in table.foreign_keys)
            tables[name] = attrs.evolve(table, foreign_keys=keys)
    return tables


def _following(
    key: ForeignKey, home: Table, table: Table, parents: Mapping[Name, tuple[Table, Mapping[str, str]]]
) -> ForeignKey:
    """Return a foreign key after steps; its table was `home` before and is `table` now."""
    generated = f"{home.name}_fk_"
    if home.name != table.name and key.name.startswith(generated):
        key = attrs.evolve(key, name=f"{table.name}_fk_{key.name.removeprefix(generated)}")
    if home.parent_of(key) in parents:
        parent, columns = parents[home.parent_of(key)]
        references = tuple(columns.get(column.lower(), column) for column in key.references)
        database = "" if parent.database == table.database else parent.database
        return attrs.evolve(key, parent_database=database, parent=parent.name, references=references)
    return attrs.evolve(key, parent_database=home.database) if home.parent_of(key) != table.parent_of(key) else key
