"""
Lines of text from columns: every column is a piece of the lines, and compiled loops put them together.

A JSON line is an object with the facts of `METADATA` and the images. Absent columns are left out, NULL is null;
integers and floating point numbers are numbers, and all other values text as in `records`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ndb_formats.columnar.batches import RowBatch
from ndb_formats.columnar.kernel import read_only
from ndb_formats.columnar.kernels.keys import UPPER, hex_text
from ndb_formats.columnar.kernels.texts import add_sizes, escape, needs_escape, put_pieces
from ndb_formats.columnar.selected_changes import Block
from ndb_formats.columnar.value_texts import SPARE, Texts, texts_of, value_texts
from ndb_formats.constants import ColumnCode
from ndb_formats.events.rows_event import ConflictFlag

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]


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
        parts.append(((piece.lines, texts.offsets, read_only(texts.data), texts.missing), tuple(constants)))
    targets = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), np.uint8)
    for values, (before, after, instead) in parts:
        put_pieces(values, before, after, instead, targets, out)
    return out.tobytes()


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
        """Return the escapes of a quote, a backslash and control characters, which are numbers but for five."""
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
    if len(padded) < size + SPARE:
        padded = np.concatenate([padded[:size], np.zeros(SPARE, np.uint8)])
    offsets = np.empty_like(texts.offsets)
    out = np.empty(size * (3 + len(escapes.prefix)) + SPARE, np.uint8)
    prefix = np.frombuffer(escapes.prefix, np.uint8)
    total = escape(padded, texts.offsets, escapes.quote, escapes.letters, prefix, offsets, out)
    if total < 0:
        message = "the texts of a column in a block have more than 2 GiB; read fewer rows at once"
        raise OverflowError(message)
    return Texts(offsets, out, texts.missing)


_PLAIN_NUMBERS = ("row", "timestamp", "server_id", "epoch", "transaction_id")


def json_lines(block: Block[RowBatch]) -> bytes:
    """Return the changes of a block as JSON lines, in the order of the file."""
    places = np.sort(np.concatenate([batch.places for batch in block.batches] or [np.zeros(0, np.int64)]))
    pieces: list[Piece] = []
    for batch in block.batches:
        lines = np.searchsorted(places, batch.places)
        pieces += [*_facts(batch, block.file, lines), *_images(batch, lines), Piece(lines, None, b"}\n")]
    return join_lines(len(places), pieces)


def image_objects(batch: RowBatch, name: str) -> pa.Array:
    """Return the images of that name as JSON objects; NULL if there are none."""
    if name not in batch.records.schema.names:
        return pa.nulls(len(batch), pa.string())
    return json_objects(batch.records.column(name), batch.types)


def json_objects(values: pa.StructArray, types: Mapping[str, ColumnCode] = MappingProxyType({})) -> pa.StringArray:
    """
    Return the values of columns, one object per row.

    Args:
        values: The values; a struct that is NULL counts as its fields.
        types: By name, the types of columns; they matter for VECTOR alone.
    """
    lines = np.arange(len(values))
    text = join_lines(len(values), [*_object(values, types, lines, b"{"), Piece(lines, None, b"}\n")])
    data = np.frombuffer(text, np.uint8)
    # A line end inside a text is escaped.
    ends = np.flatnonzero(data == ord("\n"))
    offsets = np.concatenate([[0], ends - lines]).astype(np.int32)
    plain = data[data != ord("\n")]
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(plain)])


def _facts(batch: RowBatch, file: str, lines: Int64) -> list[Piece]:
    """Return the pieces of what is known of the changes besides their images."""
    rows = batch.records
    start = b'{"file": %s, "position": ' % _quoted(file)
    pieces = [Piece(lines, texts_of(rows.column("position").cast(pa.string())), start)]
    inside = rows.column("payload_position").to_numpy()
    if inside.any():
        found = np.flatnonzero(inside)
        numbers = texts_of(pa.array(inside[found]).cast(pa.string()))
        pieces.append(Piece(lines[found], numbers, b', "payload_position": '))
    for name in _PLAIN_NUMBERS:
        before = b', "%s": ' % name.encode()
        pieces.append(Piece(lines, texts_of(rows.column(name).cast(pa.string())), before, b"", before + b"null"))
    constant = b'"database": %s, "table": %s, "operation": "%s"' % (
        _quoted(batch.database),
        _quoted(batch.table),
        batch.operation.name.encode(),
    )
    encoded = rows.column("flags").fill_null(0).dictionary_encode()
    names = [[flag.name for flag in ConflictFlag(number)] for number in encoded.dictionary.to_pylist()]
    flags = pa.array([json.dumps(each) for each in names], pa.string()).take(encoded.indices)
    pieces.append(Piece(lines, texts_of(flags), b', "flags": ', b", " + constant))
    return pieces


def _images(batch: RowBatch, lines: Int64) -> list[Piece]:
    pieces = []
    for name in ("before", "after"):
        if name in batch.records.schema.names:
            pieces += _object(batch.records.column(name), batch.types, lines, b', "%s": {' % name.encode())
            pieces.append(Piece(lines, None, b"}"))
    return pieces


def _object(values: pa.StructArray, types: Mapping[str, ColumnCode], lines: Int64, start: bytes) -> list[Piece]:
    """Return the pieces of an object, up to its last value."""
    pieces = [Piece(lines, None, start)]
    for number, field in enumerate(values.type):
        before = (b", " if number else b"") + _quoted(field.name) + b": "
        texts, quote = _value(values.field(number), types.get(field.name))
        pieces.append(Piece(lines, texts, before + quote, quote, before + b"null"))
    return pieces


def _quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogateescape")


def _value(values: pa.Array, code: ColumnCode | None = None) -> tuple[Texts, bytes]:
    """Return values as JSON without the quotes around them, and these quotes."""
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_integer(kind):
        return texts_of(values.cast(pa.string())), b""
    if pa.types.is_floating(kind):
        return texts_of(value_texts(values)), b""
    if pa.types.is_binary(kind) and code is not ColumnCode.VECTOR:
        return _hexadecimal(values), b'"'
    if pa.types.is_string(kind):
        return escaped(texts_of(values.cast(pa.string())), JSON_ESCAPES), b'"'
    return texts_of(value_texts(values, code)), b'"'


def _hexadecimal(values: pa.Array) -> Texts:
    """Return bytes as hexadecimal digits after ``0x``."""
    plain = texts_of(values)
    starts = plain.offsets.astype(np.int64)
    counts, doubled = np.diff(starts), (2 * starts).astype(np.int32)
    digits = np.empty(doubled[-1], np.uint8)
    hex_text(plain.data, starts[:-1], counts, UPPER, doubled, digits)
    prefixed = Texts(doubled, digits, plain.missing)
    lines = np.arange(len(counts))
    text = join_lines(len(counts), [Piece(lines, prefixed, b"0x", b"", b"")])
    sizes = np.where(plain.missing, 0, 2 * counts + 2) if len(plain.missing) else 2 * counts + 2
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return Texts(offsets, np.frombuffer(text + bytes(16), np.uint8), plain.missing)
