"""
Keys of many rows at once, with the bytes that `row_keys.key_of` gives.

Compiled loops copy columns that compare by their bytes, and compute the weights of ASCII text; the weights of other
text are computed once per distinct value.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.columnar.kernels.keys import add_parts, copy_slices, put_parts, same_slices, slices_of, weigh_ascii
from ndb_formats.schema.row_keys import comparison_of_column, ignores_blanks, is_text, weight_of
from ndb_formats.schema.tables import Column
from ndb_formats.types.column_types import Codec

__all__ = ["KeyRows", "Slices", "are_equal", "key_parts", "put_keys", "slices"]

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]


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
    slices_of(data, base, cells, codec.width if codec.prefixed else -1, codec.width, starts, lengths)
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
            put_parts(part.data, part.starts, part.lengths, each.rows, targets, out)
    return out, offsets
