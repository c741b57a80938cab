"""
The CRC32 of a slice of bytes.

It takes sixteen bytes at a time with sixteen tables ("slicing by 16"), so that the look-ups need not wait for each
other. Calling `zlib.crc32` once per event from Python takes several times as long where events are short.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.kernel import inlined, interpreted_by, kernel
from ndb_formats.columnar.kernels.words import load64

__all__ = ["crc32"]

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
def _eight(word, following):
    """Return what eight bytes add to a CRC32; `following` is how many follow the first of them in its slice. uint64."""
    added = np.uint32(0)
    for byte in range(np.uint64(8)):
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
        first = _eight(load64(data, offset) ^ np.uint64(crc), SLICES - np.uint64(1))
        crc = first ^ _eight(load64(data, offset + HALF), HALF - np.uint64(1))
        offset += SLICES
    if offset + HALF <= end:
        crc = _eight(load64(data, offset) ^ np.uint64(crc), HALF - np.uint64(1))
        offset += HALF
    while offset < end:
        crc = crc >> np.uint32(8) ^ TABLES[0, np.uint8(crc) ^ data[offset]]
        offset += np.uint64(1)
    return np.uint32(~crc)
