"""
Statements that define something, maintain tables, or set something.
"""

from __future__ import annotations

from ndb_formats.rules.statement_logging.clauses import has_phrase, is_query, table_name, until
from ndb_formats.rules.statement_logging.facts import Action, StatementFacts
from ndb_formats.rules.statement_logging.table_references import table_references
from ndb_formats.schema.lexer import WordKind
from ndb_formats.schema.sql_words import Words

__all__ = ["read_alter", "read_create", "read_drop", "read_flush", "read_maintain", "read_set", "read_truncate"]


def read_create(words: Words) -> StatementFacts:
    """Read what follows CREATE."""
    words.accept("OR", "REPLACE")
    temporary = words.accept("TEMPORARY")
    if words.accept("TABLE"):
        words.accept("IF", "NOT", "EXISTS")
        target = table_name(words)
        marks = frozenset({"TEMPORARY"}) if temporary else frozenset[str]()
        if words.kind is WordKind.L_PAREN and not is_query(words):
            words.group()
        before = words.position
        until(words, ("SELECT", "WITH", "TABLE"))
        if words.kind is not None or _has_group_query(words, before):
            options = {text.upper() for text, _ in words.words[before : words.position]}
            marks |= {"SELECT"} | (options & {"REPLACE"})
        tail = Words(words.words[before:])
        return StatementFacts(Action.CREATE_TABLE, (target,), tuple(table_references(tail)), marks=marks)
    index = words.upper in ("INDEX", "UNIQUE", "FULLTEXT", "SPATIAL") and has_phrase(words, "INDEX")
    if index:
        until(words, ("ON",))
        words.step()
        return StatementFacts(Action.TABLE_DEFINITION, (table_name(words),))
    unlogged = words.upper in ("SERVER", "RESOURCE", "SPATIAL")
    return StatementFacts(Action.OTHER if unlogged else Action.DEFINITION)


def _has_group_query(words: Words, start: int) -> bool:
    ahead = Words(words.words, start)
    while ahead.kind is not None:
        if ahead.kind is WordKind.L_PAREN and is_query(ahead):
            return True
        ahead.step()
    return False


def read_drop(words: Words) -> StatementFacts:
    """Read what follows DROP."""
    temporary = words.accept("TEMPORARY")
    if words.accept("TABLE") or words.accept("TABLES"):
        words.accept("IF", "EXISTS")
        targets = tuple(table_name(part) for part in words.rest().items())
        marks = frozenset({"TEMPORARY"}) if temporary else frozenset[str]()
        return StatementFacts(Action.TABLE_DEFINITION, targets, marks=marks | {"DROP"})
    if words.accept("INDEX"):
        until(words, ("ON",))
        words.step()
        return StatementFacts(Action.TABLE_DEFINITION, (table_name(words),))
    unlogged = words.upper in ("SERVER", "RESOURCE", "SPATIAL", "PREPARE")
    return StatementFacts(Action.OTHER if unlogged else Action.DEFINITION)


def read_alter(words: Words) -> StatementFacts:
    """Read what follows ALTER."""
    if words.accept("TABLE"):
        return StatementFacts(Action.TABLE_DEFINITION, (table_name(words),), marks=frozenset({"ALTER"}))
    unlogged = words.upper in ("SERVER", "RESOURCE", "INSTANCE")
    return StatementFacts(Action.OTHER if unlogged else Action.DEFINITION)


def read_truncate(words: Words) -> StatementFacts:
    """Read what follows TRUNCATE."""
    words.accept("TABLE")
    return StatementFacts(Action.TABLE_DEFINITION, (table_name(words),))


def read_maintain(words: Words) -> StatementFacts:
    """Read what follows ANALYZE, OPTIMIZE or REPAIR."""
    local = words.upper in ("LOCAL", "NO_WRITE_TO_BINLOG")
    return StatementFacts(Action.OTHER if local else Action.DEFINITION)


def read_flush(words: Words) -> StatementFacts:
    """Read what follows FLUSH: local ones, locks and FLUSH LOGS are not logged."""
    local = words.upper in ("LOCAL", "NO_WRITE_TO_BINLOG")
    locks = has_phrase(words, "WITH", "READ", "LOCK") or has_phrase(words, "FOR", "EXPORT")
    logs = words.upper in ("LOGS", "BINARY")
    return StatementFacts(Action.OTHER if local or locks or logs else Action.DEFINITION)


def read_set(words: Words) -> StatementFacts:
    """Read what follows SET: passwords and default roles are definitions."""
    if words.upper == "PASSWORD" or words.accept("DEFAULT", "ROLE"):
        return StatementFacts(Action.DEFINITION)
    return StatementFacts(Action.CONTROL, reads=tuple(table_references(words)))
