"""
Values of a column as `mysqlbinlog -v` prints them, many at once.

The texts are those of `value_text`. Common types have compiled loops, which leave out the quotes around a text: they
are the same for every value. All other types, and columns with a value that a loop cannot print, go through the scalar
function, once per distinct value.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import pyarrow as pa

from ndb_formats.columnar.fast_columns import STRINGS, Source, copied
from ndb_formats.columnar.json_columns import JsonReader
from ndb_formats.columnar.kernels import temporal
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.texts import MAX_INTEGER_TEXT, decimal_text, integer_text, seconds_text
from ndb_formats.columnar.lines import Escapes, escaped
from ndb_formats.columnar.value_texts import Texts, texts_of
from ndb_formats.constants import ColumnCode
from ndb_formats.types.column_types import Codec, WireType
from ndb_formats.types.decimals import decimal_groups

_SPARE = 16
_LOG_ESCAPES = Escapes.of("'", b"x")
_ESCAPES_OF_MARIADB = Escapes(ord("'"), np.array([1] * 32 + [0] * 224, np.uint8), b"x")
_WIDTHS = {
    ColumnCode.TINY: 1,
    ColumnCode.SHORT: 2,
    ColumnCode.INT24: 3,
    ColumnCode.LONG: 4,
    ColumnCode.LONGLONG: 8,
}
_FLOATS = {ColumnCode.FLOAT: ("<f4", b"%-20g"), ColumnCode.DOUBLE: ("<f8", b"%.20g")}


@attrs.frozen(eq=False)
class ColumnText:
    """
    Prints one column.

    Attributes:
        codec: How its values are found.
        quote: What the compiled loop leaves out before and after a value.
        scalar: Bytes of one value to its text, quotes included.
    """

    codec: Codec
    quote: bytes
    scalar: Callable[[bytes], bytes]
    _fast: Callable[[Source], Texts | None]

    def texts(self, source: Source) -> tuple[Texts, bytes]:
        """
        Return the texts of values, and the quote that belongs around each.

        Raises:
            FormatError: A value cannot be decoded.
        """
        texts = self._fast(source)
        if texts is not None:
            return attrs.evolve(texts, missing=source.cells == NULL_CELL), self.quote
        offsets, plain, _ = copied(source, self.codec, 0)
        valid = np.packbits(source.cells != NULL_CELL, bitorder="little")
        parts = [pa.py_buffer(valid), pa.py_buffer(offsets), pa.py_buffer(plain)]
        encoded = pa.Array.from_buffers(pa.binary(), len(source), parts).dictionary_encode()
        distinct = pa.array([self.scalar(payload) for payload in encoded.dictionary.to_pylist()], pa.binary())
        return texts_of(distinct.take(encoded.indices)), b""


def column_text(codec: Codec, scalar: Callable[[bytes], bytes], *, mariadb: bool = False) -> ColumnText:
    """
    Return what prints a column.

    Args:
        codec: Its codec; only its wire type matters.
        scalar: See `ColumnText`.
        mariadb: Whether texts are escaped as `mariadb-binlog` does.
    """
    assert codec.meaning is not None
    wire = codec.meaning.wire
    if wire.code in STRINGS:
        escapes = _ESCAPES_OF_MARIADB if mariadb else _LOG_ESCAPES
        return ColumnText(codec, b"'", scalar, lambda source: _strings(source, codec, escapes))
    if wire.code is ColumnCode.JSON:
        return ColumnText(codec, b"'", scalar, _json_printer(codec.width))
    quote = b"'" if wire.code in _QUOTED else b""
    return ColumnText(codec, quote, scalar, _PRINTERS[wire.code](wire) if wire.code in _PRINTERS else _none)


def _none(_: Source) -> None:
    """Print nothing: the scalar function prints it."""


def _strings(source: Source, codec: Codec, escapes: Escapes) -> Texts | None:
    offsets, plain, _ = copied(source, codec, 0)
    return escaped(Texts(offsets, plain), escapes)


def _json_printer(width: int) -> Callable[[Source], Texts | None]:
    reader = JsonReader(width, quoted=False)

    def texts(source: Source) -> Texts | None:
        found = reader.texts(source.data, source.base, source.cells)
        return None if found is None else escaped(Texts(*found), _LOG_ESCAPES)

    return texts


def _filled(source: Source, room: int, write: Callable[..., int], *arguments: object) -> Texts | None:
    """Return texts that a loop writes; None if it met a value that it cannot print."""
    offsets, out = np.empty(len(source) + 1, np.int32), np.empty(len(source) * room + _SPARE, np.uint8)
    total = write(source.data, source.base, source.cells, *arguments, offsets, out)
    return None if total < 0 else Texts(offsets, out)


def _integers(width: int, *, signed: bool) -> Callable[[Source], Texts | None]:
    return lambda source: _filled(source, MAX_INTEGER_TEXT, integer_text, width, signed)


def _integer(wire: WireType) -> Callable[[Source], Texts | None]:
    return _integers(_WIDTHS[wire.code], signed=True)


def _enum(wire: WireType) -> Callable[[Source], Texts | None]:
    return _integers(wire.length, signed=False) if wire.length in (1, 2) else _none


def _decimal(wire: WireType) -> Callable[[Source], Texts | None]:
    whole, part = (np.array(groups, np.int64) for groups in decimal_groups(wire.length, wire.scale))
    return lambda source: _filled(source, 3 + 9 * (len(whole) + len(part)), decimal_text, whole, part)


def _timestamp(wire: WireType) -> Callable[[Source], Texts | None]:
    return lambda source: _filled(source, 20, seconds_text, wire.length) if wire.length <= 6 else None


def _time(wire: WireType) -> Callable[[Source], Texts | None]:
    return lambda source: (
        _filled(source, temporal.MAX_TEXT, temporal.time_text, wire.length) if wire.length <= 6 else None
    )


def _datetime(wire: WireType) -> Callable[[Source], Texts | None]:
    return lambda source: (
        _filled(source, temporal.MAX_TEXT, temporal.datetime_text, wire.length) if wire.length <= 6 else None
    )


def _date(_: WireType) -> Callable[[Source], Texts | None]:
    def texts(source: Source) -> Texts | None:
        found = _filled(source, temporal.MAX_TEXT, temporal.date_text)
        if found is not None:
            found.data[found.data == ord("-")] = ord(":")
        return found

    return texts


def _float(wire: WireType) -> Callable[[Source], Texts | None]:
    """Return the printer of floating point numbers: one call formats all of them."""
    kind, form = _FLOATS[wire.code]

    def texts(source: Source) -> Texts | None:
        width = np.dtype(kind).itemsize
        known = np.flatnonzero(source.cells != NULL_CELL)
        at = source.base + source.cells[known].astype(np.int64)
        numbers = source.data[at[:, None] + np.arange(width)].view(kind).ravel().tolist()
        text = ((form + b"\n") * len(numbers)) % tuple(numbers)
        data = np.frombuffer(text + bytes(_SPARE), np.uint8)
        ends = np.flatnonzero(data == ord("\n"))
        sizes = np.zeros(len(source), np.int64)
        sizes[known] = np.diff(ends, prepend=-1)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return _without_last(Texts(offsets, data), sizes)

    return texts


def _without_last(texts: Texts, sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Texts:
    """Return texts without the line end at the end of each."""
    keep = texts.data != ord("\n")
    offsets = np.concatenate([[0], np.cumsum(np.maximum(sizes - 1, 0))]).astype(np.int32)
    return Texts(offsets, texts.data[keep])


_QUOTED = frozenset({ColumnCode.DATE, ColumnCode.NEWDATE, ColumnCode.TIME2, ColumnCode.DATETIME2})
_PRINTERS: dict[ColumnCode, Callable[[WireType], Callable[[Source], Texts | None]]] = {
    **dict.fromkeys(_WIDTHS, _integer),
    **dict.fromkeys(_FLOATS, _float),
    ColumnCode.ENUM: _enum,
    ColumnCode.NEWDECIMAL: _decimal,
    ColumnCode.TIMESTAMP2: _timestamp,
    ColumnCode.TIME2: _time,
    ColumnCode.DATETIME2: _datetime,
    ColumnCode.DATE: _date,
    ColumnCode.NEWDATE: _date,
}
