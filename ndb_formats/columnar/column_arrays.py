"""
One column of a batch as an Arrow array.

The types are those of the table "Column types" in `docs/formats.md`; the values are those of the column's codec.
Common types have compiled loops (`fast_columns`). All others, and columns with a value that its loop cannot decode, go
through the codec, once per distinct value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime

import attrs
import numpy as np
import pyarrow as pa

from ndb_formats.columnar.fast_columns import (
    BYTES,
    MAX_DECIMAL128,
    STRINGS,
    Buffers,
    Bytes,
    Cells,
    Source,
    bytes_reader,
    copied,
    fast_reader,
    moment_reader,
)
from ndb_formats.columnar.kernel import read_only
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.constants import ColumnCode
from ndb_formats.errors import CorruptError, FormatError, UnsupportedError
from ndb_formats.types.column_types import Codec, Meaning
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_diff import JsonChange
from ndb_formats.types.values import Geometry, Value, Vector

_INTEGERS = {
    ColumnCode.TINY: (pa.int8(), pa.uint8()),
    ColumnCode.SHORT: (pa.int16(), pa.uint16()),
    ColumnCode.INT24: (pa.int32(), pa.uint32()),
    ColumnCode.LONG: (pa.int32(), pa.uint32()),
    ColumnCode.LONGLONG: (pa.int64(), pa.uint64()),
}
_PLAIN = {
    ColumnCode.FLOAT: pa.float32(),
    ColumnCode.DOUBLE: pa.float64(),
    ColumnCode.YEAR: pa.int16(),
    ColumnCode.BIT: pa.uint64(),
    ColumnCode.NULL: pa.null(),
}
_MOMENTS = {
    ColumnCode.DATE: pa.date32(),
    ColumnCode.NEWDATE: pa.date32(),
    ColumnCode.DATETIME: pa.timestamp("us"),
    ColumnCode.DATETIME2: pa.timestamp("us"),
    ColumnCode.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    ColumnCode.TIMESTAMP2: pa.timestamp("us", tz="UTC"),
}
_ENUM, _SET = pa.dictionary(pa.uint16(), pa.string()), pa.dictionary(pa.int32(), pa.string())
_COMPRESSED = frozenset({ColumnCode.BLOB_COMPRESSED, ColumnCode.VARCHAR_COMPRESSED})
_MAX_DECIMAL256 = 76
_MAX_UNSIGNED = (1 << 64) - 1


class ColumnFaultError(Exception):
    """
    A value cannot be decoded, or Arrow cannot hold it.

    Attributes:
        row: Row of the first such value.
    """

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def arrow_value(value: Value) -> object:
    """
    Return a value in the form that Arrow takes.

    Raises:
        FormatError: A JSON value cannot be decoded.
    """
    if isinstance(value, JsonDocument | JsonChange):
        return value.text
    return value.data if isinstance(value, Geometry | Vector) else value


@attrs.frozen(eq=False)
class ColumnReader:
    """
    Reads one column of images.

    Attributes:
        codec: The column's codec.
        type: The Arrow type.
        decode: Bytes of one value to the value in the form that Arrow takes.
    """

    codec: Codec
    type: pa.DataType
    decode: Callable[[bytes], object]
    _fast: Callable[[Source], Buffers] | None
    _dictionary: pa.DictionaryArray | None = None

    @classmethod
    def of(cls, codec: Codec, *, text: bool, diff: bool = False, moments: bool = False) -> ColumnReader:
        """
        Return the reader of a column.

        Args:
            codec: Its codec.
            text: Whether to decode text; if not, it is binary, as in the binlog.
            diff: Whether the values are JSON diffs.
            moments: Whether DATE, DATETIME and TIMESTAMP are dates and timestamps; if not, they are text.

        Raises:
            UnsupportedError: Arrow has no type for it.
        """
        if diff:
            return cls(codec, pa.string(), lambda data: JsonChange(data).text, None)
        meaning = codec.meaning
        assert meaning is not None
        if not text and meaning.charset is not None and meaning.wire.code in STRINGS:
            codec = attrs.evolve(codec, decode=bytes, meaning=attrs.evolve(meaning, charset=""))
            return cls(codec, pa.binary(), bytes, bytes_reader(codec, 0))
        if moments and meaning.wire.code in _MOMENTS:
            kind = _MOMENTS[meaning.wire.code]
            return cls(codec, kind, lambda data: _moment(codec.decode(data), kind), moment_reader(codec))
        dictionary = None
        if meaning.wire.code is ColumnCode.ENUM and meaning.members:
            dictionary = _text_array(("", *meaning.members)).dictionary_encode()
        return cls(
            codec, _type_of(meaning), lambda data: arrow_value(codec.decode(data)), fast_reader(codec), dictionary
        )

    def array(self, data: Bytes, base: int, cells: Cells) -> pa.Array:
        """
        Return the values as an array.

        Args:
            data: The bytes of the chunk. Shape (bytes,), uint8.
            base: What the cells count from.
            cells: See `ndb_formats.columnar.kernels.rows`. Shape (rows,), uint32.

        Raises:
            ColumnFaultError: A value cannot be decoded, or Arrow cannot hold it.
        """
        source = Source(read_only(data), base, cells)
        if pa.types.is_null(self.type):
            return pa.nulls(len(source))
        buffers = None if self._fast is None else self._fast(source)
        if buffers is None:
            return self._by_value(source)
        validity, missing = _validity(cells)
        parts = [validity, *(pa.py_buffer(buffer) for buffer in buffers)]
        if self._dictionary is None:
            return pa.Array.from_buffers(self.type, len(source), parts, missing)
        numbers = pa.Array.from_buffers(self.type.index_type, len(source), parts, missing)
        # Number 0, the error value, and a member '' are both an empty text, as in SELECT.
        indices = self._dictionary.indices.cast(self.type.index_type).take(numbers)
        return pa.DictionaryArray.from_arrays(indices, self._dictionary.dictionary)

    def check(self, payload: bytes) -> object:
        """
        Return one value in the form that Arrow takes.

        Raises:
            FormatError: It cannot be decoded, or Arrow cannot hold it.
        """
        value = self.decode(payload)
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                message = (
                    "bytes that are not valid in its character set, which Arrow cannot hold; read it with text=False"
                )
                raise CorruptError(message) from None
        if isinstance(value, int) and value > _MAX_UNSIGNED:
            message = f"holds {value}, which does not fit 64 bits"
            raise UnsupportedError(message)
        return value

    def _by_value(self, source: Source) -> pa.Array:
        """Decode each distinct value once."""
        offsets, plain, _ = copied(source, self.codec, 0)
        validity, missing = _validity(source.cells)
        parts = [validity, pa.py_buffer(offsets), pa.py_buffer(plain)]
        encoded = pa.Array.from_buffers(pa.binary(), len(source), parts, missing).dictionary_encode()
        kind = self.type.value_type if pa.types.is_dictionary(self.type) else self.type
        decoded: list[object] = []
        for number, payload in enumerate(encoded.dictionary.to_pylist()):
            try:
                decoded.append(self.check(payload))
            except FormatError:
                # Distinct values are numbered in the order of their first rows.
                raise ColumnFaultError(encoded.indices.index(number).as_py()) from None
        distinct = pa.array(decoded, kind)
        if pa.types.is_dictionary(self.type):
            texts = distinct.dictionary_encode()  # two values can be one text
            return pa.DictionaryArray.from_arrays(
                texts.indices.take(encoded.indices).cast(self.type.index_type), texts.dictionary
            )
        return distinct.take(encoded.indices)


def _moment(text: Value, kind: pa.DataType) -> date:
    """Return a date or a timestamp; raises `UnsupportedError` for a zero date and others that no calendar has."""
    assert isinstance(text, str)
    try:
        if pa.types.is_date(kind):
            return date.fromisoformat(text)
        return datetime.fromisoformat(text).replace(tzinfo=None if kind.tz is None else UTC)
    except ValueError:
        message = f"holds {text}, which is no day of the calendar and no timestamp; read temporal values as text"
        raise UnsupportedError(message) from None


def _type_of(meaning: Meaning) -> pa.DataType:
    wire = meaning.wire
    if wire.code in _INTEGERS:
        return _INTEGERS[wire.code][meaning.unsigned]
    if wire.code in _PLAIN:
        return _PLAIN[wire.code]
    if wire.code is ColumnCode.NEWDECIMAL:
        if wire.length > _MAX_DECIMAL256:
            message = f"Arrow has no DECIMAL({wire.length},{wire.scale})"
            raise UnsupportedError(message)
        kind = pa.decimal128 if wire.length <= MAX_DECIMAL128 else pa.decimal256
        return kind(wire.length, wire.scale)
    if wire.code is ColumnCode.ENUM:
        return _ENUM if meaning.members else {1: pa.uint8(), 2: pa.uint16()}.get(wire.length, pa.uint64())
    if wire.code is ColumnCode.SET:
        return _SET if meaning.members else pa.uint64()
    if wire.code in BYTES or (wire.code in STRINGS | _COMPRESSED and meaning.charset is None):
        return pa.binary()
    return pa.string()


def _text_array(texts: Sequence[str]) -> pa.Array:
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        message = "members of an ENUM are not valid in its character set"
        raise UnsupportedError(message) from None


def _validity(cells: Cells) -> tuple[pa.Buffer | None, int]:
    missing = int(np.count_nonzero(cells == NULL_CELL))
    if missing == 0:
        return None, 0
    return pa.py_buffer(np.packbits(cells != NULL_CELL, bitorder="little")), missing
