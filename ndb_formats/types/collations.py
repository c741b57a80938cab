"""
When two texts are equal under a collation.

Exact are the collations whose name ends in ``_bin``, and those with a table in `ndb_formats.types.collation_tables`: of
the Unicode character sets, and of those with one byte a character. Other collations are refused where equality counts.
"""

from __future__ import annotations

import struct
import unicodedata
from functools import cache

import attrs

from ndb_formats.errors import UnsupportedError
from ndb_formats.types.charsets import PYTHON_CODEC, charset_of_collation, decode_text, encode_text
from ndb_formats.types.collation_tables import CollationTable, table_of

__all__ = ["ASCII_SIZE", "AsciiRules", "Comparison", "comparison_of", "is_exact"]

ASCII_SIZE = 128
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
class Comparison:
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
def comparison_of(collation: str, *, inexact: bool = False) -> Comparison:
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
    return Comparison(charset, pads, table, exact, rules, collation)


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
        return AsciiRules(bytes(range(ASCII_SIZE)) + bytes([_NO_TEXT]) * ASCII_SIZE, b"")
    texts = [table.canonical(chr(byte)) for byte in range(ASCII_SIZE)]
    # What only compares like a blank is trimmed after the whole text is known.
    texts = ["" if text == " " and byte != ord(" ") else text for byte, text in enumerate(texts)]
    plain = bytes(ord(text) if len(text) == 1 and text.isascii() else _NO_TEXT for text in texts)
    pairs = bytearray(ASCII_SIZE**2)
    for unit in table.contractions:
        if unit[:2].isascii():
            pairs[ord(unit[0]) * ASCII_SIZE + ord(unit[1])] = 1
    return AsciiRules(plain + bytes([_NO_TEXT]) * ASCII_SIZE, bytes(pairs) if any(pairs) else b"")


def _folded(text: str, collation: str) -> str:
    if not collation.endswith("_ci"):
        return text
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part)).casefold()
