"""
SQL text as words, in the way of the server that reads it; the words of a statement are read from left to right.

What a quote, a backslash or a comment means depends on the session and the version of the server, so no general
tokenizer gives the words that the server saw.

Source: MySQL manual, "Language Structure"; `sql_lex.cc`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from itertools import islice

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.schema.session import Session, SqlMode

_MOST_DIGITS = 1000  # below the limit of Python's int()


class WordKind(Enum):
    """What a word is."""

    WORD = auto()  # a keyword, or a name without quotes
    IDENTIFIER = auto()  # a name in quotes
    STRING = auto()
    NUMBER = auto()
    HEX_STRING = auto()
    BIT_STRING = auto()
    INTRODUCER = auto()  # a character set before a string
    PARAMETER = auto()
    SESSION_PARAMETER = auto()
    L_PAREN = auto()
    R_PAREN = auto()
    COMMA = auto()
    DOT = auto()
    SEMICOLON = auto()
    EQ = auto()
    SIGN = auto()  # all other operators


@attrs.frozen
class Token:
    """
    One word.

    Attributes:
        text: Its text; that of names and strings without quotes.
        kind: What it is.
        start: Where it starts in the text.
        end: Where it ends.
    """

    text: str
    kind: WordKind
    start: int
    end: int


_SIGNS = {
    "(": WordKind.L_PAREN, ")": WordKind.R_PAREN, ",": WordKind.COMMA, ".": WordKind.DOT, ";": WordKind.SEMICOLON,
    "=": WordKind.EQ, "@": WordKind.PARAMETER, "@@": WordKind.SESSION_PARAMETER,
}  # fmt: skip
# A name can hold every character that is not ASCII, bytes that are no character among them.
_PART = r"[0-9A-Za-z_$\x80-\U0010ffff]"
_SCANNER = re.compile(
    rf"""
    (?P<space>[\s\0]+)
    | (?P<comment>\#[^\n]*|--(?=[\s\x01-\x1f]|$)[^\n]*)
    | (?P<condition>/\*(?P<mariadb>M?)!(?P<version>\d{{5,6}}(?!\d))?)
    | (?P<block>/\*)
    | (?P<end>\*/)
    | (?P<quote>['"`])
    | (?P<hex>[xX]'(?P<hex_digits>[0-9A-Fa-f]*)'|0x(?P<hex_number>[0-9A-Fa-f]+)(?!{_PART}))
    | (?P<bits>[bB]'(?P<bit_digits>[01]*)'|0b(?P<bit_number>[01]+)(?!{_PART}))
    | (?P<national>[nN](?='))
    | (?P<introducer>_[A-Za-z0-9]+(?=\s*(?:'|"|[xXbB]'|0[xb])))
    | (?P<number>(?:\d+\.\d*|\.\d+|\d+)[eE][+-]?\d+|\d+\.\d*|\.\d+|\d+(?!{_PART}))
    | (?P<name>{_PART}+)
    | (?P<sign>@@|:=|<=>|<=|>=|<>|!=|->>|->|\|\||&&|<<|>>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(rf"{_PART}+")
_QUOTED = {quote: re.compile(rf"(?:[^{quote}]|{quote}{quote})*{quote}") for quote in "'\"`"}
_ESCAPED = {quote: re.compile(rf"(?:[^{quote}\\]|{quote}{quote}|\\.)*{quote}", re.DOTALL) for quote in "'\""}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
# A backslash stays before the wildcards of LIKE, and goes before all other characters.
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_"}


def lex(text: str, session: Session) -> Iterator[Token]:
    """
    Yield the words of a text.

    Comments are left out; the content of conditional ones that the server carries out is not.

    Args:
        text: The text.
        session: The session that reads it.

    Raises:
        SchemaError: A quote or a comment has no end, or a number has more digits than any column.
    """
    position, conditions, after_dot, after_name = 0, 0, False, -1
    while position < len(text):
        found = _SCANNER.match(text, position)
        assert found is not None  # the last alternative takes any character
        kind, position = str(found.lastgroup), found.end()
        if kind == "number" and after_name == found.start() and found[0].startswith("."):  # a.5b: no fraction
            kind, position = "sign", found.start() + 1
        elif after_dot and kind in ("number", "hex", "bits") and (name := _NAME.match(text, found.start())):
            kind, position = "name", name.end()
        if kind == "space":
            continue
        if kind == "quote":
            token = _quoted(text, found.start(), session)
            yield token
            position = token.end
        elif kind == "condition" and session.server.runs_comment(
            int(found["version"] or 0), for_mariadb=bool(found["mariadb"])
        ):
            conditions += 1
        elif kind in ("condition", "block"):
            position = _end_of_comment(text, position, nested=kind == "condition")
        elif kind == "end" and conditions:
            conditions -= 1
        elif kind not in ("comment", "national"):
            yield from _plain(found, kind, position)
        after_dot = kind == "sign" and text[position - 1] == "."
        after_name = position if kind in ("name", "quote") else -1


def _plain(found: re.Match[str], kind: str, end: int) -> Iterator[Token]:
    """Yield the words that a match stands for; `end` is where a name ends that was taken for a number."""
    start, text = found.start(), found.string[found.start() : end]
    if kind == "hex":
        yield Token(found["hex_number"] or found["hex_digits"] or "", WordKind.HEX_STRING, start, end)
    elif kind == "bits":
        yield Token(found["bit_number"] or found["bit_digits"] or "", WordKind.BIT_STRING, start, end)
    elif kind == "number":
        if len(text) > _MOST_DIGITS:
            message = f"{text[:20]}... is a number of {len(text):,} digits; no type has so many"
            raise SchemaError(message)
        yield Token(text, WordKind.NUMBER, start, end)
    elif kind == "end":
        yield Token("*", WordKind.SIGN, start, start + 1)
        yield Token("/", WordKind.SIGN, start + 1, end)
    elif kind == "sign":
        yield Token(text, _SIGNS.get(text, WordKind.SIGN), start, end)
    else:
        yield Token(text, WordKind.INTRODUCER if kind == "introducer" else WordKind.WORD, start, end)


def _quoted(text: str, start: int, session: Session) -> Token:
    quote = text[start]
    name = quote == "`" or (quote == '"' and SqlMode.ANSI_QUOTES in session.sql_mode)
    escapes = not name and SqlMode.NO_BACKSLASH_ESCAPES not in session.sql_mode
    found = (_ESCAPED if escapes else _QUOTED)[quote].match(text, start + 1)
    if found is None:
        message = f"cannot be read as SQL: the quote at character {start + 1} has no end"
        raise SchemaError(message)
    content = found[0][:-1]
    if escapes and "\\" in content:
        pieces = re.split(r"(\\.)", content, flags=re.DOTALL)
        content = "".join(
            _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), piece)
            if place % 2
            else piece.replace(2 * quote, quote)
            for place, piece in enumerate(pieces)
        )
    else:
        content = content.replace(2 * quote, quote)
    return Token(content, WordKind.IDENTIFIER if name else WordKind.STRING, start, found.end())


def _end_of_comment(text: str, position: int, *, nested: bool) -> int:
    """Return where a comment ends; one that the server passes over may hold another one."""
    end = text.find("*/", position)
    inner = text.find("/*", position, end) if nested else -1
    if inner >= 0 and end >= 0:
        end = text.find("*/", _end_of_comment(text, inner + 2, nested=False))
    if end < 0:
        message = f"cannot be read as SQL: the comment at character {position + 1} has no end"
        raise SchemaError(message)
    return end + 2


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

    @property
    def text(self) -> str:
        """All words as text, with names in small letters and quotes where they have them."""
        quotes = {WordKind.STRING: "'{}'", WordKind.IDENTIFIER: "`{}`"}
        return " ".join(
            quotes[kind].format(word.replace("'", "''") if kind is WordKind.STRING else word.lower())
            if kind in quotes
            else word.lower()
            for word, kind in self.words
        )

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


def words_of(text: str, session: Session, most: int | None = None) -> Words:
    """
    Return the words of one statement: all, or `most` of them.

    Raises:
        SchemaError: A quote or comment has no end.
    """
    return Words([(token.text, token.kind) for token in islice(lex(text, session), most)])
