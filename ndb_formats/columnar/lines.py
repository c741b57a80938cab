"""
Lines of text from columns: every column is a piece of the lines, and compiled loops put them together.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.columnar.kernels.lines import add_sizes, put_pieces
from ndb_formats.columnar.kernels.texts import escape, needs_escape

__all__ = ["JSON_ESCAPES", "Escapes", "Piece", "Texts", "escaped", "join_lines", "texts_of"]

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]
_SPARE = 16
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
    data: Bytes
    missing: npt.NDArray[np.bool_] = _NOTHING_MISSING

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Texts:
        """Return texts that are none of them NULL."""
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        return cls(offsets, np.frombuffer(b"".join(texts) + bytes(_SPARE), np.uint8))


@attrs.frozen(eq=False)
class Piece:
    """
    A piece of some lines.

    Attributes:
        lines: Number of each line. Shape (rows,), int64.
        texts: What differs from line to line; None if nothing does.
        before: What comes before it.
        after: What comes after it.
        instead: What stands in place of all three for NULL.
    """

    lines: Int64
    texts: Texts | None
    before: bytes = b""
    after: bytes = b""
    instead: bytes = b""


def join_lines(count: int, pieces: Sequence[Piece]) -> bytes:
    """
    Return lines, put together from their pieces in the order given.

    Args:
        count: Number of lines.
        pieces: The pieces; any number for each line.
    """
    sizes = np.zeros(count, np.int64)
    parts = []
    for piece in pieces:
        texts = piece.texts or Texts(np.zeros(len(piece.lines) + 1, np.int32), np.zeros(0, np.uint8))
        around = len(piece.before) + len(piece.after)
        add_sizes(piece.lines, texts.offsets, texts.missing, around, len(piece.instead), sizes)
        constants = (np.frombuffer(text, np.uint8) for text in (piece.before, piece.after, piece.instead))
        parts.append(((piece.lines, texts.offsets, texts.data, texts.missing), tuple(constants)))
    targets = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), np.uint8)
    for values, (before, after, instead) in parts:
        put_pieces(values, before, after, instead, targets, out)
    return out.tobytes()


def texts_of(array: pa.Array) -> Texts:
    """Return an array of strings or bytes, which starts at its buffers' starts."""
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])
    _, offsets, data = array.buffers()
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else _NOTHING_MISSING
    values = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Texts(np.frombuffer(offsets, np.int32)[: len(array) + 1], values, missing)


@attrs.frozen(eq=False)
class Escapes:
    """
    How special characters are written.

    Attributes:
        quote: The quote around texts.
        letters: The letter after a backslash for each byte: 0 for none, 1 for `prefix` and two digits. Shape (256,).
        prefix: What comes after the backslash of a byte without a letter.
    """

    quote: int
    letters: Bytes
    prefix: bytes

    @classmethod
    def of(cls, quote: str, prefix: bytes) -> Escapes:
        """Return the escapes of a quote, a backslash and control characters, all of which but five are numbers."""
        letters = np.array([1] * 32 + [0] * 224, np.uint8)
        letters[[8, 9, 10, 12, 13, ord(quote), ord("\\")]] = [ord(each) for each in f"btnfr{quote}\\"]
        return cls(ord(quote), letters, prefix)


JSON_ESCAPES = Escapes.of('"', b"u00")


def escaped(texts: Texts, escapes: Escapes) -> Texts:
    """Return texts with escapes, without quotes around them."""
    size = int(texts.offsets[-1])
    if not needs_escape(texts.data, size, escapes.quote, escapes.letters):
        return texts
    padded = texts.data
    if len(padded) < size + _SPARE:
        padded = np.concatenate([padded[:size], np.zeros(_SPARE, np.uint8)])
    offsets = np.empty_like(texts.offsets)
    out = np.empty(size * (3 + len(escapes.prefix)) + _SPARE, np.uint8)
    prefix = np.frombuffer(escapes.prefix, np.uint8)
    total = escape(padded, texts.offsets, escapes.quote, escapes.letters, prefix, offsets, out)
    if total < 0:
        message = "the texts of a column in a block have more than 2 GiB; read fewer rows at once"
        raise OverflowError(message)
    return Texts(offsets, out, texts.missing)
