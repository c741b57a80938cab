"""
MySQL's binary form of JSON documents.

    document    type u8, value; an empty document is null
    object      count, size in bytes, key entries, value entries, keys, values
    array       count, size in bytes, value entries, values
    key entry   offset, length u16
    value entry type u8, offset, or the value itself if it is inlined
    string      length (7 bits per byte, low bits first; the high bit is set if more follow), UTF-8
    opaque      type code of a column u8, length as of a string, bytes

Count, size and offsets take 2 bytes in a small object or array and 4 in a large one, and offsets
count from its start. Literals and 16-bit integers are inlined, 32-bit integers in large ones only.

Choices:
- A server that updates a document in place leaves gaps, so gaps and bytes after the value are ignored. Encoding gives
  the form without gaps, with keys sorted by length and then by bytes; `JsonDocument` keeps its bytes instead.
- The parts of a document may not have more bytes together than the document has. The server does not check that, but
  without it a small document whose parts overlap could decode to a value of any size.

Source: MySQL `json_binary.h` and `json_binary.cc`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import attrs

from ndb_formats.errors import CorruptError, TruncatedError
from ndb_formats.types.json_values import JsonOpaque, JsonUint, JsonValue, json_text

MAX_DEPTH: Final = 100

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY = 0x0, 0x1, 0x2, 0x3
_LITERAL, _INT16, _UINT16, _INT32, _UINT32, _INT64, _UINT64 = 0x4, 0x5, 0x6, 0x7, 0x8, 0x9, 0xA
_DOUBLE, _STRING, _OPAQUE = 0xB, 0xC, 0xF

_LITERALS: Final[tuple[bool | None, ...]] = (None, True, False)
_SIGNED = {_INT16: 2, _INT32: 4, _INT64: 8}
_UNSIGNED = {_UINT16: 2, _UINT32: 4, _UINT64: 8}
_INLINED = {
    2: frozenset({_LITERAL, _INT16, _UINT16}),
    4: frozenset({_LITERAL, _INT16, _UINT16, _INT32, _UINT32}),
}
_LENGTH_BYTES = 5  # enough for 32 bits
_MAX_U16 = 0xFFFF
_MAX_U32 = 0xFFFFFFFF


@attrs.frozen
class JsonDocument:
    """
    A JSON document; equal to another one of the same bytes.

    Attributes:
        data: Its bytes. `value` and `text` decode them at every call.
    """

    data: bytes

    @classmethod
    def of(cls, value: JsonValue) -> JsonDocument:
        """Return the document of a value, as a server writes it."""
        return cls(encode_json(value))

    @property
    def value(self) -> JsonValue:
        """
        The value of the document.

        Raises:
            FormatError: The bytes are not a JSON document.
        """
        return decode_json(self.data)

    @property
    def text(self) -> str:
        """
        The text that ``CAST(j AS CHAR)`` gives.

        Raises:
            FormatError: The bytes are not a JSON document.
        """
        return json_text(self.value)


def document_bytes(document: JsonDocument | JsonValue) -> bytes:
    """Return the bytes of a document, or of the document for a value."""
    return document.data if isinstance(document, JsonDocument) else encode_json(document)


def decode_json(data: bytes) -> JsonValue:
    """
    Return the value of a document.

    Raises:
        TruncatedError: The document or a part of it ends too early.
        CorruptError: The bytes contradict the format.
    """
    if not data:
        return None
    return _Reader(data, len(data)).value(data[0], 1, len(data), 0)


@attrs.define
class _Reader:
    """
    Reads the parts of one document, each within the bounds of its object or array.

    Attributes:
        data: The document.
        unread: How many bytes may still be read, since each belongs to one part.
    """

    data: bytes
    unread: int

    def take(self, start: int, count: int, end: int) -> bytes:
        if start + count > end:
            message = f"JSON: needs {count} bytes at {start}, the value ends at {end}"
            raise TruncatedError(message)
        self.unread -= count
        if self.unread < 0:
            message = f"JSON: bytes at {start} belong to two values"
            raise CorruptError(message)
        return self.data[start : start + count]

    def value(self, kind: int, start: int, end: int, depth: int) -> JsonValue:
        if kind <= _LARGE_ARRAY:
            return self.container(kind, start, end, depth)
        if kind == _STRING:
            return _text(self.prefixed(start, end))
        if kind == _OPAQUE:
            opaque = JsonOpaque(self.take(start, 1, end)[0], self.prefixed(start + 1, end))
            opaque.value  # noqa: B018  # refuse bad bytes here, not when the text is read
            return opaque
        return _scalar(kind, self.take(start, _scalar_size(kind), end))

    def prefixed(self, start: int, end: int) -> bytes:
        """Return the bytes that follow their length."""
        length = 0
        for position in range(_LENGTH_BYTES):
            byte = self.take(start + position, 1, end)[0]
            length |= (byte & 0x7F) << 7 * position
            if not byte & 0x80:
                return self.take(start + position + 1, length, end)
        message = f"JSON: the length at {start} does not end"
        raise CorruptError(message)

    def container(self, kind: int, start: int, end: int, depth: int) -> JsonValue:
        if depth == MAX_DEPTH:
            message = f"JSON: nested deeper than {MAX_DEPTH}"
            raise CorruptError(message)
        width = 4 if kind in (_LARGE_OBJECT, _LARGE_ARRAY) else 2
        sizes = self.take(start, 2 * width, end)
        count, size = int.from_bytes(sizes[:width], "little"), int.from_bytes(sizes[width:], "little")
        if start + size > end:
            message = f"JSON: the value at {start} has {size} bytes, there are {end - start}"
            raise TruncatedError(message)
        body = _Body(self, start, start + size, width)
        if kind in (_SMALL_ARRAY, _LARGE_ARRAY):
            entries = self.take(start + 2 * width, count * (width + 1), body.end)
            return body.values(entries, start + 2 * width + len(entries), depth)
        key_entries = self.take(start + 2 * width, count * (width + 2), body.end)
        entries = self.take(start + 2 * width + len(key_entries), count * (width + 1), body.end)
        first = start + 2 * width + len(key_entries) + len(entries)
        members = dict(zip(body.keys(key_entries, first), body.values(entries, first, depth), strict=True))
        if len(members) != count:
            message = f"JSON: the object at {start} has the same key twice"
            raise CorruptError(message)
        return members


@attrs.frozen
class _Body:
    """The keys and values of an object or array, which starts and ends at these offsets."""

    reader: _Reader
    start: int
    end: int
    width: int

    def keys(self, entries: bytes, first: int) -> list[str]:
        step = self.width + 2
        return [
            _text(
                self.reader.take(
                    self.target(entries[entry : entry + self.width], first),
                    int.from_bytes(entries[entry + self.width : entry + step], "little"),
                    self.end,
                )
            )
            for entry in range(0, len(entries), step)
        ]

    def values(self, entries: bytes, first: int, depth: int) -> list[JsonValue]:
        step = self.width + 1
        found: list[JsonValue] = []
        for entry in range(0, len(entries), step):
            kind, field = entries[entry], entries[entry + 1 : entry + step]
            if kind in _INLINED[self.width]:
                found.append(_scalar(kind, field[: _scalar_size(kind)]))
            else:
                found.append(self.reader.value(kind, self.target(field, first), self.end, depth + 1))
        return found

    def target(self, offset: bytes, first: int) -> int:
        """Return where an offset points to: after all entries, so that no value contains itself."""
        target = self.start + int.from_bytes(offset, "little")
        if target < first:
            message = f"JSON: an offset of the value at {self.start} points to {target}, among its entries"
            raise CorruptError(message)
        return target


def _scalar_size(kind: int) -> int:
    if kind == _LITERAL:
        return 1
    size = 8 if kind == _DOUBLE else _SIGNED.get(kind) or _UNSIGNED.get(kind)
    if size is None:
        message = f"JSON: type 0x{kind:02x} is not known"
        raise CorruptError(message)
    return size


def _scalar(kind: int, data: bytes) -> JsonValue:
    if kind == _LITERAL:
        if data[0] >= len(_LITERALS):
            message = f"JSON: literal 0x{data[0]:02x} is not known"
            raise CorruptError(message)
        return _LITERALS[data[0]]
    if kind == _DOUBLE:
        return float(struct.unpack("<d", data)[0])
    number = int.from_bytes(data, "little", signed=kind in _SIGNED)
    return number if kind in _SIGNED else JsonUint(number)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"JSON: text is not UTF-8: {error.reason} at byte {error.start} of {len(data)}"
        raise CorruptError(message) from None


def encode_json(value: JsonValue) -> bytes:
    """
    Return the document of a value, as a server writes it.

    Raises:
        ValueError: A number or key is too large, or values are nested too deep.
        TypeError: It is not a JSON value.
    """
    kind, data = _encode(value, 0)
    return bytes([kind]) + data


def _encode(value: JsonValue, depth: int) -> tuple[int, bytes]:
    """Return the type and the bytes of a value that is not inlined."""
    if value is None or isinstance(value, bool):
        return _LITERAL, bytes([_LITERALS.index(value)])
    if isinstance(value, int):
        return _encode_integer(value)
    if isinstance(value, float):
        return _DOUBLE, struct.pack("<d", value)
    if isinstance(value, str):
        return _STRING, _with_length(value.encode("utf-8"))
    if isinstance(value, JsonOpaque):
        return _OPAQUE, bytes([value.type_code]) + _with_length(value.data)
    if not isinstance(value, list | tuple | dict):
        message = f"{type(value).__name__} is not a JSON value"
        raise TypeError(message)
    if depth == MAX_DEPTH:
        message = f"nested deeper than {MAX_DEPTH}"
        raise ValueError(message)
    if isinstance(value, dict):
        members = sorted(((key.encode("utf-8"), member) for key, member in value.items()), key=_key_order)
        return _encode_container([key for key, _ in members], [_encode(member, depth + 1) for _, member in members])
    return _encode_container(None, [_encode(member, depth + 1) for member in value])


def _key_order(member: tuple[bytes, JsonValue]) -> tuple[int, bytes]:
    return len(member[0]), member[0]


def _encode_integer(value: int) -> tuple[int, bytes]:
    unsigned = isinstance(value, JsonUint)
    for kind, size in (_UNSIGNED if unsigned else _SIGNED).items():
        try:
            return kind, value.to_bytes(size, "little", signed=not unsigned)
        except OverflowError:
            continue
    message = f"{value!r} does not fit 64 bits"
    raise ValueError(message)


def _with_length(data: bytes) -> bytes:
    length, prefix = len(data), bytearray()
    while length > 0x7F:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*prefix, length]) + data


def _encode_container(keys: list[bytes] | None, children: Sequence[tuple[int, bytes]]) -> tuple[int, bytes]:
    """Return the small form, or the large one if a child is large or the size does not fit 16 bits."""
    nested_large = any(kind in (_LARGE_OBJECT, _LARGE_ARRAY) for kind, _ in children)
    small, large = (_SMALL_ARRAY, _LARGE_ARRAY) if keys is None else (_SMALL_OBJECT, _LARGE_OBJECT)
    if not nested_large and (size := _size(keys, children, 2)) <= _MAX_U16:
        return small, _lay_out(keys, children, 2, size)
    size = _size(keys, children, 4)
    if size > _MAX_U32 or any(len(key) > _MAX_U16 for key in keys or ()):
        message = "a key has more than 65535 bytes, or the document more than 4 GB"
        raise ValueError(message)
    return large, _lay_out(keys, children, 4, size)


def _size(keys: list[bytes] | None, children: Sequence[tuple[int, bytes]], width: int) -> int:
    head = 2 * width + len(children) * (width + 1)
    names = 0 if keys is None else sum(width + 2 + len(key) for key in keys)
    return head + names + sum(len(data) for kind, data in children if kind not in _INLINED[width])


def _lay_out(keys: list[bytes] | None, children: Sequence[tuple[int, bytes]], width: int, size: int) -> bytes:
    names = keys or []
    parts = [len(children).to_bytes(width, "little"), size.to_bytes(width, "little")]
    offset = 2 * width + len(names) * (width + 2) + len(children) * (width + 1)
    for name in names:
        parts += [offset.to_bytes(width, "little"), len(name).to_bytes(2, "little")]
        offset += len(name)
    outside = []
    for kind, data in children:
        if kind in _INLINED[width]:
            # A 16-bit integer in a wider field keeps its sign.
            filler = b"\xff" if kind == _INT16 and data[-1] & 0x80 else b"\0"
            parts.append(bytes([kind]) + data.ljust(width, filler))
        else:
            parts.append(bytes([kind]) + offset.to_bytes(width, "little"))
            outside.append(data)
            offset += len(data)
    return b"".join([*parts, *names, *outside])
