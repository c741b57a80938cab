"""
The headers of the events of a file, and their checksums.

The size in a header says where the next one is, so only one cache line per event is read.
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
    Read headers from `position` on, and stop at an event whose size is wrong.

    Args:
        data: The file. Shape (bytes,), uint8.
        position: Position of an event.
        stop: Position to stop before.
        trailer: Bytes of the checksum; no event may be shorter than a header and this.
        by_description: Whether to stop after a Format_description event, which may change `trailer`.
        span: Most bytes of all events together, unless the first alone has more.
        positions: Filled in. Shape (events,), like the arrays after it; reading stops when they are full.
        types: Filled in.
        sizes: Filled in.
        servers: Filled in.
        timestamps: Filled in.

    Returns:
        Number of events, position of the next one, and why reading stopped: `AT_END`, `AT_DESCRIPTION`, `AT_FAULT`.
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
    Return the index of the first event that does not match its CRC32, or the number of events if there is none.

    Format_description events are skipped: they say themselves whether they have a checksum.
    """
    for number in range(len(positions)):
        end = positions[number] + np.int64(sizes[number]) - 4
        if types[number] != DESCRIPTION and crc32(data, positions[number], end) != load32(data, end):
            return number
    return len(positions)
