"""
The headers of events, one after the other, and their checksums.

A file is walked by the sizes in its headers, so only one cache line per event is touched.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ndb_formats.columnar.kernels.checksums import crc32
from ndb_formats.columnar.kernels.words import load32
from ndb_formats.constants import EVENT_HEADER_SIZE, EventType

__all__ = ["AT_DESCRIPTION", "AT_END", "AT_FAULT", "first_bad_checksum", "walk_headers"]

AT_END, AT_DESCRIPTION, AT_FAULT = range(3)
HEADER = EVENT_HEADER_SIZE
DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
