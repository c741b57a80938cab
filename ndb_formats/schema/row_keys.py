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

from ndb_formats.cursor import Cursor
from ndb_formats.schema.tables import Column
from ndb_formats.types.charsets import decode_text
from ndb_formats.types.column_types import Codec

__all__ = ["is_text", "key_of", "key_text", "weight_of"]

# latin1_swedish_ci (MySQL `ctype-latin1.cc`): what a character compares as. Š, Œ, Ž and Ÿ have no lower case
# in it, and å, ä, ö stand where [, \\, ] do.
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞ"
_ALIKE = dict(zip("àáâãçèéêëìíîïðñòóôõùúûüýæ[\\]", "aaaaceeeeiiiidnoooouuuyyäåäö", strict=True))
_SWEDISH = str.maketrans({letter: _ALIKE.get(letter.lower(), letter.lower()) for letter in _CAPITALS} | _ALIKE)


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
        weight = weight_of(payload, column) if is_text(column) else payload
        parts.append(b"\1" + len(weight).to_bytes(4, "little") + weight)
    return b"".join(parts)


def is_text(column: Column) -> bool:
    """Whether a key compares by collation; ENUM and SET have one, but compare as the numbers they are."""
    return column.charset is not None and not column.members


def weight_of(payload: bytes, column: Column) -> bytes:
    """Return what a text key compares as."""
    assert column.charset is not None
    assert column.collation is not None
    collation = column.collation
    text = decode_text(payload, column.charset)
    if "_0900_" not in collation:
        text = text.rstrip(" ")
    if collation == "latin1_swedish_ci":
        text = text.translate(_SWEDISH)
    elif collation.endswith("_ci"):
        text = text.casefold()
        if not collation.endswith("_as_ci"):
            text = "".join(part for part in unicodedata.normalize("NFKD", text) if not unicodedata.combining(part))
            text = text.casefold()
    return text.encode("utf-8", "surrogatepass")


def key_text(columns: Sequence[Column], codecs: Sequence[Codec], key: bytes) -> str:
    """
    Return a row's identity for people to read: ``a=1, b=two``. Text stands as it compares.

    Args:
        columns: Key columns, in key order.
        codecs: Their codecs.
        key: What `key_of` returned.
    """
    cursor, parts = Cursor(key), []
    for column, codec in zip(columns, codecs, strict=True):
        weight = cursor.take(cursor.uint(4)) if cursor.uint(1) else None
        if weight is None:
            value: object = "NULL"
        else:
            value = weight.decode("utf-8", "surrogatepass") if is_text(column) else codec.decode(weight)
        parts.append(f"{column.name}={value.hex() if isinstance(value, bytes) else value}")
    return ", ".join(parts)
