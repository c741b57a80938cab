"""
The entries of maps from column name to text, put together from the texts of columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.columnar.kernel import read_only
from ndb_formats.columnar.kernels.entries import put_names, put_sizes, put_texts
from ndb_formats.columnar.value_texts import Texts

_Int64 = npt.NDArray[np.int64]
ENTRY = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())])
MOST_BYTES = (1 << 31) - 1


@attrs.frozen(eq=False)
class Entries:
    """
    The entries of the maps of rows, which follow each other.

    Attributes:
        first: The first entry of each row, and the end of the last. Shape (rows + 1,), int64.
    """

    first: _Int64
    _parts: list[tuple[_Int64, tuple[str, ...], Sequence[Texts]]] = attrs.field(factory=list)

    def add(self, lines: _Int64, names: Sequence[str], texts: Sequence[Texts]) -> None:
        """
        Add the entries of some rows.

        Args:
            lines: The rows, by number. Shape (rows,).
            names: The keys, the same in each of these rows.
            texts: For each key the values of these rows.
        """
        self._parts.append((lines, tuple(names), texts))

    def array(self) -> pa.StructArray:
        """
        Return them.

        Raises:
            OverflowError: The texts have more than 2 GiB.
        """
        count = int(self.first[-1])
        return pa.Array.from_buffers(ENTRY, count, [None], 0, children=[self._keys(count), self._values(count)])

    def _keys(self, count: int) -> pa.StringArray:
        different = {names for _, names, _ in self._parts}
        if len(different) == 1:
            return _repeated(_texts(*different), count)
        sizes, parts = np.zeros(count, np.int64), [(lines, _texts(names)) for lines, names, _ in self._parts]
        for lines, names in parts:
            lengths = np.diff(names.offsets)
            sizes[self.first[lines][:, None] + np.arange(len(lengths))] = lengths
        starts = _starts(sizes)
        out = np.empty(int(starts[-1]), np.uint8)
        for lines, names in parts:
            put_names(lines, self.first, names.offsets, read_only(names.data), starts, out)
        return strings(starts.astype(np.int32), out, None)

    def _values(self, count: int) -> pa.StringArray:
        sizes, there = np.zeros(count, np.int64), np.ones(count, np.bool_)
        for lines, _, columns in self._parts:
            for place, texts in enumerate(columns):
                put_sizes(lines, self.first, place, texts.offsets, texts.missing, sizes, there)
        starts = _starts(sizes)
        out = np.empty(int(starts[-1]), np.uint8)
        for lines, _, columns in self._parts:
            for place, texts in enumerate(columns):
                put_texts(lines, self.first, place, texts.offsets, read_only(texts.data), starts, out)
        return strings(starts.astype(np.int32), out, None if there.all() else there)


def _texts(names: Sequence[str]) -> Texts:
    return Texts.of([name.encode() for name in names])


def _repeated(names: Texts, count: int) -> pa.StringArray:
    """Return names again and again, `count` texts in all."""
    rows, size = count // (len(names.offsets) - 1), int(names.offsets[-1])
    starts = (np.arange(rows)[:, None] * size + names.offsets[:-1]).ravel()
    return strings(_checked(np.append(starts, rows * size)).astype(np.int32), np.tile(names.data[:size], rows), None)


def _starts(sizes: _Int64) -> _Int64:
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return _checked(starts)


def _checked(starts: _Int64) -> _Int64:
    if starts[-1] > MOST_BYTES:
        message = "the texts of a block have more than 2 GiB; read fewer rows at once"
        raise OverflowError(message)
    return starts


def strings(
    starts: npt.NDArray[np.int32], out: npt.NDArray[np.uint8], there: npt.NDArray[np.bool_] | None
) -> pa.StringArray:
    """Return texts from where they start, their bytes, and whether each is there."""
    validity = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
    missing = 0 if there is None else len(there) - int(np.count_nonzero(there))
    parts = [validity, pa.py_buffer(starts), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), len(starts) - 1, parts, missing)
