"""Logs of plain transactions written again with ``binlog_transaction_compression``, as MySQL lays them out."""

from pathlib import Path

import attrs

from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.header import EVENT_HEADER_SIZE, decode_format_description
from ndb_formats.events.query_event import decode_query
from ndb_formats.writing.event_stream import EventStream, TransactionBuffer

# Of each event of the plain log by its position: position in the new log, and position inside the payload there.
Places = dict[int, tuple[int, int]]


def compress_log(plain: Path, packed: Path) -> Places:
    """Write a log again with every transaction, from BEGIN to COMMIT or ROLLBACK, as one Transaction_payload event."""
    places: Places = {}
    buffer: TransactionBuffer | None = None
    with packed.open("wb") as out:
        stream = EventStream(out)
        for event in read_events(plain):
            if event.type is EventType.FORMAT_DESCRIPTION_EVENT:
                stream.start(event.header, decode_format_description(event.body))
                continue
            statement = decode_query(event.body).statement if event.type is EventType.QUERY_EVENT else ""
            if statement == "BEGIN":
                buffer = TransactionBuffer()
            if buffer is None:
                stream.put(event.header, event.body)
                continue
            places[event.position] = stream.position, buffer.size
            size = EVENT_HEADER_SIZE + len(event.body)
            buffer.add(attrs.evolve(event.header, size=size), event.body)
            if statement in ("COMMIT", "ROLLBACK") or event.type is EventType.XID_EVENT:
                buffer.compress(event.header)
                buffer.write_to(stream)
                buffer = None
    return places
