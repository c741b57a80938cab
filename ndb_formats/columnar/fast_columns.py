"""
The types that have compiled loops: from the offsets of values to the buffers of an Arrow array.

A reader returns None if it meets a value that the loop cannot decode. Such columns, and those of all other types, are
decoded by their codecs in `column_arrays`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.json_columns import JsonReader
from ndb_formats.columnar.kernels import temporal, values
from ndb_formats.constants import ColumnCode
from ndb_formats.errors import UnsupportedError
from ndb_formats.types.charsets import decode_text
from ndb_formats.types.column_types import Codec
from ndb_formats.types.decimals import decimal_groups

BYTES = frozenset({ColumnCode.GEOMETRY, ColumnCode.VECTOR})
STRINGS = frozenset(
    {ColumnCode.STRING, ColumnCode.VARCHAR, ColumnCode.VAR_STRING}
    | {ColumnCode.BLOB, ColumnCode.TINY_BLOB, ColumnCode.MEDIUM_BLOB, ColumnCode.LONG_BLOB}
)
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
_MAX_BYTES = 0x7FFFFFFF
_WORD = 8
MAX_DECIMAL128 = 38

Bytes = npt.NDArray[np.uint8]
Cells = npt.NDArray[np.uint32]
# The data buffers of an array; None if the loop met a value that it cannot decode.
Buffers = list[npt.NDArray[Any]] | None


@attrs.frozen(eq=False)
class Source:
    """
    Where the values of a column are.

    Attributes:
        data: The bytes of the chunk.
        base: What the cells count from.
        cells: The cell of each row, see `ndb_formats.columnar.kernels.rows`.
    """

    data: Bytes
    base: int
    cells: Cells

    def __len__(self) -> int:
        return len(self.cells)


def copied(source: Source, codec: Codec, least: int) -> tuple[npt.NDArray[np.int32], Bytes, bool]:
    """Return offsets and bytes of values of any type, padded to `least` bytes, and whether all are ASCII."""
    prefix = codec.width if codec.prefixed else -1
    offsets = np.empty(len(source) + 1, np.int32)
    where = (source.data, source.base, source.cells, prefix, codec.width)
    total = values.measure_bytes(*where, least, offsets)
    if total > _MAX_BYTES:
        message = f"the values of a column in a batch have {total} bytes, more than Arrow's 2 GiB; ask for fewer rows"
        raise UnsupportedError(message)
    plain = np.empty(total + _WORD, np.uint8)
    ascii_only = values.copy_bytes(*where, offsets, plain)
    return offsets, plain, ascii_only


def fast_reader(codec: Codec) -> Callable[[Source], Buffers] | None:
    """Return the function that reads a column with a compiled loop; None if its type has none."""
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
    if wire.code is ColumnCode.JSON:
        return _json_reader(codec.width)
    if wire.code in BYTES or (wire.code in STRINGS and meaning.charset is None):
        least = wire.length if wire.code is ColumnCode.STRING else 0
        return bytes_reader(codec, least, _WORD // 2 if wire.code is ColumnCode.VECTOR else 1)
    if wire.code in STRINGS:
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


def _number_reader(get: Callable[..., None], kind: type) -> Callable[[Source], Buffers]:
    def read(source: Source) -> Buffers:
        out: npt.NDArray[Any] = np.empty(len(source), kind)
        get(source.data, source.base, source.cells, out)
        return [out]

    return read


def _medium_reader(unsigned: bool) -> Callable[[Source], Buffers]:
    def read(source: Source) -> Buffers:
        out = np.empty(len(source), np.uint32)
        values.get_little_endian(source.data, source.base, source.cells, 3, out)
        return [out if unsigned else out.view(np.int32) << 8 >> 8]

    return read


def _years(source: Source) -> Buffers:
    out: Bytes = np.empty(len(source), np.uint8)
    values.get_u8(source.data, source.base, source.cells, out)
    return [np.where(out, out + np.int16(1900), np.int16(0))]


def _bits_reader(width: int) -> Callable[[Source], Buffers]:
    def read(source: Source) -> Buffers:
        out = np.empty(len(source), np.uint64)
        values.get_big_endian(source.data, source.base, source.cells, width, out)
        return [out]

    return read


def _set_reader(width: int) -> Callable[[Source], Buffers]:
    def read(source: Source) -> Buffers:
        out = np.empty(len(source), np.uint64)
        values.get_little_endian(source.data, source.base, source.cells, width, out)
        return [out]

    return read


def _enum_reader(width: int, members: int) -> Callable[[Source], Buffers]:
    get, kind = (values.get_u8, np.uint8) if width == 1 else (values.get_u16, np.uint16)
    plain = _number_reader(get, kind)

    def read(source: Source) -> Buffers:
        buffers = plain(source)
        if not members:
            return buffers
        assert buffers is not None
        (numbers,) = buffers
        return [numbers.astype(np.uint16)] if numbers.max(initial=0) <= members else None

    return read


def _decimal_reader(precision: int, scale: int) -> Callable[[Source], Buffers]:
    whole, part = decimal_groups(precision, scale)
    groups = np.array(whole + part, np.int64)

    def read(source: Source) -> Buffers:
        if precision <= values.SHORT_DIGITS:
            pairs = np.zeros((len(source), 2), np.int64)
            good = values.get_short_decimals(source.data, source.base, source.cells, groups, pairs)
            return [pairs] if good else None
        words = np.zeros((len(source), 4 if precision <= MAX_DECIMAL128 else 8), np.uint32)
        good = values.get_decimals(source.data, source.base, source.cells, groups, words)
        return [words] if good else None

    return read


_TEMPORAL: dict[ColumnCode, tuple[Callable[..., int], tuple[bool, ...]]] = {
    ColumnCode.DATE: (temporal.date_text, ()),
    ColumnCode.NEWDATE: (temporal.date_text, ()),
    ColumnCode.TIMESTAMP: (temporal.timestamp_text, (True,)),
    ColumnCode.TIME2: (temporal.time_text, ()),
    ColumnCode.DATETIME2: (temporal.datetime_text, ()),
    ColumnCode.TIMESTAMP2: (temporal.timestamp_text, (False,)),
}
_WITH_PRECISION = frozenset(
    {ColumnCode.TIMESTAMP, ColumnCode.TIME2, ColumnCode.DATETIME2, ColumnCode.TIMESTAMP2}
)  # the first one's is always 0


def _temporal_reader(code: ColumnCode, precision: int) -> Callable[[Source], Buffers] | None:
    write, more = _TEMPORAL[code]
    if precision > temporal.MAX_PRECISION:
        return None
    arguments = (precision, *more) if code in _WITH_PRECISION else more

    def read(source: Source) -> Buffers:
        offsets = np.empty(len(source) + 1, np.int32)
        out: Bytes = np.empty(len(source) * temporal.MAX_TEXT + _WORD, np.uint8)
        total = write(source.data, source.base, source.cells, *arguments, offsets, out)
        return None if total < 0 else [offsets, out[:total]]

    return read


def moment_reader(codec: Codec) -> Callable[[Source], Buffers] | None:
    """Return the function that reads a DATE, DATETIME or TIMESTAMP column as numbers; None if it has none."""
    assert codec.meaning is not None
    wire = codec.meaning.wire
    precision = wire.length if wire.code in _WITH_PRECISION else 0
    if precision > temporal.MAX_PRECISION:
        return None
    readers: dict[ColumnCode, tuple[Callable[..., bool], type, tuple[int, ...]]] = {
        ColumnCode.DATE: (temporal.date_days, np.int32, ()),
        ColumnCode.NEWDATE: (temporal.date_days, np.int32, ()),
        ColumnCode.DATETIME2: (temporal.datetime_micros, np.int64, (precision,)),
        ColumnCode.TIMESTAMP2: (temporal.timestamp_micros, np.int64, (precision, False)),
        ColumnCode.TIMESTAMP: (temporal.timestamp_micros, np.int64, (0, True)),
    }
    if wire.code not in readers:
        return None
    write, kind, more = readers[wire.code]

    def read(source: Source) -> Buffers:
        out: npt.NDArray[Any] = np.empty(len(source), kind)
        return [out] if write(source.data, source.base, source.cells, *more, out) else None

    return read


def _json_reader(prefix: int) -> Callable[[Source], Buffers]:
    reader = JsonReader(prefix)

    def read(source: Source) -> Buffers:
        found = reader.texts(source.data, source.base, source.cells)
        return None if found is None else list(found)

    return read


def bytes_reader(codec: Codec, least: int, unit: int = 1) -> Callable[[Source], Buffers]:
    """
    Return the reader of values that are copied as they are.

    Args:
        codec: The column's codec.
        least: Length up to which shorter values are padded with zero bytes.
        unit: What every length must be a multiple of.
    """

    def read(source: Source) -> Buffers:
        offsets, plain, _ = copied(source, codec, least)
        return None if unit > 1 and (np.diff(offsets) % unit).any() else [offsets, plain]

    return read


def _text_reader(codec: Codec, charset: str) -> Callable[[Source], Buffers] | None:
    if charset in _UTF8:

        def read(source: Source) -> Buffers:
            offsets, plain, ascii_only = copied(source, codec, 0)
            valid = ascii_only or (charset != "ascii" and values.valid_utf8(plain, offsets))
            return [offsets, plain] if valid else None

        return read
    table = single_byte_table(charset)
    if table is None:
        return None
    sizes, characters = table

    def read_single_bytes(source: Source) -> Buffers:
        offsets, plain, ascii_only = copied(source, codec, 0)
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
def single_byte_table(charset: str) -> tuple[Bytes, npt.NDArray[np.uint32]] | None:
    """
    Return size and UTF-8 of each of the 256 bytes of a character set; a size of 0 for a byte that is no character.

    None for a character set that cannot be decoded, that has characters of several bytes, or whose first half is not
    ASCII.
    """
    if charset in _MANY_BYTES:
        return None
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
