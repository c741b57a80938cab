"""
JSON documents as MySQL prints them, written into the data buffer of an Arrow array.

The layout of documents, what makes them invalid, and the text are those of `ndb_formats.types.json_binary` and
`json_text`. Opaque values are *foreign*, and not printed here: the first call only notes where they are, and a second
one gets their texts.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel, part, wrapping_difference
from ndb_formats.columnar.kernels.doubles import (
    LOW_63,
    SIXTY_THREE,
    count_digits,
    digits_of,
    is_special,
    put_plain,
    put_scientific,
)
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import copy_eight, little_endian, load64, put_digits, store64

# Most bytes of text for a byte of a document (``\\u0001``), and for what has no bytes of its own.
MAX_GROWTH, SPARE = 6, 64
MAX_DEPTH = 100
LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY, LITERAL = 0x1, 0x2, 0x3, 0x4
INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING, OPAQUE = 0x5, 0x6, 0x7, 0x8, 0x9, 0xA, 0xB, 0xC, 0xF
LITERALS = np.frombuffer(b"null    true    false   ", np.uint64)
LITERAL_SIZES = np.array([4, 4, 5], np.int64)
SIZES = np.array([0, 0, 0, 0, 1, 2, 2, 4, 4, 8, 8, 8], np.int64)
QUOTE, BACKSLASH, COMMA, COLON, BLANK, MINUS, ZERO, EXPONENT = (ord(each) for each in '"\\,: -0e')
HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
# The letter after a backslash for each byte: 0 for none, 1 for ``u00`` and two digits.
ESCAPES = np.array([1] * 32 + [0] * 224, np.uint8)
ESCAPES[[8, 9, 10, 12, 13, 34, 92]] = [ord(each) for each in 'btnfr"\\']
HIGH_BITS, ONES, LOW_LIMIT = np.uint64(0x8080808080808080), np.uint64(0x0101010101010101), np.uint64(0x2020202020202020)
QUOTES, BACKSLASHES = np.uint64(QUOTE) * ONES, np.uint64(BACKSLASH) * ONES
ALL_BITS, LETTERS = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0x4141414141414141)
LOWEST_BYTE, EIGHT = np.uint64(0xFF), np.uint64(8)
MAX_PLAIN_DIGITS = 15  # of a double without an exponent
# What is known of the container around a value: its columns in the stack.
START, END, WIDTH, COUNT, NEXT, KEYS, VALUES, FIRST = (np.uint64(place) for place in range(8))
FRAME = np.uint64(8)


@part
def _quoted(data, at, size, out, to):
    """Write text in double quotes, escaped; return where it ends."""
    out[to] = QUOTE
    to += 1
    end = at + size
    while at < end:
        if at + 8 <= len(data):
            # Eight bytes at once, as far as none of them is special; those after the end count as letters, and what is
            # written of them is overwritten later.
            step = min(8, end - at)
            after = LETTERS << np.uint64(8 * step) if step < 8 else np.uint64(0)
            word = load64(data, at) & ~(ALL_BITS << np.uint64(8 * step) if step < 8 else np.uint64(0)) | after
            quote, slash = word ^ QUOTES, word ^ BACKSLASHES
            special = (
                wrapping_difference(word, LOW_LIMIT)
                | wrapping_difference(quote, ONES) & ~quote
                | wrapping_difference(slash, ONES) & ~slash
            )
            if not special & ~word & HIGH_BITS:
                copy_eight(data, at, out, to)
                at += step
                to += step
                continue
        for _ in range(min(end - at, 8)):
            byte = data[at]
            at += 1
            letter = ESCAPES[byte]
            if letter == 0:
                out[to] = byte
                to += 1
                continue
            out[to] = BACKSLASH
            out[to + 1] = letter if letter != 1 else ord("u")
            to += 2
            if letter == 1:
                out[to], out[to + 1], out[to + 2], out[to + 3] = ZERO, ZERO, HEX[byte >> 4], HEX[byte & 15]
                to += 4
    out[to] = QUOTE
    return to + 1


@inlined
def _number(data, at, kind, size, out, to):
    """Write a number; return where it ends."""
    word = little_endian(data, at, size)
    if kind == DOUBLE:
        return _double(word, out, to)
    if kind in (INT16, INT32, INT64):
        shift = np.uint64(64 - 8 * size)
        signed = np.int64(word << shift) >> np.int64(shift)
        if signed < 0:
            out[to] = MINUS
            return put_digits(out, to + 1, wrapping_difference(np.uint64(0), np.uint64(signed)))
    return put_digits(out, to, np.uint64(word))


@part
def _double(bits, out, to):
    """Write a double, given its bits; return where it ends. JSON has no infinity and no NaN: they print as 0.0."""
    if is_special(bits):
        return put_plain(out, to, np.uint64(0), 0)
    if bits >> SIXTY_THREE:
        out[to] = MINUS
        to += 1
    number, place = digits_of(bits & LOW_63)
    count = count_digits(number)
    point = place + count
    if point >= 1 - MAX_PLAIN_DIGITS and (point <= MAX_PLAIN_DIGITS or count > point):
        return put_plain(out, to, number, place)
    to = put_scientific(out, to, number)
    out[to] = EXPONENT
    if point < 1:
        out[to + 1] = MINUS
        to += 1
    return put_digits(out, to + 1, np.uint64(abs(point - 1)))


@part
def _prefixed(data, at, end):
    """Return where bytes that follow their length start, and their number; -1 if they do not end in time."""
    length = np.int64(0)
    for position in range(5):
        if at + position >= end:
            break
        byte = np.int64(data[at + position])
        length |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            at += position + 1
            return (at, length) if at + length <= end else (at, np.int64(-1))
    return at, np.int64(-1)


@inlined
def _inlined(kind, width):
    return LITERAL <= kind <= UINT16 or (width == 4 and kind in (INT32, UINT32))


@part
def _opened(data, kind, at, end, stack, top):
    """Fill in the frame of a container; return the bytes of its head and entries, or -1 if they do not fit."""
    width = 4 if kind in (LARGE_OBJECT, LARGE_ARRAY) else 2
    if at + 2 * width > end:
        return np.int64(-1)
    count, size = np.int64(little_endian(data, at, width)), np.int64(little_endian(data, at + width, width))
    keys = count * (width + 2) if kind <= LARGE_OBJECT else 0
    head = 2 * width + keys + count * (width + 1)
    if at + size > end or at + head > at + size:
        return np.int64(-1)
    stack[top + START], stack[top + END] = at, at + size
    stack[top + WIDTH], stack[top + COUNT], stack[top + NEXT] = width, count, 0
    stack[top + KEYS] = at + 2 * width if kind <= LARGE_OBJECT else -1
    stack[top + VALUES], stack[top + FIRST] = at + 2 * width + keys, at + head
    return head


@inlined
def _key_entry(data, entry, width):
    """Return where a key starts in its object, and its bytes."""
    word = little_endian(data, entry, width + 2)
    return np.int64(word & (ALL_BITS >> np.uint64(64 - 8 * width))), np.int64(word >> np.uint64(8 * width))


@inlined
def _key(data, stack, top, out, to):
    """Write the next key of an object; return where it ends, or -1 if it is not valid, and its bytes."""
    width, number = stack[top + WIDTH], stack[top + NEXT]
    entry = stack[top + KEYS] + number * (width + 2)
    offset, size = _key_entry(data, entry, width)
    at = stack[top + START] + offset
    if at < stack[top + FIRST] or at + size > stack[top + END]:
        return np.int64(-1), size
    if number:
        # A server sorts keys by length and then by bytes; in any other order there may be the same key twice.
        before, length = _key_entry(data, entry - width - 2, width)
        if length >= size:
            other, ascending = stack[top + START] + before, False
            if length == size:
                for byte in range(size):
                    if data[other + byte] != data[at + byte]:
                        ascending = data[other + byte] < data[at + byte]
                        break
            if not ascending:
                return np.int64(-1), size
    to = _quoted(data, at, size, out, to)
    out[to], out[to + 1] = COLON, BLANK
    return to + 2, size


@inlined
def _document(data, at, end, stack, out, to, noted, places, text_offsets, texts):
    """
    Write one document.

    Returns:
        Where it ends, or -1 if it is not valid or not in the form that a server writes; foreign values met.
    """
    unread, depth = end - at, 0
    kind = np.int64(data[at])
    at += 1
    limit = end
    while True:
        # A value of that kind at `at`, inside `limit`.
        opened = False
        if kind <= LARGE_ARRAY:
            if depth == MAX_DEPTH:
                return np.int64(-1), noted
            head = _opened(data, kind, at, limit, stack, FRAME * np.uint64(depth))
            unread -= head
            if head < 0 or unread < 0:
                return np.int64(-1), noted
            out[to] = ord("{") if kind <= LARGE_OBJECT else ord("[")
            to += 1
            depth += 1
            opened = True
        elif kind == STRING:
            text, size = _prefixed(data, at, limit)
            if size < 0 or unread < text - at + size:
                return np.int64(-1), noted
            unread -= text - at + size
            to = _quoted(data, text, size, out, to)
        else:
            if kind > DOUBLE and kind != OPAQUE:
                return np.int64(-1), noted
            width = SIZES[kind] if kind != OPAQUE else 1
            if at + width > limit:
                return np.int64(-1), noted
            if kind == OPAQUE:
                text, size = _prefixed(data, at + 1, limit)
                if size < 0:
                    return np.int64(-1), noted
                width = text + size - at
            if not (depth and _inlined(kind, stack[FRAME * np.uint64(depth - 1) + WIDTH])):
                unread -= width
            if unread < 0:
                return np.int64(-1), noted
            if kind == LITERAL:
                if data[at] > 2:
                    return np.int64(-1), noted
                store64(out, to, LITERALS[data[at]])
                to += LITERAL_SIZES[data[at]]
            elif kind != OPAQUE:
                to = _number(data, at, kind, width, out, to)
            else:
                if len(text_offsets) > 1:
                    for byte in range(text_offsets[noted], text_offsets[noted + 1]):
                        out[to] = texts[byte]
                        to += 1
                else:
                    places[noted, 0], places[noted, 1], places[noted, 2] = kind, at, at + width
                noted += 1
        # The next value: after the one that was written, or the first of the container that was opened.
        while depth and stack[FRAME * np.uint64(depth - 1) + NEXT] == stack[FRAME * np.uint64(depth - 1) + COUNT]:
            depth -= 1
            out[to] = ord("}") if stack[FRAME * np.uint64(depth) + KEYS] >= 0 else ord("]")
            to += 1
            opened = False
        if depth == 0:
            return to, noted
        top = FRAME * np.uint64(depth - 1)
        if not opened:
            out[to], out[to + 1] = COMMA, BLANK
            to += 2
        if stack[top + KEYS] >= 0:
            to, size = _key(data, stack, top, out, to)
            unread -= size
            if to < 0 or unread < 0:
                return np.int64(-1), noted
        width = stack[top + WIDTH]
        entry = stack[top + VALUES] + stack[top + NEXT] * (width + 1)
        stack[top + NEXT] += 1
        word = little_endian(data, entry, width + 1)
        kind, at, limit = np.int64(word & LOWEST_BYTE), entry + 1, entry + 1 + width
        if not _inlined(kind, width):
            at, limit = stack[top + START] + np.int64(word >> EIGHT), stack[top + END]
            if at < stack[top + FIRST]:
                return np.int64(-1), noted


@kernel
def json_texts(data, base, cells, prefix, quoted, stack, offsets, out, foreign):
    """
    Write documents as text.

    Args:
        data: See `values`.
        base: See `values`.
        cells: See `values`.
        prefix: Bytes of the length before each document.
        quoted: Whether a text or an opaque value may be a whole document; `mysqlbinlog` prints these without quotes.
        stack: Room for the containers around a value, eight numbers each. Shape (800,), int64.
        offsets: Filled in. Shape (rows + 1,), int32.
        out: Filled in. Shape (`MAX_GROWTH` for each byte, `SPARE` for each document, and all foreign texts,), uint8.
        foreign: Kind, start and end of each foreign value, filled in without texts: shape (values, 3), int64; offsets
            and bytes of their texts, the offsets without an entry if the texts are not known yet.

    Returns:
        Bytes written, or -1 if a document must be read by the scalar codec; foreign values met.
    """
    places, text_offsets, texts = foreign
    to, noted = np.int64(0), np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            at = base + np.int64(cells[row])
            size = np.int64(little_endian(data, at, prefix))
            at += prefix
            if size == 0 or (not quoted and (data[at] == STRING or data[at] == OPAQUE)):
                return np.int64(-1), noted
            to, noted = _document(data, at, at + size, stack, out, to, noted, places, text_offsets, texts)
            if to < 0 or to > 0x7FFFFFFF:
                return np.int64(-1), noted
        offsets[row + 1] = to
    return to, noted
