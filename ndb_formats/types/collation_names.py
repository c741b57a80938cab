"""
Names of the collations of MySQL and MariaDB, by number.

Source: `information_schema.COLLATIONS` and `CHARACTER_SETS` of MySQL 9.x;
`COLLATION_CHARACTER_SET_APPLICABILITY` of MariaDB 10.11. Numbers from 576 on are MariaDB's.
"""

from __future__ import annotations

import attrs

# The collation `binary`, of columns that hold bytes.
BINARY = 63


@attrs.frozen
class Collation:
    """
    One collation.

    Attributes:
        number: Its number.
        name: Its name.
        charset: Its character set.
        max_bytes: Bytes of the longest character in that.
    """

    number: int
    name: str
    charset: str
    max_bytes: int


def collation_of(number: int) -> Collation | None:
    """Return the collation of a number; None if it is not known."""
    return _COLLATIONS.get(number)


def collation_named(name: str, charset: str | None = None) -> Collation | None:
    """
    Return the collation of a name; None if it is not known.

    MariaDB's `uca1400_*` names fit several character sets: they need that of the column.
    """
    found = _BY_NAME.get(name)
    return _BY_NAME.get(f"{charset}_{name}") if found is None and charset else found


def max_bytes(charset: str) -> int:
    """Return the bytes of the longest character of a character set."""
    return _MAX_BYTES.get(charset, 1)


# Character sets with characters of more than one byte.
_MAX_BYTES = (
    dict.fromkeys(("big5", "cp932", "euckr", "gb2312", "gbk", "sjis", "ucs2"), 2)
    | dict.fromkeys(("eucjpms", "ujis", "utf8mb3"), 3)
    | dict.fromkeys(("gb18030", "utf16", "utf16le", "utf32", "utf8mb4"), 4)
)

# The part of the name of the collation after that of the character set.
_SINGLE = {
    "armscii8": {32: "general_ci", 64: "bin"},
    "ascii": {11: "general_ci", 65: "bin"},
    "big5": {1: "chinese_ci", 84: "bin"},
    "cp1250": {26: "general_ci", 34: "czech_cs", 44: "croatian_ci", 66: "bin", 99: "polish_ci"},
    "cp1251": {14: "bulgarian_ci", 23: "ukrainian_ci", 50: "bin", 51: "general_ci", 52: "general_cs"},
    "cp1256": {57: "general_ci", 67: "bin"},
    "cp1257": {29: "lithuanian_ci", 58: "bin", 59: "general_ci"},
    "cp850": {4: "general_ci", 80: "bin"},
    "cp852": {40: "general_ci", 81: "bin"},
    "cp866": {36: "general_ci", 68: "bin"},
    "cp932": {95: "japanese_ci", 96: "bin"},
    "dec8": {3: "swedish_ci", 69: "bin"},
    "eucjpms": {97: "japanese_ci", 98: "bin"},
    "euckr": {19: "korean_ci", 85: "bin"},
    "gb18030": {248: "chinese_ci", 249: "bin", 250: "unicode_520_ci"},
    "gb2312": {24: "chinese_ci", 86: "bin"},
    "gbk": {28: "chinese_ci", 87: "bin"},
    "geostd8": {92: "general_ci", 93: "bin"},
    "greek": {25: "general_ci", 70: "bin"},
    "hebrew": {16: "general_ci", 71: "bin"},
    "hp8": {6: "english_ci", 72: "bin"},
    "keybcs2": {37: "general_ci", 73: "bin"},
    "koi8r": {7: "general_ci", 74: "bin"},
    "koi8u": {22: "general_ci", 75: "bin"},
    "latin1": {5: "german1_ci", 8: "swedish_ci", 15: "danish_ci", 31: "german2_ci", 47: "bin", 48: "general_ci"}
    | {49: "general_cs", 94: "spanish_ci"},
    "latin2": {2: "czech_cs", 9: "general_ci", 21: "hungarian_ci", 27: "croatian_ci", 77: "bin"},
    "latin5": {30: "turkish_ci", 78: "bin"},
    "latin7": {20: "estonian_cs", 41: "general_ci", 42: "general_cs", 79: "bin"},
    "macce": {38: "general_ci", 43: "bin"},
    "macroman": {39: "general_ci", 53: "bin"},
    "sjis": {13: "japanese_ci", 88: "bin"},
    "swe7": {10: "swedish_ci", 82: "bin"},
    "tis620": {18: "thai_ci", 89: "bin"},
    "ucs2": {35: "general_ci", 90: "bin", 159: "general_mysql500_ci"},
    "ujis": {12: "japanese_ci", 91: "bin"},
    "utf16": {54: "general_ci", 55: "bin"},
    "utf16le": {56: "general_ci", 62: "bin"},
    "utf32": {60: "general_ci", 61: "bin"},
    "utf8mb3": {33: "general_ci", 76: "tolower_ci", 83: "bin", 223: "general_mysql500_ci"},
    "utf8mb4": {45: "general_ci", 46: "bin", 303: "ja_0900_as_cs", 304: "ja_0900_as_cs_ks"}
    | {305: "0900_as_ci", 306: "ru_0900_ai_ci", 307: "ru_0900_as_cs", 308: "zh_0900_as_cs", 309: "0900_bin"},
}

# The collations of the Unicode character sets have blocks of numbers, in the same order in each.
_UNICODE = (
    "unicode icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish lithuanian "
    "slovak spanish2 roman persian esperanto hungarian sinhala german2 croatian unicode_520 vietnamese"
)
_UNICODE_BLOCKS = {"utf16": 101, "ucs2": 128, "utf32": 160, "utf8mb3": 192, "utf8mb4": 224}
# Two blocks of utf8mb4, insensitive and sensitive to accents and case; a dash is a number that is not used.
_UCA_0900 = "* de_pb is lv ro sl pl et es sv tr cs da lt sk es_trad la - eo hu hr - vi"
_UCA_0900_BLOCKS = {255: "ai_ci", 278: "as_cs"}
# Later ones have two numbers in a row, one for each form.
_LATE_0900 = "nb nn sr_latn bs bg gl mn_cyrl"
_LATE_0900_START = 310
# MariaDB's collations of its own, in blocks of the same order for each Unicode character set.
_MARIADB_BLOCKS = {"utf8mb3": 576, "utf8mb4": 608, "ucs2": 640, "utf16": 672, "utf32": 736}
_MARIADB = ("croatian_ci", "myanmar_ci", "thai_520_w2")
# Those that pad nothing have the number of the padding one plus 1024. They exist for these.
_NOPAD = 1024
_NOPAD_BASES = frozenset(
    ["bin", "chinese_ci", "english_ci", "general_ci", "japanese_ci", "korean_ci", "swedish_ci", "thai_ci", "turkish_ci"]
)
_NOPAD_UNICODE = frozenset(("unicode_ci", "unicode_520_ci"))
# Of the Unicode Collation Algorithm 14.0.0: eight numbers for each language; dashes are numbers that are not used.
_UCA_1400_BLOCKS = {"utf8mb3": 2048, "utf8mb4": 2304, "ucs2": 2560, "utf16": 2816, "utf32": 3072}
_UCA_1400 = (
    "* icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish lithuanian slovak "
    "spanish2 roman persian esperanto hungarian sinhala german2 - - vietnamese croatian"
)
_UCA_1400_FORMS = ("ai_ci", "ai_cs", "as_ci", "as_cs", "nopad_ai_ci", "nopad_ai_cs", "nopad_as_ci", "nopad_as_cs")


def _of_mariadb() -> dict[int, tuple[str, str]]:
    """Return character set and rest of the name of each collation that only MariaDB has, by number."""
    found = {
        start + position: (charset, rest)
        for charset, start in _MARIADB_BLOCKS.items()
        for position, rest in enumerate(_MARIADB)
    }
    for charset, names in _SINGLE.items():
        for number, rest in names.items():
            if rest in _NOPAD_BASES and charset != "gb18030" and (charset, rest) != ("latin1", "general_ci"):
                found[_NOPAD + number] = (charset, _nopad(rest))
    for charset, start in _UNICODE_BLOCKS.items():
        for position, name in enumerate(_UNICODE.split()):
            if f"{name}_ci" in _NOPAD_UNICODE:
                found[_NOPAD + start + position] = (charset, f"{name}_nopad_ci")
    for charset, start in _UCA_1400_BLOCKS.items():
        for position, name in enumerate(_UCA_1400.split()):
            if name != "-":
                language = "" if name == "*" else f"{name}_"
                for form, rest in enumerate(_UCA_1400_FORMS):
                    found[start + len(_UCA_1400_FORMS) * position + form] = (charset, f"uca1400_{language}{rest}")
    return found


def _nopad(rest: str) -> str:
    head, _, form = rest.rpartition("_")
    return f"{head}_nopad_{form}" if head else f"nopad_{form}"


def _suffixes() -> dict[int, tuple[str, str]]:
    """Return character set and rest of the name of each collation, by number."""
    found = {number: (charset, rest) for charset, names in _SINGLE.items() for number, rest in names.items()}
    for charset, start in _UNICODE_BLOCKS.items():
        found |= {start + position: (charset, f"{name}_ci") for position, name in enumerate(_UNICODE.split())}
    for start, form in _UCA_0900_BLOCKS.items():
        for position, name in enumerate(_UCA_0900.split()):
            if name != "-":
                found[start + position] = ("utf8mb4", f"0900_{form}" if name == "*" else f"{name}_0900_{form}")
    for position, name in enumerate(_LATE_0900.split()):
        found[_LATE_0900_START + 2 * position] = ("utf8mb4", f"{name}_0900_ai_ci")
        found[_LATE_0900_START + 2 * position + 1] = ("utf8mb4", f"{name}_0900_as_cs")
    return found


_COLLATIONS = {BINARY: Collation(BINARY, "binary", "binary", 1)} | {
    number: Collation(number, f"{charset}_{rest}", charset, max_bytes(charset))
    for number, (charset, rest) in (_of_mariadb() | _suffixes()).items()
}
# A name of both servers is MySQL's, whose number is the lower one.
_BY_NAME = {collation.name: collation for _, collation in sorted(_COLLATIONS.items(), reverse=True)}
