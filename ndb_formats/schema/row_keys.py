"""
The identity of a row: its primary key, compared as NDB compares it.

Text compares by collation: under latin1_swedish_ci 'abc' and 'ABC' are the same key. `key_of` returns equal bytes for
two keys if and only if NDB considers them equal.

Choices: the weights of Unicode collations are approximated by case folding and the removal of accents, which gives the
same equalities for the letters of European scripts; latin1_swedish_ci is exact. Collations other than the 0900 ones
ignore trailing blanks (PAD SPACE).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ndb_formats.cursor import Cursor
from ndb_formats.schema.tables import Column
from ndb_formats.types.charsets import decode_text
from ndb_formats.types.column_types import Codec

__all__ = ["is_text", "key_of", "key_text", "weight_of"]

# Weights of latin1_swedish_ci (MySQL `ctype-latin1.cc`). Š, Œ, Ž and Ÿ have no lower case in it, and å, ä, ö have the
# weights of [, \\, ].
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞ"
_ALIKE = dict(zip("àáâãçèéêëìíîïðñòóôõùúûüýæ[\\]", "aaaaceeeeiiiidnoooouuuyyäåäö", strict=True))
_SWEDISH = str.maketrans({letter: _ALIKE.get(letter.lower(), letter.lower()) for letter in _CAPITALS} | _ALIKE)


def key_of(columns: Sequence[Column], payloads: Sequence[bytes | None]) -> bytes:
    """
    Return the identity of a row: for each key column 0 for NULL, else 1, the length in four bytes, and the weight.

    Args:
        columns: Key columns, in key order.
        payloads: Their bytes in a row image; None is NULL.
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
    """Return whether a key column compares by its collation; ENUM and SET have one, but compare as numbers."""
    return column.charset is not None and not column.members


def weight_of(payload: bytes, column: Column) -> bytes:
    """Return the weight of a text: the bytes by which it compares."""
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
    Return the identity of a row as text, such as ``a=1, b=two``; it shows the weights of texts.

    Args:
        columns: Key columns, in key order.
        codecs: Their codecs.
        key: The identity, from `key_of`.
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
