"""
The texts of many keys at once, as `row_keys.key_text` gives them.

Keys of common types go through compiled loops and Arrow; the keys of a table with a column of any other type go through
`key_text` one by one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ndb_formats.columnar.column_arrays import ColumnFaultError, ColumnReader
from ndb_formats.columnar.fast_columns import STRINGS
from ndb_formats.columnar.kernels.keys import LOWER, copy_slices, hex_text, next_parts
from ndb_formats.constants import ColumnCode
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.row_keys import is_text, key_text
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.column_types import Codec

__all__ = ["key_texts"]

_MAX_OFFSET = 0x7FFFFFFF
Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]


def key_texts(
    table: Table,
    layout: RowLayout,
    data: Bytes,
    starts: Int64,
    ends: Int64,
) -> pa.StringArray:
    """
    Return the texts of keys of one table.

    Args:
        table: Its definition.
        layout: The layout of its rows.
        data: The keys, as `key_of` makes them. Shape (bytes,), uint8.
        starts: Where each key starts. Shape (keys,), int64.
        ends: Where it ends. Shape (keys,), int64.
    """
    columns = table.key_columns
    codecs = [layout.codecs[ordinal] for ordinal in table.key_ordinals]
    positions = starts.copy()
    parts: list[pa.Array | pa.Scalar] = []
    for number, (column, codec) in enumerate(zip(columns, codecs, strict=True)):
        where = np.empty_like(starts), np.empty_like(starts)
        texts = _texts(column, codec, data, *where) if next_parts(data, positions, ends, *where) else None
        if texts is None:
            keys = (data[start:end].tobytes() for start, end in zip(starts, ends, strict=True))
            return pa.array([key_text(columns, codecs, key) for key in keys], pa.string())
        parts += [pa.scalar(f"{', ' if number else ''}{column.name}="), texts]
    return pc.binary_join_element_wise(*parts, "")


def _texts(
    column: Column,
    codec: Codec,
    data: Bytes,
    starts: Int64,
    lengths: Int64,
) -> pa.StringArray | None:
    """Return the texts of a column's values; None if they have to be made one by one."""
    meaning = codec.meaning
    assert meaning is not None
    if is_text(column):
        return _slices(data, starts, lengths)
    if meaning.wire.code in STRINGS and meaning.charset is None:
        least = meaning.wire.length if meaning.wire.code is ColumnCode.STRING else 0
        return _digits(data, starts, lengths, least)
    if codec.prefixed or (lengths != codec.width).any() or len(data) >= 1 << 32:
        return None
    try:
        values = ColumnReader.of(codec, text=True).array(data, 0, starts.astype(np.uint32))
    except (FormatError, ColumnFaultError):
        return None
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    return values.cast(pa.string()) if pa.types.is_integer(kind) or pa.types.is_string(kind) else None


def _slices(data: Bytes, starts: Int64, lengths: Int64) -> pa.StringArray | None:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if offsets[-1] > _MAX_OFFSET:
        return None
    out = np.empty(offsets[-1], np.uint8)
    copy_slices(data, starts, lengths, offsets, out)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
    try:
        return pa.BinaryArray.from_buffers(pa.binary(), len(starts), buffers).cast(pa.string())
    except pa.ArrowInvalid:
        return None


def _digits(data: Bytes, starts: Int64, lengths: Int64, least: int) -> pa.StringArray | None:
    offsets = np.concatenate([[0], np.cumsum(2 * np.maximum(lengths, least))])
    if offsets[-1] > _MAX_OFFSET:
        return None
    out = np.empty(offsets[-1], np.uint8)
    narrow = offsets.astype(np.int32)
    hex_text(data, starts, lengths, LOWER, narrow, out)
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(narrow), pa.py_buffer(out))
