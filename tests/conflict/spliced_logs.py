"""Recorded binlogs with more events in them, or with some of their epochs alone."""

import io
from collections.abc import Collection, Sequence
from pathlib import Path

from conflict.history.ingestion.logged_epochs import scan_epochs
from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.header import EventHeader, decode_format_description
from ndb_formats.events.query_event import decode_query
from ndb_formats.writing.event_stream import EventStream
from tests.conflict.raw_events import Raw


def spliced(binlog: Path, raws: Sequence[Raw], *, after: int) -> bytes:
    """Return a binlog with events put behind its transaction number `after`; 0 puts them before all others."""
    out, committed, done = io.BytesIO(), 0, False
    stream = EventStream(out)
    for event in read_events(binlog):
        if event.type is EventType.FORMAT_DESCRIPTION_EVENT:
            stream.start(event.header, decode_format_description(event.body))
            continue
        starts = event.type in (EventType.ANONYMOUS_GTID_LOG_EVENT, EventType.GTID_LOG_EVENT)
        if starts and not done and committed == after:
            for code, server, body in raws:
                stream.put(EventHeader(event.header.timestamp, code, server, 0, 0, 0), body)
            done = True
        stream.put(event.header, event.body)
        if event.type is EventType.QUERY_EVENT:
            committed += decode_query(event.body).statement == "COMMIT"
    assert done
    return out.getvalue()


def run_with(folder: Path, demo: Path, raws: Sequence[Raw], *, after: int, schema: str = "") -> Path:
    """Return a run file of the demo recording whose cluster A has more events, with more definitions."""
    for file in demo.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "A.binlog.000001").write_bytes(spliced(demo / "A.binlog.000001", raws, after=after))
    with (folder / "schema.sql").open("a") as text:
        text.write(schema)
    return folder / "run.toml"


def part_of(binlog: Path, epochs: Collection[int], server_id: int, file: Path) -> Path:
    """Write the head of a binlog and some of its epochs, numbered from 0, to a file."""
    logged, data = scan_epochs(server_id, [binlog]), binlog.read_bytes()
    head = next(event.end for event in read_events(binlog))
    kept = [data[int(logged.start[each]) : int(logged.stop[each])] for each in sorted(epochs)]
    file.write_bytes(b"".join([data[:head], *kept]))
    return file
