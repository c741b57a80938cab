"""
Statements as a log has them: what they do to definitions that are read along with it, and which change rows themselves.

Whoever reads the log as rows does not see what such a statement changes.
"""

from __future__ import annotations

import re

from ndb_formats.errors import FormatError, SchemaError
from ndb_formats.events.query_event import QueryEvent, session_of, takes_effect
from ndb_formats.schema.definitions import Definitions
from ndb_formats.schema.lexer import WordKind, Words, words_of
from ndb_formats.schema.session import Session
from ndb_formats.schema.statements import Statement, defines_tables
from ndb_formats.schema.table_body import take_name
from ndb_formats.schema.tables import full_name, split_full_name

# Functions may change rows, too, and then a SELECT or DO of them is logged.
_VERBS = ("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH", "SELECT", "DO ", "EXECUTE", "BEGIN NOT")
_LONGEST = max(map(len, _VERBS))
_CHANGING = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE"})
_MODIFIERS = frozenset({"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "HISTORY"})
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
_NAMES = (WordKind.WORD, WordKind.IDENTIFIER)
_JOINING = frozenset(
    {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "OUTER", "NATURAL", "STRAIGHT_JOIN", "ON", "USING", "PARTITION", "FOR"}
    | {"USE", "FORCE", "IGNORE", "LATERAL"}
)
_BEFORE_TABLE = frozenset({"JOIN", "STRAIGHT_JOIN", "LATERAL"})
_AFTER_TABLES = frozenset({"WHERE", "ORDER", "LIMIT", "RETURNING"})
_AFTER_DELETED = _AFTER_TABLES | {"USING", "PARTITION", "FOR"}

_Name = tuple[str, str]  # database and table


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


def may_change(text: str, table: str) -> bool:
    """
    Whether a statement that does not say which tables it changes may change one: it names it, and does not only call.

    Args:
        text: The statement.
        table: Name of the table, without its database.
    """
    if (_without_comments(text) or text).upper().startswith(_CALLS):
        return False
    return re.search(rf"(?<![\w$]){re.escape(table)}(?![\w$])", text, re.IGNORECASE) is not None


_CALLS = ("CALL", "SELECT", "DO ", "EXECUTE")


def changed_tables(text: str, database: str, session: Session) -> frozenset[str]:
    """
    Return ``database.table`` of every table that a statement changes itself, or may change.

    Args:
        text: The whole statement.
        database: Database that it ran in.
        session: Its session, which says how names are quoted.

    Returns:
        Where several tables are joined and the columns to set name none, all of them. Empty where the statement does
        not say: a CALL, or a SELECT of a function.
    """
    try:
        words = words_of(text, session, _HEAD)
        if words.upper in _NAMING_LATER:
            words = words_of(text, session)
        return frozenset(full_name(*each) for each in _targets(words, database))
    except SchemaError:
        return frozenset()


_HEAD = 64  # words that name the table of an INSERT or LOAD DATA; any number of values can follow
_NAMING_LATER = frozenset({"UPDATE", "DELETE", "WITH"})


def _targets(words: Words, database: str) -> list[_Name]:
    """Return the tables that a statement changes."""
    if words.accept("WITH"):
        _step_to(words, _CHANGING)
    if words.accept("LOAD"):
        while words.word and not words.accept("INTO", "TABLE"):
            words.step()
        return [take_name(words, database)]
    if words.accept("CREATE"):
        _step_to(words, frozenset({"TABLE"}))
        words.accept("TABLE")
        words.accept("IF", "NOT", "EXISTS")
        return [take_name(words, database)]
    verb = words.accept_any(_CHANGING)
    while words.accept_any(_MODIFIERS):
        pass
    if verb == "UPDATE":
        return _updated(words, database)
    if verb == "DELETE":
        return _deleted(words, database)
    words.accept("INTO")
    return [take_name(words, database)] if verb else []


def _updated(words: Words, database: str) -> list[_Name]:
    """Return the tables of an UPDATE whose columns it sets."""
    joined = _joined(words, database, frozenset({"SET"}))
    words.accept("SET")
    found: list[_Name] = []
    for item in _up_to(words, _AFTER_TABLES).items():
        path = _path(item)[:-1]  # without the column
        if not path:
            return list(dict.fromkeys(joined.values()))
        found.append(_named(path, joined, database))
    return found


def _deleted(words: Words, database: str) -> list[_Name]:
    """Return the tables of a DELETE: ``FROM t``, ``FROM t, u USING ...`` or ``t, u FROM ...``."""
    alone = words.accept("FROM")
    named = [
        _path(item) for item in _up_to(words, frozenset({"FROM", "USING"}) if not alone else _AFTER_DELETED).items()
    ]
    if alone and not words.accept("USING"):
        return [_named(named[0], {}, database)]
    words.accept("FROM")
    joined = _joined(words, database, _AFTER_TABLES)
    return [_named(path, joined, database) for path in named if path]


def _joined(words: Words, database: str, end: frozenset[str]) -> dict[str, _Name]:
    """Step over joined tables up to a word, and return these by alias or name in lower case; queries are left out."""
    found: dict[str, _Name] = {}
    expected = True  # whether a table comes next
    while words.word and words.upper not in end:
        if words.kind is WordKind.L_PAREN:
            inner = words.group()
            if inner.upper not in _QUERIES and expected:
                found |= _joined(inner, database, frozenset())
            expected = False
        elif expected and words.upper not in _BEFORE_TABLE:
            name = take_name(words, database)
            words.accept("AS")
            named = words.kind in _NAMES and words.upper not in _JOINING and words.upper not in end
            found[(words.step() if named else name[1]).lower()] = name
            expected = False
        else:
            expected = words.kind is WordKind.COMMA or words.upper in _BEFORE_TABLE
            words.step()
    return found


def _named(path: list[str], joined: dict[str, _Name], database: str) -> _Name:
    """Return the table that a name in a list of targets stands for: an alias, or a table."""
    if len(path) == 1 and path[0].lower() in joined:
        return joined[path[0].lower()]
    return (path[0], path[1]) if len(path) > 1 else (database, path[0])


def _path(words: Words) -> list[str]:
    """Return the parts of a name with dots, without a star at its end."""
    path = []
    while words.kind in _NAMES:
        path.append(words.step())
        if words.kind is not WordKind.DOT:
            break
        words.step()
    return path


def _up_to(words: Words, end: frozenset[str]) -> Words:
    """Step to one of some words outside parentheses, and return what comes before it."""
    start = words.position
    _step_to(words, end)
    return Words(words.words[start : words.position])


def _step_to(words: Words, end: frozenset[str]) -> None:
    while words.word and words.upper not in end:
        if words.kind is WordKind.L_PAREN:
            words.group()
        else:
            words.step()


def statement_of(query: QueryEvent) -> Statement | None:
    """Return the statement of an event with its session; None for one that changes no definition there."""
    if query.error or not defines_tables(query.statement) or not takes_effect(query):
        return None
    return Statement(query.statement, query.database, session_of(query))


def definitions_following(known: Definitions, statement: Statement) -> Definitions:
    """
    Return definitions after a statement.

    A table that it creates is what it says, whatever was known of it before; if that cannot be read, the table is one
    that is not known.

    Raises:
        FormatError: What it does to a known table cannot be followed; the error shows it.
    """
    try:
        return known.after(statement)[0]
    except FormatError as error:
        made = _created(_without(known, error.table), statement)
        if error.table is not None and (_knows(made, error.table) or not _knows(known, error.table)):
            return made
        raise statement.shown_in(error) from None


def _knows(known: Definitions, table: str) -> bool:
    return known.find(*split_full_name(table)) is not None


def _created(known: Definitions, statement: Statement) -> Definitions:
    """Return definitions after a statement, as they are if it cannot be followed."""
    try:
        return known.after(statement)[0]
    except FormatError:
        return known


def definitions_without_faults(known: Definitions, statement: Statement) -> Definitions:
    """Return `definitions_following`; a table whose statement cannot be followed is not known afterwards."""
    try:
        return definitions_following(known, statement)
    except FormatError as error:
        return _created(_without(known, error.table), statement)


def _without(known: Definitions, table: str | None) -> Definitions:
    found = None if table is None else known.find(*split_full_name(table))  # in other letters, if there is no other
    return known if found is None else known.without(found)
