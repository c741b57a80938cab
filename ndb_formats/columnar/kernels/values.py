"""
Numbers, bytes and text of a column, copied into the buffers of an Arrow array.

Every function takes the bytes of the chunk, the base that cells count from, and the column's cells (see `rows`), one
per row. A NULL gives zero or nothing in the buffers; the validity bitmap is made elsewhere.

DECIMAL becomes the fixed-width numbers of Arrow: two's complement of 128 or 256 bits, lowest word first. Its layout:
`ndb_formats.types.decimals`.

`find_cells` gives cells to row images that are not in events: those of one table, concatenated in one array of bytes.
The columns that an image carries are given by the number of a set of columns.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import big_endian, copy_eight, little_endian, load16, load32, load64

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
def length_of(data, offset, prefix, width):
    """Return the bytes of a value after its length; arguments as of `measure_bytes`."""
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
            total += max(length_of(data, base + np.int64(cells[row]), prefix, width), least)
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
        end = to + length_of(data, offset, prefix, width)
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


@inlined
def valid_text(text, offset, end):
    """Return whether bytes are valid UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF."""
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
def valid_utf8(text, offsets):
    """Return whether every value is valid UTF-8."""
    for row in range(len(offsets) - 1):
        if not valid_text(text, np.int64(offsets[row]), np.int64(offsets[row + 1])):
            return False
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


# The most digits that fit 64 bits.
SHORT_DIGITS = 18
POWERS = np.array([10**digits for digits in range(10)], np.uint64)
BYTES_FOR_DIGITS = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
LOW_WORD = np.uint64(0xFFFFFFFF)


@inlined
def short_decimal(data, offset, groups, first, last):
    """
    Return a value of at most 18 digits without its point, and whether no group holds more than its digits allow.

    Its groups are those of `groups` from `first` up to `last`.
    """
    negative = data[offset] < 0x80
    flip = np.uint64(0xFFFFFFFF if negative else 0)
    number = np.int64(0)
    sign = np.uint64(0x80) << np.uint64(8 * (BYTES_FOR_DIGITS[groups[first]] - 1))
    good = True
    for place in range(first, last):
        digits = groups[place]
        size = BYTES_FOR_DIGITS[digits]
        group = big_endian(data, offset, size) ^ flip >> np.uint64(32 - 8 * size) ^ sign
        sign = np.uint64(0)
        good &= group < POWERS[digits]
        number = number * np.int64(POWERS[digits]) + np.int64(group)
        offset += size
    return -number if negative else number, good


@kernel
def get_short_decimals(data, base, cells, groups, out):
    """
    Read values of at most 18 digits.

    Args:
        data: See the module.
        base: See the module.
        cells: See the module.
        groups: Digits of each group. Shape (groups,), int64.
        out: Filled in; zero before. Shape (rows, 2), int64.

    Returns:
        Whether no group holds more than its digits allow.
    """
    for row in range(len(cells)):
        if cells[row] == NULL_CELL:
            continue
        number, good = short_decimal(data, base + np.int64(cells[row]), groups, 0, len(groups))
        if not good:
            return False
        out[row, 0] = number
        out[row, 1] = number >> 63
    return True


@kernel
def get_decimals(data, base, cells, groups, out):
    """
    Read values of as many digits as the result can hold.

    Args:
        data: See the module.
        base: See the module.
        cells: See the module.
        groups: Digits of each group. Shape (groups,), int64.
        out: Filled in; zero before. Shape (rows, 4 or 8), uint32.

    Returns:
        Whether no group holds more than its digits allow.
    """
    words = out.shape[1]
    for row in range(len(cells)):
        if cells[row] == NULL_CELL:
            continue
        offset = base + np.int64(cells[row])
        negative = data[offset] < 0x80
        flip = np.uint64(0xFFFFFFFF if negative else 0)
        sign = np.uint64(0x80) << np.uint64(8 * (BYTES_FOR_DIGITS[groups[0]] - 1))
        for digits in groups:
            size = BYTES_FOR_DIGITS[digits]
            carry = big_endian(data, offset, size) ^ flip >> np.uint64(32 - 8 * size) ^ sign
            sign = np.uint64(0)
            if carry >= POWERS[digits]:
                return False
            for word in range(words):
                carry += np.uint64(out[row, word]) * POWERS[digits]
                out[row, word] = carry & LOW_WORD
                carry >>= np.uint64(32)
            offset += size
        if negative:
            carry = np.uint64(1)
            for word in range(words):
                carry += np.uint64(out[row, word]) ^ LOW_WORD
                out[row, word] = carry & LOW_WORD
                carry >>= np.uint64(32)
    return True


@kernel
def find_cells(data, offsets, chosen, set_offsets, set_columns, prefixes, widths):
    """
    Return the cells of images.

    Args:
        data: The images. Shape (bytes,), uint8.
        offsets: Start of each image, and end of the last one. Shape (images + 1,), int32.
        chosen: Number of the set of columns that each image carries. Shape (images,).
        set_offsets: Set n is ``set_columns[set_offsets[n]:set_offsets[n + 1]]``. Shape (sets + 1,).
        set_columns: Positions of columns.
        prefixes: Bytes of the length before each value of a column; -1 for a fixed width. Shape (columns,).
        widths: That width. Shape (columns,).

    Returns:
        The cells, `NULL_CELL` for NULL and for what an image does not carry: shape (columns, images), uint32; and the
        first image that ends before its values do, or -1.
    """
    cells = np.full((len(prefixes), len(chosen)), NULL_CELL, np.uint32)
    for image in range(len(chosen)):
        nulls, end = np.int64(offsets[image]), np.int64(offsets[image + 1])
        first, count = set_offsets[chosen[image]], set_offsets[chosen[image] + 1] - set_offsets[chosen[image]]
        offset = nulls + ((count + 7) >> 3)
        if offset > end:
            return cells, image
        for number in range(count):
            if data[nulls + (number >> 3)] >> (number & 7) & 1:
                continue
            column = set_columns[first + number]
            cells[column, image] = offset
            prefix = prefixes[column]
            if prefix < 0:
                offset += widths[column]
            else:
                if offset + prefix > end:
                    return cells, image
                offset += prefix + np.int64(little_endian(data, offset, prefix))
            if offset > end:
                return cells, image
    return cells, -1
