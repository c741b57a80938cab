"""
Steps over the words of a statement: names, modifiers and clauses.
"""

from __future__ import annotations

from ndb_formats.rules.statement_logging.table_references import Reference
from ndb_formats.schema.lexer import WordKind
from ndb_formats.schema.sql_words import Words

__all__ = ["clause", "has_phrase", "is_query", "modifiers", "table_name", "until"]

_MODIFIERS = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "CONCURRENT", "LOCAL")


def table_name(words: Words) -> Reference:
    """Step over the name of a table."""
    database, name = "", words.step()
    if words.kind is WordKind.DOT:
        words.step()
        database, name = name, words.step()
    return Reference(database, name, name)


def modifiers(words: Words) -> frozenset[str]:
    """Step over LOW_PRIORITY and the like, and return IGNORE if it is among them."""
    ignore = False
    while words.upper in _MODIFIERS or words.upper == "IGNORE":
        ignore |= words.upper == "IGNORE"
        words.step()
    return frozenset({"IGNORE"} if ignore else ())


def is_query(words: Words) -> bool:
    """Return whether a parenthesis holds a query."""
    ahead = Words(words.words, words.position)
    while ahead.kind is WordKind.L_PAREN:
        ahead.step()
    return ahead.upper in ("SELECT", "WITH", "TABLE", "VALUES")


def has_phrase(words: Words, *phrase: str) -> bool:
    """Return whether a phrase stands anywhere in the words that come next."""
    ahead = Words(words.words, words.position)
    while ahead.kind is not None:
        if ahead.accept(*phrase):
            return True
        ahead.step()
    return False


def clause(words: Words, starts: tuple[str, ...], ends: tuple[str, ...]) -> Words:
    """Step to the first of `starts` outside parentheses and return the words after it, until one of `ends`."""
    until(words, starts)
    if words.kind is None:
        return Words([])
    words.step()
    begin = words.position
    until(words, ends)
    return Words(words.words[begin : words.position])


def until(words: Words, ends: tuple[str, ...]) -> None:
    """Step to the first of `ends` outside parentheses, or to the end."""
    while words.kind is not None and words.upper not in ends:
        if words.kind is WordKind.L_PAREN:
            words.group()
        else:
            words.step()
