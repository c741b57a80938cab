"""
Values of columns as text: `value_text` for one of them, and what gives the same for many.

Numbers have compiled loops, texts stay as they are, and all others are converted once per distinct value.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ndb_formats.columnar.kernel import read_only
from ndb_formats.columnar.kernels.doubles import MAX_DOUBLE, doubles_text
from ndb_formats.columnar.kernels.entries import DIGITS, numbers_text
from ndb_formats.constants import ColumnCode
from ndb_formats.types.decimals import decimal_text
from ndb_formats.types.json_binary import JsonDocument
from ndb_formats.types.json_diff import JsonChange
from ndb_formats.types.values import Geometry, Value, Vector

_MOST_LOW_DIGITS = 18  # of a decimal number that fits the lower half of its 16 bytes


SPARE = 16
_NOTHING_MISSING = np.zeros(0, np.bool_)


@attrs.frozen(eq=False)
class Texts:
    """
    Texts of a column.

    Attributes:
        offsets: Their offsets. Shape (rows + 1,), int32.
        data: Their bytes. uint8.
        missing: Whether each is NULL; empty if none is. bool.
    """

    offsets: npt.NDArray[np.int32]
    data: npt.NDArray[np.uint8]
    missing: npt.NDArray[np.bool_] = _NOTHING_MISSING

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Texts:
        """Return texts that are none of them NULL."""
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        return cls(offsets, np.frombuffer(b"".join(texts) + bytes(SPARE), np.uint8))


def texts_of(array: pa.Array) -> Texts:
    """Return an array of strings or bytes, which starts at its buffers' starts."""
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])
    _, offsets, data = array.buffers()
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else _NOTHING_MISSING
    values = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Texts(np.frombuffer(offsets, np.int32)[: len(array) + 1], values, missing)


def value_text(value: Value) -> str | None:
    """Return a value as text; NULL is None, bytes are hexadecimal."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, JsonDocument | JsonChange | Vector):
        return value.text
    if isinstance(value, Geometry):
        return "0x" + value.data.hex().upper()
    if isinstance(value, Decimal):
        return decimal_text(value)
    return "0x" + value.hex().upper() if isinstance(value, bytes) else str(value)


def value_texts(values: pa.Array, code: ColumnCode | None = None) -> pa.StringArray:
    """Return values of a column as text; its type matters for VECTOR alone."""
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_integer(values.type):
        return _number_texts(values, (values.fill_null(0) if values.null_count else values).to_numpy(), 0)
    if pa.types.is_decimal128(kind) and kind.precision <= _MOST_LOW_DIGITS and kind.scale >= 0:
        return _number_texts(values, _low_halves(values), kind.scale)
    if pa.types.is_decimal(kind):
        return decimal_texts(values)
    if pa.types.is_string(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        return _float_texts(values)
    encoded = values.dictionary_encode()
    texts = [
        value_text(Vector(value) if code is ColumnCode.VECTOR else value) for value in encoded.dictionary.to_pylist()
    ]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _low_halves(values: pa.Decimal128Array) -> npt.NDArray[np.int64]:
    """Return decimal numbers without their points, which fit 64 bits."""
    words = np.frombuffer(values.buffers()[1], np.int64)
    return words[2 * values.offset : 2 * (values.offset + len(values)) : 2]


def _number_texts(values: pa.Array, numbers: npt.NDArray[Any], scale: int) -> pa.StringArray:
    signed = numbers.dtype != np.uint64
    words = np.ascontiguousarray(numbers.astype(np.int64, copy=False) if signed else numbers).view(np.uint64)
    room = DIGITS + (2 + scale if scale else 0)
    offsets, out = np.empty(len(values) + 1, np.int32), np.empty(len(values) * room, np.uint8)
    numbers_text(read_only(words), signed, _missing(values), scale, offsets, out)
    return _strings(values, offsets, out)


def _float_texts(values: pa.Array) -> pa.StringArray:
    """Return floating point numbers as Python shows them."""
    numbers = values.cast(pa.float64())
    bits = (numbers.fill_null(0) if values.null_count else numbers).to_numpy().view(np.uint64)
    offsets, out = np.empty(len(values) + 1, np.int32), np.empty(len(values) * MAX_DOUBLE + SPARE, np.uint8)
    doubles_text(read_only(bits), _missing(values), offsets, out)
    return _strings(values, offsets, out)


def _missing(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Return whether each value is NULL; nothing if none is."""
    return values.is_null().to_numpy(zero_copy_only=False) if values.null_count else _NOTHING_MISSING


def _strings(values: pa.Array, offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Return texts of values, NULL where these are."""
    missing = _missing(values)
    validity = pa.py_buffer(np.packbits(~missing, bitorder="little")) if len(missing) else None
    parts = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(values), parts, values.null_count)


_PLAIN_PLACES = 6  # to so many digits after the point, Arrow's own text has no exponent


def decimal_texts(values: pa.Array) -> pa.StringArray:
    """Return decimal numbers as text with all their digits after the point; Arrow's own text may have an exponent."""
    scale = values.type.scale
    if 0 <= scale <= _PLAIN_PLACES:
        return values.cast(pa.string())
    whole = pa.decimal256(76) if pa.types.is_decimal256(values.type) else pa.decimal128(38)
    unscaled = pa.Array.from_buffers(whole, len(values), values.buffers(), values.null_count, values.offset)
    texts = unscaled.cast(pa.string())
    digits = pc.utf8_lpad(pc.utf8_ltrim(texts, "-"), scale + 1, "0")
    sign = pc.if_else(pc.starts_with(texts, "-"), "-", "")
    point = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(pc.binary_join_element_wise(sign, point[0], ""), point[1], ".")
