"""
The headers of the events of a file, and their checksums; which events say something besides rows.

The size in a header says where the next one is, so only one cache line per event is read. A checksum is computed right
after the header was read, so that the event enters the cache once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ndb_formats.columnar.kernel import kernel
from ndb_formats.columnar.kernels.words import crc32, load32
from ndb_formats.constants import EVENT_HEADER_SIZE, EventType

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


QUERY, TABLE_MAP = int(EventType.QUERY_EVENT), int(EventType.TABLE_MAP_EVENT)
INCIDENT, LOADED = int(EventType.INCIDENT_EVENT), int(EventType.EXECUTE_LOAD_QUERY_EVENT)
PACKED_QUERY = int(EventType.MARIADB_QUERY_COMPRESSED_EVENT)
PREPARED, PAYLOAD = int(EventType.XA_PREPARE_LOG_EVENT), int(EventType.TRANSACTION_PAYLOAD_EVENT)
# LOAD DATA of servers before 5.0.3: in one event, or in several; the last one carries it out.
OLD_LOAD, OLD_NEW_LOAD, OLD_EXECUTED = (
    int(kind) for kind in (EventType.LOAD_EVENT, EventType.NEW_LOAD_EVENT, EventType.EXEC_LOAD_EVENT)
)
BEGIN, COMMIT = (np.frombuffer(word, np.uint8) for word in (b"\0BEGIN", b"\0COMMIT"))  # after a database's NUL
ID_BYTES, HEADER = 6, EVENT_HEADER_SIZE
SLOTS, MOST = 4096, 2048  # of the set of table ids; when it is full, it is emptied, and known ids are found again


@kernel
def _ends_with(data, end, word):
    for place in range(len(word)):
        if data[end - len(word) + place] != word[place]:
            return False
    return True


@kernel
def definition_events(data, positions, types, sizes, trailer):
    """
    Return the numbers of events that say something besides rows. int64.

    They are Query events other than BEGIN and COMMIT, new Table_map events, incidents, LOAD DATA, what prepares an XA
    transaction, and compressed transactions.

    A Table_map event is new if no other one with its table id and size came since the last such Query event.

    Args:
        data: Bytes of the file, or of the events inside a compressed transaction. uint8.
        positions: See `EventIndex`.
        types: See there.
        sizes: See there.
        trailer: Bytes of the checksum at the end of each event.
    """
    found, count = np.empty(len(positions), np.int64), 0
    known, filled = np.zeros(SLOTS, np.uint64), 0
    for number in range(len(positions)):
        kind = types[number]
        if kind in (QUERY, PACKED_QUERY):
            end = positions[number] + np.int64(sizes[number]) - trailer
            if kind == PACKED_QUERY or not (_ends_with(data, end, BEGIN) or _ends_with(data, end, COMMIT)):
                found[count] = number
                count += 1
                known[:], filled = 0, 0
        elif kind == TABLE_MAP:
            identity = np.uint64(sizes[number] & 0xFFFF) << np.uint64(48)
            for place in range(ID_BYTES):
                byte = np.uint64(data[positions[number] + HEADER + place])
                identity |= byte << np.uint64(8 * place)
            slot = np.int64(identity & np.uint64(SLOTS - 1))
            while known[slot] != 0 and known[slot] != identity:
                slot = (slot + 1) & (SLOTS - 1)
            if known[slot] != identity:
                if filled == MOST:
                    known[:], filled = 0, 0
                    slot = np.int64(identity & np.uint64(SLOTS - 1))
                known[slot] = identity
                filled += 1
                found[count] = number
                count += 1
        elif kind in (INCIDENT, PREPARED, PAYLOAD, LOADED, OLD_LOAD, OLD_NEW_LOAD, OLD_EXECUTED):
            found[count] = number
            count += 1
    return found[:count].copy()
