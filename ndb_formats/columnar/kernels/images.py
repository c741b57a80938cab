"""
Images as maps from column name to text, written row by row from the bytes of the events.

The rows are those of a block, of all tables. What an image of a shape carries is a list of *steps*, one for each
column: how its value becomes text. Text that other code made before is a step, too.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel
from ndb_formats.columnar.kernels.doubles import put_any_double
from ndb_formats.columnar.kernels.entries import put_signed
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.temporal import put_date, put_datetime, put_time, put_timestamp
from ndb_formats.columnar.kernels.values import HIGH_BITS, length_of, short_decimal, valid_text
from ndb_formats.columnar.kernels.words import little_endian, load32, load64, store64


class Step(IntEnum):
    """How a value becomes text, with the meaning of the three numbers `Field.FIRST` to `Field.THIRD` beside it."""

    SIGNED = 0  # bytes of an integer
    UNSIGNED = 1  # bytes of an integer
    UTF8 = 2  # bytes of the length before a text, or -1; bytes of one without a length
    ONE_BYTE = 3  # the same, and the number of the table of a one-byte character set
    DECIMAL = 4  # where its groups start and end among those of all columns; digits after the point
    DATE = 5
    TIME = 6  # digits after the point, as for the next two
    DATETIME = 7
    TIMESTAMP = 8
    DOUBLE = 9
    FLOAT = 10
    GIVEN = 11  # number of the column's first text among those that are given


class Field(IntEnum):
    """The columns of the array of steps."""

    STEP = 0
    FIRST = 1
    SECOND = 2
    THIRD = 3
    NAME_SIZE = 4  # bytes of the column's name


class Image(IntEnum):
    """The columns of the array of the images of shapes."""

    START = 0  # its first step
    STEPS = 1
    CELL = 2  # its first cell among those of a row
    NAMES_AT = 3  # where the names of its columns are, one after the other
    NAMES_SIZE = 4


SIGNED, UNSIGNED, UTF8, ONE_BYTE, DECIMAL, DATE, TIME, DATETIME, TIMESTAMP, DOUBLE, FLOAT, GIVEN = (
    int(step) for step in Step
)
STEP, FIRST, SECOND, THIRD, NAME_SIZE = (int(field) for field in Field)
START, STEPS, CELL, NAMES_AT, NAMES_SIZE = (int(part) for part in Image)
EIGHT = np.int64(8)


@inlined
def _copy(data, start, end, out, to):
    """Copy bytes, and others after them that are overwritten later; return where they end, and all bits of them."""
    seen, last = np.uint64(0), len(data) - 8
    stop = to + end - start
    while to < stop and start <= last:
        word = load64(data, start)
        store64(out, to, word)
        start += EIGHT
        to += EIGHT
        seen |= word << np.uint64(8 * max(to - stop, 0))
    while to < stop:
        byte = data[np.uint64(start)]
        out[np.uint64(to)] = byte
        seen |= np.uint64(byte)
        start += 1
        to += 1
    return stop, seen


@inlined
def _put_text(data, offset, prefix, width, out, to):
    """Write UTF-8; return where it ends, or -1."""
    start = offset + max(prefix, 0)
    stop, seen = _copy(data, start, start + length_of(data, offset, prefix, width), out, to)
    return stop if not seen & HIGH_BITS or valid_text(out, to, stop) else np.int64(-1)


@inlined
def _put_one_byte(data, offset, prefix, width, table, sizes, characters, out, to):
    """Write text of a one-byte character set; `sizes` and `characters` as in `put_images`."""
    start = offset + max(prefix, 0)
    end = start + length_of(data, offset, prefix, width)
    stop, seen = _copy(data, start, end, out, to)
    if not seen & HIGH_BITS:
        return stop
    for place in range(start, end):
        byte = data[np.uint64(place)]
        if sizes[table, byte] == 0:
            return np.int64(-1)
        for number in range(sizes[table, byte]):
            out[to + number] = characters[table, byte] >> np.uint32(8 * number) & np.uint32(0xFF)
        to += np.int64(sizes[table, byte])
    return to


@kernel
def put_images(data, base, rows, cells, plan, given, found):
    """
    Write the entries of the images of rows.

    Args:
        data: The bytes of the chunk. Shape (bytes,), uint8.
        base: What cells count from.
        rows: The shape and the first cell of each row. Two arrays of shape (rows,), int64.
        cells: The cells of the rows. uint32.
        plan: The images of the shapes, by `Image`; the steps, by `Field`; the digits of the groups of decimals; size
            and UTF-8 of each byte of the one-byte character sets, shape (character sets, 256); the bytes of the names.
        given: The texts that were made before: where each starts, and their bytes, and eight more.
        found: Filled in: offsets and bytes of names, offsets and bytes of values, and whether each value is there
            (true before). The bytes have room for eight more.

    Returns:
        Whether all values could be written.
    """
    row_shape, row_cell = rows
    images, steps, groups, sizes, characters, names = plan
    text_starts, texts = given
    name_offsets, name_bytes, offsets, out, there = found
    seen = np.zeros(len(images), np.int64)
    entry, to, name_to = np.int64(0), np.int64(0), np.int64(0)
    name_offsets[0], offsets[0] = 0, 0
    for row in range(len(row_shape)):
        shape = row_shape[row]
        cell, first = row_cell[row] + images[shape, CELL], images[shape, START]
        number = seen[shape]
        seen[shape] += 1
        _copy(names, images[shape, NAMES_AT], images[shape, NAMES_AT] + images[shape, NAMES_SIZE], name_bytes, name_to)
        for place in range(images[shape, STEPS]):
            step = first + place
            kind, option = steps[step, STEP], steps[step, FIRST]
            name_to += steps[step, NAME_SIZE]
            at = cells[cell + place]
            if at == NULL_CELL:
                there[entry] = False
            else:
                offset = base + np.int64(at)
                if kind <= UNSIGNED:
                    word = little_endian(data, offset, option)
                    if kind == SIGNED:
                        unused = np.uint64(64 - 8 * option)
                        word = np.uint64(np.int64(word << unused) >> np.int64(unused))
                    to = put_signed(out, to, word, kind == SIGNED, 0)
                elif kind == UTF8:
                    to = _put_text(data, offset, option, steps[step, SECOND], out, to)
                elif kind == ONE_BYTE:
                    width, table = steps[step, SECOND], steps[step, THIRD]
                    to = _put_one_byte(data, offset, option, width, table, sizes, characters, out, to)
                elif kind == GIVEN:
                    start = text_starts[option + number]
                    to, _ = _copy(texts, start, text_starts[option + number + 1], out, to)
                elif kind == DECIMAL:
                    whole, good = short_decimal(data, offset, groups, option, steps[step, SECOND])
                    to = put_signed(out, to, np.uint64(whole), True, steps[step, THIRD]) if good else np.int64(-1)
                elif kind == DATE:
                    to = put_date(data, offset, out, to)
                elif kind == TIME:
                    to = put_time(data, offset, option, out, to)
                elif kind == DATETIME:
                    to = put_datetime(data, offset, option, out, to)
                elif kind == DOUBLE:
                    to = put_any_double(out, to, load64(data, offset))
                elif kind == FLOAT:
                    short = np.uint32(load32(data, offset)).view(np.float32)
                    to = put_any_double(out, to, np.float64(short).view(np.uint64))
                else:
                    to = put_timestamp(data, offset, option, False, out, to)
                if to < 0:
                    return False
            entry += 1
            name_offsets[entry], offsets[entry] = name_to, to
    return True
