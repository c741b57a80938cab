"""JSON columns as text: compiled loops, and the scalar codec for the few values that these do not print."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.kernels.json_text import MAX_GROWTH, SPARE, json_texts
from ndb_formats.columnar.kernels.values import measure_bytes, valid_utf8
from ndb_formats.errors import FormatError
from ndb_formats.types.json_binary import MAX_DEPTH, decode_json
from ndb_formats.types.json_values import json_text

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int32]
_MOST = 0x7FFFFFFF // MAX_GROWTH
_FRAME, _WORD = 8, 8
_NO_TEXTS = np.zeros(1, np.int64)


class JsonReader:
    """Reads one column of documents; its working memory is kept from batch to batch."""

    def __init__(self, prefix: int, *, quoted: bool = True) -> None:
        """
        Allocate nothing yet.

        Args:
            prefix: Bytes of the length before each document.
            quoted: See `json_texts`.
        """
        self._prefix = prefix
        self._quoted = quoted
        self._out: Bytes = np.empty(0, np.uint8)
        self._places = np.empty((0, 3), np.int64)
        self._stack = np.empty(MAX_DEPTH * _FRAME, np.int64)

    def texts(self, data: Bytes, base: int, cells: npt.NDArray[np.uint32]) -> tuple[Offsets, Bytes] | None:
        """
        Return documents as text.

        Args:
            data: The bytes of the chunk. Shape (bytes,), uint8.
            base: What the cells count from.
            cells: The cell of each document. Shape (rows,), uint32.

        Returns:
            Offsets, shape (rows + 1,), and bytes; None if a document must be read by the scalar codec.
        """
        offsets = np.empty(len(cells) + 1, np.int32)
        total = measure_bytes(data, base, cells, self._prefix, self._prefix, 0, offsets)
        if total > _MOST:
            return None
        room = total * MAX_GROWTH + SPARE * (len(cells) + 1)
        self._reserve(room, total)
        source = (data, base, cells, self._prefix, self._quoted, self._stack, offsets)
        end, noted = json_texts(*source, self._out, (self._places, _NO_TEXTS, self._out))
        if end >= 0 and noted:
            texts = _foreign_texts(data, self._places[:noted].tolist())
            if texts is None:
                return None
            ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
            self._reserve(room + int(ends[-1]), total)
            joined = np.frombuffer(bytearray(b"".join(texts)), np.uint8)  # as `_out`: or all is compiled twice
            end, _ = json_texts(*source, self._out, (self._places, ends, joined))
        if end < 0 or not valid_utf8(self._out, _whole(end)):
            return None
        return offsets, self._out[: end + _WORD].copy()

    def _reserve(self, room: int, total: int) -> None:
        """Make the arrays large enough; the system gives memory only as far as it is written to."""
        if room > len(self._out):
            self._out = np.empty(room, np.uint8)
        if total // 2 + 1 > len(self._places):
            self._places = np.empty((total // 2 + 1, 3), np.int64)


def _whole(end: int) -> Offsets:
    """Return the offsets of all texts as one: they start and end with ASCII characters, so all are valid, or none."""
    return np.array([0, end], np.int32)


def _foreign_texts(data: Bytes, places: Iterable[tuple[int, int, int]]) -> list[bytes] | None:
    """Return the texts of opaque values, each distinct one once; None if one is not valid."""
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
