"""
Images of one version of a table as images of another one that has all of its columns, elsewhere or of wider types.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from ndb_formats.constants import ColumnCode
from ndb_formats.errors import FormatError, SchemaError
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.types.column_types import Codec
from ndb_formats.types.values import Value

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
        return int(value)  # type: ignore[arg-type]  # what is no number is an error
    if code is ColumnCode.NEWDECIMAL:
        scale = codec.meaning.wire.scale if codec.meaning is not None else 0
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-scale))
    if code in (ColumnCode.FLOAT, ColumnCode.DOUBLE):
        return float(value)  # type: ignore[arg-type]
    if codec.meaning is not None and codec.meaning.charset is not None and not codec.meaning.members:
        return str(value)
    return value
