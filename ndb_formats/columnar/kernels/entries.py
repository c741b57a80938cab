"""
Texts of columns, put side by side into the entries of the maps of rows.

The map of a row has an entry for each column that its image carries. Entries of all rows follow each other.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import inlined, kernel, wrapping_difference
from ndb_formats.columnar.kernels.texts import copy_text
from ndb_formats.columnar.kernels.words import load64, put_digits, store64

ZERO, MINUS, POINT, TEN = ord("0"), ord("-"), ord("."), np.uint64(10)
POWERS = np.array([10**digits for digits in range(19)], np.uint64)
DIGITS = 20  # of the largest number, or one less and a sign
EIGHT, ALL = np.int64(8), np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def put_number(out, to, number, scale):
    """Write an unsigned number with a fixed number of digits after the point; return where it ends."""
    if scale == 0:
        return put_digits(out, to, number)
    whole = number // POWERS[scale]
    rest = number - whole * POWERS[scale]
    to = put_digits(out, to, whole)
    out[to] = POINT
    for place in range(to + scale, to, -1):
        out[place] = ZERO + rest % TEN
        rest //= TEN
    return to + scale + 1


@inlined
def put_signed(out, to, word, signed, scale):
    """Write a number of 64 bits with or without a sign, given as one without; see `put_number`."""
    if signed and word >> np.uint64(63):
        out[to] = MINUS
        to += 1
        word = wrapping_difference(np.uint64(0), word)
    return put_number(out, to, word, scale)


@kernel
def numbers_text(numbers, signed, missing, scale, offsets, out):
    """
    Write numbers with a fixed number of digits after the point.

    Args:
        numbers: The numbers without their point. Shape (rows,), uint64.
        signed: Whether they are signed.
        missing: Whether each is NULL; empty if none is. bool.
        scale: Digits after the point; up to 18.
        offsets: Filled in. Shape (rows + 1,), int32.
        out: Filled in; `DIGITS` bytes for each, and 2 and `scale` more if there is a point. uint8.
    """
    to = np.int64(0)
    offsets[0] = 0
    for row in range(len(numbers)):
        if not (len(missing) and missing[row]):
            to = put_signed(out, to, numbers[row], signed, scale)
        offsets[row + 1] = to


@kernel
def put_sizes(lines, first, place, offsets, missing, sizes, there):
    """
    Note the size of each text of a column, and whether it is there.

    Args:
        lines: The row of each text. Shape (texts,), int64.
        first: The first entry of each row. int64.
        place: The place of the column among the entries of a row.
        offsets: Offsets of the texts. Shape (texts + 1,), int32.
        missing: Whether each is NULL; empty if none is. bool.
        sizes: Filled in. Shape (entries,), int64.
        there: Filled in for those that are NULL. Shape (entries,), bool.
    """
    for number in range(len(lines)):
        entry = first[lines[number]] + place
        if len(missing) and missing[number]:
            sizes[entry], there[entry] = 0, False
        else:
            sizes[entry] = np.int64(offsets[number + 1]) - np.int64(offsets[number])


@kernel
def put_texts(lines, first, place, offsets, data, starts, out):
    """
    Write the texts of a column into the entries of their rows; arguments as of `put_sizes`.

    Args:
        lines: See there.
        first: See there.
        place: See there.
        offsets: See there.
        data: The bytes of the texts. uint8.
        starts: Where each entry starts in `out`. Shape (entries + 1,), int64.
        out: Filled in. uint8.
    """
    for number in range(len(lines)):
        entry = first[lines[number]] + place
        start, to = np.int64(offsets[number]), starts[entry]
        end = start + starts[entry + 1] - to
        # What comes after a text may be there already, so that the last bytes are put between those that are there.
        while start < end:
            if start + EIGHT > len(data) or to + EIGHT > len(out):
                copy_text(data, start, end, out, to)
                break
            word, there = load64(data, start), load64(out, to)
            kept = ALL << np.uint64(8 * (end - start)) if end - start < EIGHT else np.uint64(0)
            store64(out, to, there & kept | word & ~kept)
            start += EIGHT
            to += EIGHT


@kernel
def put_names(lines, first, offsets, names, starts, out):
    """
    Write the same names into the first entries of rows.

    Args:
        lines: The rows. int64.
        first: See `put_sizes`.
        offsets: Offsets of the names. Shape (names + 1,), int32.
        names: The bytes of the names, one after the other. uint8.
        starts: See `put_texts`.
        out: Filled in. uint8.
    """
    for number in range(len(lines)):
        to = starts[first[lines[number]]]
        copy_text(names, 0, np.int64(offsets[-1]), out, to)
