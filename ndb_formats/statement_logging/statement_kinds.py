"""
What the words of a statement say, as data; a reader for each kind of statement.

Changes of rows have tables that they write and read. Other statements define something, maintain tables, or set
something.
"""

from __future__ import annotations

from enum import Enum

import attrs

from ndb_formats.schema.lexer import WordKind, Words
from ndb_formats.statement_logging.references import Reference, table_references


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


_MODIFIERS = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "CONCURRENT", "LOCAL")


def table_name(words: Words) -> Reference:
    """Step over the name of a table."""
    database, name = "", words.step()
    if words.kind is WordKind.DOT:
        words.step()
        database, name = name, words.step()
    return Reference(database, name, name)


def _modifiers(words: Words) -> frozenset[str]:
    """Step over LOW_PRIORITY and the like, and return IGNORE if it is among them."""
    ignore = False
    while words.upper in _MODIFIERS or words.upper == "IGNORE":
        ignore |= words.upper == "IGNORE"
        words.step()
    return frozenset({"IGNORE"} if ignore else ())


def _is_query(words: Words) -> bool:
    """Return whether a parenthesis holds a query."""
    ahead = Words(words.words, words.position)
    while ahead.kind is WordKind.L_PAREN:
        ahead.step()
    return ahead.upper in ("SELECT", "WITH", "TABLE", "VALUES")


def _has_phrase(words: Words, *phrase: str) -> bool:
    """Return whether a phrase stands anywhere in the words that come next."""
    ahead = Words(words.words, words.position)
    while ahead.kind is not None:
        if ahead.accept(*phrase):
            return True
        ahead.step()
    return False


def _clause(words: Words, starts: tuple[str, ...], ends: tuple[str, ...]) -> Words:
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


_NEVER = frozenset({"FALSE", "0"})


def read_insert(words: Words) -> StatementFacts:
    """Read what follows INSERT."""
    return _insertion(words, Action.INSERT)


def read_replace(words: Words) -> StatementFacts:
    """Read what follows REPLACE."""
    return _insertion(words, Action.REPLACE)


def _insertion(words: Words, action: Action) -> StatementFacts:
    marks = _modifiers(words)
    words.accept("INTO")
    target = table_name(words)
    if words.accept("PARTITION"):
        words.group()
    columns = None
    if words.kind is WordKind.L_PAREN and not _is_query(words):
        columns = tuple(part.step() for part in words.group().items() if part.word)
    if words.upper == "SET":
        columns = tuple(_assignments(Words(words.words[words.position + 1 :])))
    source = words.upper in ("SELECT", "WITH", "TABLE") or words.kind is WordKind.L_PAREN
    rows = None
    # REPLACE by an equal row is not logged.
    if action is Action.INSERT and not source and "IGNORE" not in marks and not _has_phrase(words, "ON", "DUPLICATE"):
        rows = True
    return StatementFacts(
        action,
        (target,),
        tuple(table_references(words)),
        columns=columns,
        marks=marks | ({"SELECT"} if source else set()),
        rows=rows,
    )


def _assignments(words: Words) -> list[str]:
    """Return the columns that the assignments after SET name, until ON DUPLICATE KEY UPDATE."""
    return [column for _, column in _assigned(words)]


def _assigned(words: Words) -> list[tuple[str, str]]:
    found = []
    for part in words.items():
        names = [text for text, kind in part.words[:5] if kind is not WordKind.DOT]
        dots = sum(kind is WordKind.DOT for _, kind in part.words[:4])
        if names:
            found.append(((names[dots - 1] if dots else ""), names[dots]))
    return found


def read_update(words: Words) -> StatementFacts:
    """Read what follows UPDATE."""
    marks = _modifiers(words)
    start = words.position
    until(words, ("SET",))
    listed = Words(words.words[start : words.position])
    rows = _rows_of_change(words)
    assigned = _clause(words, ("SET",), ("WHERE", "ORDER", "LIMIT"))
    targets = tuple(table_references(Words(listed.words), in_list=True))
    tail = Words(words.words[start:])
    until(tail, ("SET",))
    return StatementFacts(
        Action.UPDATE,
        targets,
        tuple(table_references(tail)),
        assigned=tuple(_assigned(Words(assigned.words))),
        marks=marks,
        rows=rows,
    )


def read_delete(words: Words) -> StatementFacts:
    """Read what follows DELETE."""
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
        references = tuple(table_references(Words([("DELETE", WordKind.WORD), *words.words[start:]])))
        return StatementFacts(Action.DELETE, references[:1], references[1:], marks=marks, rows=rows)
    first = _named_targets(ahead, ("FROM",))
    ahead.step()
    listed = tuple(table_references(Words(ahead.words[ahead.position :]), in_list=True))
    return _deletion(first, listed, marks, rows)


def _named_targets(words: Words, ends: tuple[str, ...]) -> list[str]:
    """Step over the tables that a DELETE of several tables names, and return their names or aliases."""
    start = words.position
    until(words, ends)
    return [
        names[-1]
        for part in Words(words.words[start : words.position]).items()
        if (names := [text for text, kind in part.words if text != "*" and kind is not WordKind.DOT])
    ]


def _deletion(
    names: list[str], listed: tuple[Reference, ...], marks: frozenset[str], rows: bool | None
) -> StatementFacts:
    lower = {name.lower() for name in names}
    targets = tuple(each for each in listed if each.alias.lower() in lower)
    reads = tuple(each for each in listed if each.alias.lower() not in lower)
    return StatementFacts(Action.DELETE, targets, reads, marks=marks, rows=rows)


def _rows_of_change(words: Words) -> bool | None:
    """Return False where the text says that no row matches, such as LIMIT 0 or WHERE FALSE; else None."""
    position = words.position
    where = _clause(Words(words.words, position), ("WHERE",), ("ORDER", "LIMIT")).words
    limit = _clause(Words(words.words, position), ("LIMIT",), ()).words
    never = [[text.upper() for text, _ in part] for part in (where, limit)]
    false = len(never[0]) == 1 and never[0][0] in _NEVER
    compared = len(never[0]) == 3 and never[0][1] == "=" and where[0][1] is where[2][1] is WordKind.NUMBER
    different = compared and never[0][0] != never[0][2]
    return False if false or different or never[1] == ["0"] else None


def read_load(words: Words) -> StatementFacts:
    """Read what follows LOAD: DATA or XML change rows."""
    if not (words.accept("DATA") or words.accept("XML")):
        return StatementFacts(Action.OTHER)
    until(words, ("TABLE",))
    words.step()
    return StatementFacts(Action.LOAD, (table_name(words),), tuple(table_references(words)))


def read_create(words: Words) -> StatementFacts:
    """Read what follows CREATE."""
    words.accept("OR", "REPLACE")
    temporary = words.accept("TEMPORARY")
    if words.accept("TABLE"):
        words.accept("IF", "NOT", "EXISTS")
        target = table_name(words)
        marks = frozenset({"TEMPORARY"}) if temporary else frozenset[str]()
        if words.kind is WordKind.L_PAREN and not _is_query(words):
            words.group()
        before = words.position
        until(words, ("SELECT", "WITH", "TABLE"))
        if words.kind is not None or _has_group_query(words, before):
            options = {text.upper() for text, _ in words.words[before : words.position]}
            marks |= {"SELECT"} | (options & {"REPLACE"})
        tail = Words(words.words[before:])
        return StatementFacts(Action.CREATE_TABLE, (target,), tuple(table_references(tail)), marks=marks)
    index = words.upper in ("INDEX", "UNIQUE", "FULLTEXT", "SPATIAL") and _has_phrase(words, "INDEX")
    if index:
        until(words, ("ON",))
        words.step()
        return StatementFacts(Action.TABLE_DEFINITION, (table_name(words),))
    unlogged = words.upper in ("SERVER", "RESOURCE", "SPATIAL")
    return StatementFacts(Action.OTHER if unlogged else Action.DEFINITION)


def _has_group_query(words: Words, start: int) -> bool:
    ahead = Words(words.words, start)
    while ahead.kind is not None:
        if ahead.kind is WordKind.L_PAREN and _is_query(ahead):
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
    locks = _has_phrase(words, "WITH", "READ", "LOCK") or _has_phrase(words, "FOR", "EXPORT")
    logs = words.upper in ("LOGS", "BINARY")
    return StatementFacts(Action.OTHER if local or locks or logs else Action.DEFINITION)


def read_set(words: Words) -> StatementFacts:
    """Read what follows SET: passwords and default roles are definitions."""
    if words.upper == "PASSWORD" or words.accept("DEFAULT", "ROLE"):
        return StatementFacts(Action.DEFINITION)
    return StatementFacts(Action.CONTROL, reads=tuple(table_references(words)))
