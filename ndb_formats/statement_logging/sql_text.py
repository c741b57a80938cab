"""
SQL text as statements: those of a script, and those in the body of a stored routine or trigger.

Control flow in a body is not followed: a statement inside IF, CASE or a loop may run or not.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ndb_formats.schema.lexer import WordKind, Words
from ndb_formats.schema.scripts import split_script


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


_ONE_WORD = frozenset({"ELSE", "LOOP", "REPEAT", "THEN", "DO"})
_OPENING = frozenset({"IF", "CASE", "WHILE", "LOOP", "REPEAT"})
_CONDITIONS = frozenset({"IF", "ELSEIF", "WHEN", "WHILE", "CASE", "UNTIL"})
_CONDITION_ENDS = frozenset({"THEN", "DO", "WHEN"})


@attrs.frozen
class BodyStatement:
    """
    A statement of a body, or an expression that it evaluates.

    Attributes:
        statement: Its words; an expression begins with DO.
        certain: Whether it runs whenever the routine runs.
    """

    statement: SqlStatement
    certain: bool


def body_statements(words: Words) -> Iterator[BodyStatement]:
    """Yield the statements and expressions of a body, which is one statement or BEGIN ... END."""
    depth = 0  # of IF, CASE, loops and handlers
    while words.kind is not None:
        upper = words.upper
        if words.kind is WordKind.SEMICOLON or (upper == "BEGIN" and not _starts_transaction(words)):
            words.step()
        elif upper == "END":
            words.step()
            depth -= 1 if words.upper in _OPENING else 0
            _statement(words)
        elif upper in _CONDITIONS:
            words.step()
            depth += 1 if upper in _OPENING else 0
            yield BodyStatement(_as_expression(_condition(words)), depth <= (1 if upper == "IF" else 0))
        elif upper in _ONE_WORD:
            depth += 1 if upper in _OPENING else 0
            words.step()
        elif _is_label(words):
            words.step()
            words.step()
        elif upper == "DECLARE" and _declares_handler(words):
            yield BodyStatement(_sql(words.words[words.position :][: len(_statement(words))]), certain=False)
        else:
            part = _statement(words)
            expression = part[0][0].upper() in ("RETURN", "DECLARE", "SET")
            yield BodyStatement(_as_expression(part[1:]) if expression else _sql(part), depth == 0)


def _starts_transaction(words: Words) -> bool:
    following = words.words[words.position + 1 : words.position + 2]
    return bool(following) and following[0][0].upper() == "WORK"


def _is_label(words: Words) -> bool:
    following = words.words[words.position + 1 : words.position + 2]
    return bool(following) and following[0][0] == ":"


def _declares_handler(words: Words) -> bool:
    ahead = [text.upper() for text, _ in words.words[words.position : words.position + 3]]
    return "HANDLER" in ahead


def _statement(words: Words) -> list[tuple[str, WordKind]]:
    """Step to the next semicolon and return the words before it."""
    start = words.position
    while words.kind not in (None, WordKind.SEMICOLON):
        words.step()
    return words.words[start : words.position]


def _condition(words: Words) -> list[tuple[str, WordKind]]:
    """Step to the THEN, DO or WHEN after a condition, or to the semicolon, and return the words before it."""
    start, cases = words.position, 0
    while words.kind not in (None, WordKind.SEMICOLON):
        if words.upper in _CONDITION_ENDS and cases == 0:
            break
        cases += (words.upper == "CASE") - (words.upper == "END")
        words.step()
    return words.words[start : words.position]


def _as_expression(content: list[tuple[str, WordKind]]) -> SqlStatement:
    return _sql([("DO", WordKind.WORD), *content])


def _sql(content: list[tuple[str, WordKind]]) -> SqlStatement:
    return SqlStatement(" ".join(text for text, _ in content), tuple(content))
