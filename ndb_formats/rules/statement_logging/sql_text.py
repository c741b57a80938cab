"""
SQL text as statements: the text of each, and its words.

The words are sqlglot's tokens, as in `ndb_formats.schema.sql_words`. Its parser is not used: it leaves several
statements of MySQL unparsed (REPLACE ... TABLE, CREATE TABLE ... IGNORE SELECT, CALL).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from ndb_formats.errors import SchemaError
from ndb_formats.schema.sql_words import Words, split_token

__all__ = ["SqlStatement", "name_parts", "split_statements"]

_DELIMITER = re.compile(r"^[ \t]*DELIMITER[ \t]+(\S+)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_CODE = re.compile(r"/\*!\d*\s?(.*?)\*/", re.DOTALL)
_HINT = re.compile(r"/\*\+.*?\*/", re.DOTALL)  # no hint changes how a statement is logged
_ROUTINES = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"})
_BLOCK_ENDS = frozenset({"IF", "WHILE", "LOOP", "REPEAT"})


class _Dialect(MySQL):
    """MySQL, with the words of every statement: sqlglot does not look into CALL, SHOW and others."""

    class Tokenizer(MySQL.Tokenizer):
        """The tokenizer without commands."""

        COMMANDS: ClassVar[set[TokenType]] = set()


@attrs.frozen
class SqlStatement:
    """
    One statement.

    Attributes:
        text: Its text, without the semicolon.
        content: Text and token type of each word.
    """

    text: str
    content: tuple[tuple[str, TokenType], ...] = attrs.field(repr=False)

    def words(self) -> Words:
        """Return its words, to be read from the first."""
        return Words(list(self.content))


def split_statements(sql: str) -> list[SqlStatement]:
    """
    Return the statements of a text.

    Semicolons inside the body of a routine do not end it, with or without DELIMITER. The content of ``/*! */`` counts
    as code.

    Raises:
        SchemaError: The text cannot be tokenized.
    """
    plain = _CODE.sub(r"\1", _HINT.sub("", _with_semicolons(sql)))
    try:
        tokens = _Dialect().tokenize(plain)
    except SqlglotError as error:
        message = f"cannot be read as SQL: {error}"
        raise SchemaError(message) from error
    return [
        SqlStatement(
            plain[part[0].start : part[-1].end + 1], tuple(word for token in part for word in split_token(token))
        )
        for part in _parts(tokens)
    ]


def _with_semicolons(sql: str) -> str:
    """Return a text for the mysql client without its DELIMITER lines."""
    pieces = _DELIMITER.split(sql)
    text = pieces[0]
    for delimiter, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        text += piece if delimiter == ";" else piece.replace(delimiter, ";")
    return text


def _parts(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each statement."""
    part: list[Token] = []
    depth = 0
    for position, token in enumerate(tokens):
        word = token.text.upper() if token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) else ""
        if token.token_type is TokenType.SEMICOLON and depth == 0:
            if part:
                yield part
            part = []
            continue
        part.append(token)
        if _is_routine(part):
            depth = max(0, depth + _nesting(word, tokens[position + 1 : position + 2], tokens[position - 1]))
    if part:
        yield part


def _is_routine(part: Sequence[Token]) -> bool:
    """Return whether a statement creates a routine, whose body can be a block."""
    start = [token.text.upper() for token in part[:12]]
    return bool(start) and start[0] == "CREATE" and not _ROUTINES.isdisjoint(start)


def _nesting(word: str, following: Sequence[Token], before: Token) -> int:
    """Return by how much a word changes the depth of blocks: BEGIN and CASE open one, and END closes it."""
    after = following[0].text.upper() if following else ""
    if word == "END":
        return 0 if after in _BLOCK_ENDS else -1
    if word == "CASE":
        return 0 if before.text.upper() == "END" else 1
    return 1 if word == "BEGIN" else 0


def name_parts(words: Words, database: str) -> tuple[str, str]:
    """Step over a name of a table or routine and return its database and name; `database` is the default one."""
    name = words.step()
    if words.kind is TokenType.DOT:
        words.step()
        return name, words.step()
    return database, name
