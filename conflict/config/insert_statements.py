"""
Rows of one table out of a dump: the INSERT and REPLACE statements that mysqldump writes, or that users type.

sqlglot's MySQL dialect cuts the text into tokens; they are walked here, so that whatever else a dump holds is
passed over. Literals are decoded as in the MySQL manual, "String Literals" and "Hexadecimal Literals".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from conflict.config.delimited_text import Cell, PlacedRow
from conflict.errors import ConfigurationError

__all__ = ["InsertedValues", "create_columns", "inserted_values"]

_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_"}
_NO_COLUMNS = frozenset({"PRIMARY", "PRIMARY KEY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FOREIGN KEY", "CHECK"})
_DEFAULT = object()


class _Tokenizer(MySQL.Tokenizer):
    """Without sqlglot's commands, which swallow a statement such as REPLACE unread."""

    COMMANDS: ClassVar[set[TokenType]] = set()


@attrs.frozen
class InsertedValues:
    """
    One parenthesis of a VALUES list.

    Attributes:
        place: Where it stands in its file, for people.
        columns: Names in the statement's column list, in lower case; None if it has none.
        values: The values; `is_default` tells which are the word DEFAULT.
        replaces: Whether the statement is a REPLACE.
    """

    place: str
    columns: tuple[str, ...] | None
    values: tuple[object, ...]
    replaces: bool

    def named(self, columns: Sequence[str]) -> PlacedRow:
        """
        Return the row, its values under these names.

        Raises:
            ConfigurationError: There are more or fewer values than names.
        """
        if len(columns) != len(self.values):
            message = f"{self.place}: {len(self.values)} values for the {len(columns)} columns {', '.join(columns)}"
            raise ConfigurationError(message)
        cells = {name: value for name, value in zip(columns, self.values, strict=True) if value is not _DEFAULT}
        return PlacedRow(self.place, cells, self.replaces)


def inserted_values(sql: str, table: str) -> Iterator[InsertedValues]:
    """
    Yield what the statements insert into a table, of whatever database.

    Raises:
        ConfigurationError: The text is no SQL, or a statement holds something else than plain values.
    """
    for statement in _statements(sql):
        words = _Statement(sql, statement)
        replaces = words.accept(TokenType.REPLACE)
        if not replaces and not words.accept(TokenType.INSERT):
            continue
        while words.word in ("IGNORE", "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "INTO"):
            words.place += 1
        if words.table_name() == table:
            yield from _values(words, replaces)


def create_columns(sql: str, table: str) -> tuple[str, ...] | None:
    """Return the columns of the CREATE TABLE statement of a table in a dump, in order; None if there is none."""
    for statement in _statements(sql):
        words = _Statement(sql, statement)
        if not (words.accept(TokenType.CREATE) and words.accept(TokenType.TABLE)):
            continue
        while words.word in ("IF", "NOT", "EXISTS"):
            words.place += 1
        if words.table_name() == table and words.kind is TokenType.L_PAREN:
            firsts = [item[0] for item in words.parenthesis() if item]
            return tuple(token.text.lower() for token in firsts if token.text.upper() not in _NO_COLUMNS)
    return None


def _statements(sql: str) -> Iterator[list[Token]]:
    try:
        tokens = _Tokenizer(dialect=MySQL()).tokenize(sql)
    except SqlglotError as error:
        message = "it cannot be read as SQL; is a quote or a comment not closed?"
        raise ConfigurationError(message) from error
    statement: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            yield statement
            statement = []
        else:
            statement.append(token)
    yield statement


@attrs.define
class _Statement:
    """The tokens of one statement, with a place."""

    sql: str
    tokens: list[Token]
    place: int = 0

    @property
    def kind(self) -> TokenType | None:
        return self.tokens[self.place].token_type if self.place < len(self.tokens) else None

    @property
    def word(self) -> str:
        quoted = self.kind in (None, TokenType.IDENTIFIER, TokenType.STRING)
        return "" if quoted else self.tokens[self.place].text.upper()

    @property
    def line(self) -> int:
        token = self.tokens[min(self.place, len(self.tokens) - 1)]
        return 1 + self.sql.count("\n", 0, token.start)

    def accept(self, kind: TokenType) -> bool:
        found = self.kind is kind
        self.place += found
        return found

    def table_name(self) -> str:
        """Step over a name and return it without its database."""
        name = self._name()
        return self._name() if self.accept(TokenType.DOT) else name

    def _name(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1].text.lower() if self.place <= len(self.tokens) else ""

    def parenthesis(self) -> list[list[Token]]:
        """Step over a parenthesis and return what it holds, split at its commas."""
        items: list[list[Token]] = [[]]
        depth, line = 0, self.line
        while self.kind is not None:
            token = self.tokens[self.place]
            self.place += 1
            depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
            if depth == 0:
                return items
            if token.token_type is TokenType.COMMA and depth == 1:
                items.append([])
            elif depth > 1 or token.token_type is not TokenType.L_PAREN:
                items[-1].append(token)
        message = f"line {line}: a parenthesis is not closed"
        raise ConfigurationError(message)


def _values(words: _Statement, replaces: bool) -> Iterator[InsertedValues]:
    start = words.line
    columns = None
    if words.kind is TokenType.L_PAREN:
        columns = tuple(token.text.lower() for item in words.parenthesis() for token in item[-1:])
    if words.word not in ("VALUES", "VALUE"):
        message = f"line {start}: rows are read from a list VALUES (...), as mysqldump writes it, and from nothing else"
        raise ConfigurationError(message)
    words.place += 1
    row = 0
    while words.kind is TokenType.L_PAREN:
        row += 1
        place = f"line {words.line}, row {row}"
        values = tuple(_value(words.sql, item, place) for item in words.parenthesis())
        yield InsertedValues(place, columns, values, replaces)
        words.accept(TokenType.COMMA)
    if words.kind is not None:
        message = f"line {words.line}: nothing can follow the values; {words.word} is not understood"
        raise ConfigurationError(message)


def _value(sql: str, item: list[Token], place: str) -> Cell | object:
    written = sql[item[0].start : item[-1].end + 1] if item else ""
    tokens = item[1:] if item and item[0].token_type is TokenType.INTRODUCER else item
    kinds = {token.token_type for token in tokens}
    if kinds and kinds <= {TokenType.STRING, TokenType.NATIONAL_STRING}:
        # Strings that stand beside each other are one.
        return "".join(_string(sql[token.start : token.end + 1]) for token in tokens)
    if len(tokens) == 1:
        (token,) = tokens
        if token.token_type is TokenType.NUMBER:
            return token.text
        if token.token_type is TokenType.HEX_STRING:
            return bytes.fromhex(token.text if len(token.text) % 2 == 0 else "0" + token.text)
        if token.token_type is TokenType.NULL:
            return None
        if token.token_type is TokenType.DEFAULT:
            return _DEFAULT
    message = f"{place}: {written!r} is no plain value; give a number, a quoted text, 0x... or NULL"
    raise ConfigurationError(message)


def _string(literal: str) -> str:
    r"""Return what a quoted literal stands for. ``\%`` and ``\_`` keep their backslash, so that patterns work."""
    quote = literal[-1]
    body = literal[literal.index(quote) + 1 : -1]
    return re.sub(
        rf"\\(.)|{quote}{quote}",
        lambda found: quote if found[1] is None else _ESCAPES.get(found[1], found[1]),
        body,
        flags=re.DOTALL,
    )
