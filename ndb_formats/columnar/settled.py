"""
Where no transaction is open in a binlog, so that it can be read up to there, and from there on, while it grows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from ndb_formats.binlog_reader import FIRST_POSITION, event_at, first_event
from ndb_formats.columnar.event_index import EventIndex, recent_index
from ndb_formats.constants import TRANSACTION_STARTS, EventType
from ndb_formats.events.header import decode_format_description
from ndb_formats.events.query_event import decode_query, query_body_of

# What ends a transaction, is one, or belongs to none.
_ENDS = (
    EventType.XID_EVENT,
    EventType.XA_PREPARE_LOG_EVENT,
    EventType.TRANSACTION_PAYLOAD_EVENT,
    EventType.FORMAT_DESCRIPTION_EVENT,
    EventType.PREVIOUS_GTIDS_LOG_EVENT,
    EventType.MARIADB_GTID_LIST_EVENT,
    EventType.MARIADB_BINLOG_CHECKPOINT_EVENT,
    EventType.ROTATE_EVENT,
    EventType.STOP_EVENT,
)
_QUERIES = (EventType.QUERY_EVENT, EventType.MARIADB_QUERY_COMPRESSED_EVENT)
_BEGINS = ("BEGIN", "XA START")
_INSIDE = ("XA END", "SAVEPOINT", "ROLLBACK TO")
_ENDING = ("COMMIT", "ROLLBACK", "XA COMMIT", "XA ROLLBACK")
_FLAGS_OF_GTID, _STANDALONE = 12, 1  # of MariaDB, whose transactions have no BEGIN; a statement alone has the flag


def settled_positions(path: str | Path) -> npt.NDArray[np.int64]:
    """
    Return positions of a file before which every transaction has ended, in order. Shape (positions,).

    The last one is where the last whole transaction ends, or what follows it and belongs to none; that of the file's
    first event is the first one.

    Raises:
        FormatError: The file cannot be read at all. What comes after an event that cannot be read is not looked at.
    """
    index = recent_index(path)
    starts, ends = np.isin(index.types, TRANSACTION_STARTS), np.isin(index.types, _ENDS)
    found = [index.positions[starts], (index.positions + index.sizes)[ends], _ended_by_statements(index, starts, ends)]
    positions: npt.NDArray[np.int64] = np.unique(np.concatenate([*found, [FIRST_POSITION]]))
    return positions


def _ended_by_statements(
    index: EventIndex, starts: npt.NDArray[np.bool_], ends: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return where statements end transactions, or are one, after the last event that starts one."""
    first = first_event(index.file, verify=False)
    if first is None:
        return np.zeros(0, np.int64)
    description, found, inside = decode_format_description(first.body), list[int](), False
    begun = np.flatnonzero(starts)[-1] if starts.any() else 0
    for number in (np.flatnonzero((starts | ends | np.isin(index.types, _QUERIES))[begun:]) + begun).tolist():
        if ends[number]:
            inside = False
            continue
        event = event_at(index.file, int(index.positions[number]), description, verify=False)
        if starts[number]:
            inside = event.type is EventType.MARIADB_GTID_EVENT and not event.body[_FLAGS_OF_GTID] & _STANDALONE
            continue
        body = query_body_of(event.type, event.body)
        text = "" if body is None else decode_query(body, event.server).statement.upper()
        if text.startswith(_BEGINS):
            inside = True
        elif not text.startswith(_INSIDE) and (not inside or text.startswith(_ENDING)):
            found.append(event.end)
            inside = False
    return np.array(found, np.int64)
