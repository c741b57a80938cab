"""
MySQL's character sets: the codecs that decode them, and their default collations.

Most are codecs of Python. `charset_data/differences.xz` has where the server's are not: JSON, made by
`tools/charset_tables.py` from what a MySQL 9.7 server said of every character: for a set of one byte per character, all
256 of them; for others, those that Python's codec misses, by their bytes, and those that it takes for another.

Source: `information_schema.COLLATIONS` and `CHARACTER_SETS` of MySQL 9.x.
"""

from __future__ import annotations

import codecs
import json
import lzma
import re
from functools import cache, cached_property
from importlib.resources import files
from itertools import product
from typing import Any

import attrs

from ndb_formats.errors import CorruptError, UnsupportedError
from ndb_formats.types.collation_names import collation_of


@attrs.frozen
class _SingleByte:
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


_INVALID = re.compile("[\udc80-\udcff]")  # what invalid bytes become


@attrs.frozen(eq=False, slots=False)
class _MultiByte:
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
        """Return the bytes of a text; of two codes of a character, one that no byte before it is taken into."""
        found = self._encode(text)
        if _INVALID.search(text) is None or self.decode(found) == text:
            return found
        found = b""
        for place, letter in enumerate(text, 1):
            codes = [self._encode(letter), *self._further_codes.get(letter, ())]
            fitting = (found + code for code in codes if self.decode(found + code) == text[:place])
            found = next(fitting, found + codes[0])
        return found

    def _encode(self, text: str) -> bytes:
        return text.translate(self._back).encode(self.codec, self._handler)

    @cached_property
    def _further_codes(self) -> dict[str, list[bytes]]:
        """The codes of two bytes that are not those to which their characters encode, by character."""
        found: dict[str, list[bytes]] = {}
        for code in (bytes(each) for each in product(range(0x80, 0x100), range(0x40, 0x100))):
            letter = self.decode(code)
            if len(letter) == 1 and self._encode(letter) != code:
                found.setdefault(letter, []).append(code)
        return found

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
def _server_table(charset: str, codec: str | None) -> _SingleByte | _MultiByte | None:
    """Return the table of a character set; None if it is exactly Python's codec."""
    entry = _differences().get(charset)
    if entry is None:
        return None
    if "single" in entry:
        return _SingleByte(entry["single"])
    assert codec is not None
    missing = {bytes.fromhex(code): letter for code, letter in entry["missing"].items()}
    codes = {letter: code for code, letter in reversed(missing.items())}
    wrong = {ord(other): letter for other, letter in entry["wrong"].items()}
    back = {
        ord(letter): chr(other)
        for other, letter in wrong.items()
        if len(letter) == 1 and letter not in codes and not letter.encode(codec, "ignore")
    }
    found = _MultiByte(codec, missing, wrong, codes, back, f"mysql_{charset}")
    codecs.register_error(f"mysql_{charset}", found.on_error)
    return found


@cache
def _differences() -> dict[str, dict[str, Any]]:
    data = files("ndb_formats.types").joinpath("charset_data", "differences.xz").read_bytes()
    found: dict[str, dict[str, Any]] = json.loads(lzma.decompress(data))
    return found


# Python's codec for each MySQL character set. latin1 is cp1252 in MySQL.
PYTHON_CODEC = {
    "armscii8": None,
    "ascii": "ascii",
    "big5": "big5",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp932": "cp932",
    "dec8": None,
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "geostd8": None,
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "hp8": "hp_roman8",
    "keybcs2": None,
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "sjis": "shift_jis",
    "swe7": None,
    "tis620": "tis_620",
    "ucs2": "utf_16_be",
    "ujis": "euc_jp",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "utf8mb3": "utf_8",
    "utf8mb4": "utf_8",
}


def charset_of_collation_id(number: int) -> str:
    """
    Return the character set of a collation number.

    Raises:
        UnsupportedError: The number is not one of the server's.
    """
    collation = collation_of(number)
    if collation is None:
        message = f"collation number {number} is not known"
        raise UnsupportedError(message)
    return collation.charset


def charset_of_collation(collation: str) -> str:
    """Return the character set of a collation name: its part before the first underscore."""
    charset = collation.lower().split("_", 1)[0]
    return "utf8mb3" if charset == "utf8" else charset


_DEFAULT_COLLATIONS = {
    "big5": "big5_chinese_ci",
    "cp932": "cp932_japanese_ci",
    "dec8": "dec8_swedish_ci",
    "eucjpms": "eucjpms_japanese_ci",
    "euckr": "euckr_korean_ci",
    "gb18030": "gb18030_chinese_ci",
    "gb2312": "gb2312_chinese_ci",
    "gbk": "gbk_chinese_ci",
    "hp8": "hp8_english_ci",
    "latin1": "latin1_swedish_ci",
    "latin5": "latin5_turkish_ci",
    "sjis": "sjis_japanese_ci",
    "swe7": "swe7_swedish_ci",
    "tis620": "tis620_thai_ci",
    "ujis": "ujis_japanese_ci",
    "utf8mb4": "utf8mb4_0900_ai_ci",
}


def is_charset(name: str) -> bool:
    """Whether the server has a character set of that name."""
    return name in PYTHON_CODEC or name == "binary"


def default_collation(charset: str) -> str:
    """Return the default collation of a character set."""
    return _DEFAULT_COLLATIONS.get(charset, f"{charset}_general_ci")


_C1 = frozenset("\x81\x8d\x8f\x90\x9d")


def _keep_unassigned(error: UnicodeError) -> tuple[str | bytes, int]:
    """Map the five bytes that cp1252 leaves unassigned to the C1 controls, as MySQL does, and back."""
    if isinstance(error, UnicodeDecodeError):
        return error.object[error.start : error.end].decode("latin_1"), error.end
    if isinstance(error, UnicodeEncodeError) and error.object[error.start] in _C1:
        return error.object[error.start].encode("latin_1"), error.start + 1
    raise error


codecs.register_error("mysql_latin1", _keep_unassigned)


def _codec(charset: str) -> str:
    codec = PYTHON_CODEC.get(charset)
    if codec is None:
        message = f"text in character set {charset} cannot be decoded; read the column as binary"
        raise UnsupportedError(message)
    return codec


def decode_text(data: bytes, charset: str) -> str:
    """
    Decode text of a MySQL character set.

    Bytes that are not valid in it become lone surrogates, which encode to the same bytes.

    Raises:
        CorruptError: Bytes that are no character in a character set of 2 or 4 bytes per character.
    """
    table = _server_table(charset, PYTHON_CODEC.get(charset))
    if table is not None:
        return table.decode(data)
    try:
        text = data.decode(_codec(charset), _ON_INVALID.get(charset, "surrogateescape"))
    except UnicodeDecodeError as error:
        message = f"not valid in character set {charset}: {error.reason} at byte {error.start}"
        raise CorruptError(message) from None
    return text.translate(_SWAPPED[charset]) if charset in _SWAPPED else text


def encode_text(text: str, charset: str) -> bytes:
    """Encode text for a MySQL character set; the inverse of `decode_text`."""
    table = _server_table(charset, PYTHON_CODEC.get(charset))
    if table is not None:
        return table.encode(text)
    if charset in _SWAPPED:
        text = text.translate(_SWAPPED[charset])
    return text.encode(_codec(charset), _ON_INVALID.get(charset, "surrogateescape"))


# The server has GB 18030 of 2005, which gave two characters each other's bytes; Python has that of 2000.
_SWAPPED = {"gb18030": str.maketrans("\u1e3f\ue7c7", "\ue7c7\u1e3f")}
# In the wide character sets a lone surrogate is a valid code unit.
_ON_INVALID = {"latin1": "mysql_latin1"} | dict.fromkeys(("ucs2", "utf16", "utf16le", "utf32"), "surrogatepass")
