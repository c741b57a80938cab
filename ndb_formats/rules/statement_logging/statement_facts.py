"""
What the words of one statement say: what it does, the tables that it writes and reads, and what it uses.

Nothing here knows a table's definition or the session; `properties` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import attrs
from sqlglot.tokenizer_core import TokenType

from ndb_formats.errors import SchemaError
from ndb_formats.rules.statement_logging.sql_names import LOGGED_VARIABLES
from ndb_formats.rules.statement_logging.sql_text import SqlStatement
from ndb_formats.rules.statement_logging.table_references import (
    Reference,
    called_functions,
    table_references,
    unsafe_variables,
    with_names,
)
from ndb_formats.schema.sql_words import Words

__all__ = ["Action", "StatementFacts", "statement_facts"]


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


_PHRASES = (
    *(("ON", "DUPLICATE", "KEY", "UPDATE"), ("SKIP", "LOCKED"), ("IF", "NOT", "EXISTS"), ("IF", "EXISTS")),
    *(("LIMIT",), ("NOWAIT",), ("MATCH",), ("DEFAULT",), ("IGNORE",)),
)
_MODIFIERS = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "CONCURRENT", "LOCAL")
_NEVER = frozenset({"FALSE", "0"})


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
    if reader is None:
        query = words.upper in ("SELECT", "TABLE", "VALUES", "DO") or words.kind is TokenType.L_PAREN
        return StatementFacts(Action.QUERY if query else Action.OTHER, reads=tuple(table_references(words)))
    words.step()
    return reader(words)


def _skip_with(words: Words) -> None:
    words.step()
    words.accept("RECURSIVE")
    while True:
        words.step()
        if words.kind is TokenType.L_PAREN:
            words.group()
        words.accept("AS")
        words.group()
        if words.kind is not TokenType.COMMA:
            return
        words.step()


def _modifiers(words: Words) -> frozenset[str]:
    ignore = False
    while words.upper in _MODIFIERS or words.upper == "IGNORE":
        ignore |= words.upper == "IGNORE"
        words.step()
    return frozenset({"IGNORE"} if ignore else ())


def _table(words: Words) -> Reference:
    database, name = "", words.step()
    if words.kind is TokenType.DOT:
        words.step()
        database, name = name, words.step()
    return Reference(database, name, name)


def _insert(words: Words) -> StatementFacts:
    return _insertion(words, Action.INSERT)


def _replace(words: Words) -> StatementFacts:
    return _insertion(words, Action.REPLACE)


def _insertion(words: Words, action: Action) -> StatementFacts:
    marks = _modifiers(words)
    words.accept("INTO")
    target = _table(words)
    if words.accept("PARTITION"):
        words.group()
    columns = None
    if words.kind is TokenType.L_PAREN and not _is_query(words):
        columns = tuple(part.step() for part in words.group().items() if part.word)
    if words.upper == "SET":
        columns = tuple(_assignments(Words(words.words[words.position + 1 :])))
    source = words.upper in ("SELECT", "WITH", "TABLE") or words.kind is TokenType.L_PAREN
    rows = None
    # REPLACE by an equal row is not logged.
    if action is Action.INSERT and not source and "IGNORE" not in marks and not _has(words, "ON", "DUPLICATE"):
        rows = True
    return StatementFacts(
        action,
        (target,),
        tuple(table_references(words)),
        columns=columns,
        marks=marks | ({"SELECT"} if source else set()),
        rows=rows,
    )


def _is_query(words: Words) -> bool:
    """Return whether a parenthesis holds a query."""
    ahead = Words(words.words, words.position)
    while ahead.kind is TokenType.L_PAREN:
        ahead.step()
    return ahead.upper in ("SELECT", "WITH", "TABLE", "VALUES")


def _has(words: Words, *phrase: str) -> bool:
    ahead = Words(words.words, words.position)
    while ahead.kind is not None:
        if ahead.accept(*phrase):
            return True
        ahead.step()
    return False


def _assignments(words: Words) -> list[str]:
    """Return the columns that the assignments after SET name, until ON DUPLICATE KEY UPDATE."""
    return [column for _, column in _assigned(words)]


def _assigned(words: Words) -> list[tuple[str, str]]:
    found = []
    for part in words.items():
        names = [text for text, kind in part.words[:5] if kind is not TokenType.DOT]
        dots = sum(kind is TokenType.DOT for _, kind in part.words[:4])
        if names:
            found.append(((names[dots - 1] if dots else ""), names[dots]))
    return found


def _clause(words: Words, starts: tuple[str, ...], ends: tuple[str, ...]) -> Words:
    """Step to the first of `starts` outside parentheses and return the words after it, until one of `ends`."""
    _until(words, starts)
    if words.kind is None:
        return Words([])
    words.step()
    begin = words.position
    _until(words, ends)
    return Words(words.words[begin : words.position])


def _until(words: Words, ends: tuple[str, ...]) -> None:
    while words.kind is not None and words.upper not in ends:
        if words.kind is TokenType.L_PAREN:
            words.group()
        else:
            words.step()


def _rows_of_change(words: Words) -> bool | None:
    """Return False where the text says that no row matches, such as LIMIT 0 or WHERE FALSE; else None."""
    position = words.position
    where = _clause(Words(words.words, position), ("WHERE",), ("ORDER", "LIMIT")).words
    limit = _clause(Words(words.words, position), ("LIMIT",), ()).words
    never = [[text.upper() for text, _ in part] for part in (where, limit)]
    false = len(never[0]) == 1 and never[0][0] in _NEVER
    compared = len(never[0]) == 3 and never[0][1] == "=" and where[0][1] is where[2][1] is TokenType.NUMBER
    different = compared and never[0][0] != never[0][2]
    return False if false or different or never[1] == ["0"] else None


def _update(words: Words) -> StatementFacts:
    marks = _modifiers(words)
    start = words.position
    _until(words, ("SET",))
    listed = Words(words.words[start : words.position])
    rows = _rows_of_change(words)
    assigned = _clause(words, ("SET",), ("WHERE", "ORDER", "LIMIT"))
    targets = tuple(table_references(Words(listed.words), in_list=True))
    tail = Words(words.words[start:])
    _until(tail, ("SET",))
    return StatementFacts(
        Action.UPDATE,
        targets,
        tuple(table_references(tail)),
        assigned=tuple(_assigned(Words(assigned.words))),
        marks=marks,
        rows=rows,
    )


def _delete(words: Words) -> StatementFacts:
    marks = _modifiers(words)
    rows = _rows_of_change(words)
    start = words.position
    ahead = Words(words.words, words.position)
    if ahead.accept("FROM"):
        first = _named_targets(ahead, ("USING", "WHERE", "ORDER", "LIMIT"))
        if ahead.upper == "USING":
            ahead.step()
            listed = tuple(table_references(Words(ahead.words[ahead.position :]), in_list=True))
            return _deletion(first, listed, marks, rows)
        references = tuple(table_references(Words([("DELETE", TokenType.DELETE), *words.words[start:]])))
        return StatementFacts(Action.DELETE, references[:1], references[1:], marks=marks, rows=rows)
    first = _named_targets(ahead, ("FROM",))
    ahead.step()
    listed = tuple(table_references(Words(ahead.words[ahead.position :]), in_list=True))
    return _deletion(first, listed, marks, rows)


def _named_targets(words: Words, ends: tuple[str, ...]) -> list[str]:
    """Step over the tables that a DELETE of several tables names, and return their names or aliases."""
    start = words.position
    _until(words, ends)
    return [
        [text for text, kind in part.words if text != "*" and kind is not TokenType.DOT][-1]
        for part in Words(words.words[start : words.position]).items()
        if part.words
    ]


def _deletion(
    names: list[str], listed: tuple[Reference, ...], marks: frozenset[str], rows: bool | None
) -> StatementFacts:
    lower = {name.lower() for name in names}
    targets = tuple(each for each in listed if each.alias.lower() in lower)
    reads = tuple(each for each in listed if each.alias.lower() not in lower)
    return StatementFacts(Action.DELETE, targets, reads, marks=marks, rows=rows)


def _load(words: Words) -> StatementFacts:
    if not (words.accept("DATA") or words.accept("XML")):
        return StatementFacts(Action.OTHER)
    _until(words, ("TABLE",))
    words.step()
    return StatementFacts(Action.LOAD, (_table(words),), tuple(table_references(words)))


def _create(words: Words) -> StatementFacts:
    words.accept("OR", "REPLACE")
    temporary = words.accept("TEMPORARY")
    if words.accept("TABLE"):
        words.accept("IF", "NOT", "EXISTS")
        target = _table(words)
        marks = frozenset({"TEMPORARY"}) if temporary else frozenset[str]()
        if words.kind is TokenType.L_PAREN and not _is_query(words):
            words.group()
        before = words.position
        _until(words, ("SELECT", "WITH", "TABLE"))
        if words.kind is not None or _has_group_query(words, before):
            options = {text.upper() for text, _ in words.words[before : words.position]}
            marks |= {"SELECT"} | (options & {"REPLACE"})
        tail = Words(words.words[before:])
        return StatementFacts(Action.CREATE_TABLE, (target,), tuple(table_references(tail)), marks=marks)
    index = words.upper in ("INDEX", "UNIQUE", "FULLTEXT", "SPATIAL") and _has(words, "INDEX")
    if index:
        _until(words, ("ON",))
        words.step()
        return StatementFacts(Action.TABLE_DEFINITION, (_table(words),))
    unlogged = words.upper in ("SERVER", "RESOURCE", "SPATIAL")
    return StatementFacts(Action.OTHER if unlogged else Action.DEFINITION)


def _has_group_query(words: Words, start: int) -> bool:
    ahead = Words(words.words, start)
    while ahead.kind is not None:
        if ahead.kind is TokenType.L_PAREN and _is_query(ahead):
            return True
        ahead.step()
    return False


def _drop(words: Words) -> StatementFacts:
    temporary = words.accept("TEMPORARY")
    if words.accept("TABLE") or words.accept("TABLES"):
        words.accept("IF", "EXISTS")
        targets = tuple(_table(part) for part in words.rest().items())
        marks = frozenset({"TEMPORARY"}) if temporary else frozenset[str]()
        return StatementFacts(Action.TABLE_DEFINITION, targets, marks=marks | {"DROP"})
    if words.accept("INDEX"):
        _until(words, ("ON",))
        words.step()
        return StatementFacts(Action.TABLE_DEFINITION, (_table(words),))
    unlogged = words.upper in ("SERVER", "RESOURCE", "SPATIAL", "PREPARE")
    return StatementFacts(Action.OTHER if unlogged else Action.DEFINITION)


def _alter(words: Words) -> StatementFacts:
    if words.accept("TABLE"):
        return StatementFacts(Action.TABLE_DEFINITION, (_table(words),), marks=frozenset({"ALTER"}))
    unlogged = words.upper in ("SERVER", "RESOURCE", "INSTANCE")
    return StatementFacts(Action.OTHER if unlogged else Action.DEFINITION)


def _truncate(words: Words) -> StatementFacts:
    words.accept("TABLE")
    return StatementFacts(Action.TABLE_DEFINITION, (_table(words),))


def _maintain(words: Words) -> StatementFacts:
    """ANALYZE, OPTIMIZE and REPAIR TABLE."""
    local = words.upper in ("LOCAL", "NO_WRITE_TO_BINLOG")
    return StatementFacts(Action.OTHER if local else Action.DEFINITION)


def _flush(words: Words) -> StatementFacts:
    local = words.upper in ("LOCAL", "NO_WRITE_TO_BINLOG")
    locks = _has(words, "WITH", "READ", "LOCK") or _has(words, "FOR", "EXPORT")
    logs = words.upper in ("LOGS", "BINARY")
    return StatementFacts(Action.OTHER if local or locks or logs else Action.DEFINITION)


def _set(words: Words) -> StatementFacts:
    if words.upper == "PASSWORD" or words.accept("DEFAULT", "ROLE"):
        return StatementFacts(Action.DEFINITION)
    return StatementFacts(Action.CONTROL, reads=tuple(table_references(words)))


def _always(action: Action) -> Callable[[Words], StatementFacts]:
    return lambda words: StatementFacts(action)


_READERS: dict[str, Callable[[Words], StatementFacts]] = {
    "INSERT": _insert,
    "REPLACE": _replace,
    "UPDATE": _update,
    "DELETE": _delete,
    "LOAD": _load,
    "CREATE": _create,
    "DROP": _drop,
    "ALTER": _alter,
    "TRUNCATE": _truncate,
    **dict.fromkeys(("ANALYZE", "OPTIMIZE", "REPAIR"), _maintain),
    "FLUSH": _flush,
    "SET": _set,
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
