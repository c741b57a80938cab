"""
A recorded binlog with its statements edited, for tests of what follows them.
"""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import attrs

from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.query_event import decode_query, encode_query

HEADER = struct.Struct("<IBIIIH")


def rewritten(path: Path, edit: Callable[[str], str | None]) -> bytes:
    """
    Return a binlog with checksums whose statements are edited; those that begin or end a transaction stay.

    Args:
        path: The recording.
        edit: From the text of a statement to the new one, or None to leave the event out.
    """
    data, out = path.read_bytes(), bytearray(b"\xfebin")
    for event in read_events(path):
        whole = data[event.position : event.end]
        if event.type is EventType.QUERY_EVENT:
            query = decode_query(event.body)
            if query.statement not in ("BEGIN", "COMMIT"):
                text = edit(query.statement)
                if text is None:
                    continue
                whole = whole[:19] + encode_query(attrs.evolve(query, statement=text)) + bytes(4)
        timestamp, kind, server_id, _, _, flags = HEADER.unpack(whole[:19])
        header = HEADER.pack(timestamp, kind, server_id, len(whole), len(out) + len(whole), flags)
        body = header + whole[19:-4]
        out += body + zlib.crc32(body).to_bytes(4, "little")
    return bytes(out)
