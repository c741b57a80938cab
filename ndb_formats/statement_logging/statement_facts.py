"""
What the words of one statement say: what it does, the tables that it writes and reads, and what it uses.

Nothing here knows a table's definition or the session; `table_use` and `properties` add them.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.schema.lexer import WordKind, Words
from ndb_formats.statement_logging.references import (
    LOGGED_VARIABLES,
    Reference,
    called_functions,
    table_references,
    unsafe_variables,
    with_names,
)
from ndb_formats.statement_logging.sql_text import SqlStatement
from ndb_formats.statement_logging.statement_kinds import (
    Action,
    StatementFacts,
    read_alter,
    read_create,
    read_delete,
    read_drop,
    read_flush,
    read_insert,
    read_load,
    read_maintain,
    read_replace,
    read_set,
    read_truncate,
    read_update,
)

_PHRASES = (
    *(("ON", "DUPLICATE", "KEY", "UPDATE"), ("SKIP", "LOCKED"), ("IF", "NOT", "EXISTS"), ("IF", "EXISTS")),
    *(("LIMIT",), ("NOWAIT",), ("MATCH",), ("DEFAULT",), ("IGNORE",)),
)
_WITH_TARGETS = frozenset({Action.INSERT, Action.REPLACE, Action.UPDATE, Action.DELETE, Action.LOAD})
_NEVER_LOGGED = frozenset({
    "CACHE", "CHANGE", "CHECK", "CHECKSUM", "CLONE", "DESC", "DESCRIBE", "EXPLAIN", "GET", "HANDLER", "HELP", "IMPORT",
    "INSTALL", "KILL", "PURGE", "RESET", "RESIGNAL", "RESTART", "SHOW", "SHUTDOWN", "SIGNAL", "STOP", "UNINSTALL",
    "CLOSE", "DECLARE", "FETCH", "ITERATE", "LEAVE", "OPEN",
})  # fmt: skip


def statement_facts(statement: SqlStatement) -> StatementFacts:
    """Return what the words of a statement say; its action is UNKNOWN if they cannot be read."""
    words = statement.words()
    try:
        facts = _read(words)
    except SchemaError:
        facts = StatementFacts(Action.UNKNOWN)
    content = statement.words()
    ctes = with_names(content)
    names = {(target.database, target.name) for target in facts.targets} if facts.action is not Action.CALL else set()
    return attrs.evolve(
        facts,
        targets=_without(ctes, facts.targets),
        reads=_without(ctes, facts.reads),
        functions=tuple(
            (database, name)
            for database, name in called_functions(content)
            if (database, name) not in names and (database or name.lower() not in ctes)
        ),
        variables=tuple(unsafe_variables(content, LOGGED_VARIABLES)),
        marks=facts.marks | _marks(content),
    )


def _without(ctes: frozenset[str], references: tuple[Reference, ...]) -> tuple[Reference, ...]:
    return tuple(each for each in references if each.database or each.name.lower() not in ctes)


def _marks(words: Words) -> frozenset[str]:
    found = set()
    while words.word or words.kind is not None:
        phrase = next((each for each in _PHRASES if words.accept(*each)), None)
        if phrase is None:
            words.step()
        else:
            found.add(" ".join(phrase))
    return frozenset(found)


def _read(words: Words) -> StatementFacts:
    while words.upper == "WITH":  # its common table expressions are queries
        _skip_with(words)
    reader = _READERS.get(words.upper)
    if reader is not None:
        words.step()
        facts = reader(words)
        return facts if facts.targets or facts.action not in _WITH_TARGETS else StatementFacts(Action.UNKNOWN)
    if words.upper in ("SELECT", "TABLE", "VALUES", "DO") or words.kind is WordKind.L_PAREN:
        return StatementFacts(Action.QUERY, reads=tuple(table_references(words)))
    return StatementFacts(Action.OTHER if words.upper in _NEVER_LOGGED else Action.UNKNOWN)


def _skip_with(words: Words) -> None:
    words.step()
    words.accept("RECURSIVE")
    while True:
        words.step()
        if words.kind is WordKind.L_PAREN:
            words.group()
        words.accept("AS")
        words.group()
        if words.kind is not WordKind.COMMA:
            return
        words.step()


def _always(action: Action) -> Callable[[Words], StatementFacts]:
    return lambda words: StatementFacts(action)


_READERS: dict[str, Callable[[Words], StatementFacts]] = {
    "INSERT": read_insert,
    "REPLACE": read_replace,
    "UPDATE": read_update,
    "DELETE": read_delete,
    "LOAD": read_load,
    "CREATE": read_create,
    "DROP": read_drop,
    "ALTER": read_alter,
    "TRUNCATE": read_truncate,
    **dict.fromkeys(("ANALYZE", "OPTIMIZE", "REPAIR"), read_maintain),
    "FLUSH": read_flush,
    "SET": read_set,
    "CALL": _always(Action.CALL),
    "BINLOG": _always(Action.BINLOG),
    **dict.fromkeys(("RENAME", "GRANT", "REVOKE"), _always(Action.DEFINITION)),
    **dict.fromkeys(
        (
            *("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA", "LOCK", "UNLOCK", "USE"),
            *("PREPARE", "EXECUTE", "DEALLOCATE"),
        ),
        _always(Action.CONTROL),
    ),
}
