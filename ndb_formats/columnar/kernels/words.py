"""
Numbers of 1 to 8 bytes anywhere in a byte array.

The loops over a fixed number of bytes become one machine instruction each, as long as their indexes are unsigned: for a
signed index numba checks whether it counts from the end of the array. Nothing checks that the bytes are inside the
array; the caller must have done so.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["big_endian", "copy_eight", "little_endian", "load16", "load32", "load64", "store64"]


@njit(cache=True, nogil=True, inline="always")
def load16(data, offset):
    """Return two bytes as an unsigned number, the lowest first."""
    start = np.uint64(offset)
    return np.uint16(data[start]) | np.uint16(data[start + np.uint64(1)]) << np.uint16(8)


@njit(cache=True, nogil=True, inline="always")
def load32(data, offset):
    """Return four bytes as an unsigned number, the lowest first."""
    start, number = np.uint64(offset), np.uint32(0)
    for byte in range(np.uint64(4)):
        number |= np.uint32(data[start + byte]) << np.uint32(8 * byte)
    return number


@njit(cache=True, nogil=True, inline="always")
def load64(data, offset):
    """Return eight bytes as an unsigned number, the lowest first."""
    start, number = np.uint64(offset), np.uint64(0)
    for byte in range(np.uint64(8)):
        number |= np.uint64(data[start + byte]) << 8 * byte
    return number


@njit(cache=True, nogil=True, inline="always")
def little_endian(data, offset, width):
    """Return an unsigned number of up to 8 bytes, the lowest first."""
    if width > 0 and offset + 8 <= len(data):
        unwanted = np.uint64(64 - 8 * width)
        return load64(data, offset) << unwanted >> unwanted
    number = np.uint64(0)
    for byte in range(width):
        number |= np.uint64(data[offset + byte]) << np.uint64(8 * byte)
    return number


@njit(cache=True, nogil=True, inline="always")
def big_endian(data, offset, width):
    """Return an unsigned number of up to 8 bytes, the highest first."""
    start, number = np.uint64(offset), np.uint64(0)
    if width > 0 and offset + 8 <= len(data):
        for byte in range(np.uint64(8)):
            number = number << np.uint64(8) | np.uint64(data[start + byte])
        return number >> np.uint64(64 - 8 * width)
    for byte in range(np.uint64(width)):
        number = number << np.uint64(8) | np.uint64(data[start + byte])
    return number


@njit(cache=True, nogil=True, inline="always")
def copy_eight(data, offset, out, to):
    """Copy eight bytes from one array to another."""
    store64(out, to, load64(data, offset))


@njit(cache=True, nogil=True, inline="always")
def store64(out, to, word):
    """Write an unsigned number as eight bytes, the lowest first."""
    start = np.uint64(to)
    for byte in range(np.uint64(8)):
        out[start + byte] = np.uint8(word >> 8 * byte)
