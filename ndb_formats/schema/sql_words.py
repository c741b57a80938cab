"""
SQL statements as words.

sqlglot's MySQL tokenizer splits the text; its parser is not used, because it refuses some definitions that MySQL
accepts (FLOAT UNSIGNED among them).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

import attrs
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from ndb_formats.errors import SchemaError

__all__ = ["Words", "split_token", "statements"]

_NUMBERS = (TokenType.NUMBER, TokenType.BIT_STRING)
_MOST_DIGITS = 1000  # below the limit of Python's int()


@attrs.define
class Words:
    """
    The words of one statement or of a part of it, read from left to right.

    Attributes:
        words: Text and token type of each word.
        position: Index of the next word.
    """

    words: list[tuple[str, TokenType]]
    position: int = 0

    @property
    def word(self) -> str:
        """The next word; empty at the end."""
        return self.words[self.position][0] if self.position < len(self.words) else ""

    @property
    def upper(self) -> str:
        """The next word in upper case; empty for a quoted one, which is no keyword."""
        quoted = self.kind in (TokenType.IDENTIFIER, TokenType.STRING)
        return "" if quoted else self.word.upper()

    @property
    def kind(self) -> TokenType | None:
        """The token type of the next word; None at the end."""
        return self.words[self.position][1] if self.position < len(self.words) else None

    def step(self) -> str:
        """
        Step over the next word and return it.

        Raises:
            SchemaError: There is none.
        """
        word = self.word
        if self.position >= len(self.words):
            message = "the definition ends too early"
            raise SchemaError(message)
        self.position += 1
        return word

    def accept(self, *phrase: str) -> bool:
        """Step over `phrase` if it comes next, and return whether it did."""
        start = self.position
        for expected in phrase:
            if self.upper != expected:
                self.position = start
                return False
            self.position += 1
        return True

    def group(self) -> Words:
        """Step over a parenthesis and return its content."""
        start, depth = self.position + 1, 0
        while True:
            kind = self.kind
            self.step()
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            if depth == 0:
                return Words(self.words[start : self.position - 1])

    def rest(self) -> Words:
        """Return the words that come next, to be read from the first."""
        return Words(self.words[self.position :])

    def items(self) -> Iterator[Words]:
        """Yield the parts between commas outside parentheses."""
        depth, start = 0, 0
        for position, (_, kind) in enumerate(self.words):
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            if kind is TokenType.COMMA and depth == 0:
                yield Words(self.words[start:position])
                start = position + 1
        yield Words(self.words[start:])


class _AnsiQuotes(MySQL):
    """MySQL with the sql_mode ANSI_QUOTES."""

    class Tokenizer(MySQL.Tokenizer):
        """With names in double quotes."""

        QUOTES: ClassVar = ["'"]
        IDENTIFIERS: ClassVar = ["`", '"']


def statements(sql: str, *, ansi_quotes: bool = False) -> Iterator[Words]:
    """
    Yield the statements of a text, split at semicolons; the content of ``/*! */`` counts as code.

    Args:
        sql: The text.
        ansi_quotes: Whether double quotes stand around names, not around text.

    Raises:
        SchemaError: The text cannot be tokenized, or holds a number of more digits than any column has.
    """
    dialect = _AnsiQuotes() if ansi_quotes else MySQL()
    plain = re.sub(r"/\*!\d*\s?(.*?)\*/", r"\1", sql, flags=re.DOTALL)
    try:
        tokens = dialect.tokenize(plain)
    except SqlglotError as error:
        message = f"cannot be read as SQL: {error}"
        raise SchemaError(message) from error
    words: list[tuple[str, TokenType]] = []
    for token in tokens:
        if token.token_type in _NUMBERS and len(token.text) > _MOST_DIGITS:
            message = f"{token.text[:20]}... is a number of {len(token.text):,} digits; no type has so many"
            raise SchemaError(message)
        if token.token_type is TokenType.SEMICOLON:
            yield Words(words)
            words = []
        elif len(words) == 1 and words[0][1] is TokenType.RENAME:
            # sqlglot leaves the rest of a RENAME statement as one text.
            words.extend(word for part in dialect.tokenize(token.text) for word in split_token(part))
        else:
            words.extend(split_token(token))
    yield Words(words)


def split_token(token: Token) -> list[tuple[str, TokenType]]:
    """Return the words of a token: sqlglot joins ``PRIMARY KEY`` and others into one token."""
    if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
        return [(token.text, token.token_type)]
    return [(word, token.token_type) for word in token.text.split()] or [(token.text, token.token_type)]
