"""
The CRC32 of a slice of bytes.

It takes sixteen bytes at a time with sixteen tables ("slicing by 16"), so that the look-ups need not wait for each
other. Calling `zlib.crc32` once per event from Python takes several times as long where events are short.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["crc32"]

POLYNOMIAL = 0xEDB88320
SLICES = np.uint64(16)


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


@njit(cache=True, nogil=True)
def crc32(data, start, end):
    """Return the CRC32 of ``data[start:end]``."""
    crc = np.uint32(0xFFFFFFFF)
    offset, end = np.uint64(start), np.uint64(end)
    while offset + SLICES <= end:
        after = np.uint32(0)
        for byte in range(SLICES):
            value = data[offset + byte]
            if byte < 4:
                value ^= np.uint8(crc >> np.uint32(8 * byte))
            after ^= TABLES[SLICES - np.uint64(1) - byte, value]
        crc = after
        offset += SLICES
    while offset < end:
        crc = crc >> np.uint32(8) ^ TABLES[0, np.uint8(crc) ^ data[offset]]
        offset += np.uint64(1)
    return np.uint32(~crc)
