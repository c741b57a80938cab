"""
Numbers of 1 to 8 bytes anywhere in a byte array, and the CRC32 of a slice of it.

The loops over a fixed number of bytes become one machine instruction each, as long as their indexes are unsigned: for a
signed index numba checks whether it counts from the end of the array. Nothing checks that the bytes are inside the
array; the caller must have done so.

CRC32 takes sixteen bytes at a time with sixteen tables ("slicing by 16"), so that the look-ups need not wait for each
other. Calling `zlib.crc32` once per event from Python takes several times as long where events are short.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.kernel import inlined, interpreted_by, kernel


def _load16(data, offset):
    start = int(offset)
    return np.uint16(int.from_bytes(data[start : start + 2].tobytes(), "little"))


@interpreted_by(_load16)
@inlined
def load16(data, offset):
    """Return two bytes as an unsigned number, the lowest first."""
    start = np.uint64(offset)
    return np.uint16(data[start]) | np.uint16(data[start + np.uint64(1)]) << np.uint16(8)


def _load32(data, offset):
    start = int(offset)
    return np.uint32(int.from_bytes(data[start : start + 4].tobytes(), "little"))


@interpreted_by(_load32)
@inlined
def load32(data, offset):
    """Return four bytes as an unsigned number, the lowest first."""
    start, number = np.uint64(offset), np.uint32(0)
    for byte in range(np.uint64(4)):
        number |= np.uint32(data[start + byte]) << np.uint32(8 * byte)
    return number


def _load64(data, offset):
    start = int(offset)
    return np.uint64(int.from_bytes(data[start : start + 8].tobytes(), "little"))


@interpreted_by(_load64)
@inlined
def load64(data, offset):
    """Return eight bytes as an unsigned number, the lowest first."""
    start, number = np.uint64(offset), np.uint64(0)
    for byte in range(np.uint64(8)):
        number |= np.uint64(data[start + byte]) << 8 * byte
    return number


def _little_endian(data, offset, width):
    start = int(offset)
    return np.uint64(int.from_bytes(data[start : start + int(width)].tobytes(), "little"))


@interpreted_by(_little_endian)
@inlined
def little_endian(data, offset, width):
    """Return an unsigned number of up to 8 bytes, the lowest first."""
    if width > 0 and offset + 8 <= len(data):
        unwanted = np.uint64(64 - 8 * width)
        return load64(data, offset) << unwanted >> unwanted
    number = np.uint64(0)
    for byte in range(width):
        number |= np.uint64(data[offset + byte]) << np.uint64(8 * byte)
    return number


def _big_endian(data, offset, width):
    start = int(offset)
    return np.uint64(int.from_bytes(data[start : start + int(width)].tobytes(), "big"))


@interpreted_by(_big_endian)
@inlined
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


def _copy_eight(data, offset, out, to):
    start, target = int(offset), int(to)
    out[target : target + 8] = data[start : start + 8]


@interpreted_by(_copy_eight)
@inlined
def copy_eight(data, offset, out, to):
    """Copy eight bytes from one array to another."""
    store64(out, to, load64(data, offset))


def _store64(out, to, word):
    start = int(to)
    out[start : start + 8] = np.frombuffer(int(word).to_bytes(8, "little"), np.uint8)


@interpreted_by(_store64)
@inlined
def store64(out, to, word):
    """Write an unsigned number as eight bytes, the lowest first."""
    start = np.uint64(to)
    for byte in range(np.uint64(8)):
        out[start + byte] = np.uint8(word >> 8 * byte)


POLYNOMIAL = 0xEDB88320
SLICES, HALF = np.uint64(16), np.uint64(8)


def _tables() -> npt.NDArray[np.uint32]:
    """Return what a byte adds to a CRC32, by how many bytes follow it in its slice. Shape (16, 256)."""
    tables = np.zeros((int(SLICES), 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for following in range(1, len(tables)):
        before = tables[following - 1]
        tables[following] = before >> 8 ^ tables[0, before & 0xFF]
    return tables


TABLES = _tables()


@inlined
def _eight(word, following, added):
    """
    Return what eight bytes add to a CRC32, together with what others add to it.

    Args:
        word: The eight bytes. uint64.
        following: How many bytes follow the first of them in its slice. uint64.
        added: What the others add. uint32.
    """
    # The last bytes come first: the first four wait for the slice before.
    for place in range(HALF):
        byte = HALF - np.uint64(1) - place
        added ^= TABLES[following - byte, word >> np.uint64(8) * byte & np.uint64(0xFF)]
    return added


def _crc32(data, start, end):
    return np.uint32(zlib.crc32(data[int(start) : int(end)]))


@interpreted_by(_crc32)
@kernel
def crc32(data, start, end):
    """Return the CRC32 of ``data[start:end]``."""
    crc = np.uint32(0xFFFFFFFF)
    offset, end = np.uint64(start), np.uint64(end)
    while offset + SLICES <= end:
        second = _eight(load64(data, offset + HALF), HALF - np.uint64(1), np.uint32(0))
        crc = _eight(load64(data, offset) ^ np.uint64(crc), SLICES - np.uint64(1), second)
        offset += SLICES
    if offset + HALF <= end:
        crc = _eight(load64(data, offset) ^ np.uint64(crc), HALF - np.uint64(1), np.uint32(0))
        offset += HALF
    while offset < end:
        crc = crc >> np.uint32(8) ^ TABLES[0, np.uint8(crc) ^ data[offset]]
        offset += np.uint64(1)
    return np.uint32(~crc)


E4, E8, E16 = (np.uint64(10**digits) for digits in (4, 8, 16))
BYTE, HALF_WORD = np.uint64(8), np.uint64(32)
ZEROS = np.uint64(0x3030303030303030)


@inlined
def _eight_digits(number):
    """Return a number below 10^8 as eight bytes of text, the first digit lowest: in halves, in pairs, in digits."""
    high = number // E4
    fours = high | number - high * E4 << HALF_WORD
    high = fours * np.uint64(10486) >> np.uint64(20) & np.uint64(0x7F0000007F)
    pairs = high | fours - high * np.uint64(100) << np.uint64(16)
    high = pairs * np.uint64(103) >> np.uint64(10) & np.uint64(0x000F000F000F000F)
    return (high | pairs - high * np.uint64(10) << BYTE) + ZEROS


@inlined
def _put_first_digits(out, to, number):
    """Write a number below 10^8; return where it ends. Bytes after it are overwritten, eight with those of it."""
    size = 1 + (number >= 10) + (number >= 100) + (number >= 1000) + (number >= 10_000)
    size += (number >= 100_000) + (number >= 1_000_000) + (number >= 10_000_000)
    store64(out, to, _eight_digits(number) >> np.uint64(8 * (8 - size)))
    return to + size


def _put_digits(out, to, number):
    text = str(number).encode()
    start = int(to)
    out[start : start + len(text)] = np.frombuffer(text, np.uint8)
    return to + len(text)


@interpreted_by(_put_digits)
@inlined
def put_digits(out, to, number):
    """Write an unsigned number of 64 bits; return where it ends. A short one takes eight bytes."""
    if number < E8:
        return _put_first_digits(out, to, number)
    low = number // E8
    last = number - low * E8
    if low < E8:
        to = _put_first_digits(out, to, low)
    else:
        first = low // E8
        to = _put_first_digits(out, to, first)
        store64(out, to, _eight_digits(low - first * E8))
        to += 8
    store64(out, to, _eight_digits(last))
    return to + 8
