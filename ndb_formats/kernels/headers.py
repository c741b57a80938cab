"""
The headers of events, one after the other, and their checksums.

A file is walked by the sizes in its headers, so only one cache line per event is touched. The CRC32 is taken sixteen
bytes at a time with sixteen tables ("slicing"), which keeps more than one load in flight.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ndb_formats.constants import EVENT_HEADER_SIZE, EventType
from ndb_formats.kernels.words import load32, load64

__all__ = ["AT_DESCRIPTION", "AT_END", "AT_FAULT", "crc32", "first_bad_checksum", "walk_headers"]

AT_END, AT_DESCRIPTION, AT_FAULT = range(3)
HEADER = EVENT_HEADER_SIZE
DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
POLYNOMIAL = 0xEDB88320
SLICES = 16


def _tables() -> np.ndarray:
    """Return what a byte adds to a CRC32, by how many bytes follow it. Shape (16 * 256,)."""
    tables = np.zeros((SLICES, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for number in range(1, SLICES):
        before = tables[number - 1]
        tables[number] = before >> 8 ^ tables[0, before & 0xFF]
    return tables.ravel()


TABLES = _tables()


@njit(cache=True)
def walk_headers(data, position, stop, trailer, by_description, span, positions, types, sizes, servers, timestamps):
    """
    Read headers from `position` on, and stop where an event cannot be right.

    Args:
        data: The file. Shape (bytes,), uint8.
        position: Of an event.
        stop: Position to stop before.
        trailer: Bytes of the checksum that every event must have room for.
        by_description: Whether to stop behind a Format_description event, which may change `trailer`.
        span: Stop before the events have more bytes than this, but not before the first.
        positions: Filled in. Shape (events,), as all that follow; reading stops when they are full.
        types: Filled in.
        sizes: Filled in.
        servers: Filled in.
        timestamps: Filled in.

    Returns:
        How many events, where the next one starts, and why it ended: `AT_END`, `AT_DESCRIPTION`, `AT_FAULT`.
    """
    count = 0
    start = position
    end = min(stop, len(data))
    while position < end and count < len(positions):
        if position + HEADER > len(data):
            return count, position, AT_FAULT
        size = np.int64(load32(data, position + 9))
        if size < HEADER + trailer or position + size > len(data):
            return count, position, AT_FAULT
        if count and position + size - start > span:
            break
        positions[count] = position
        timestamps[count] = load32(data, position)
        types[count] = data[position + 4]
        servers[count] = load32(data, position + 5)
        sizes[count] = size
        count += 1
        position += size
        if by_description and types[count - 1] == DESCRIPTION:
            return count, position, AT_DESCRIPTION
    return count, position, AT_END


@njit(cache=True)
def crc32(data, place, end):
    """Return the CRC32 of some of the bytes of an array."""
    crc = np.uint64(0xFFFFFFFF)
    byte = np.uint64(0xFF)
    while place + 16 <= end:
        low = load64(data, place) ^ crc
        high = load64(data, place + 8)
        crc = np.uint64(0)
        for number in range(8):
            shift = np.uint64(8 * number)
            crc ^= np.uint64(TABLES[(15 - number) * 256 + np.int64(low >> shift & byte)])
            crc ^= np.uint64(TABLES[(7 - number) * 256 + np.int64(high >> shift & byte)])
        place += 16
    while place < end:
        crc = crc >> np.uint64(8) ^ np.uint64(TABLES[np.int64((crc ^ np.uint64(data[place])) & byte)])
        place += 1
    return crc ^ np.uint64(0xFFFFFFFF)


@njit(cache=True)
def first_bad_checksum(data, positions, types, sizes):
    """
    Return the number of the first event that does not match its CRC32; the count of all if every one does.

    Format_description events are passed over: what they are sealed with, they say themselves.
    """
    for number in range(len(positions)):
        end = positions[number] + np.int64(sizes[number]) - 4
        if types[number] != DESCRIPTION and crc32(data, positions[number], end) != load32(data, end):
            return number
    return len(positions)
