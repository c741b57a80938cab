"""
Finds the events of a log that say something besides rows: statements, new Table_map events, and incidents.
"""

from __future__ import annotations

import numpy as np

from ndb_formats.columnar.kernel import kernel
from ndb_formats.constants import EVENT_HEADER_SIZE, EventType

__all__ = ["definition_events"]

QUERY, TABLE_MAP = int(EventType.QUERY_EVENT), int(EventType.TABLE_MAP_EVENT)
INCIDENT, LOADED = int(EventType.INCIDENT_EVENT), int(EventType.EXECUTE_LOAD_QUERY_EVENT)
PACKED_QUERY = int(EventType.MARIADB_QUERY_COMPRESSED_EVENT)
PREPARED, PAYLOAD = int(EventType.XA_PREPARE_LOG_EVENT), int(EventType.TRANSACTION_PAYLOAD_EVENT)
# LOAD DATA of servers before 5.0.3: in one event, or in several of which the last one carries it out.
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
