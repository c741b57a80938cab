"""
A row image: the columns of a row that a rows event carries, and their values.

    null bits   one per column that is present, then
    values      of the columns that are present and not NULL, in column order

An image keeps its bytes and decodes a value only on request, so a column that cannot be decoded does no harm to the
others. An image of one version of a table can be made one of another version that has all of its columns, elsewhere or
of wider types (`converted_image`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal

import attrs

from ndb_formats.constants import ColumnCode
from ndb_formats.cursor import Cursor
from ndb_formats.errors import CorruptError, FormatError, SchemaError, UnsupportedError
from ndb_formats.events.table_map import TableMap, with_hidden_hashes
from ndb_formats.events.table_metadata import decode_table_metadata
from ndb_formats.schema.tables import Table
from ndb_formats.types.charsets import decode_text
from ndb_formats.types.collation_names import collation_of
from ndb_formats.types.column_types import Codec, WireType, charset_of, codec_of
from ndb_formats.types.json_diff import JsonChange
from ndb_formats.types.values import ABSENT, Absent, MaybeValue, Value

# A JSON diff has four bytes of length, whatever the length prefix of its column is.
DIFF_CODEC = Codec(4, True, bytes, bytes)


@attrs.frozen
class RowLayout:
    """
    How the rows of one table are read.

    Attributes:
        table: ``database.table``.
        names: Column names; ``@1`` and so on if neither the event nor a schema gives them.
        types: Wire type of each column.
        codecs: Codec of each column.
    """

    table: str
    names: tuple[str, ...]
    types: tuple[WireType, ...]
    codecs: tuple[Codec, ...] = attrs.field(repr=False, eq=False)


@attrs.frozen
class RowImage:
    """
    One image.

    Attributes:
        layout: The layout of the table's rows.
        present: Ordinals of the columns that it carries, ascending.
        payloads: Bytes of each of those columns; None is NULL.
        partial: Ordinals of the columns whose bytes are a JSON diff (after images of partial updates only).
        spare_nulls: The unused null bits, which differ between servers.
    """

    layout: RowLayout = attrs.field(repr=False)
    present: tuple[int, ...]
    payloads: tuple[bytes | None, ...]
    partial: tuple[int, ...] = ()
    spare_nulls: int = attrs.field(default=0, repr=False, eq=False)

    def raw(self, ordinal: int) -> bytes | Absent | None:
        """Return a column's bytes; None is NULL, `ABSENT` a column that is not in the image."""
        try:
            return self.payloads[self.present.index(ordinal)]
        except ValueError:
            return ABSENT

    def value(self, ordinal: int) -> MaybeValue:
        """
        Return a column's value; None is NULL, `ABSENT` a column that is not in the image.

        Raises:
            FormatError: The value cannot be decoded; the error names table and column.
        """
        if ordinal not in self.present:
            return ABSENT
        return self._decode(ordinal, self.payloads[self.present.index(ordinal)])

    def values(self) -> dict[int, Value]:
        """Return the values of the columns that are present, by ordinal."""
        return {
            ordinal: self._decode(ordinal, payload)
            for ordinal, payload in zip(self.present, self.payloads, strict=True)
        }

    def by_name(self) -> dict[str, Value]:
        """Return the values of the columns that are present, by name."""
        return {self.layout.names[ordinal]: value for ordinal, value in self.values().items()}

    def _decode(self, ordinal: int, payload: bytes | None) -> Value:
        if payload is None:
            return None
        if ordinal in self.partial:
            return JsonChange(payload)
        try:
            return self.layout.codecs[ordinal].decode(payload)
        except FormatError as error:
            raise error.located(table=self.layout.table, column=self.layout.names[ordinal]) from None

    def __len__(self) -> int:
        return len(self.present)


def take_image(cursor: Cursor, layout: RowLayout, present: tuple[int, ...], partial: tuple[int, ...] = ()) -> RowImage:
    """
    Read one image.

    Args:
        cursor: Stands at the image's null bits.
        layout: The layout of the table's rows.
        present: Ordinals of the columns in the event's bitmap.
        partial: Ordinals of the columns that are JSON diffs.

    Raises:
        TruncatedError: The image is longer than the event.
    """
    nulls = int.from_bytes(cursor.take((len(present) + 7) // 8), "little")
    payloads: list[bytes | None] = []
    for number, ordinal in enumerate(present):
        if nulls >> number & 1:
            payloads.append(None)
            continue
        try:
            codec = DIFF_CODEC if ordinal in partial else layout.codecs[ordinal]
            payloads.append(codec.take(cursor))
        except FormatError as error:
            raise error.located(table=layout.table, column=layout.names[ordinal]) from None
    return RowImage(layout, present, tuple(payloads), partial, nulls >> len(present))


def put_image(image: RowImage) -> bytes:
    """Return the bytes of an image in a rows event; the inverse of `take_image`."""
    nulls = sum(1 << number for number, payload in enumerate(image.payloads) if payload is None)
    nulls |= image.spare_nulls << len(image.present)
    values = (
        (DIFF_CODEC if ordinal in image.partial else image.layout.codecs[ordinal]).put(payload)
        for ordinal, payload in zip(image.present, image.payloads, strict=True)
        if payload is not None
    )
    return nulls.to_bytes((len(image.present) + 7) // 8, "little") + b"".join(values)


def layout_of(table_map: TableMap, table: Table | None = None) -> RowLayout:
    """
    Return the layout of a table's rows.

    Args:
        table_map: Its Table_map event, which decides how many bytes each value has.
        table: Its definition, for names, signs, character sets and members. Without it, the event's optional metadata
            is used, as far as it goes.

    Raises:
        SchemaError: The definition does not fit the event.
        CorruptError: The event's metadata names more or fewer columns than it has.
        UnsupportedError: The layout of a column type is not known.
    """
    if table is None:
        return _layout_of_event(table_map)
    return layout_of_types(with_hidden_hashes(table, table_map), table_map.types)


def layout_of_types(table: Table, types: tuple[WireType, ...]) -> RowLayout:
    """
    Return the layout of the rows of a table with these wire types.

    Raises:
        SchemaError: The definition does not fit the types.
    """
    _refuse_old_fractions(table, types)
    if len(table.columns) != len(types):
        message = (
            f"its definition has {len(table.columns)} columns and the binlog {len(types)}; "
            "give the definition that was in force when the binlog was written"
        )
        raise SchemaError(message, table=table.full_name)
    codecs = []
    for column, wire in zip(table.columns, types, strict=True):
        if wire.code not in CODES_OF_TYPE.get(column.type, (wire.code,)):
            message = f"the definition says {column.sql_type}, the binlog {wire.code.name}"
            raise SchemaError(message, table=table.full_name, column=column.name)
        codecs.append(codec_of(wire, unsigned=column.unsigned, charset=column.charset, members=column.members))
    return RowLayout(table.full_name, tuple(column.name for column in table.columns), types, tuple(codecs))


def is_unknown(collation: int) -> bool:
    """Whether the character set of a collation is not known: its text is bytes."""
    return collation_of(collation) is None


def _refuse_old_fractions(table: Table, types: tuple[WireType, ...]) -> None:
    """
    Refuse moments whose size a log does not tell.

    Raises:
        UnsupportedError: A column has a fraction of seconds in the form that MariaDB had before 10.1.
    """
    for column, wire in zip(table.columns, types, strict=False):
        if column.length and wire.code in _OLD_MOMENTS and column.type in ("time", "datetime", "timestamp"):
            message = (
                f"{column.sql_type} in MariaDB's form from before 10.1 (mysql56_temporal_format=OFF), whose size a log "
                "does not tell; rebuild the table under mysql56_temporal_format=ON and read what is logged after that"
            )
            raise UnsupportedError(message, table=table.full_name, column=column.name)


_OLD_MOMENTS = (ColumnCode.TIME, ColumnCode.DATETIME, ColumnCode.TIMESTAMP)


def _layout_of_event(table_map: TableMap) -> RowLayout:
    count = len(table_map.types)
    unsigned: Sequence[bool] = table_map.unsigned or (False,) * count
    collations: Sequence[int | None] = table_map.collations or (None,) * count
    names = table_map.names
    if names is None:
        names = tuple(f"@{ordinal + 1}" for ordinal in range(count))
    if len(names) != count:
        message = f"has {count} columns, but its metadata names {len(names)}"
        raise CorruptError(message, table=table_map.full_name)
    members = _members(table_map)
    codecs = tuple(
        codec_of(
            wire,
            unsigned=unsigned[ordinal],
            charset=None if (number := collations[ordinal]) is None or is_unknown(number) else charset_of(number),
            members=members.get(ordinal, ()),
        )
        for ordinal, wire in enumerate(table_map.types)
    )
    return RowLayout(table_map.full_name, names, table_map.types, codecs)


def _members(table_map: TableMap) -> dict[int, tuple[str, ...]]:
    """Return the members of ENUM and SET columns, by ordinal, as far as the event has them."""
    metadata = decode_table_metadata(table_map.metadata)
    texts = {
        ColumnCode.ENUM: iter(metadata.enum_str_value or ()),
        ColumnCode.SET: iter(metadata.set_str_value or ()),
    }
    ordinals = [ordinal for ordinal, wire in enumerate(table_map.types) if wire.code in texts]
    collations: Sequence[int] = metadata.enum_and_set_column_charset or ()
    if metadata.enum_and_set_default_charset is not None:
        collations = metadata.enum_and_set_default_charset.of(len(ordinals))
    members = {}
    for ordinal, collation in zip(ordinals, collations, strict=False):
        charset = charset_of(collation) or "latin1"
        names = next(texts[table_map.types[ordinal].code], ())
        members[ordinal] = tuple(decode_text(name, charset) for name in names)
    return members


_STRING_CODES = (ColumnCode.STRING, ColumnCode.VARCHAR, ColumnCode.VAR_STRING)
_BLOB_CODES = (
    ColumnCode.BLOB,
    ColumnCode.TINY_BLOB,
    ColumnCode.MEDIUM_BLOB,
    ColumnCode.LONG_BLOB,
    ColumnCode.BLOB_COMPRESSED,
)
# The type codes that a column of a declared type can have.
CODES_OF_TYPE: Mapping[str, tuple[ColumnCode, ...]] = {
    "tinyint": (ColumnCode.TINY,),
    "smallint": (ColumnCode.SHORT,),
    "mediumint": (ColumnCode.INT24,),
    "int": (ColumnCode.LONG,),
    "bigint": (ColumnCode.LONGLONG,),
    "float": (ColumnCode.FLOAT, ColumnCode.DOUBLE),
    "double": (ColumnCode.DOUBLE,),
    "decimal": (ColumnCode.NEWDECIMAL,),
    "bit": (ColumnCode.BIT,),
    "year": (ColumnCode.YEAR,),
    "date": (ColumnCode.DATE, ColumnCode.NEWDATE),
    "time": (ColumnCode.TIME, ColumnCode.TIME2),
    "datetime": (ColumnCode.DATETIME, ColumnCode.DATETIME2),
    "timestamp": (ColumnCode.TIMESTAMP, ColumnCode.TIMESTAMP2),
    "char": _STRING_CODES,
    "varchar": (*_STRING_CODES, ColumnCode.VARCHAR_COMPRESSED),
    "binary": _STRING_CODES,
    "varbinary": (*_STRING_CODES, ColumnCode.VARCHAR_COMPRESSED),
    "enum": (ColumnCode.ENUM,),
    "set": (ColumnCode.SET,),
    "json": (ColumnCode.JSON,),
    "geometry": (ColumnCode.GEOMETRY,),
    "vector": (ColumnCode.VECTOR,),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), _BLOB_CODES),
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), _BLOB_CODES),
}


_TEXTS = (ColumnCode.STRING, ColumnCode.VARCHAR, ColumnCode.VAR_STRING)
_BLOBS = (ColumnCode.BLOB, ColumnCode.TINY_BLOB, ColumnCode.MEDIUM_BLOB, ColumnCode.LONG_BLOB)


def has_same_bytes(version: RowLayout, places: Sequence[int], target: RowLayout) -> bool:
    """Whether an image of a version is one of the target too, byte for byte."""
    if list(places) != sorted(places):
        return False
    pairs = [(codec, target.codecs[place]) for codec, place in zip(version.codecs, places, strict=True)]
    return all(
        _keeps_payload(codec, other) and (codec.width, codec.prefixed) == (other.width, other.prefixed)
        for codec, other in pairs
    )


def _keeps_payload(codec: Codec, other: Codec) -> bool:
    """Whether the bytes of a value mean the same to another codec."""
    first, second = codec.meaning, other.meaning
    if first is None or second is None or first == second:
        return first == second
    for kinds in (_TEXTS, _BLOBS):
        if first.wire.code in kinds and second.wire.code in kinds:
            return first.charset == second.charset
    return (first.wire, first.unsigned) == (second.wire, second.unsigned) and first.members == second.members


def converted_image(image: RowImage | None, places: Sequence[int], target: RowLayout) -> RowImage | None:
    """
    Return an image of a version as one of the target.

    Args:
        image: The image; None for no image.
        places: Position in the target of each column of the version.
        target: How rows of the target are read.

    Raises:
        SchemaError: A value does not fit its column in the target.
    """
    if image is None:
        return None
    found = (
        sorted(
            (places[ordinal], _payload(image, ordinal, payload, target, places[ordinal]))
            for ordinal, payload in zip(image.present, image.payloads, strict=True)
        )
        if len(image)
        else []
    )
    return RowImage(target, tuple(place for place, _ in found), tuple(payload for _, payload in found))


def _payload(image: RowImage, ordinal: int, payload: bytes | None, target: RowLayout, place: int) -> bytes | None:
    codec, other = image.layout.codecs[ordinal], target.codecs[place]
    if payload is None or _keeps_payload(codec, other):
        return payload
    try:
        return other.encode(_coerced(codec.decode(payload), other))
    except (FormatError, ValueError, TypeError, OverflowError, ArithmeticError):
        message = (
            "a value from before its type changed does not fit the type that it has afterwards, so rows cannot be "
            "followed; use binlogs from before the change or from after it"
        )
        raise SchemaError(message, table=target.table, column=target.names[place]) from None


_NUMBERS = (ColumnCode.TINY, ColumnCode.SHORT, ColumnCode.INT24, ColumnCode.LONG, ColumnCode.LONGLONG, ColumnCode.YEAR)


def _coerced(value: Value, codec: Codec) -> Value:
    """Return a value as a column of another type takes it."""
    code = None if codec.meaning is None else codec.meaning.wire.code
    if code in _NUMBERS:
        if isinstance(value, Decimal):
            return int(value.to_integral_value(ROUND_HALF_UP))
        return round(value) if isinstance(value, float) else int(value)  # type: ignore[arg-type]  # or it is an error
    if code is ColumnCode.NEWDECIMAL:
        scale = codec.meaning.wire.scale if codec.meaning is not None else 0
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if code in (ColumnCode.FLOAT, ColumnCode.DOUBLE):
        return float(value)  # type: ignore[arg-type]
    if codec.meaning is not None and codec.meaning.charset is not None and not codec.meaning.members:
        return str(value)
    return value
