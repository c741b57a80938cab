"""
SQL text as statements, and the names in them.
"""

from __future__ import annotations

import attrs

from ndb_formats.schema.lexer import WordKind
from ndb_formats.schema.script import split_script
from ndb_formats.schema.sql_words import Words

__all__ = ["SqlStatement", "name_parts", "split_statements"]


@attrs.frozen
class SqlStatement:
    """
    One statement.

    Attributes:
        text: Its text, without the semicolon.
        content: Text and kind of each word.
    """

    text: str
    content: tuple[tuple[str, WordKind], ...] = attrs.field(repr=False)

    def words(self) -> Words:
        """Return its words, to be read from the first."""
        return Words(list(self.content))


def split_statements(sql: str) -> list[SqlStatement]:
    """
    Return the statements of a text; see `split_script`.

    Raises:
        SchemaError: A quote or comment has no end.
    """
    return [SqlStatement(each.text, tuple(each.words().words)) for each in split_script(sql)]


def name_parts(words: Words, database: str) -> tuple[str, str]:
    """Step over a name of a table or routine and return its database and name; `database` is the default one."""
    name = words.step()
    if words.kind is WordKind.DOT:
        words.step()
        return name, words.step()
    return database, name
