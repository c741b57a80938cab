"""
When two keys are the same key.

Text keys compare by collation: under latin1_swedish_ci 'abc' and 'ABC' are one row. `key_of` gives
bytes that are equal exactly when NDB takes two keys as equal.

Choices: weights of the Unicode collations are approximated by case folding and the removal of
accents, which gives the same equalities for the letters of European scripts; latin1_swedish_ci is exact.
Collations before utf8mb4_0900 ignore trailing blanks (PAD SPACE), the 0900 ones do not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ndb_formats.charsets import decode_text
from ndb_formats.schema import Column

__all__ = ["key_of"]

# latin1_swedish_ci (MySQL `ctype-latin1.cc`): what a letter compares as, after upper-casing.
_SWEDISH = str.maketrans(
    "ÀÁÂÃÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÙÚÛÜÝÆ",
    "AAAACEEEEIIIIDNOOOOUUUYYÄ",
)


def key_of(columns: Sequence[Column], payloads: Sequence[bytes | None]) -> bytes:
    """
    Return a row's identity from the bytes of its key columns.

    Args:
        columns: Key columns, in key order.
        payloads: Their bytes as in a row image; None is NULL.
    """
    parts = []
    for column, payload in zip(columns, payloads, strict=True):
        if payload is None:
            parts.append(b"\0")
            continue
        weight = payload if column.charset is None else _weight(payload, column)
        parts.append(b"\1" + len(weight).to_bytes(4, "little") + weight)
    return b"".join(parts)


def _weight(payload: bytes, column: Column) -> bytes:
    assert column.charset is not None
    assert column.collation is not None
    collation = column.collation
    text = decode_text(payload, column.charset)
    if "_0900_" not in collation:
        text = text.rstrip(" ")
    if collation == "latin1_swedish_ci":
        text = _swedish_upper(text).translate(_SWEDISH)
    elif collation.endswith("_ci"):
        text = text.casefold()
        if not collation.endswith("_as_ci"):
            text = "".join(part for part in unicodedata.normalize("NFKD", text) if not unicodedata.combining(part))
            text = text.casefold()
    return text.encode("utf-8", "surrogatepass")


def _swedish_upper(text: str) -> str:
    """Upper-case one character at a time; ß and ÿ have no upper case in latin1 and stay."""
    return "".join(upper if len(upper := letter.upper()) == 1 and ord(upper) < 256 else letter for letter in text)
