"""
DECIMAL values as the fixed-width numbers of Arrow: two's complement of 128 or 256 bits, lowest word first.

Arguments as in `values`; layout of the values: `ndb_formats.types.decimals`.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import kernel
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.words import big_endian

__all__ = ["SHORT_DIGITS", "get_decimals", "get_short_decimals"]

# The most digits that fit 64 bits.
SHORT_DIGITS = 18
POWERS = np.array([10**digits for digits in range(10)], np.uint64)
BYTES_FOR_DIGITS = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
LOW_WORD = np.uint64(0xFFFFFFFF)


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
        offset = base + np.int64(cells[row])
        negative = data[offset] < 0x80
        flip = np.uint64(0xFFFFFFFF if negative else 0)
        number = np.int64(0)
        sign = np.uint64(0x80) << np.uint64(8 * (BYTES_FOR_DIGITS[groups[0]] - 1))
        for digits in groups:
            size = BYTES_FOR_DIGITS[digits]
            group = big_endian(data, offset, size) ^ flip >> np.uint64(32 - 8 * size) ^ sign
            sign = np.uint64(0)
            if group >= POWERS[digits]:
                return False
            number = number * np.int64(POWERS[digits]) + np.int64(group)
            offset += size
        if negative:
            number = -number
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
