"""
The identity of a row: its primary key, compared as NDB compares it.

Text compares by collation: under latin1_swedish_ci 'abc' and 'ABC' are the same key. `key_of` returns equal bytes for
two keys if and only if the server says that they are equal, see `ndb_formats.types.collations`.

Choices: CHAR ignores trailing blanks under any collation, because a row does not keep them. A collation without a table
is refused, unless the column allows it (`Column.inexact_key`).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from ndb_formats.cursor import Cursor
from ndb_formats.errors import UnsupportedError
from ndb_formats.schema.tables import Column
from ndb_formats.types.collations import Comparison, comparison_of
from ndb_formats.types.column_types import Codec
from ndb_formats.types.decimals import decimal_text

__all__ = ["comparison_of_column", "ignores_blanks", "is_text", "key_of", "key_text", "weight_of"]


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
        if is_text(column):
            weight = weight_of(payload, column)
        else:
            weight = payload[: column.key_prefix] if column.key_prefix else payload
        parts.append(b"\1" + len(weight).to_bytes(4, "little") + weight)
    return b"".join(parts)


def is_text(column: Column) -> bool:
    """Return whether a key column compares by its collation; ENUM and SET have one, but compare as numbers."""
    return column.charset is not None and not column.members


def comparison_of_column(column: Column) -> Comparison:
    """
    Return how the texts of a key column compare.

    Raises:
        UnsupportedError: Equality under its collation is not known, and the column does not allow that.
    """
    assert column.collation is not None
    try:
        return comparison_of(column.collation, inexact=column.inexact_key)
    except UnsupportedError as error:
        message = (
            f"a key column, but {error} (docs/keys.md); --inexact-keys, or inexact_keys = true in a run file, ignores "
            "letter case and accents as far as the collation's name says so"
        )
        raise UnsupportedError(message, column=column.name) from None


def ignores_blanks(column: Column) -> bool:
    """Return whether blanks at the end of a column's values never count: a row does not keep them."""
    return column.type == "char"


def weight_of(payload: bytes, column: Column) -> bytes:
    """
    Return the weight of a text: the bytes by which it compares, in UTF-8.

    Raises:
        UnsupportedError: Equality under its collation is not known, and the column does not allow that.
    """
    comparison = comparison_of_column(column)
    return comparison.key(payload, pads=ignores_blanks(column), characters=column.key_prefix)


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
        elif is_text(column):
            # Bytes that are no character are lone surrogates, which text for people cannot have.
            value = weight.decode("utf-8", "surrogatepass").encode("utf-8", "backslashreplace").decode()
        else:
            value = codec.decode(weight)
        if isinstance(value, Decimal):
            value = decimal_text(value)
        parts.append(f"{column.name}={value.hex() if isinstance(value, bytes) else value}")
    return ", ".join(parts)
