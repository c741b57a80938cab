"""
A binlog as stretches of events in one array of bytes, packed ones unpacked: what the row walker walks over.

A stretch of plain events is a view of the mapped file. One with compressed events is a copy, each of them in its plain
form: a packed transaction as the events inside, at its position; a compressed rows event of MariaDB as a plain one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.binlog_reader import Event, event_at, locate, unpacked
from ndb_formats.columnar.event_index import EventIndex, index_pieces, map_bytes
from ndb_formats.constants import CHECKSUM_ALG_CRC32, CHECKSUM_ALG_OFF, EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.header import FormatDescription
from ndb_formats.events.rows_event import decode_rows_event, encode_rows_event

__all__ = ["EventChunk", "read_chunks"]

# Cells are offsets of 32 bits, the highest of which means NULL.
_MAX_SPAN = (1 << 32) - 2
_MARIADB_ROWS = {
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1: EventType.WRITE_ROWS_EVENT_V1,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1: EventType.UPDATE_ROWS_EVENT_V1,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1: EventType.DELETE_ROWS_EVENT_V1,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT: EventType.WRITE_ROWS_EVENT,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT: EventType.UPDATE_ROWS_EVENT,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT: EventType.DELETE_ROWS_EVENT,
}
_PACKED = np.array(sorted([EventType.TRANSACTION_PAYLOAD_EVENT, *_MARIADB_ROWS]), np.uint8)


@attrs.frozen(eq=False)
class EventChunk:
    """
    Events of one file, in order. All arrays but `data` have shape (events,).

    Attributes:
        file: Path of the file.
        data: What the events stand in. Shape (bytes,), uint8.
        types: Type codes. uint8.
        starts: Where each body starts in `data`. int64.
        ends: Where it ends, without checksum. int64.
        positions: Where each event, or the packed one around it, starts in the file. int64.
        stops: Where that one ends. int64.
        server_ids: Server on which each change was first made. uint32.
        timestamps: Seconds since 1970. uint32.
        trailer: Bytes of the checksum behind each event of the file.
        error: Why nothing can be read behind the last event; None if something can, or at a proper end.
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

    @property
    def base(self) -> int:
        """Where its first event starts in `data`."""
        return int(self.starts[0]) if len(self.starts) else 0

    def body(self, number: int) -> bytes:
        """Return the body of an event."""
        return self.data[self.starts[number] : self.ends[number]].tobytes()

    def event(self, number: int) -> Event:
        """Return the event of the file, packed if it is, as the scalar reader gives it."""
        return _event_at(self.file, int(self.positions[number]), self.trailer)


def read_chunks(
    path: str | Path, *, start: int, stop: int | None, verify: bool, events: int, span: int
) -> Iterator[EventChunk]:
    """
    Yield the stretches of a file; the last one has its error.

    Args:
        path: The binlog file.
        start: Position of an event.
        stop: Position to stop before; None for the end of the file.
        verify: Whether to check checksums.
        events: Most events of a stretch.
        span: Most bytes of a stretch of more than one event, before what is packed is unpacked.

    Raises:
        FormatError: The file cannot be read at all.
    """
    data = map_bytes(path)
    for piece in index_pieces(path, start=start, stop=stop, verify=verify, events=events, span=min(span, _MAX_SPAN)):
        if np.isin(piece.types, _PACKED).any():
            yield from _plain_chunks(piece, span)
            continue
        starts, ends = piece.bodies
        facts = (piece.positions, ends + piece.trailer, piece.server_ids, piece.timestamps)
        yield EventChunk(piece.file, data, piece.types, starts, ends, *facts, piece.trailer, piece.error)


@attrs.define
class _Copies:
    """Plain events while they are collected."""

    file: str
    trailer: int
    bodies: list[bytes] = attrs.field(factory=list)
    facts: list[tuple[int, int, int, int, int]] = attrs.field(factory=list)
    size: int = 0

    def add(self, event: Event, stop: int) -> None:
        """Add a plain event; the one that it was packed in ends at `stop`."""
        self.bodies.append(event.body)
        header = event.header
        self.facts.append((event.position, stop, header.type_code, header.server_id, header.timestamp))
        self.size += len(event.body)

    def stretch(self, error: FormatError | None) -> EventChunk:
        """Return what was collected."""
        ends = np.cumsum([len(body) for body in self.bodies], dtype=np.int64)
        starts = ends - np.array([len(body) for body in self.bodies], np.int64)
        positions, stops, types, servers, timestamps = np.array(self.facts, np.int64).reshape(-1, 5).T
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
        )


def _plain_chunks(piece: EventIndex, span: int) -> Iterator[EventChunk]:
    """Yield the stretches of a piece that holds packed events."""
    copies = _Copies(piece.file, piece.trailer)
    for position in piece.positions.tolist():
        event = _event_at(piece.file, position, piece.trailer)
        try:
            with locate(event):
                for inner in unpacked(event):
                    copies.add(_plain(inner), event.end)
        except FormatError as error:
            yield copies.stretch(error)
            return
        if copies.size >= span:
            yield copies.stretch(None)
            copies = _Copies(piece.file, piece.trailer)
    yield copies.stretch(piece.error)


def _plain(event: Event) -> Event:
    kind = event.type
    if kind not in _MARIADB_ROWS:
        return event
    assert kind is not None
    plain = _MARIADB_ROWS[kind]
    rows = attrs.evolve(decode_rows_event(kind, event.body), type=plain, compressed=None)
    return attrs.evolve(event, header=attrs.evolve(event.header, type_code=plain), body=encode_rows_event(rows))


def _event_at(file: str, position: int, trailer: int) -> Event:
    checksum = CHECKSUM_ALG_CRC32 if trailer else CHECKSUM_ALG_OFF
    return event_at(file, position, FormatDescription("", checksum, b""), verify=False)
