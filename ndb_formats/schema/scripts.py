"""
Files of statements, split as the mysql client splits them.

The client ends a statement at its delimiter outside quotes and comments, and a line ``DELIMITER`` changes that. A body
of a stored program is kept whole, also where its file lacks the DELIMITER that the client needs.

Source: MySQL manual, "mysql Client Commands" and "Defining Stored Programs".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs

from ndb_formats.schema.lexer import Token, WordKind, Words, lex, words_of
from ndb_formats.schema.session import Session, SqlMode

_DELIMITER = re.compile(r"DELIMITER[ \t]+(\S+)[^\n]*(?:\n|$)", re.IGNORECASE)
_LINE_COMMENT = re.compile(r"#[^\n]*|--(?=[\s\x01-\x1f]|$)[^\n]*")
_PLAIN_COMMENT = re.compile(r"/\*(?![!+]|M!).*?(?:\*/|$)", re.DOTALL)
_BETWEEN = re.compile(rf"\s+|{_LINE_COMMENT.pattern}|{_PLAIN_COMMENT.pattern}", re.DOTALL)
_HEAD = 60  # words among which a statement says that it creates a stored program
_SET = re.compile(r"(?:/\*!\d*\s*)?SET\b", re.IGNORECASE)
_PROGRAMS = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"})
_OTHER_OBJECTS = frozenset({"TABLE", "VIEW", "INDEX", "DATABASE", "SCHEMA", "USER", "ROLE", "SERVER"})
_BLOCK_ENDS = frozenset({"IF", "WHILE", "LOOP", "REPEAT", "FOR"})


@attrs.frozen
class ScriptStatement:
    """
    One statement of a file.

    Attributes:
        text: Its text, without the delimiter and the comments before it.
        session: The session that it runs in.
    """

    text: str
    session: Session = attrs.field(factory=Session, repr=False)

    def words(self) -> Words:
        """
        Return its words, to be read from the first.

        Raises:
            SchemaError: A quote or comment has no end.
        """
        return words_of(self.text, self.session)


def split_script(text: str, session: Session | None = None) -> Iterator[ScriptStatement]:
    """
    Yield the statements of a file; ``SET sql_mode`` with a text changes how those after it are read.

    Args:
        text: The file.
        session: The session at its start.

    Raises:
        SchemaError: A quote or comment in a statement has no end.
    """
    session, position, delimiter = session or Session(), _start(text, 0), ";"
    while position < len(text):
        changed = _DELIMITER.match(text, position)
        if changed is not None:
            delimiter, position = changed[1], _start(text, changed.end())
            continue
        end = _end_of_piece(text, position, delimiter, session)
        if delimiter == ";" and _creates_program(words_of(text[position:end], session, _HEAD)):
            end = _end_of_program(text, position, end, session)
        statement = ScriptStatement(text[position:end].strip(), session)
        if statement.text:
            yield statement
            session = _after(session, statement)
        position = _start(text, end + len(delimiter))


def _start(text: str, position: int) -> int:
    """Return where the next statement starts, after blanks and comments."""
    while found := _BETWEEN.match(text, position):
        position = found.end()
    return position


def _end_of_piece(text: str, position: int, delimiter: str, session: Session) -> int:
    """Return where the delimiter stands that ends a statement; the end of the text without one."""
    escapes = SqlMode.NO_BACKSLASH_ESCAPES not in session.sql_mode
    quoted = r"'(?:[^'\\]|\\.)*(?:'|$)|\"(?:[^\"\\]|\\.)*(?:\"|$)" if escapes else r"'[^']*(?:'|$)|\"[^\"]*(?:\"|$)"
    pattern = re.compile(
        rf"(?P<delimiter>{re.escape(delimiter)})|{quoted}|`[^`]*(?:`|$)|{_LINE_COMMENT.pattern}"
        rf"|{_PLAIN_COMMENT.pattern}",
        re.DOTALL,
    )
    for found in pattern.finditer(text, position):
        if found["delimiter"] is not None:
            return found.start()
    return len(text)


def _creates_program(words: Words) -> bool:
    """Return whether a statement creates a stored program, or is a block of its own (MariaDB)."""
    words = words.rest()
    if words.accept("BEGIN", "NOT", "ATOMIC"):
        return True
    if not words.accept("CREATE"):
        return False
    while words.word:
        if words.upper in _PROGRAMS or words.upper in _OTHER_OBJECTS:
            return words.upper in _PROGRAMS
        words.step()
    return False


def _end_of_program(text: str, start: int, end: int, session: Session) -> int:
    """Return where the delimiter stands that is outside all blocks of a stored program."""
    depth, piece = 0, start
    while True:
        depth += _nesting(list(lex(text[piece:end], session)))
        if depth <= 0 or end >= len(text):
            return end
        piece, end = end + 1, _end_of_piece(text, end + 1, ";", session)


def _nesting(tokens: Sequence[Token]) -> int:
    """Return how many more blocks a piece of a program opens than it ends: BEGIN and CASE open one, END ends it."""
    words = [token.text.upper() if token.kind is WordKind.WORD else "" for token in tokens]
    depth = 0
    for place, word in enumerate(words):
        before, after = words[place - 1] if place else "", words[place + 1] if place + 1 < len(words) else ""
        if word == "END":
            depth -= after not in _BLOCK_ENDS
        elif word in ("BEGIN", "CASE"):
            depth += before != "END"
    return depth


def _after(session: Session, statement: ScriptStatement) -> Session:
    """Return a session after a statement; only ``SET sql_mode = 'text'`` matters here."""
    if not _SET.match(statement.text):
        return session
    words = statement.words()
    while words.word:
        if words.step().upper() == "SQL_MODE" and words.accept("=") and words.kind is WordKind.STRING:
            session = attrs.evolve(session, sql_mode=SqlMode.named(words.step()))
    return session
