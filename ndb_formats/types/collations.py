"""
When two texts are equal under a collation, as a MySQL 9 server says.

Exact are the collations whose name ends in ``_bin``, and those with a table: of the Unicode character sets, and of
those with one byte a character. Other collations are refused where equality counts.

A table gives a *canonical text* for each *unit*, a character or a contraction, and a unit that it leaves out is its
own. Two texts are equal if and only if the canonical texts of their units, one after the other, are equal. The program
`tools.collation_tables` makes the tables from the weights that a server gives (WEIGHT_STRING(), see the manual,
"Unicode Character Sets").

A file in `collation_data` is text in xz format. A line ``name base`` starts a table; it changes that of ``base``, or
stands alone if that is ``-``. A line of it, after a blank, is ``unit count step text``, all characters as hexadecimal
digits joined by ``+``: `count` characters in a row, where the last character of the text moves on by `step` with each.
"""

from __future__ import annotations

import lzma
import re
import struct
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

import attrs

from ndb_formats.errors import UnsupportedError
from ndb_formats.types.charsets import PYTHON_CODEC, charset_of_collation, decode_text, encode_text

_FILES = ("general", "single_byte", "uca_400", "uca_520", "uca_900")
# More characters in a row with the same text than this are kept as a range.
_LONG = 4096
# Stand around a contraction of the end of a text with its start. It is ignorable, so it stands for no other character.
_CIRCULAR = "\u034f"


class _Texts(dict[int, str]):
    """Canonical text by code point, for `str.translate`; long ranges of code points have one text."""

    ranges: tuple[tuple[int, int, str], ...] = ()

    def __missing__(self, code: int) -> str:
        for first, end, text in self.ranges:
            if first <= code < end:
                return text
        raise KeyError(code)


@attrs.frozen(eq=False)
class CollationTable:
    """
    Which texts are equal under a collation, trailing blanks aside.

    Attributes:
        texts: Canonical text by code point, for `str.translate`.
        contractions: Canonical texts of contractions.
        circular: Whether the last character of a text may be the first one of a contraction with its first one. The
            server compares level by level, and of Japanese it then takes on all levels but the first what it read last
            for what precedes the text.
    """

    texts: Mapping[int, str]
    contractions: Mapping[str, str]
    circular: bool
    _pattern: re.Pattern[str] | None

    @classmethod
    def of(cls, texts: Mapping[int, str], contractions: Mapping[str, str], *, circular: bool) -> CollationTable:
        """Return a table."""
        # The longest contraction counts, from the left.
        longest = sorted(contractions, key=len, reverse=True)
        pattern = re.compile("|".join(map(re.escape, longest))) if longest else None
        return cls(texts, contractions, circular, pattern)

    def canonical(self, text: str) -> str:
        """Return the text that stands for all that are equal to a text."""
        if self._pattern is None:
            return text.translate(self.texts)
        around = self.contractions.get(text[-1:] + text[:1]) if self.circular else None
        parts, end = [] if around is None else [_CIRCULAR, around, _CIRCULAR], 0
        for found in self._pattern.finditer(text):
            parts += [text[end : found.start()].translate(self.texts), self.contractions[found[0]]]
            end = found.end()
        return "".join([*parts, text[end:].translate(self.texts)])

    @property
    def by_character(self) -> bool:
        """Whether each character compares by itself, as one character."""
        ranges = self.texts.ranges if isinstance(self.texts, _Texts) else ()
        texts = (*self.texts.values(), *(text for _, _, text in ranges))
        return not self.contractions and all(len(text) == 1 for text in texts)

    def is_as_fine_as(self, other: CollationTable, characters: int) -> bool:
        """
        Return whether all texts that are equal here are equal under another table, too.

        Args:
            other: The other table.
            characters: The texts have characters below this number alone.
        """
        mine, theirs = (each.texts.ranges if isinstance(each.texts, _Texts) else () for each in (self, other))
        if not (set(other.contractions) <= set(self.contractions) and set(mine) <= set(theirs)):
            return False
        units = [*self.contractions.items(), *((chr(unit), text) for unit, text in self.texts.items())]
        return all(
            other.canonical(unit) == other.canonical(text)
            for unit, text in units
            if max(map(ord, unit), default=0) < characters
        )


@cache
def table_of(name: str) -> CollationTable | None:
    """Return the table of a name in the files, such as ``0900_ai_ci`` or ``latin1_swedish_ci``; None if none has it."""
    place = _places().get(name)
    if place is None:
        return None
    base, lines = place
    changed = table_of(base) if base != "-" else None
    texts, contractions = _Texts(), dict[str, str]()
    if changed is not None:
        assert isinstance(changed.texts, _Texts)
        texts.update(changed.texts)
        texts.ranges = changed.texts.ranges
        contractions.update(changed.contractions)
    _read(lines, texts, contractions)
    return CollationTable.of(texts, contractions, circular=name.startswith("ja_"))


def _read(lines: Iterable[str], texts: _Texts, contractions: dict[str, str]) -> None:
    for line in lines:
        unit, count, step, digits = line.split()
        text = "" if digits == "-" else "".join(chr(int(each, 16)) for each in digits.split("+"))
        if "+" in unit:
            contractions["".join(chr(int(each, 16)) for each in unit.split("+"))] = text
            continue
        first, end = int(unit, 16), int(unit, 16) + int(count)
        if step == "1":
            texts.update((code, text[:-1] + chr(ord(text[-1]) + code - first)) for code in range(first, end))
        elif end - first > _LONG:
            texts.ranges = (*texts.ranges, (first, end, text))
        else:
            texts.update(dict.fromkeys(range(first, end), text))


@cache
def _places() -> dict[str, tuple[str, list[str]]]:
    """Return base and lines of every table in the files."""
    found: dict[str, tuple[str, list[str]]] = {}
    for file in _FILES:
        data = files("ndb_formats.types").joinpath("collation_data", f"{file}.xz").read_bytes()
        lines: list[str] = []
        for line in lzma.decompress(data).decode().splitlines():
            if line.startswith(" "):
                lines.append(line)
                continue
            lines = []
            name, base = line.split()
            found[name] = base, lines
    return found


_ASCII_SIZE = 128
# All have the weights of the collation of utf8mb4 with the rest of their name.
_UNICODE = frozenset({"utf8mb4", "utf8mb3", "ucs2", "utf16", "utf16le", "utf32", "gb18030"})
_LIKE_ASCII = frozenset({"ascii", "latin1", "utf8mb3", "utf8mb4"})
_NO_TEXT = 0xFF
# Starts the key of a text that is kept as bytes; no text that is kept as such contains it.
_RAW = "\udbff"


@attrs.frozen
class AsciiRules:
    """
    How ASCII text compares, where that takes a look at each byte, and the next one.

    Attributes:
        texts: For each byte the one that stands for it; 255 if that is not one byte of ASCII. 256 bytes.
        pairs: For each two bytes 1 if a contraction starts with them, row by row; empty without contractions.
    """

    texts: bytes
    pairs: bytes


@attrs.frozen(eq=False)
class TextComparison:
    """
    How texts of a collation compare.

    Attributes:
        charset: Character set of the texts.
        pads: PAD SPACE: blanks at the end do not count.
        table: Its table; None if characters are equal only to themselves.
        exact: Whether equality is that of the server; otherwise letter case and accents are ignored as far as the
            collation's name says so.
        ascii: How ASCII text compares; None where bytes below 128 may be other characters.
    """

    charset: str
    pads: bool
    table: CollationTable | None
    exact: bool
    ascii: AsciiRules | None
    _name: str = attrs.field(repr=False)

    def key(self, payload: bytes, *, pads: bool = False, characters: int = 0) -> bytes:
        """
        Return the bytes of a text that are the same for all texts that are equal to it: readable UTF-8.

        Args:
            payload: The text, in its character set.
            pads: Whether blanks at the end do not count in any case, as in CHAR columns.
            characters: How many characters count; 0 for all.
        """
        if self.exact and PYTHON_CODEC.get(self.charset) is None:
            # A `_bin` collation of one byte per character.
            return self._raw(payload[:characters] if characters else payload, pads=pads)
        text = decode_text(payload, self.charset)
        if self.charset == "ucs2":
            # Its characters have two bytes each: what would be one supplementary character elsewhere is two here.
            text = "".join(map(chr, struct.unpack(f">{len(payload) // 2}H", payload)))
        if characters:
            text = text[:characters]
        elif self.table is None and encode_text(text, self.charset) != payload:
            # Two byte sequences for one character are two texts under a `_bin` collation.
            return self._raw(payload, pads=pads)
        if pads:
            text = text.rstrip(" ")
        if self.table is not None:
            text = self.table.canonical(text)
        elif not self.exact:
            text = _folded(text, self._name)
        return (text.rstrip(" ") if self.pads else text).encode("utf-8", "surrogatepass")

    def _raw(self, payload: bytes, *, pads: bool) -> bytes:
        raw = payload.rstrip(b" ") if self.pads or pads else payload
        return f"{_RAW}{raw.hex()}".encode("utf-8", "surrogatepass")


def is_exact(collation: str) -> bool:
    """Return whether equality under a collation is known exactly."""
    return collation.endswith("_bin") or collation == "binary" or _table(collation) is not None


@cache
def comparison_of(collation: str, *, inexact: bool = False) -> TextComparison:
    """
    Return how texts of a collation compare.

    Args:
        collation: Its name.
        inexact: Whether letter case and accents may be taken from Unicode where equality is not known exactly.

    Raises:
        UnsupportedError: It is not known exactly, and `inexact` is false.
    """
    exact = is_exact(collation)
    if not exact and not inexact:
        message = f"equality under collation {collation} is not known exactly"
        raise UnsupportedError(message)
    charset, table = charset_of_collation(collation), _table(collation)
    pads = "_0900_" not in collation and "_nopad_" not in collation and collation != "binary"
    rules = _ascii_rules(table) if exact and charset in _LIKE_ASCII else None
    return TextComparison(charset, pads, table, exact, rules, collation)


def _table(collation: str) -> CollationTable | None:
    charset, _, rest = collation.partition("_")
    if charset == "utf8":
        charset = "utf8mb3"
    if rest == "bin":
        return None
    # The older forms of general_ci are of character sets without supplementary characters.
    return table_of(rest if charset in _UNICODE else collation)


def _ascii_rules(table: CollationTable | None) -> AsciiRules:
    if table is None:
        return AsciiRules(bytes(range(_ASCII_SIZE)) + bytes([_NO_TEXT]) * _ASCII_SIZE, b"")
    texts = [table.canonical(chr(byte)) for byte in range(_ASCII_SIZE)]
    # What only compares like a blank is trimmed after the whole text is known.
    texts = ["" if text == " " and byte != ord(" ") else text for byte, text in enumerate(texts)]
    plain = bytes(ord(text) if len(text) == 1 and text.isascii() else _NO_TEXT for text in texts)
    pairs = bytearray(_ASCII_SIZE**2)
    for unit in table.contractions:
        if unit[:2].isascii():
            pairs[ord(unit[0]) * _ASCII_SIZE + ord(unit[1])] = 1
    return AsciiRules(plain + bytes([_NO_TEXT]) * _ASCII_SIZE, bytes(pairs) if any(pairs) else b"")


def _folded(text: str, collation: str) -> str:
    if not collation.endswith("_ci"):
        return text
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part)).casefold()
