"""
INSERT, REPLACE, UPDATE, DELETE and LOAD DATA: the tables that they write and read.
"""

from __future__ import annotations

from ndb_formats.rules.statement_logging.clauses import clause, has_phrase, is_query, modifiers, table_name, until
from ndb_formats.rules.statement_logging.facts import Action, StatementFacts
from ndb_formats.rules.statement_logging.table_references import Reference, table_references
from ndb_formats.schema.lexer import WordKind
from ndb_formats.schema.sql_words import Words

__all__ = ["read_delete", "read_insert", "read_load", "read_replace", "read_update"]

_NEVER = frozenset({"FALSE", "0"})


def read_insert(words: Words) -> StatementFacts:
    """Read what follows INSERT."""
    return _insertion(words, Action.INSERT)


def read_replace(words: Words) -> StatementFacts:
    """Read what follows REPLACE."""
    return _insertion(words, Action.REPLACE)


def _insertion(words: Words, action: Action) -> StatementFacts:
    marks = modifiers(words)
    words.accept("INTO")
    target = table_name(words)
    if words.accept("PARTITION"):
        words.group()
    columns = None
    if words.kind is WordKind.L_PAREN and not is_query(words):
        columns = tuple(part.step() for part in words.group().items() if part.word)
    if words.upper == "SET":
        columns = tuple(_assignments(Words(words.words[words.position + 1 :])))
    source = words.upper in ("SELECT", "WITH", "TABLE") or words.kind is WordKind.L_PAREN
    rows = None
    # REPLACE by an equal row is not logged.
    if action is Action.INSERT and not source and "IGNORE" not in marks and not has_phrase(words, "ON", "DUPLICATE"):
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
    marks = modifiers(words)
    start = words.position
    until(words, ("SET",))
    listed = Words(words.words[start : words.position])
    rows = _rows_of_change(words)
    assigned = clause(words, ("SET",), ("WHERE", "ORDER", "LIMIT"))
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
    marks = modifiers(words)
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
    where = clause(Words(words.words, position), ("WHERE",), ("ORDER", "LIMIT")).words
    limit = clause(Words(words.words, position), ("LIMIT",), ()).words
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
