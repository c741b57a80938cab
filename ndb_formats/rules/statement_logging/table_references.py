"""
The tables, functions and system variables that the words of a statement name.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ndb_formats.schema.lexer import WordKind
from ndb_formats.schema.sql_words import Words

__all__ = ["Reference", "called_functions", "table_references", "unsafe_variables", "with_names"]

_QUERY_STARTS = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LIST_ENDS = _words("""
    WHERE GROUP HAVING WINDOW ORDER LIMIT FOR LOCK INTO UNION EXCEPT INTERSECT SET PROCEDURE SELECT VALUES
""")
_JOINS = frozenset({"JOIN", "STRAIGHT_JOIN"})
_NO_ALIAS = _LIST_ENDS | _JOINS | _words("ON USING NATURAL INNER CROSS LEFT RIGHT OUTER USE FORCE IGNORE PARTITION AS")
_LITERALS = frozenset({WordKind.STRING, WordKind.NUMBER})


@attrs.frozen
class Reference:
    """
    A table that a statement names.

    Attributes:
        database: Its database; empty for the default one.
        name: Its name.
        alias: The name that it has in the statement.
    """

    database: str
    name: str
    alias: str


def with_names(words: Words) -> frozenset[str]:
    """Return the names of the common table expressions of a statement, in lower case."""
    found: set[str] = set()
    content = words.words
    for position, (word, kind) in enumerate(content):
        # WITH name [(columns)] AS ( ... ), name AS ( ...
        following = content[position + 1][1] if position + 1 < len(content) else None
        if kind in _LITERALS or word.upper() != "AS" or following is not WordKind.L_PAREN or position == 0:
            continue
        start = position - 1
        if content[start][1] is WordKind.R_PAREN:
            while start > 0 and content[start][1] is not WordKind.L_PAREN:
                start -= 1
            start -= 1
        if start > 0 and content[start - 1][0].upper() in ("WITH", "RECURSIVE", ","):
            found.add(content[start][0].lower())
    return frozenset(found)


def table_references(words: Words, *, in_list: bool = False) -> Iterator[Reference]:
    """
    Yield the tables in the FROM clauses of the words, those of subqueries among them.

    Args:
        words: The words of a statement or of a part of it.
        in_list: Whether they begin with a list of tables, as after UPDATE.
    """
    query = in_list or words.upper in _QUERY_STARTS | {"DELETE"} or words.kind is WordKind.L_PAREN
    expected = in_list
    while words.word or words.kind is not None:
        upper = words.upper
        if words.kind is WordKind.L_PAREN:
            group = words.group()
            nested_list = expected and group.upper not in _QUERY_STARTS
            yield from table_references(group, in_list=nested_list)
            expected = False
        elif expected and upper == "LATERAL":
            words.step()
        elif expected and words.kind not in (WordKind.COMMA, WordKind.DOT):
            yield from _reference(words)
            expected = False
        else:
            words.step()
            if query and (upper in ("FROM", "TABLE") or (upper in _JOINS and in_list)):
                in_list = expected = True
            elif words.words[words.position - 1][1] is WordKind.COMMA and in_list:
                expected = True
            elif upper in _LIST_ENDS:
                in_list = False
            query = query or upper in _QUERY_STARTS


def _reference(words: Words) -> Iterator[Reference]:
    """Step over a table and its alias, and yield it; a table function, such as JSON_TABLE, is none."""
    database, name = "", words.step()
    if words.kind is WordKind.DOT:
        words.step()
        database, name = name, words.step()
    if words.kind is WordKind.L_PAREN:
        yield from table_references(words.group())
        return
    if words.accept("PARTITION"):
        words.group()
    words.accept("AS")
    named = words.kind is not None and words.kind not in (WordKind.COMMA, WordKind.L_PAREN, WordKind.R_PAREN)
    alias = words.step() if named and words.upper not in _NO_ALIAS else name
    if name.upper() != "DUAL" or database:
        yield Reference(database, name, alias)


def called_functions(words: Words) -> Iterator[tuple[str, str]]:
    """Yield database (empty for none) and name of everything that the words call or could call."""
    content = words.words
    for position, (word, kind) in enumerate(content):
        following = content[position + 1][1] if position + 1 < len(content) else None
        before = content[position - 1] if position else ("", None)
        if word.upper() == "CURRENT_USER" and kind not in (WordKind.STRING, WordKind.IDENTIFIER):
            yield "", word
        elif following is WordKind.L_PAREN and _can_be_called(word, kind) and not _names_columns(before):
            qualified = before[1] is WordKind.DOT and position > 1
            yield (content[position - 2][0] if qualified else ""), word


def _names_columns(before: tuple[str, WordKind | None]) -> bool:
    """Return whether the word after `before` is a variable, or an alias with a list of columns."""
    return before[1] in (WordKind.PARAMETER, WordKind.R_PAREN) or before[0].upper() == "AS"


def _can_be_called(word: str, kind: WordKind) -> bool:
    return kind not in _LITERALS and (word[:1].isalpha() or word[:1] in "_$") and word.upper() not in _NO_FUNCTIONS


# Words before a parenthesis that are no function.
_NO_FUNCTIONS = _words("""
    ALL AND ANY AS BETWEEN BY CASE CHECK COLUMNS CUBE DISTINCT DIV ELSE ESCAPE EXCEPT EXISTS FIELDS FOR FROM HAVING
    IN INDEX INTERSECT INTO JOIN KEY LATERAL LIKE LIMIT LINES MEMBER NOT OF ON OR OVER PARTITION PRIMARY REFERENCES
    REGEXP RETURN RLIKE ROLLUP SELECT SET SOME STRAIGHT_JOIN TABLE THEN UNION UNIQUE UPDATE USING VALUE VALUES WHEN
    WHERE WITH WITHIN XOR AGAINST WINDOW ORDER GROUP DO IS ROWS RANGE NESTED
    BINARY BIT BLOB DATETIME DEC DECIMAL DOUBLE FLOAT INT INTEGER NCHAR NUMERIC REAL SIGNED TEXT TINYINT
    SMALLINT BIGINT UNSIGNED VARBINARY VARCHAR VECTOR ARRAY MEDIUMINT ENUM
""")


def unsafe_variables(words: Words, logged: frozenset[str]) -> Iterator[str]:
    """
    Yield the system variables that the words read and that are not written to the log with the statement.

    Args:
        words: The words of a statement.
        logged: Names of the session variables that are.
    """
    content = words.words
    for position, (word, kind) in enumerate(content):
        if kind is not WordKind.SESSION_PARAMETER or word != "@@":
            continue
        names = [text for text, _ in content[position + 1 : position + 4]]
        scope, name = "", names[0] if names else ""
        if len(names) == 3 and names[1] == ".":
            scope, name = names[0].lower(), names[2]
        if scope not in ("", "session", "local") or name.lower() not in logged:
            yield f"{scope}.{name}" if scope else name
