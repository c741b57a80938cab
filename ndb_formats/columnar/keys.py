"""
Keys of many rows at once: the bytes that `row_keys.key_of` gives, and their text, as `row_keys.key_text` gives it.

Compiled loops copy columns that compare by their bytes, and compute the weights of ASCII text; the weights of other
text are computed once per distinct value. Texts of common types go through compiled loops and Arrow; the keys of a
table with a column of any other type go through `key_text` one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ndb_formats.columnar.column_arrays import ColumnFaultError, ColumnReader
from ndb_formats.columnar.fast_columns import STRINGS
from ndb_formats.columnar.kernel import read_only
from ndb_formats.columnar.kernels.keys import (
    LOWER,
    add_parts,
    copy_slices,
    hex_text,
    next_parts,
    put_parts,
    same_slices,
    slices_of,
    weigh_ascii,
)
from ndb_formats.constants import ColumnCode
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.row_keys import comparison_of_column, ignores_blanks, is_text, key_text, weight_of
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.column_types import Codec

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]
_TABLE_BYTES = 2


@attrs.frozen(eq=False)
class Slices:
    """
    Slices of an array of bytes, one per row.

    Attributes:
        data: The array. Shape (bytes,), uint8.
        starts: Offset of each slice. Shape (rows,), int64.
        lengths: Number of its bytes; -1 for NULL. Shape (rows,), int64.
    """

    data: Bytes
    starts: Int64
    lengths: Int64

    def copied(self) -> pa.BinaryArray:
        """Return the slices as an Arrow array."""
        sizes = np.maximum(self.lengths, 0)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        out = np.empty(offsets[-1], np.uint8)
        copy_slices(self.data, self.starts, sizes, offsets, out)
        missing = self.lengths < 0
        valid = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
        buffers = [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
        return pa.BinaryArray.from_buffers(pa.binary(), len(self.lengths), buffers)


@attrs.frozen(eq=False)
class KeyRows:
    """
    Keys of rows of one table.

    Attributes:
        table: Number of the table.
        rows: The row of each key. Shape (keys,), int64.
        parts: The columns of the key, in key order, each with a slice per key.
    """

    table: int
    rows: Int64
    parts: Sequence[Slices]


def slices(codec: Codec, data: Bytes, base: int, cells: npt.NDArray[np.uint32]) -> Slices:
    """Return the bytes of a column's values, without their length prefixes."""
    starts, lengths = np.empty(len(cells), np.int64), np.empty(len(cells), np.int64)
    slices_of(read_only(data), base, cells, codec.width if codec.prefixed else -1, codec.width, starts, lengths)
    return Slices(data, starts, lengths)


def key_parts(column: Column, values: Slices) -> Slices:
    """
    Return the weights of the values of a key column: the bytes by which they compare.

    Raises:
        FormatError: A text cannot be decoded, or equality under its collation is not known.
    """
    if not is_text(column):
        return _first_bytes(values, column.key_prefix) if column.key_prefix else values
    comparison = comparison_of_column(column)
    sizes = np.maximum(values.lengths, 0)
    starts, lengths, out = np.cumsum(sizes) - sizes, values.lengths.copy(), np.empty(sizes.sum(), np.uint8)
    done = np.zeros(len(sizes), np.bool_)
    if comparison.ascii is not None and not column.key_prefix:
        trimmed = comparison.pads or ignores_blanks(column)
        texts, pairs = (np.frombuffer(each, np.uint8) for each in (comparison.ascii.texts, comparison.ascii.pairs))
        weigh_ascii(values.data, values.starts, texts, pairs, trimmed, starts, out, lengths, done)
    rest = np.flatnonzero(~done)
    if not len(rest):
        return Slices(out, starts, lengths)
    encoded = Slices(values.data, values.starts[rest], values.lengths[rest]).copied().dictionary_encode()
    weights = [weight_of(payload, column) for payload in encoded.dictionary.to_pylist()]
    which = encoded.indices.fill_null(len(weights)).to_numpy()
    # The last entry stands for NULL.
    weight_sizes = np.array([*map(len, weights), -1], np.int64)
    starts[rest] = len(out) + (np.cumsum(weight_sizes) - weight_sizes)[which]
    lengths[rest] = weight_sizes[which]
    return Slices(np.concatenate([out, np.frombuffer(b"".join(weights), np.uint8)]), starts, lengths)


def are_equal(column: Column, first: Slices, second: Slices) -> bool:
    """
    Return whether a key column has equal values, row by row: values that do not make another key.

    Raises:
        FormatError: As of `key_parts`.
    """
    if _have_same_bytes(first, second):
        return True
    return _have_same_bytes(key_parts(column, first), key_parts(column, second))


def _have_same_bytes(first: Slices, second: Slices) -> bool:
    return bool(same_slices(first.data, first.starts, first.lengths, second.data, second.starts, second.lengths))


def _first_bytes(values: Slices, count: int) -> Slices:
    return attrs.evolve(values, lengths=np.minimum(values.lengths, count))


def put_keys(keys: Sequence[KeyRows], rows: int) -> tuple[Bytes, Int64]:
    """
    Return the keys of rows, each with the number of its table in two bytes before it.

    Args:
        keys: The keys of all rows, table by table.
        rows: Number of rows.

    Returns:
        The keys, concatenated, and the start of each and the end of the last one: shape (rows + 1,).
    """
    offsets = np.full(rows + 1, 2, np.int64)
    offsets[0], sizes = 0, offsets[1:]
    for each in keys:
        for part in each.parts:
            add_parts(part.lengths, each.rows, sizes)
    np.cumsum(sizes, out=sizes)
    out = np.empty(offsets[-1], np.uint8)
    targets = offsets[:-1] + 2
    for each in keys:
        starts = offsets[each.rows]
        out[starts], out[starts + 1] = each.table & 0xFF, each.table >> 8
        for part in each.parts:
            put_parts(read_only(part.data), part.starts, part.lengths, each.rows, targets, out)
    return out, offsets


def without_tables(identities: pa.BinaryArray) -> pa.BinaryArray:
    """Return keys, as `put_keys` gives them, without the number of their table."""
    _, offsets, data = identities.buffers()
    if not len(identities):
        return pa.array([], pa.binary())
    bounds = np.frombuffer(offsets, np.int32)[identities.offset :][: len(identities) + 1].astype(np.int64)
    plain = read_only(np.frombuffer(data or b"", np.uint8))
    return Slices(plain, bounds[:-1] + _TABLE_BYTES, np.diff(bounds) - _TABLE_BYTES).copied()


_MAX_OFFSET = 0x7FFFFFFF


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
    copy_slices(read_only(data), starts, lengths, offsets, out)
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
