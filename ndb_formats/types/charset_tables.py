"""
The server's character sets where they are not Python's codecs.

`charset_data/differences.xz` is JSON, made by `tools/charset_tables.py` from what a MySQL 9.7 server said of every
character: for a set of one byte per character, all 256 of them; for others, those that Python's codec misses, by
their bytes, and those that it takes for another.
"""

from __future__ import annotations

import codecs
import json
import lzma
from functools import cache
from importlib.resources import files
from typing import Any

import attrs

__all__ = ["MultiByte", "SingleByte", "server_table"]


@attrs.frozen
class SingleByte:
    """A character set of one byte per character; bytes that are no character are lone surrogates."""

    characters: str

    def decode(self, data: bytes) -> str:
        """Return the text of some bytes."""
        return codecs.charmap_decode(data, "strict", self.characters)[0]

    def encode(self, text: str) -> bytes:
        """Return the bytes of a text; of two bytes for one character, the first."""
        return codecs.charmap_encode(text, "strict", _bytes_of(self.characters))[0]


@cache
def _bytes_of(characters: str) -> dict[int, int]:
    return {ord(characters[byte]): byte for byte in reversed(range(len(characters)))}


@attrs.frozen(eq=False)
class MultiByte:
    """
    A character set of several bytes per character, as its difference from a codec.

    Attributes:
        codec: Python's codec.
        missing: Characters that it misses, by their bytes.
        wrong: What its characters are, where the server has others.
    """

    codec: str
    missing: dict[bytes, str]
    wrong: dict[int, str]
    _codes: dict[str, bytes]
    _back: dict[int, str]
    _handler: str

    def decode(self, data: bytes) -> str:
        """Return the text of some bytes; bytes that are no character are lone surrogates."""
        return data.decode(self.codec, self._handler).translate(self.wrong)

    def encode(self, text: str) -> bytes:
        """Return the bytes of a text."""
        return text.translate(self._back).encode(self.codec, self._handler)

    def on_error(self, error: UnicodeError) -> tuple[str | bytes, int]:
        """Find what the codec misses: the error handler of both directions."""
        if isinstance(error, UnicodeDecodeError):
            for size in (3, 2, 1):
                code = error.object[error.start : error.start + size]
                if code in self.missing:
                    return self.missing[code], error.start + len(code)
            return error.object[error.start : error.start + 1].decode("ascii", "surrogateescape"), error.start + 1
        if isinstance(error, UnicodeEncodeError):
            letter = error.object[error.start]
            known = self._codes.get(letter)
            if known is None and 0xDC80 <= ord(letter) <= 0xDCFF:
                known = bytes([ord(letter) - 0xDC00])
            if known is not None:
                return known, error.start + 1
        raise error


@cache
def server_table(charset: str, codec: str | None) -> SingleByte | MultiByte | None:
    """Return the table of a character set; None if it is exactly Python's codec."""
    entry = _differences().get(charset)
    if entry is None:
        return None
    if "single" in entry:
        return SingleByte(entry["single"])
    assert codec is not None
    missing = {bytes.fromhex(code): letter for code, letter in entry["missing"].items()}
    codes = {letter: code for code, letter in reversed(missing.items())}
    wrong = {ord(other): letter for other, letter in entry["wrong"].items()}
    back = {
        ord(letter): chr(other)
        for other, letter in wrong.items()
        if len(letter) == 1 and letter not in codes and not letter.encode(codec, "ignore")
    }
    found = MultiByte(codec, missing, wrong, codes, back, f"mysql_{charset}")
    codecs.register_error(f"mysql_{charset}", found.on_error)
    return found


@cache
def _differences() -> dict[str, dict[str, Any]]:
    data = files("ndb_formats.types").joinpath("charset_data", "differences.xz").read_bytes()
    found: dict[str, dict[str, Any]] = json.loads(lzma.decompress(data))
    return found
