"""
JSON columns as text: compiled loops, and the scalar codec for the few values that these do not print.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.kernels.json_text import MAX_GROWTH, SPARE, json_texts
from ndb_formats.columnar.kernels.values import measure_bytes, valid_utf8
from ndb_formats.errors import FormatError
from ndb_formats.types.json_binary import MAX_DEPTH, decode_json
from ndb_formats.types.json_text import json_text

__all__ = ["read_json"]

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int32]
_MOST = 0x7FFFFFFF // MAX_GROWTH
_FRAME = 8
_NO_TEXTS = np.zeros(1, np.int64)


def read_json(
    data: Bytes, base: int, cells: npt.NDArray[np.uint32], prefix: int, *, quoted: bool = True
) -> tuple[Offsets, Bytes] | None:
    """
    Return documents as text.

    Args:
        data: The bytes of the chunk. Shape (bytes,), uint8.
        base: What the cells count from.
        cells: The cell of each document. Shape (rows,), uint32.
        prefix: Bytes of the length before each document.
        quoted: See `json_texts`.

    Returns:
        Offsets, shape (rows + 1,), and bytes; None if a document must be read by the scalar codec.
    """
    offsets = np.empty(len(cells) + 1, np.int32)
    total = measure_bytes(data, base, cells, prefix, prefix, 0, offsets)
    if total > _MOST:
        return None
    # Memory is taken only as far as it is written to.
    room = total * MAX_GROWTH + SPARE * (len(cells) + 1)
    places = np.empty((total // 2 + 1, 3), np.int64)
    stack = np.empty((MAX_DEPTH, _FRAME), np.int64)
    source = (data, base, cells, prefix, quoted, stack, offsets)
    out = np.empty(room, np.uint8)
    end, noted = json_texts(*source, out, (places, _NO_TEXTS, out))
    if end >= 0 and noted:
        texts = _foreign_texts(data, places[:noted].tolist())
        if texts is None:
            return None
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        out = np.empty(room + int(ends[-1]), np.uint8)
        joined = np.frombuffer(b"".join(texts), np.uint8)
        end, _ = json_texts(*source, out, (places, ends, joined))
    if end < 0 or not valid_utf8(out[:end], offsets):
        return None
    return offsets, out[: end + 1]


def _foreign_texts(data: Bytes, places: Iterable[tuple[int, int, int]]) -> list[bytes] | None:
    """Return the texts of opaque values and doubles, each distinct one once; None if one is not valid."""
    known: dict[bytes, bytes] = {}
    texts = []
    for kind, start, end in places:
        value = bytes([kind]) + data[start:end].tobytes()
        if value not in known:
            try:
                known[value] = json_text(decode_json(value)).encode("utf-8")
            except (FormatError, UnicodeEncodeError):
                return None
        texts.append(known[value])
    return texts


