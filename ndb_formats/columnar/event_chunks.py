"""
A binlog as chunks of uncompressed events.

A chunk without compressed events is a view of the mapped file. Any other one is a copy in which a compressed
transaction is replaced by the events inside, at its position, and a compressed rows event of MariaDB by a plain one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.binlog_reader import Event, event_at, first_event, locate, unpacked
from ndb_formats.columnar.event_index import EventIndex, index_parts, map_bytes, recent_index, telling_events
from ndb_formats.constants import CHECKSUM_ALG_CRC32, CHECKSUM_ALG_OFF, EVENT_HEADER_SIZE, EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.header import FormatDescription, decode_format_description
from ndb_formats.events.rows_event import decode_rows_event, encode_rows_event
from ndb_formats.types.mariadb_compression import uncompressed_query

# Cells are 32-bit offsets, and the highest of them means NULL.
_MAX_SPAN = (1 << 32) - 2
_NEXT_POSITION_AT = 13  # in the header of an event
_MARIADB_ROWS = {
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1: EventType.WRITE_ROWS_EVENT_V1,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1: EventType.UPDATE_ROWS_EVENT_V1,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1: EventType.DELETE_ROWS_EVENT_V1,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT: EventType.WRITE_ROWS_EVENT,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT: EventType.UPDATE_ROWS_EVENT,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT: EventType.DELETE_ROWS_EVENT,
}
_MARIADB_QUERY = EventType.MARIADB_QUERY_COMPRESSED_EVENT
COMPRESSED = np.array(sorted([EventType.TRANSACTION_PAYLOAD_EVENT, _MARIADB_QUERY, *_MARIADB_ROWS]), np.uint8)


@attrs.frozen(eq=False)
class EventChunk:
    """
    Events of one file, in order. All arrays but `data` have shape (events,).

    Attributes:
        file: Path of the file.
        data: The bytes of the events. Shape (bytes,), uint8.
        types: Type codes. uint8.
        starts: Start of each body in `data`. int64.
        ends: End of each body in `data`, without checksum. int64.
        positions: Position in the file of each event, or of the compressed transaction around it. int64.
        stops: Position after that event or transaction. int64.
        server_ids: Server on which each change was first made. uint32.
        timestamps: Seconds since 1970. uint32.
        trailer: Bytes of the checksum at the end of each event of the file.
        error: Why the event after the last one cannot be read; None if the chunk ends for another reason.
        server: Version text of the server that wrote the events.
    """

    file: str
    data: npt.NDArray[np.uint8] = attrs.field(repr=False)
    types: npt.NDArray[np.uint8] = attrs.field(repr=False)
    starts: npt.NDArray[np.int64] = attrs.field(repr=False)
    ends: npt.NDArray[np.int64] = attrs.field(repr=False)
    positions: npt.NDArray[np.int64] = attrs.field(repr=False)
    stops: npt.NDArray[np.int64] = attrs.field(repr=False)
    server_ids: npt.NDArray[np.uint32] = attrs.field(repr=False)
    timestamps: npt.NDArray[np.uint32] = attrs.field(repr=False)
    trailer: int
    error: FormatError | None = None
    server: str = ""
    _next_positions: npt.NDArray[np.uint32] | None = attrs.field(default=None, repr=False)
    _payload_positions: npt.NDArray[np.int64] | None = attrs.field(default=None, repr=False)

    @property
    def next_positions(self) -> npt.NDArray[np.uint32]:
        """Position after each event in the file that it was first written to. Shape (events,), uint32."""
        if self._next_positions is not None:
            return self._next_positions
        at = self.starts - EVENT_HEADER_SIZE + _NEXT_POSITION_AT
        found: npt.NDArray[np.uint32] = self.data[at[:, None] + np.arange(4)].view("<u4").ravel()
        return found

    @property
    def payload_positions(self) -> npt.NDArray[np.int64]:
        """Where each event starts inside its compressed transaction; 0 outside of one. Shape (events,), int64."""
        return np.zeros(len(self.types), np.int64) if self._payload_positions is None else self._payload_positions

    @property
    def base(self) -> int:
        """Start of its first body in `data`."""
        return int(self.starts[0]) if len(self.starts) else 0

    def body(self, number: int) -> bytes:
        """Return the body of an event."""
        return self.data[self.starts[number] : self.ends[number]].tobytes()

    def event(self, number: int) -> Event:
        """Return the event of the file, still compressed, as the scalar reader gives it."""
        return stored_event(self.file, int(self.positions[number]), self.trailer)


def with_server_bits(chunk: EventChunk, bits: int) -> EventChunk:
    """Return a chunk whose server ids are their lowest `bits` bits alone: the others are the application's."""
    if bits >= 32:
        return chunk
    return attrs.evolve(chunk, server_ids=chunk.server_ids & np.uint32((1 << bits) - 1))


def read_chunks(
    path: str | Path, *, start: int, stop: int | None, verify: bool, events: int, span: int
) -> Iterator[EventChunk]:
    """
    Yield the chunks of a file; the last one has its error.

    Args:
        path: The binlog file.
        start: Position of an event.
        stop: Position to stop before; None for the end of the file.
        verify: Whether to check checksums.
        events: Most events of a chunk.
        span: Most bytes of a chunk before decompression, unless it is a single event.

    Raises:
        FormatError: The file cannot be read at all.
    """
    data = map_bytes(path)
    for index in index_parts(path, start=start, stop=stop, verify=verify, events=events, span=min(span, _MAX_SPAN)):
        if np.isin(index.types, COMPRESSED).any():
            yield from _plain_chunks(index, span)
        else:
            yield _chunk_of(index, data)


def plain_chunk(
    path: str | Path, start: int, stop: int | None, *, rows: bool = False, telling: bool = False
) -> EventChunk | None:
    """
    Return the events between two positions, from `recent_index`; None if they are not all plain.

    Args:
        path: The binlog file.
        start: Position of an event.
        stop: Position to stop before; None for the end of the file.
        rows: Whether rows events that follow another event are among them; those that follow a rows event never are.
        telling: Whether only those that say something besides rows are among them; see `telling_events`.

    Raises:
        FormatError: The file cannot be read at all.
    """
    whole, first, data = recent_index(path), first_event(path, verify=False), map_bytes(path)
    bounds = slice(*np.searchsorted(whole.positions, [start, whole.end if stop is None else stop]))
    described = np.count_nonzero(whole.types == EventType.FORMAT_DESCRIPTION_EVENT)
    if first is None or described > 1 or np.isin(whole.types[bounds], COMPRESSED).any():
        return None
    description = decode_format_description(first.body)
    chosen: slice | npt.NDArray[np.int64] = bounds
    if telling:
        found = telling_events(whole, data, description.checksum_size)
        chosen = found[slice(*np.searchsorted(found, [bounds.start, bounds.stop]))]
    columns = (whole.positions, whole.types, whole.sizes, whole.server_ids, whole.timestamps)
    events: list[npt.NDArray[Any]] = [column[chosen] for column in columns]
    if rows:
        heads = _first_rows(whole, data, bounds)
        order = np.argsort(np.concatenate([events[0], heads[0]]), kind="stable")
        events = [np.concatenate(pair)[order] for pair in zip(events, heads, strict=True)]
    positions, types, sizes, server_ids, timestamps = events
    trailer, server = description.checksum_size, description.server_version
    facts = (positions, types, sizes, server_ids, timestamps)
    return _chunk_of(EventIndex(whole.file, *facts, whole.end, trailer, whole.error, server), data)


def _first_rows(index: EventIndex, data: npt.NDArray[np.uint8], bounds: slice) -> list[npt.NDArray[Any]]:
    """Return the columns of an index for the rows events that directly follow some of its events."""
    ends = index.positions + index.sizes
    places = ends[bounds][(ends < np.append(index.positions[1:], index.end))[bounds]]
    heads = data[places[:, None] + np.arange(EVENT_HEADER_SIZE)]
    timestamps, server_ids, sizes = (
        np.ascontiguousarray(heads[:, at : at + 4]).view("<u4").ravel() for at in (0, 5, 9)
    )
    return [places, heads[:, 4], sizes, server_ids, timestamps]


def _chunk_of(index: EventIndex, data: npt.NDArray[np.uint8]) -> EventChunk:
    """Return the events of an index, which are all plain."""
    starts, ends = index.bodies
    facts = (index.positions, ends + index.trailer, index.server_ids, index.timestamps)
    return EventChunk(index.file, data, index.types, starts, ends, *facts, index.trailer, index.error, index.server)


@attrs.define
class _Copies:
    """Collects plain events."""

    file: str
    trailer: int
    server: str
    bodies: list[bytes] = attrs.field(factory=list)
    facts: list[tuple[int, int, int, int, int, int, int]] = attrs.field(factory=list)
    size: int = 0

    def add(self, event: Event, stop: int) -> None:
        """Add a plain event; it, or the compressed one around it, ends at `stop`."""
        self.bodies.append(event.body)
        header = event.header
        facts = (header.type_code, header.server_id, header.timestamp, header.next_position, event.payload_position)
        self.facts.append((event.position, stop, *facts))
        self.size += len(event.body)

    def chunk(self, error: FormatError | None) -> EventChunk:
        """Return the events as a chunk."""
        ends = np.cumsum([len(body) for body in self.bodies], dtype=np.int64)
        starts = ends - np.array([len(body) for body in self.bodies], np.int64)
        positions, stops, types, servers, timestamps, nexts, insides = np.array(self.facts, np.int64).reshape(-1, 7).T
        return EventChunk(
            self.file,
            np.frombuffer(b"".join(self.bodies), np.uint8),
            types.astype(np.uint8),
            starts,
            ends,
            positions.copy(),
            stops.copy(),
            servers.astype(np.uint32),
            timestamps.astype(np.uint32),
            self.trailer,
            error,
            self.server,
            nexts.astype(np.uint32),
            insides.copy(),
        )


def _plain_chunks(index: EventIndex, span: int) -> Iterator[EventChunk]:
    """Yield chunks of events; some events are compressed."""
    copies = _Copies(index.file, index.trailer, index.server)
    for position in index.positions.tolist():
        event = stored_event(index.file, position, index.trailer)
        try:
            with locate(event):
                for inner in unpacked(event):
                    copies.add(_plain(inner), event.end)
        except FormatError as error:
            yield copies.chunk(error)
            return
        if copies.size >= span:
            yield copies.chunk(None)
            copies = _Copies(index.file, index.trailer, index.server)
    yield copies.chunk(index.error)


def _plain(event: Event) -> Event:
    kind = event.type
    if kind is _MARIADB_QUERY:
        plain, body = EventType.QUERY_EVENT, uncompressed_query(event.body)
    elif kind in _MARIADB_ROWS:
        plain = _MARIADB_ROWS[kind]
        body = encode_rows_event(attrs.evolve(decode_rows_event(kind, event.body), type=plain, compressed=None))
    else:
        return event
    return attrs.evolve(event, header=attrs.evolve(event.header, type_code=plain), body=body)


def stored_event(file: str, position: int, trailer: int) -> Event:
    """Return an event of a file, still compressed, whose checksums have so many bytes."""
    checksum = CHECKSUM_ALG_CRC32 if trailer else CHECKSUM_ALG_OFF
    return event_at(file, position, FormatDescription("", checksum, b""), verify=False)
