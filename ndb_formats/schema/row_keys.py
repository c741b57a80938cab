"""
The identity of a row: its primary key, compared as NDB compares it.

Of a table that declares none, the first unique key without a column that can be NULL serves: NDB adds a hidden key only
where there is none, so the rows of such a table are found, logged and judged by that key. For other engines the rules
of row images take the same columns (`ndb_formats.rules.row_image_rules`).

Text compares by collation: under latin1_swedish_ci 'abc' and 'ABC' are the same key. `key_of` returns equal bytes for
two keys if and only if the server says that they are equal, see `ndb_formats.types.collations`.

Choices: CHAR ignores trailing blanks under any collation, because a row does not keep them. A collation without a table
is refused, unless the column allows it (`Column.inexact_key`; see docs/keys.md).

Source: MySQL manual, "CREATE TABLE Statement": "MySQL returns the first UNIQUE index that has no NULL columns as the
PRIMARY KEY".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import attrs

from ndb_formats.cursor import Cursor
from ndb_formats.errors import UnsupportedError
from ndb_formats.schema.tables import BLOB_TYPES, Column, Schema, Table
from ndb_formats.types.charsets import encode_text
from ndb_formats.types.collations import TextComparison, comparison_of
from ndb_formats.types.column_types import Codec
from ndb_formats.types.decimals import decimal_text
from ndb_formats.types.values import Value

_NDB = (None, "NDB", "NDBCLUSTER")


def serving_key(table: Table) -> int | None:
    """Return the place of the first unique key of whole NOT NULL columns; None if there is none."""
    for place, (key, names) in enumerate(zip(table.unique_names, table.unique_keys, strict=True)):
        whole = not any(each[0] == key.lower() for each in table.unique_prefixes)
        if whole and all(_whole_and_not_null(table.find(name)) for name in names):
            return place
    return None


def _whole_and_not_null(column: Column | None) -> bool:
    """
    Return whether a part of a unique key is a whole column and NOT NULL; None is a part that is an expression.

    A key has only a prefix of a BLOB or TEXT column, and a virtual column is not stored.
    """
    if column is None or column.generated == "virtual":
        return False
    return not column.nullable and column.type not in BLOB_TYPES


def with_serving_key(table: Table) -> Table:
    """Return an NDB table with a unique key as its primary key, if it declares no primary key and has such a key."""
    place = serving_key(table)
    if table.primary_key or table.engine not in _NDB or place is None:
        return table
    keys, names = list(table.unique_keys), list(table.unique_names)
    return attrs.evolve(
        table,
        primary_key=keys.pop(place),
        serving=names.pop(place),
        unique_keys=tuple(keys),
        unique_names=tuple(names),
    )


def without_serving_key(table: Table) -> Table:
    """Return a table with its keys as declared, so that statements can change them."""
    if not table.serving:
        return table
    return attrs.evolve(
        table,
        primary_key=(),
        serving="",
        unique_keys=(table.primary_key, *table.unique_keys),
        unique_names=(table.serving, *table.unique_names),
    )


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


def comparison_of_column(column: Column) -> TextComparison:
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


def key_values(columns: Sequence[Column], codecs: Sequence[Codec], key: bytes) -> list[Value]:
    """
    Return the values of the columns of a key; of a text its weight, as text.

    Args:
        columns: Key columns, in key order.
        codecs: Their codecs.
        key: The identity, from `key_of`.
    """
    cursor, values = Cursor(key), list[Value]()
    for column, codec in zip(columns, codecs, strict=True):
        weight = cursor.take(cursor.uint(4)) if cursor.uint(1) else None
        if weight is None:
            values.append(None)
        elif is_text(column):
            # Bytes that are no character are lone surrogates, which text for people cannot have.
            values.append(weight.decode("utf-8", "surrogatepass").encode("utf-8", "backslashreplace").decode())
        else:
            values.append(codec.decode(weight))
    return values


def key_payload(column: Column, codec: Codec, value: Any) -> bytes | None:
    """
    Return the bytes of a value of a key column in a row image, for `key_of`.

    Args:
        column: The column.
        codec: Its codec.
        value: Its value as the codec gives it; of a text also its bytes.

    Raises:
        ValueError: It is none of the column; or another error, if it has another type.
    """
    if value is None or (isinstance(value, bytes) and is_text(column)):
        return value
    if is_text(column):
        return encode_text(value, column.charset or "")
    return codec.encode(value)


def key_text(columns: Sequence[Column], codecs: Sequence[Codec], key: bytes) -> str:
    """
    Return the identity of a row as text for people, such as ``a=1, b=two``; different rows can have the same.

    Args:
        columns: Key columns, in key order.
        codecs: Their codecs.
        key: The identity, from `key_of`.
    """
    values = zip(columns, key_values(columns, codecs, key), strict=True)
    return ", ".join(f"{column.name}={value_text(value)}" for column, value in values)


def value_text(value: Any) -> str:
    """Return a value of a key column as keys as text have it: bytes in hexadecimal digits, ``NULL``."""
    if value is None:
        return "NULL"
    if isinstance(value, Decimal):
        return decimal_text(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def refuse_inexact_keys(tables: Iterable[Table]) -> None:
    """
    Refuse primary and unique keys with a collation under which equality is not known exactly.

    Raises:
        UnsupportedError: There is one that its column does not allow; the error names table, column and collation.
    """
    for table in tables:
        names = {*table.primary_key, *(name for key in table.unique_keys for name in key)}
        for column in table.columns:
            if column.name in names and is_text(column):
                try:
                    comparison_of_column(column)
                except UnsupportedError as error:
                    raise error.located(table=table.full_name) from None


def with_inexact_keys(schema: Schema) -> Schema:
    """Return a schema whose columns are all allowed in keys."""
    own = tuple((server, with_inexact_keys(each)) for server, each in schema.of_servers)
    return Schema(tuple(map(with_inexact_columns, schema.tables)), inexact_keys=True, of_servers=own)


def with_inexact_columns(table: Table) -> Table:
    """Return a table whose columns are all allowed in keys."""
    return attrs.evolve(table, columns=tuple(attrs.evolve(column, inexact_key=True) for column in table.columns))
