"""
The words of one statement, to be read from left to right.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.schema.lexer import WordKind, lex
from ndb_formats.schema.session import Session

__all__ = ["Words", "words_of"]


@attrs.define
class Words:
    """
    The words of one statement or of a part of it, read from left to right.

    Attributes:
        words: Text and kind of each word.
        position: Index of the next word.
    """

    words: list[tuple[str, WordKind]]
    position: int = 0

    @property
    def word(self) -> str:
        """The next word; empty at the end."""
        return self.words[self.position][0] if self.position < len(self.words) else ""

    @property
    def upper(self) -> str:
        """The next word in upper case; empty for a quoted one, which is no keyword."""
        quoted = self.kind in (WordKind.IDENTIFIER, WordKind.STRING)
        return "" if quoted else self.word.upper()

    @property
    def kind(self) -> WordKind | None:
        """The kind of the next word; None at the end."""
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

    def accept_any(self, words: frozenset[str]) -> str:
        """Step over the next word if it is one of `words`, and return it in upper case; else return an empty text."""
        found = self.upper
        if not found or found not in words:
            return ""
        self.position += 1
        return found

    def group(self) -> Words:
        """Step over a parenthesis and return its content."""
        start, depth = self.position + 1, 0
        while True:
            kind = self.kind
            self.step()
            depth += (kind is WordKind.L_PAREN) - (kind is WordKind.R_PAREN)
            if depth == 0:
                return Words(self.words[start : self.position - 1])

    def rest(self) -> Words:
        """Return the words that come next, to be read from the first."""
        return Words(self.words[self.position :])

    def to_the_end(self) -> None:
        """Step over all words that are left."""
        self.position = len(self.words)

    def items(self) -> Iterator[Words]:
        """Yield the parts between commas outside parentheses."""
        depth, start = 0, 0
        for position, (_, kind) in enumerate(self.words):
            depth += (kind is WordKind.L_PAREN) - (kind is WordKind.R_PAREN)
            if kind is WordKind.COMMA and depth == 0:
                yield Words(self.words[start:position])
                start = position + 1
        yield Words(self.words[start:])


def words_of(text: str, session: Session) -> Words:
    """
    Return the words of one statement.

    Raises:
        SchemaError: A quote or comment has no end.
    """
    return Words([(token.text, token.kind) for token in lex(text, session)])
