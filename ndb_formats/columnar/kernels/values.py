"""
Numbers, bytes and text of a column, copied into the buffers of an Arrow array.

Every function takes the bytes of the chunk, the base that cells count from, and the column's cells (see `rows`), one
per row. A NULL gives zero or nothing in the buffers; the validity bitmap is made elsewhere.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import big_endian, copy_eight, little_endian, load16, load32, load64

__all__ = [
    "copy_bytes",
    "copy_single_byte_text",
    "get_big_endian",
    "get_little_endian",
    "get_u8",
    "get_u16",
    "get_u32",
    "get_u64",
    "measure_bytes",
    "measure_single_byte_text",
    "valid_utf8",
]

MAX_OFFSET = 0x7FFFFFFF
HIGH_BITS = np.uint64(0x8080808080808080)


@kernel
def get_u8(data, base, cells, out):
    """Copy numbers of one byte."""
    for row in range(len(cells)):
        out[row] = 0 if cells[row] == NULL_CELL else data[base + np.int64(cells[row])]


@kernel
def get_u16(data, base, cells, out):
    """Copy numbers of two bytes."""
    for row in range(len(cells)):
        out[row] = 0 if cells[row] == NULL_CELL else load16(data, base + np.int64(cells[row]))


@kernel
def get_u32(data, base, cells, out):
    """Copy numbers of four bytes."""
    for row in range(len(cells)):
        out[row] = 0 if cells[row] == NULL_CELL else load32(data, base + np.int64(cells[row]))


@kernel
def get_u64(data, base, cells, out):
    """Copy numbers of eight bytes."""
    for row in range(len(cells)):
        out[row] = np.uint64(0) if cells[row] == NULL_CELL else load64(data, base + np.int64(cells[row]))


@kernel
def get_little_endian(data, base, cells, width, out):
    """Copy unsigned numbers of up to eight bytes, the lowest first."""
    for row in range(len(cells)):
        out[row] = np.uint64(0) if cells[row] == NULL_CELL else little_endian(data, base + np.int64(cells[row]), width)


@kernel
def get_big_endian(data, base, cells, width, out):
    """Copy unsigned numbers of up to eight bytes, the highest first."""
    for row in range(len(cells)):
        out[row] = np.uint64(0) if cells[row] == NULL_CELL else big_endian(data, base + np.int64(cells[row]), width)


@inlined
def _length(data, offset, prefix, width):
    if prefix == 1:
        return np.int64(data[offset])
    if prefix == 2:
        return np.int64(load16(data, offset))
    return np.int64(width) if prefix < 0 else np.int64(little_endian(data, offset, min(prefix, 5)))


@kernel
def measure_bytes(data, base, cells, prefix, width, least, offsets):
    """
    Fill in the offsets of values that are copied as they are.

    Args:
        data: See the module.
        base: See the module.
        cells: See the module.
        prefix: Bytes of the length before each value; -1 for values of a fixed width.
        width: That width.
        least: Length up to which shorter values are padded with zero bytes.
        offsets: Filled in. Shape (rows + 1,), int32.

    Returns:
        Bytes of all values, which may be more than the offsets can hold.
    """
    total = np.int64(0)
    offsets[0] = 0
    for row in range(len(cells)):
        if cells[row] != NULL_CELL:
            total += max(_length(data, base + np.int64(cells[row]), prefix, width), least)
        offsets[row + 1] = min(total, MAX_OFFSET)
    return total


@kernel
def copy_bytes(data, base, cells, prefix, width, offsets, out):
    """
    Copy values as they are, padded with zero bytes; return whether all of them are ASCII.

    Args:
        data: See the module.
        base: See the module.
        cells: See the module.
        prefix: As for `measure_bytes`.
        width: As for `measure_bytes`.
        offsets: As `measure_bytes` left them.
        out: Filled in. Shape (at least 8 more than all values,), uint8.
    """
    last = len(data) - 8
    for row in range(len(cells)):
        if cells[row] == NULL_CELL:
            continue
        offset = base + np.int64(cells[row])
        to = np.int64(offsets[row])
        end = to + _length(data, offset, prefix, width)
        offset += max(prefix, 0)
        # Copying in eights overwrites the start of the next value, which is copied later.
        while to < end and offset <= last:
            copy_eight(data, offset, out, to)
            offset += 8
            to += 8
        while to < end:
            out[to] = data[offset]
            offset += 1
            to += 1
        for zero in range(end, offsets[row + 1]):
            out[zero] = 0
    seen = np.uint8(0)
    for offset in range(np.uint64(offsets[-1])):
        seen |= out[offset]
    return seen < 0x80


@kernel
def valid_utf8(text, offsets):
    """Return whether every value is valid UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF."""
    for row in range(len(offsets) - 1):
        offset, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        while offset < end:
            # Eight bytes at once, as long as they are ASCII.
            while offset + 8 <= end and not load64(text, offset) & HIGH_BITS:
                offset += 8
            if offset == end:
                break
            first = text[offset]
            offset += 1
            if first < 0x80:
                continue
            if first < 0xC2 or first > 0xF4:
                return False
            more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
            if offset + more > end:
                return False
            low, high = 0x80, 0xBF
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
            elif first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
            if text[offset] < low or text[offset] > high:
                return False
            for byte in range(1, more):
                if text[offset + byte] & 0xC0 != 0x80:
                    return False
            offset += more
    return True


@kernel
def measure_single_byte_text(text, offsets, sizes, new_offsets):
    """
    Fill in the offsets of text of a one-byte character set once it is UTF-8.

    Args:
        text: The text. Shape (bytes,), uint8.
        offsets: Its offsets. Shape (rows + 1,), int32.
        sizes: Bytes of each character in UTF-8; 0 for a byte that is no character. Shape (256,), uint8.
        new_offsets: Filled in. Shape (rows + 1,), int32.

    Returns:
        Bytes of all values; -1 if a byte is no character.
    """
    total = np.int64(0)
    new_offsets[0] = 0
    for row in range(len(offsets) - 1):
        for offset in range(offsets[row], offsets[row + 1]):
            size = sizes[text[offset]]
            if size == 0:
                return np.int64(-1)
            total += np.int64(size)
        new_offsets[row + 1] = min(total, MAX_OFFSET)
    return total


@kernel
def copy_single_byte_text(text, size, sizes, characters, out):
    """
    Write text of a one-byte character set as UTF-8.

    Args:
        text: The text. Shape (at least size,), uint8.
        size: Bytes of all its values.
        sizes: As for `measure_single_byte_text`.
        characters: UTF-8 of each character, the first byte lowest. Shape (256,), uint32.
        out: Filled in. Shape (at least 8 more than all values,), uint8.
    """
    to = np.int64(0)
    for offset in range(size):
        byte = text[offset]
        character = characters[byte]
        for number in range(sizes[byte]):
            out[to + number] = character >> np.uint32(8 * number) & np.uint32(0xFF)
        to += np.int64(sizes[byte])
