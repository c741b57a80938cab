"""
An index of the events of a binlog, made from their headers alone.

It agrees with `binlog_reader.read_headers` and `read_events`, but has arrays in place of an object per event. An event
that cannot be read ends the index, with the error that the scalar reader raises.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.binlog_reader import (
    ENCRYPTED_FROM_HERE,
    FIRST_POSITION,
    Event,
    check_magic,
    event_at,
    first_event,
    map_file,
    unpacked,
)
from ndb_formats.columnar.kernel_mode import expect_files
from ndb_formats.columnar.kernels.headers import (
    AT_DESCRIPTION,
    AT_END,
    AT_FAULT,
    Headers,
    definition_events,
    walk_headers,
)
from ndb_formats.constants import EVENT_HEADER_SIZE, EventType
from ndb_formats.errors import CorruptError, FormatError, UnsupportedError
from ndb_formats.events.header import FormatDescription, decode_format_description
from ndb_formats.events.transaction_payload import decode_transaction_payload
from ndb_formats.stored import path_of

_CHANGED = "the file was changed while it was read; read it again, or a copy of it"
_FIRST_GUESS, _FIRST_GUESS_INSIDE = 1 << 16, 1 << 8
_EVERYTHING = 1 << 62
_LANDMARKS = Headers(rows=False, by_description=False, verify=False)


@attrs.frozen(eq=False)
class EventIndex:
    """
    The events of a file, or of a part of it, in order. All arrays have shape (events,).

    Attributes:
        file: Path of the file.
        positions: Position of each event. int64.
        types: Type codes. uint8.
        sizes: Bytes of each event, header and checksum included. uint32.
        server_ids: Server on which each change was first made. uint32.
        timestamps: Seconds since 1970. uint32.
        end: Position after the last event of the file or part, whether the index holds it or not; 4 if there is none.
        trailer: Bytes of the checksum at the end of each event but Format_description; 0 from `index_events`.
        error: Why the event after the last one cannot be read; None if the index ends for another reason.
        server: Version text of the server that wrote the events; empty from `index_events`.
    """

    file: str
    positions: npt.NDArray[np.int64] = attrs.field(repr=False)
    types: npt.NDArray[np.uint8] = attrs.field(repr=False)
    sizes: npt.NDArray[np.uint32] = attrs.field(repr=False)
    server_ids: npt.NDArray[np.uint32] = attrs.field(repr=False)
    timestamps: npt.NDArray[np.uint32] = attrs.field(repr=False)
    end: int = FIRST_POSITION
    trailer: int = 0
    error: FormatError | None = None
    server: str = ""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def bodies(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Start and end of the body of each event, without the checksum."""
        ends = self.positions + self.sizes.astype(np.int64) - self.trailer
        return self.positions + EVENT_HEADER_SIZE, ends


_telling: WeakKeyDictionary[EventIndex, npt.NDArray[np.int64]] = WeakKeyDictionary()


def telling_events(index: EventIndex, data: npt.NDArray[np.uint8], trailer: int) -> npt.NDArray[np.int64]:
    """
    Return which events of a file say something besides rows; kept, since one that is read is asked several times.

    Args:
        index: The events.
        data: See `definition_events`.
        trailer: See there.
    """
    found = _telling.get(index)
    if found is None:
        found = _telling[index] = definition_events(data, index.positions, index.types, index.sizes, trailer)
    return found


def changed_file(event: Event) -> FormatError:
    """Return the error for an event that could not be read, and now can."""
    return CorruptError(_CHANGED, file=event.file, position=event.position, event=event.header.type_name)


def map_bytes(path: str | Path) -> npt.NDArray[np.uint8]:
    """Return the bytes of a file, memory-mapped. Shape (bytes,), read-only."""
    expect_files([path])
    return np.frombuffer(map_file(path), np.uint8)


def index_events(path: str | Path) -> EventIndex:
    """
    Return the events of a whole file but rows events, as `read_headers` gives them; 21 bytes of memory for each.

    Raises:
        FormatError: Not a binlog that can be read. A later error is the index's `error`.
    """
    name, data = str(path), map_bytes(path)
    check_magic(data[:FIRST_POSITION].tobytes(), name)
    whole, position, reason = _landmarks(data, FIRST_POSITION, _FIRST_GUESS)
    error = _reason(name, position, None, len(data), verify=False) if reason == AT_FAULT else None
    return _index(name, *_plain(name, whole, position, error), trailer=0)


def index_payload(event: Event) -> tuple[EventIndex, npt.NDArray[np.uint8]]:
    """
    Return the events but rows events inside a compressed transaction, by their places in its bytes, and these bytes.

    Raises:
        FormatError: They cannot be read.
    """
    data = np.frombuffer(decode_transaction_payload(event.body).uncompressed(), np.uint8)
    whole, end, reason = _landmarks(data, 0, _FIRST_GUESS_INSIDE)
    if reason == AT_FAULT:
        for _ in unpacked(event):  # which raises the error
            pass
    return _index(event.file, whole, end, None, trailer=0), data


def _landmarks(data: npt.NDArray[np.uint8], position: int, limit: int) -> tuple[list[npt.NDArray[Any]], int, int]:
    """Return the arrays of all events but rows events, where they end and why; `limit` is a guess at their number."""
    parts, reason = [_empty(0)], AT_END
    while position < len(data) and reason != AT_FAULT:
        arrays, position, reason = _walk(data, position, (_EVERYTHING, 0, _EVERYTHING), limit, _LANDMARKS)
        parts.append(arrays)
        limit *= 2
    return [np.concatenate(each) for each in zip(*parts, strict=True)], position, reason


# Indexes of whole files that are asked for again soon, by path, size and time; at most so many events in all.
_recent: dict[tuple[str, int, int], EventIndex] = {}
_keeping = threading.Lock()
_MOST_RECENT = 1 << 22


def recent_index(path: str | Path) -> EventIndex:
    """Return `index_events`, which reads the file again only if it has changed, or many others were read since."""
    facts = path_of(path).stat()
    key = str(path), facts.st_size, facts.st_mtime_ns
    known = _recent.get(key)
    if known is not None:
        return known
    index = index_events(path)
    with _keeping:  # threads read files side by side
        while _recent and sum(map(len, _recent.values())) + len(index) > _MOST_RECENT:
            _recent.pop(next(iter(_recent)))
        if len(index) <= _MOST_RECENT:
            _recent[key] = index
    return index


def index_parts(
    path: str | Path,
    *,
    start: int = FIRST_POSITION,
    stop: int | None = None,
    verify: bool = True,
    events: int = 1 << 18,
    span: int = 1 << 26,
) -> Iterator[EventIndex]:
    """
    Yield the events that `read_events` yields, in parts of bounded size; the last part has its error.

    Args:
        path: The binlog file.
        start: Position of an event.
        stop: Position to stop before; None for the end of the file.
        verify: Whether to check checksums.
        events: Most events of a part.
        span: Most bytes of a part, unless it is a single event.

    Raises:
        FormatError: The file cannot be read at all.
    """
    name, data = str(path), map_bytes(path)
    first = first_event(path, verify=verify)
    if first is None:
        return
    description = decode_format_description(first.body)
    end = _EVERYTHING if stop is None else stop
    position = FIRST_POSITION if start <= FIRST_POSITION else max(start, first.end)
    while position < min(len(data), end):
        trailer, server = description.checksum_size, description.server_version
        # The first event has been read, and says itself whether it has a checksum.
        least = 0 if position == FIRST_POSITION else trailer
        wanted = Headers(rows=True, by_description=True, verify=verify and trailer > 0)
        arrays, position, reason = _walk(data, position, (end, least, span), events, wanted)
        error: FormatError | None = None
        if reason == AT_FAULT:
            error = _reason(name, position, description, len(data), verify=verify)
        if reason == AT_DESCRIPTION and arrays[0][-1] != FIRST_POSITION:
            # A relay log has its source's Format_description event after its own.
            try:
                event = event_at(name, int(arrays[0][-1]), description, verify=verify)
                description = decode_format_description(event.body)
            except FormatError as fault:
                error = fault
                arrays, position = [array[:-1] for array in arrays], int(arrays[0][-1])
        arrays, position, error = _plain(name, arrays, position, error)
        yield attrs.evolve(_index(name, arrays, position, error, trailer=trailer), server=server)
        if error is not None:
            return


def _plain(
    name: str, arrays: list[npt.NDArray[Any]], end: int, error: FormatError | None
) -> tuple[list[npt.NDArray[Any]], int, FormatError | None]:
    """Return what comes before encrypted events, and that these are why it ends."""
    found = np.flatnonzero(arrays[1] == EventType.MARIADB_START_ENCRYPTION_EVENT)
    if not len(found):
        return arrays, end, error
    position, kind = int(arrays[0][found[0]]), EventType.MARIADB_START_ENCRYPTION_EVENT.name
    return (
        [array[: found[0]] for array in arrays],
        position,
        UnsupportedError(ENCRYPTED_FROM_HERE, file=name, position=position, event=kind),
    )


def _index(
    name: str, arrays: list[npt.NDArray[Any]], end: int, error: FormatError | None, *, trailer: int
) -> EventIndex:
    positions, types, sizes, server_ids, timestamps = arrays
    return EventIndex(name, positions, types, sizes, server_ids, timestamps, end, trailer, error)


def _empty(count: int) -> list[npt.NDArray[Any]]:
    return [np.empty(count, kind) for kind in (np.int64, np.uint8, np.uint32, np.uint32, np.uint32)]


def _walk(
    data: npt.NDArray[np.uint8], position: int, bounds: tuple[int, int, int], limit: int, wanted: Headers
) -> tuple[list[npt.NDArray[Any]], int, int]:
    """
    Return the arrays of the next wanted events, at most `limit`, the position after them, and why they end.

    `bounds` are the arguments `stop`, `trailer` and `span` of the kernel.
    """
    arrays = _empty(limit)
    count, position, reason = walk_headers(data, position, *bounds, wanted, tuple(arrays))
    return [array[:count] for array in arrays], position, reason


def _reason(name: str, position: int, description: FormatDescription | None, size: int, *, verify: bool) -> FormatError:
    """Return the error that the scalar reader raises at an event of a file that had `size` bytes."""
    try:
        event = event_at(name, position, description, verify=verify, size=size)
    except FormatError as error:
        return error
    return changed_file(event)
