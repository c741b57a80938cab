"""
One column of a batch: the places of its values to an Arrow array.

The types are those of the table in `docs/formats.md`, "Column types"; the values are those that the column's codec
gives. Common types go through compiled loops. What a loop finds out of the ordinary, and every other type, goes
through the codec, once per distinct value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.charsets import decode_text
from ndb_formats.column_types import Codec, Meaning
from ndb_formats.constants import ColumnCode
from ndb_formats.decimals import decimal_groups
from ndb_formats.errors import CorruptError, FormatError, UnsupportedError
from ndb_formats.geometry import Geometry
from ndb_formats.json_binary import JsonDocument
from ndb_formats.json_diff import JsonChange
from ndb_formats.kernels import decimals, temporal, values
from ndb_formats.kernels.rows import NULL_CELL
from ndb_formats.values import Value
from ndb_formats.vector import Vector

__all__ = ["ColumnFaultError", "ColumnReader", "arrow_value"]

_INTEGERS = {
    ColumnCode.TINY: (pa.int8(), pa.uint8()),
    ColumnCode.SHORT: (pa.int16(), pa.uint16()),
    ColumnCode.INT24: (pa.int32(), pa.uint32()),
    ColumnCode.LONG: (pa.int32(), pa.uint32()),
    ColumnCode.LONGLONG: (pa.int64(), pa.uint64()),
}
_BYTES = frozenset({ColumnCode.GEOMETRY, ColumnCode.VECTOR})
_STRINGS = frozenset(
    {ColumnCode.STRING, ColumnCode.VARCHAR, ColumnCode.VAR_STRING}
    | {ColumnCode.BLOB, ColumnCode.TINY_BLOB, ColumnCode.MEDIUM_BLOB, ColumnCode.LONG_BLOB}
)
_PLAIN = {
    ColumnCode.FLOAT: pa.float32(),
    ColumnCode.DOUBLE: pa.float64(),
    ColumnCode.YEAR: pa.int16(),
    ColumnCode.BIT: pa.uint64(),
    ColumnCode.NULL: pa.null(),
}
_ENUM, _SET = pa.dictionary(pa.uint16(), pa.string()), pa.dictionary(pa.int32(), pa.string())
_UTF8 = frozenset({"utf8mb4", "utf8mb3", "ascii"})
_MANY_BYTES = frozenset(
    {
        "big5",
        "cp932",
        "eucjpms",
        "euckr",
        "gb18030",
        "gb2312",
        "gbk",
        "sjis",
        "ujis",
        "ucs2",
        "utf16",
        "utf16le",
        "utf32",
    }
)
_MAX_DECIMAL128, _MAX_DECIMAL256 = 38, 76
_MAX_BYTES = 0x7FFFFFFF
_MAX_UNSIGNED = (1 << 64) - 1
_WORD = 8

Bytes = npt.NDArray[np.uint8]
Cells = npt.NDArray[np.uint32]
# What a compiled loop leaves: the data buffers of an array; None if it met something out of the ordinary.
Buffers = list[npt.NDArray[Any]] | None


class ColumnFaultError(Exception):
    """
    A value has no place in Arrow: it cannot be decoded, or is text that is none.

    Attributes:
        row: Row of the first such value.
    """

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def arrow_value(value: Value) -> object:
    """
    Return what Arrow takes for a value.

    Raises:
        FormatError: A JSON value is no document.
    """
    if isinstance(value, JsonDocument | JsonChange):
        return value.text
    return value.data if isinstance(value, Geometry | Vector) else value


@attrs.frozen(eq=False)
class _Source:
    data: Bytes
    base: int
    cells: Cells

    def __len__(self) -> int:
        return len(self.cells)


@attrs.frozen(eq=False)
class ColumnReader:
    """
    How one column of an image becomes an array.

    Attributes:
        codec: The column's codec.
        type: The Arrow type.
        decode: Bytes of a value to what Arrow takes, without a compiled loop.
    """

    codec: Codec
    type: pa.DataType
    decode: Callable[[bytes], object]
    _fast: Callable[[_Source], Buffers] | None
    _dictionary: pa.Array | None = None

    @classmethod
    def of(cls, codec: Codec, *, text: bool, diff: bool = False) -> ColumnReader:
        """
        Return the reader of a column.

        Args:
            codec: Its codec.
            text: Whether text is decoded; if not, it is the bytes that stand in the binlog.
            diff: Whether the values are JSON diffs.

        Raises:
            UnsupportedError: Arrow has no type for it.
        """
        if diff:
            return cls(codec, pa.string(), lambda data: JsonChange(data).text, None)
        meaning = codec.meaning
        assert meaning is not None
        if not text and meaning.charset is not None and meaning.wire.code in _STRINGS:
            codec = attrs.evolve(codec, decode=bytes, meaning=attrs.evolve(meaning, charset=""))
            return cls(codec, pa.binary(), bytes, _bytes_reader(codec, 0))
        dictionary = None
        if meaning.wire.code is ColumnCode.ENUM and meaning.members:
            dictionary = _text_array(("", *meaning.members))
        return cls(codec, _type_of(meaning), lambda data: arrow_value(codec.decode(data)), _fast(codec), dictionary)

    def array(self, data: Bytes, base: int, cells: Cells) -> pa.Array:
        """
        Return the values as an array.

        Args:
            data: What they stand in. Shape (bytes,), uint8.
            base: What the cells count from.
            cells: Where each value starts. Shape (rows,), uint32.

        Raises:
            ColumnFaultError: A value has no place in Arrow.
        """
        source = _Source(data, base, cells)
        if pa.types.is_null(self.type):
            return pa.nulls(len(source))
        buffers = None if self._fast is None else self._fast(source)
        if buffers is None:
            return self._by_value(source)
        validity, missing = _validity(cells)
        parts = [validity, *(pa.py_buffer(buffer) for buffer in buffers)]
        if self._dictionary is None:
            return pa.Array.from_buffers(self.type, len(source), parts, missing)
        indices = pa.Array.from_buffers(self.type.index_type, len(source), parts, missing)
        return pa.DictionaryArray.from_arrays(indices, self._dictionary)

    def check(self, payload: bytes) -> object:
        """
        Return one value as Arrow takes it.

        Raises:
            FormatError: It cannot be decoded, or has no place in Arrow.
        """
        value = self.decode(payload)
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                message = (
                    "bytes that are no text of its character set, which Arrow cannot keep; read it with text=False"
                )
                raise CorruptError(message) from None
        if isinstance(value, int) and value > _MAX_UNSIGNED:
            message = f"holds {value}, which does not fit 64 bits"
            raise UnsupportedError(message)
        return value

    def _by_value(self, source: _Source) -> pa.Array:
        """Decode each distinct value once."""
        offsets, plain, _ = _copied(source, self.codec, 0)
        validity, missing = _validity(source.cells)
        parts = [validity, pa.py_buffer(offsets), pa.py_buffer(plain)]
        encoded = pa.Array.from_buffers(pa.binary(), len(source), parts, missing).dictionary_encode()
        kind = self.type.value_type if pa.types.is_dictionary(self.type) else self.type
        decoded: list[object] = []
        for number, payload in enumerate(encoded.dictionary.to_pylist()):
            try:
                decoded.append(self.check(payload))
            except FormatError:
                # Distinct values are numbered in the order in which they turn up.
                raise ColumnFaultError(encoded.indices.index(number).as_py()) from None
        distinct = pa.array(decoded, kind)
        if pa.types.is_dictionary(self.type):
            return pa.DictionaryArray.from_arrays(encoded.indices.cast(self.type.index_type), distinct)
        return distinct.take(encoded.indices)


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
        kind = pa.decimal128 if wire.length <= _MAX_DECIMAL128 else pa.decimal256
        return kind(wire.length, wire.scale)
    if wire.code is ColumnCode.ENUM:
        return _ENUM if meaning.members else {1: pa.uint8(), 2: pa.uint16()}.get(wire.length, pa.uint64())
    if wire.code is ColumnCode.SET:
        return _SET if meaning.members else pa.uint64()
    if wire.code in _BYTES or (wire.code in _STRINGS and meaning.charset is None):
        return pa.binary()
    return pa.string()


def _text_array(texts: Sequence[str]) -> pa.Array:
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        message = "members of an ENUM are no text of its character set"
        raise UnsupportedError(message) from None


def _validity(cells: Cells) -> tuple[pa.Buffer | None, int]:
    missing = int(np.count_nonzero(cells == NULL_CELL))
    if missing == 0:
        return None, 0
    return pa.py_buffer(np.packbits(cells != NULL_CELL, bitorder="little")), missing


def _copied(source: _Source, codec: Codec, least: int) -> tuple[npt.NDArray[np.int32], Bytes, bool]:
    """Return offsets and bytes of values of any type, and whether all are ASCII."""
    prefix = codec.width if codec.prefixed else -1
    offsets = np.empty(len(source) + 1, np.int32)
    where = (source.data, source.base, source.cells, prefix, codec.width)
    total = values.measure_bytes(*where, least, offsets)
    if total > _MAX_BYTES:
        message = f"the values of one column in a batch have {total} bytes, more than Arrow's 2 GiB; take fewer rows"
        raise UnsupportedError(message)
    plain = np.zeros(total + _WORD, np.uint8)
    ascii_only = values.copy_bytes(*where, offsets, plain)
    return offsets, plain, ascii_only


def _fast(codec: Codec) -> Callable[[_Source], Buffers] | None:
    """Return the compiled way of a column; None if it has none."""
    meaning = codec.meaning
    assert meaning is not None
    wire = meaning.wire
    if wire.code in _NUMBERS:
        get, kind = _NUMBERS[wire.code]
        return _number_reader(get, kind)
    if wire.code is ColumnCode.INT24:
        return _medium_reader(meaning.unsigned)
    if wire.code is ColumnCode.YEAR:
        return _years
    if wire.code is ColumnCode.BIT and codec.width <= _WORD:
        return _bits_reader(codec.width)
    if wire.code is ColumnCode.ENUM and wire.length in (1, 2):
        return _enum_reader(wire.length, len(meaning.members))
    if wire.code is ColumnCode.SET and not meaning.members and wire.length <= _WORD:
        return _set_reader(wire.length)
    if wire.code is ColumnCode.NEWDECIMAL:
        return _decimal_reader(wire.length, wire.scale)
    if wire.code in _TEMPORAL:
        return _temporal_reader(wire.code, wire.length)
    if wire.code in _BYTES or (wire.code in _STRINGS and meaning.charset is None):
        least = wire.length if wire.code is ColumnCode.STRING else 0
        return _bytes_reader(codec, least, _WORD // 2 if wire.code is ColumnCode.VECTOR else 1)
    if wire.code in _STRINGS and meaning.charset not in _MANY_BYTES:
        return _text_reader(codec, meaning.charset or "")
    return None


_NUMBERS: dict[ColumnCode, tuple[Callable[..., None], type]] = {
    ColumnCode.TINY: (values.get_u8, np.uint8),
    ColumnCode.SHORT: (values.get_u16, np.uint16),
    ColumnCode.LONG: (values.get_u32, np.uint32),
    ColumnCode.LONGLONG: (values.get_u64, np.uint64),
    ColumnCode.FLOAT: (values.get_u32, np.uint32),
    ColumnCode.DOUBLE: (values.get_u64, np.uint64),
}


def _number_reader(get: Callable[..., None], kind: type) -> Callable[[_Source], Buffers]:
    def read(source: _Source) -> Buffers:
        out: npt.NDArray[Any] = np.empty(len(source), kind)
        get(source.data, source.base, source.cells, out)
        return [out]

    return read


def _medium_reader(unsigned: bool) -> Callable[[_Source], Buffers]:
    def read(source: _Source) -> Buffers:
        out = np.empty(len(source), np.uint32)
        values.get_little_endian(source.data, source.base, source.cells, 3, out)
        return [out if unsigned else out.view(np.int32) << 8 >> 8]

    return read


def _years(source: _Source) -> Buffers:
    out: Bytes = np.empty(len(source), np.uint8)
    values.get_u8(source.data, source.base, source.cells, out)
    return [np.where(out, out + np.int16(1900), np.int16(0))]


def _bits_reader(width: int) -> Callable[[_Source], Buffers]:
    def read(source: _Source) -> Buffers:
        out = np.empty(len(source), np.uint64)
        values.get_big_endian(source.data, source.base, source.cells, width, out)
        return [out]

    return read


def _set_reader(width: int) -> Callable[[_Source], Buffers]:
    def read(source: _Source) -> Buffers:
        out = np.empty(len(source), np.uint64)
        values.get_little_endian(source.data, source.base, source.cells, width, out)
        return [out]

    return read


def _enum_reader(width: int, members: int) -> Callable[[_Source], Buffers]:
    get, kind = (values.get_u8, np.uint8) if width == 1 else (values.get_u16, np.uint16)
    plain = _number_reader(get, kind)

    def read(source: _Source) -> Buffers:
        buffers = plain(source)
        if not members:
            return buffers
        assert buffers is not None
        (numbers,) = buffers
        return [numbers.astype(np.uint16)] if numbers.max(initial=0) <= members else None

    return read


def _decimal_reader(precision: int, scale: int) -> Callable[[_Source], Buffers]:
    whole, part = decimal_groups(precision, scale)
    groups = np.array(whole + part, np.int64)

    def read(source: _Source) -> Buffers:
        if precision <= decimals.SHORT_DIGITS:
            pairs = np.zeros((len(source), 2), np.int64)
            good = decimals.get_short_decimals(source.data, source.base, source.cells, groups, pairs)
            return [pairs] if good else None
        words = np.zeros((len(source), 4 if precision <= _MAX_DECIMAL128 else 8), np.uint32)
        good = decimals.get_decimals(source.data, source.base, source.cells, groups, words)
        return [words] if good else None

    return read


_TEMPORAL: dict[ColumnCode, tuple[Callable[..., int], tuple[bool, ...]]] = {
    ColumnCode.DATE: (temporal.date_text, ()),
    ColumnCode.NEWDATE: (temporal.date_text, ()),
    ColumnCode.TIME: (temporal.old_time_text, ()),
    ColumnCode.DATETIME: (temporal.old_datetime_text, ()),
    ColumnCode.TIMESTAMP: (temporal.timestamp_text, (True,)),
    ColumnCode.TIME2: (temporal.time_text, ()),
    ColumnCode.DATETIME2: (temporal.datetime_text, ()),
    ColumnCode.TIMESTAMP2: (temporal.timestamp_text, (False,)),
}
_WITH_PRECISION = frozenset(
    {ColumnCode.TIMESTAMP, ColumnCode.TIME2, ColumnCode.DATETIME2, ColumnCode.TIMESTAMP2}
)  # the first one's is always 0


def _temporal_reader(code: ColumnCode, precision: int) -> Callable[[_Source], Buffers] | None:
    write, more = _TEMPORAL[code]
    if precision > temporal.MAX_PRECISION:
        return None
    arguments = (precision, *more) if code in _WITH_PRECISION else more

    def read(source: _Source) -> Buffers:
        offsets = np.empty(len(source) + 1, np.int32)
        out: Bytes = np.empty(len(source) * temporal.MAX_TEXT + _WORD, np.uint8)
        total = write(source.data, source.base, source.cells, *arguments, offsets, out)
        return None if total < 0 else [offsets, out[:total]]

    return read


def _bytes_reader(codec: Codec, least: int, unit: int = 1) -> Callable[[_Source], Buffers]:
    def read(source: _Source) -> Buffers:
        offsets, plain, _ = _copied(source, codec, least)
        return None if unit > 1 and (np.diff(offsets) % unit).any() else [offsets, plain]

    return read


def _text_reader(codec: Codec, charset: str) -> Callable[[_Source], Buffers] | None:
    if charset in _UTF8:

        def read(source: _Source) -> Buffers:
            offsets, plain, ascii_only = _copied(source, codec, 0)
            valid = ascii_only or (charset != "ascii" and values.valid_utf8(plain, offsets))
            return [offsets, plain] if valid else None

        return read
    table = _single_byte_table(charset)
    if table is None:
        return None
    sizes, characters = table

    def read_single_bytes(source: _Source) -> Buffers:
        offsets, plain, ascii_only = _copied(source, codec, 0)
        if ascii_only:
            return [offsets, plain]
        new_offsets = np.empty_like(offsets)
        total = values.measure_single_byte_text(plain, offsets, sizes, new_offsets)
        if not 0 <= total <= _MAX_BYTES:
            return None
        out = np.empty(total + _WORD, np.uint8)
        values.copy_single_byte_text(plain, int(offsets[-1]), sizes, characters, out)
        return [new_offsets, out]

    return read_single_bytes


@cache
def _single_byte_table(charset: str) -> tuple[Bytes, npt.NDArray[np.uint32]] | None:
    """
    Return size and UTF-8 of every byte of a character set; size 0 for a byte that is no character.

    None for a character set that cannot be decoded, or in which the first half is not ASCII.
    """
    sizes, characters = np.zeros(256, np.uint8), np.zeros(256, np.uint32)
    for byte in range(256):
        try:
            character = decode_text(bytes([byte]), charset).encode("utf-8")
        except UnicodeEncodeError:
            continue
        except UnsupportedError:
            return None
        if byte < 0x80 and character != bytes([byte]):
            return None
        sizes[byte], characters[byte] = len(character), int.from_bytes(character, "little")
    return sizes, characters
