"""
Statements in a log that change rows themselves: whoever reads the log as rows does not see what they change.
"""

from __future__ import annotations

from ndb_formats.errors import SchemaError
from ndb_formats.schema.full_names import full_name
from ndb_formats.schema.lexer import WordKind
from ndb_formats.schema.session import Session
from ndb_formats.schema.sql_words import Words, words_of
from ndb_formats.schema.table_body import take_name

__all__ = ["changed_table", "changes_rows"]

# Functions may change rows, too, and then a SELECT or DO of them is logged.
_VERBS = ("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH", "SELECT", "DO ", "EXECUTE", "BEGIN NOT")
_LONGEST = max(map(len, _VERBS))
_MODIFIERS = frozenset({"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "INTO", "FROM"})


def changes_rows(text: str) -> bool:
    """Whether a statement that a log holds as text changes rows; what only defines tables or the session does not."""
    head = text.lstrip(" \t\r\n(")
    if head.startswith(("/", "-", "#")):
        head = _without_comments(head)
    start = head[:_LONGEST].upper()
    if start.startswith(_VERBS):
        return True
    return start.startswith("CREATE") and _creates_from_query(text)


def _without_comments(text: str) -> str:
    """Return the first words of a statement that starts with a comment."""
    try:
        return " ".join(word for word, _ in words_of(text, Session()).words[:3])
    except SchemaError:
        return ""


def _creates_from_query(text: str) -> bool:
    if "SELECT" not in text.upper():
        return False
    try:
        words = words_of(text, Session())
    except SchemaError:
        return False
    words.accept("CREATE")
    words.accept("OR", "REPLACE")
    words.accept("TEMPORARY")
    if not words.accept("TABLE"):
        return False
    depth = 0
    while words.word:
        depth += (words.kind is WordKind.L_PAREN) - (words.kind is WordKind.R_PAREN)
        if depth == 0 and words.upper == "SELECT":
            return True
        words.step()
    return False


def changed_table(text: str, database: str) -> str | None:
    """Return ``database.table`` of the table that a statement changes first; None if it does not say."""
    try:
        words = words_of(text, Session())
        name = _target(words)
        return None if name is None else full_name(*take_name(name, database))
    except SchemaError:
        return None


def _target(words: Words) -> Words | None:
    """Return the words from the name of the changed table on."""
    if words.accept("LOAD"):
        while words.word and not words.accept("INTO", "TABLE"):
            words.step()
        return words
    if words.accept("CREATE"):
        while words.word and not words.accept("TABLE"):
            words.step()
        words.accept("IF", "NOT", "EXISTS")
        return words
    if not words.accept_any(frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE"})):
        return None
    while words.accept_any(_MODIFIERS):
        pass
    return words
