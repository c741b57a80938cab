"""
The headers of the events of a file, and their checksums.

The size in a header says where the next one is, so only one cache line per event is read. A checksum is computed right
after the header was read, so that the event comes to the cache once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ndb_formats.columnar.kernel import kernel
from ndb_formats.columnar.kernels.checksums import crc32
from ndb_formats.columnar.kernels.words import load32
from ndb_formats.constants import EVENT_HEADER_SIZE, EventType

__all__ = ["AT_DESCRIPTION", "AT_END", "AT_FAULT", "Headers", "walk_headers"]

AT_END, AT_DESCRIPTION, AT_FAULT = range(3)
HEADER = EVENT_HEADER_SIZE
DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
FIRST_V1, LAST_V1 = int(EventType.WRITE_ROWS_EVENT_V1), int(EventType.DELETE_ROWS_EVENT_V1)
FIRST_V2, LAST_V2 = int(EventType.WRITE_ROWS_EVENT), int(EventType.DELETE_ROWS_EVENT)


class Headers(NamedTuple):
    """
    Which headers are wanted.

    Attributes:
        rows: Whether those of rows events are.
        by_description: Whether to stop after a Format_description event, which may change the size of checksums.
        verify: Whether to check checksums; events have one of four bytes then. Format_description events are not
            checked: they say themselves whether they have one.
    """

    rows: bool
    by_description: bool
    verify: bool


@kernel
def walk_headers(data, position, stop, trailer, span, wanted, arrays):
    """
    Read headers from `position` on, and stop at an event whose size or checksum is wrong.

    Args:
        data: The file. Shape (bytes,), uint8.
        position: Position of an event.
        stop: Position to stop before.
        trailer: Bytes of the checksum; no event may be shorter than a header and this.
        span: Most bytes of all events together, unless the first alone has more.
        wanted: `Headers`.
        arrays: The positions, types, sizes, servers and timestamps of wanted events; filled in. Each of shape
            (events,); reading stops when they are full.

    Returns:
        Number of wanted events, position of the next event, and why reading stopped: `AT_END`, `AT_DESCRIPTION`,
        `AT_FAULT`.
    """
    positions, types, sizes, servers, timestamps = arrays
    count = 0
    start = position
    end = min(stop, len(data))
    while position < end and count < len(positions):
        if position + HEADER > len(data):
            return count, position, AT_FAULT
        size = np.int64(load32(data, position + 9))
        if size < HEADER + trailer or position + size > len(data):
            return count, position, AT_FAULT
        if position > start and position + size - start > span:
            break
        code = data[position + 4]
        last = position + size - 4
        if wanted.verify and code != DESCRIPTION and crc32(data, position, last) != load32(data, last):
            return count, position, AT_FAULT
        if wanted.rows or not (FIRST_V1 <= code <= LAST_V1 or FIRST_V2 <= code <= LAST_V2):
            positions[count] = position
            timestamps[count] = load32(data, position)
            types[count] = code
            servers[count] = load32(data, position + 5)
            sizes[count] = size
            count += 1
        position += size
        if wanted.by_description and code == DESCRIPTION:
            return count, position, AT_DESCRIPTION
    return count, position, AT_END
