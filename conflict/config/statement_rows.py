r"""
Rows of one table as users give them in INSERT and REPLACE statements.

SQL is what mysqldump writes, or users type; sqlglot's MySQL dialect splits it into tokens, and a cursor goes over them.
All other statements are ignored. Literals are decoded as in the MySQL manual, "String Literals" and "Hexadecimal
Literals". Values are not checked here.

sqlglot takes long to load, so this module is imported where there are statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs
from sqlglot import Token, TokenType
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import SqlglotError

from conflict.config.table_rows import Cell, InputRow
from conflict.errors import ConfigurationError

_SQL_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_"}
_NO_COLUMNS = frozenset({"PRIMARY", "PRIMARY KEY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FOREIGN KEY", "CHECK"})
_DEFAULT = object()  # the word DEFAULT in a VALUES list


class _Tokenizer(MySQL.Tokenizer):
    """sqlglot's tokenizer without its commands, which take the rest of a REPLACE statement as one text."""

    COMMANDS: ClassVar[set[TokenType]] = set()


@attrs.frozen
class InsertedValues:
    """
    One row of a VALUES list.

    Attributes:
        place: Its place in the file, for messages.
        columns: Names in the statement's column list, in lower case; None without a list.
        values: The values.
        replaces: Whether the statement is a REPLACE.
    """

    place: str
    columns: tuple[str, ...] | None
    values: tuple[object, ...]
    replaces: bool

    def named(self, columns: Sequence[str]) -> InputRow:
        """
        Return the row, its values under these names; a column with DEFAULT is left out.

        Raises:
            ConfigurationError: There are more or fewer values than names.
        """
        if len(columns) != len(self.values):
            message = f"{self.place}: {len(self.values)} values for the {len(columns)} columns {', '.join(columns)}"
            raise ConfigurationError(message)
        cells = {name: value for name, value in zip(columns, self.values, strict=True) if value is not _DEFAULT}
        return InputRow(self.place, cells, self.replaces)


def inserted_values(sql: str, table: str) -> Iterator[InsertedValues]:
    """
    Yield the rows that the statements insert into a table, of whatever database.

    Raises:
        ConfigurationError: The text is not SQL, or a statement holds anything but plain values.
    """
    for cursor in _statements(sql):
        replaces = cursor.accept(TokenType.REPLACE)
        if replaces or cursor.accept(TokenType.INSERT):
            cursor.skip_words("IGNORE", "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "INTO")
            if cursor.table_name() == table:
                yield from _rows(cursor, replaces)


def created_columns(sql: str, table: str) -> tuple[str, ...] | None:
    """Return the columns in the CREATE TABLE statement of a table, in order; None if there is none."""
    for cursor in _statements(sql):
        if cursor.accept(TokenType.CREATE) and cursor.accept(TokenType.TABLE):
            cursor.skip_words("IF", "NOT", "EXISTS")
            if cursor.table_name() == table and cursor.kind is TokenType.L_PAREN:
                firsts = [item[0] for item in cursor.parenthesis() if item]
                return tuple(token.text.lower() for token in firsts if token.text.upper() not in _NO_COLUMNS)
    return None


@attrs.define
class _Cursor:
    """The tokens of one statement, and how many have been read."""

    sql: str
    tokens: list[Token]
    place: int = 0

    @property
    def kind(self) -> TokenType | None:
        return self.tokens[self.place].token_type if self.place < len(self.tokens) else None

    @property
    def word(self) -> str:
        """The next token in upper case; empty for a quoted one, and at the end."""
        quoted = self.kind in (None, TokenType.IDENTIFIER, TokenType.STRING)
        return "" if quoted else self.tokens[self.place].text.upper()

    @property
    def line(self) -> int:
        token = self.tokens[min(self.place, len(self.tokens) - 1)]
        return 1 + self.sql.count("\n", 0, token.start)

    def accept(self, kind: TokenType) -> bool:
        """Read the next token if it is of this kind."""
        found = self.kind is kind
        self.place += found
        return found

    def skip_words(self, *words: str) -> None:
        while self.word in words:
            self.place += 1

    def table_name(self) -> str:
        """Read a name and return it without its database."""
        name = self._name()
        return self._name() if self.accept(TokenType.DOT) else name

    def _name(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1].text.lower() if self.place <= len(self.tokens) else ""

    def parenthesis(self) -> list[list[Token]]:
        """Read a parenthesis and return its contents, split at its commas."""
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


def _statements(sql: str) -> Iterator[_Cursor]:
    try:
        tokens = _Tokenizer(dialect=MySQL()).tokenize(sql)
    except SqlglotError as error:
        message = "it cannot be read as SQL; is a quote or a comment not closed?"
        raise ConfigurationError(message) from error
    statement: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            yield _Cursor(sql, statement)
            statement = []
        else:
            statement.append(token)
    yield _Cursor(sql, statement)


def _rows(cursor: _Cursor, replaces: bool) -> Iterator[InsertedValues]:
    start = cursor.line
    columns = None
    if cursor.kind is TokenType.L_PAREN:
        columns = tuple(token.text.lower() for item in cursor.parenthesis() for token in item[-1:])
    if cursor.word not in ("VALUES", "VALUE"):
        message = f"line {start}: only VALUES (...) lists can be read, as mysqldump writes them"
        raise ConfigurationError(message)
    cursor.place += 1
    row = 0
    while cursor.kind is TokenType.L_PAREN:
        row += 1
        place = f"line {cursor.line}, row {row}"
        values = tuple(_value(cursor.sql, item, place) for item in cursor.parenthesis())
        yield InsertedValues(place, columns, values, replaces)
        cursor.accept(TokenType.COMMA)
    if cursor.kind is not None:
        message = f"line {cursor.line}: the statement must end after its values; {cursor.word} is not understood"
        raise ConfigurationError(message)


def _value(sql: str, item: list[Token], place: str) -> Cell | object:
    tokens = item[1:] if item and item[0].token_type is TokenType.INTRODUCER else item
    kinds = {token.token_type for token in tokens}
    if kinds and kinds <= {TokenType.STRING, TokenType.NATIONAL_STRING}:
        # Adjacent strings are one string.
        return "".join(_string(sql[token.start : token.end + 1]) for token in tokens)
    if len(tokens) == 2 and tokens[0].token_type is TokenType.DASH and tokens[1].token_type is TokenType.NUMBER:
        return f"-{tokens[1].text}"
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
    written = sql[item[0].start : item[-1].end + 1] if item else ""
    message = f"{place}: {written!r} is not a plain value; give a number, a quoted text, 0x... or NULL"
    raise ConfigurationError(message)


def _string(literal: str) -> str:
    r"""Return the text of a quoted literal. ``\%`` and ``\_`` keep their backslash, so that patterns work."""
    quote = literal[-1]
    body = literal[literal.index(quote) + 1 : -1]
    return re.sub(
        rf"\\(.)|{quote}{quote}",
        lambda found: quote if found[1] is None else _SQL_ESCAPES.get(found[1], found[1]),
        body,
        flags=re.DOTALL,
    )
