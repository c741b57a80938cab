"""
The optional metadata of a Table_map event, which ``binlog_row_metadata`` chooses.

Every field has a type (u8), a packed length and a value:

    1   SIGNEDNESS                     a bit per numeric column: UNSIGNED
    2   DEFAULT_CHARSET                packed collation, then packed (column, collation) of those that differ
    3   COLUMN_CHARSET                 packed collation per character column
    4   COLUMN_NAME                    packed length and name per column
    5   SET_STR_VALUE                  per SET column: packed count, then packed length and text of each member
    6   ENUM_STR_VALUE                 the same per ENUM column
    7   GEOMETRY_TYPE                  packed type per GEOMETRY column
    8   SIMPLE_PRIMARY_KEY             packed column number per part of the key
    9   PRIMARY_KEY_WITH_PREFIX        packed (column number, characters; 0 for the whole column) per part
    10  ENUM_AND_SET_DEFAULT_CHARSET   as 2, for ENUM and SET columns together
    11  ENUM_AND_SET_COLUMN_CHARSET    as 3, for ENUM and SET columns together
    12  COLUMN_VISIBILITY              a bit per column: visible
    13  VECTOR_DIMENSIONALITY          packed maximum of elements per VECTOR column

Bits start at the highest of each byte. Character columns are those of the CHAR, VARCHAR, TEXT and BLOB types, and
VECTOR. With ``binlog_row_metadata=MINIMAL`` only 1, 2, 3, 7 and 13 are written.

Choices: values are kept as in the event, not per column of the table, so that fields can be decoded without the table's
types and encoded to the same bytes. For the same reason all bits of the last byte are kept.

Source: MySQL `rows_event.h` (`Table_map_event`), `log_event.cc` (`init_metadata_fields`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any

import attrs

from ndb_formats.cursor import Cursor, packed
from ndb_formats.errors import CorruptError


class MetadataField(IntEnum):
    """Type of a field, spelled as in the server's source."""

    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SET_STR_VALUE = 5
    ENUM_STR_VALUE = 6
    GEOMETRY_TYPE = 7
    SIMPLE_PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9
    ENUM_AND_SET_DEFAULT_CHARSET = 10
    ENUM_AND_SET_COLUMN_CHARSET = 11
    COLUMN_VISIBILITY = 12
    VECTOR_DIMENSIONALITY = 13


@attrs.frozen
class DefaultCharset:
    """
    Collations of columns, given by a default and exceptions.

    Attributes:
        default: Collation number of all columns that are not in `others`.
        others: Columns, by their number among those of their kind, each with its collation number.
    """

    default: int
    others: tuple[tuple[int, int], ...] = ()

    def of(self, count: int) -> tuple[int, ...]:
        """Return the collation numbers of the first `count` columns."""
        others = dict(self.others)
        return tuple(others.get(number, self.default) for number in range(count))


@attrs.frozen
class TableMetadata:
    """
    The optional metadata; an attribute is None if its field is not in the event.

    Attributes:
        signedness: Whether a numeric column is UNSIGNED.
        default_charset: Collations of the character columns.
        column_charset: Collations of the character columns, one by one.
        column_name: Column names.
        set_str_value: Members of each SET column, in its own character set.
        enum_str_value: Members of each ENUM column, in its own character set.
        geometry_type: Kind of each GEOMETRY column.
        simple_primary_key: Columns of the primary key, from 0, in the order of the key.
        primary_key_with_prefix: Columns of the primary key, each with the length of its prefix in characters; 0 for the
            whole column.
        enum_and_set_default_charset: Collations of the ENUM and SET columns.
        enum_and_set_column_charset: Collations of the ENUM and SET columns, one by one.
        column_visibility: Whether a column is visible.
        vector_dimensionality: Maximum of elements of each VECTOR column.
        unknown: Type and bytes of fields of later versions.
        order: Types of the fields in the order of the event; fields that are not in it are encoded after those.
    """

    signedness: tuple[bool, ...] | None = None
    default_charset: DefaultCharset | None = None
    column_charset: tuple[int, ...] | None = None
    column_name: tuple[str, ...] | None = None
    set_str_value: tuple[tuple[bytes, ...], ...] | None = None
    enum_str_value: tuple[tuple[bytes, ...], ...] | None = None
    geometry_type: tuple[int, ...] | None = None
    simple_primary_key: tuple[int, ...] | None = None
    primary_key_with_prefix: tuple[tuple[int, int], ...] | None = None
    enum_and_set_default_charset: DefaultCharset | None = None
    enum_and_set_column_charset: tuple[int, ...] | None = None
    column_visibility: tuple[bool, ...] | None = None
    vector_dimensionality: tuple[int, ...] | None = None
    unknown: tuple[tuple[int, bytes], ...] = ()
    order: tuple[int, ...] = attrs.field(default=(), repr=False)

    @property
    def primary_key(self) -> tuple[tuple[int, int], ...]:
        """Columns of the primary key, each with its prefix length (0: the whole column); empty if not in the event."""
        return self.primary_key_with_prefix or tuple((column, 0) for column in self.simple_primary_key or ())


# The order in which MySQL 9.x writes them.
_SERVER_ORDER = (1, 2, 3, 7, 13, 4, 10, 11, 5, 6, 8, 9, 12)


def decode_table_metadata(data: bytes) -> TableMetadata:
    """
    Decode the optional metadata.

    Raises:
        TruncatedError: A field ends too early.
        CorruptError: A field is there twice.
    """
    cursor = Cursor(data)
    known: dict[str, Any] = {}
    unknown: dict[int, bytes] = {}
    order: list[int] = []
    while cursor.remaining:
        kind = cursor.uint(1)
        value = cursor.take(cursor.packed())
        if kind in order:
            message = f"field {kind} of a table's metadata is there twice"
            raise CorruptError(message)
        order.append(kind)
        if kind in _CODECS:
            decode, _ = _CODECS[MetadataField(kind)]
            known[MetadataField(kind).name.lower()] = decode(Cursor(value))
        else:
            unknown[kind] = value
    return TableMetadata(**known, unknown=tuple(unknown.items()), order=tuple(order))


def encode_table_metadata(metadata: TableMetadata) -> bytes:
    """Encode the optional metadata; the inverse of `decode_table_metadata`."""
    values = dict(_values(metadata))
    order = [kind for kind in metadata.order if kind in values]
    order += [kind for kind in (*_SERVER_ORDER, *dict(metadata.unknown)) if kind in values and kind not in order]
    return b"".join(bytes([kind]) + packed(len(values[kind])) + values[kind] for kind in order)


def _values(metadata: TableMetadata) -> Iterator[tuple[int, bytes]]:
    for kind, (_, encode) in _CODECS.items():
        value = getattr(metadata, kind.name.lower())
        if value is not None:
            yield kind, encode(value)
    yield from metadata.unknown


def _bits(cursor: Cursor) -> tuple[bool, ...]:
    return tuple(bool(byte >> bit & 1) for byte in cursor.rest() for bit in range(7, -1, -1))


def _put_bits(values: Sequence[bool]) -> bytes:
    size = (len(values) + 7) // 8
    number = sum(1 << (8 * size - 1 - bit) for bit, value in enumerate(values) if value)
    return number.to_bytes(size, "big")


def _numbers(cursor: Cursor) -> tuple[int, ...]:
    return tuple(_each(cursor, Cursor.packed))


def _put_numbers(values: Sequence[int]) -> bytes:
    return b"".join(map(packed, values))


def _pairs(cursor: Cursor) -> tuple[tuple[int, int], ...]:
    return tuple(_each(cursor, lambda rest: (rest.packed(), rest.packed())))


def _put_pairs(values: Sequence[tuple[int, int]]) -> bytes:
    return b"".join(packed(first) + packed(second) for first, second in values)


def _default_charset(cursor: Cursor) -> DefaultCharset:
    return DefaultCharset(cursor.packed(), _pairs(cursor))


def _put_default_charset(value: DefaultCharset) -> bytes:
    return packed(value.default) + _put_pairs(value.others)


def _names(cursor: Cursor) -> tuple[str, ...]:
    return tuple(_each(cursor, lambda rest: rest.text(rest.packed())))


def _put_names(values: Sequence[str]) -> bytes:
    return _put_strings([value.encode("utf-8", "surrogateescape") for value in values])


def _members(cursor: Cursor) -> tuple[tuple[bytes, ...], ...]:
    return tuple(_each(cursor, lambda rest: tuple(rest.take(rest.packed()) for _ in range(rest.packed()))))


def _put_members(values: Sequence[Sequence[bytes]]) -> bytes:
    return b"".join(packed(len(members)) + _put_strings(members) for members in values)


def _put_strings(values: Sequence[bytes]) -> bytes:
    return b"".join(packed(len(value)) + value for value in values)


def _each(cursor: Cursor, take: Callable[[Cursor], Any]) -> Iterator[Any]:
    while cursor.remaining:
        yield take(cursor)


_CODECS: dict[MetadataField, tuple[Callable[[Cursor], Any], Callable[[Any], bytes]]] = {
    MetadataField.SIGNEDNESS: (_bits, _put_bits),
    MetadataField.DEFAULT_CHARSET: (_default_charset, _put_default_charset),
    MetadataField.COLUMN_CHARSET: (_numbers, _put_numbers),
    MetadataField.COLUMN_NAME: (_names, _put_names),
    MetadataField.SET_STR_VALUE: (_members, _put_members),
    MetadataField.ENUM_STR_VALUE: (_members, _put_members),
    MetadataField.GEOMETRY_TYPE: (_numbers, _put_numbers),
    MetadataField.SIMPLE_PRIMARY_KEY: (_numbers, _put_numbers),
    MetadataField.PRIMARY_KEY_WITH_PREFIX: (_pairs, _put_pairs),
    MetadataField.ENUM_AND_SET_DEFAULT_CHARSET: (_default_charset, _put_default_charset),
    MetadataField.ENUM_AND_SET_COLUMN_CHARSET: (_numbers, _put_numbers),
    MetadataField.COLUMN_VISIBILITY: (_bits, _put_bits),
    MetadataField.VECTOR_DIMENSIONALITY: (_numbers, _put_numbers),
}
