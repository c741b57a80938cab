"""
Which parts of a file can hold rows that the options choose: no task reads the others.

A part is made smaller transaction by transaction, and only by what is certain from event headers, Table_map events and
the rows of `mysql.ndb_apply_status`; the rows of what is left are still looked at one by one. Files with compressed
events are read whole, because they would have to be unpacked here.
"""

from __future__ import annotations

from collections.abc import Collection

import attrs
import numpy as np
import numpy.typing as npt

from conflict.spark.binlog_options import BinlogOptions
from ndb_formats.columnar.event_chunks import COMPRESSED, plain_chunk, read_chunks
from ndb_formats.columnar.event_index import EventIndex, map_bytes, recent_index
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import TableRegister
from ndb_formats.constants import TRANSACTION_STARTS, EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.rows_event import ROWS_EVENTS
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import UNREAD_ROW_EVENTS

_Bools = npt.NDArray[np.bool_]
_LAST_EPOCH, _LAST_SECOND = 2**64 - 1, 2**32 - 1
_ROWS = np.array(sorted({*ROWS_EVENTS, *UNREAD_ROW_EVENTS}), np.uint8)
_CHUNK_EVENTS, _CHUNK_BYTES = 1 << 18, 1 << 26
_NAME_AT = 8  # in the body of a Table_map event


@attrs.frozen(eq=False)
class ChosenParts:
    """
    The transactions of a file that can hold rows that are wanted.

    Attributes:
        starts: Where each transaction starts; the first one is what comes before all others. Shape (n,), int64.
        wanted: Whether it can hold such rows. Shape (n,), bool.
    """

    starts: npt.NDArray[np.int64]
    wanted: _Bools

    def within(self, start: int, stop: int) -> tuple[int, int] | None:
        """Return the smallest part between two positions that has all these transactions; None if there is none."""
        first, after = int(self.numbers(np.array([start]))[0]), int(np.searchsorted(self.starts, stop))
        found = np.flatnonzero(self.wanted[first:after]) + first
        if not len(found):
            return None
        ends = [stop, *self.starts[found[-1] + 1 : found[-1] + 2].tolist()]
        return max(start, int(self.starts[found[0]])), min(ends)

    def numbers(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of the transaction that each position belongs to. Shape (positions,)."""
        return np.searchsorted(self.starts, positions, "right") - 1


def chosen_parts(path: str, options: BinlogOptions, start: int, stop: int | None) -> ChosenParts:
    """
    Return which transactions of a file can hold rows that are wanted.

    Args:
        path: Where it can be read.
        options: What is wanted.
        start: Position of the first event that is asked for.
        stop: Position after the last one; None for the end of the file.
    """
    try:
        index = recent_index(path)
    except FormatError:  # its task says why
        return ChosenParts(np.zeros(1, np.int64), np.ones(1, np.bool_))
    starts = np.concatenate([[0], index.positions[np.isin(index.types, TRANSACTION_STARTS)]])
    parts = ChosenParts(starts, np.ones(len(starts), np.bool_))
    if np.isin(index.types, COMPRESSED).any():
        return parts
    if options.tables is not None:
        parts.wanted[:] = False
        parts.wanted[parts.numbers(index.positions[_maps_of(options.tables, index)])] = True
        parts.wanted[-1] |= index.error is not None  # its task says what is wrong
    if options.start_epoch > 0 or options.end_epoch is not None:
        parts.wanted[:] &= _of_epochs(path, parts, options, start, stop)
    if options.start_time > 0 or options.end_time is not None or options.servers is not None:
        parts.wanted[:] &= _of_events(path, parts, options, start, stop)
    return parts


def _maps_of(tables: Collection[str], index: EventIndex) -> _Bools:
    """Return which events are Table_map events of some tables. Shape (events,)."""
    data, starts = map_bytes(index.file), index.bodies[0] + _NAME_AT
    maps = np.flatnonzero(index.types == EventType.TABLE_MAP_EVENT)
    found = np.zeros(len(index), np.bool_)
    for name in tables:
        parts = name.split(".")
        for dot in range(1, len(parts)):  # names can have dots themselves
            halves = (".".join(half).encode("utf-8", "surrogateescape") for half in (parts[:dot], parts[dot:]))
            sought = np.frombuffer(b"".join(bytes([len(half) & 0xFF]) + half + b"\0" for half in halves), np.uint8)
            fitting = maps[starts[maps] + len(sought) <= len(data)]
            same = data[starts[fitting][:, None] + np.arange(len(sought))] == sought
            found[fitting[same.all(axis=1)]] = True
    return found


def _of_epochs(path: str, parts: ChosenParts, options: BinlogOptions, start: int, stop: int | None) -> _Bools:
    """
    Return which transactions can have rows in the range of epochs. Shape (n,).

    NDB writes the row that names the epoch of a transaction before all others; where the first ones name none, the
    transaction is read.
    """
    chunk, found = plain_chunk(path, start, stop, rows=True), np.zeros(len(parts.starts), np.bool_)
    if chunk is None:
        return ~found
    # Without a table that is wanted, the walker reads epochs alone.
    walk = RowWalk(TableRegister(Schema(), lambda name: False, (), text=False), 1)
    unread = [int(chunk.positions[fault]) for _, fault in walk.blocks(chunk) if fault is not None]
    unread += [] if chunk.error is None else [chunk.error.position or 0]
    numbers, epochs = parts.numbers(chunk.positions), np.where(walk.facts.no_epoch, 0, walk.facts.epochs)
    last = _LAST_EPOCH if options.end_epoch is None else options.end_epoch
    found[numbers[np.isin(chunk.types, _ROWS)]] = True
    found[numbers[epochs > 0]] = False
    found[numbers[(epochs > 0) & (epochs >= options.start_epoch) & (epochs <= last)]] = True
    if unread:  # errors after the last epoch are ignored
        found[int(parts.numbers(np.array([min(unread)]))[0]) :] = not (epochs > last).any()
    return found


def _of_events(path: str, parts: ChosenParts, options: BinlogOptions, start: int, stop: int | None) -> _Bools:
    """Return which transactions can have rows in the range of times and of the servers. Shape (n,)."""
    found = np.zeros(len(parts.starts), np.bool_)
    for chunk in read_chunks(path, start=start, stop=stop, verify=False, events=_CHUNK_EVENTS, span=_CHUNK_BYTES):
        kept = np.isin(chunk.types, _ROWS) & in_time(chunk.timestamps, options) & made_by(chunk.server_ids, options)
        found[parts.numbers(chunk.positions[kept])] = True
        if chunk.error is not None:
            found[int(parts.numbers(np.array([chunk.error.position or 0]))[0]) :] = True
    return found


def made_by(servers: npt.NDArray[np.integer], options: BinlogOptions) -> _Bools:
    """Return which events are of changes that the servers which are asked for first made. Shape (events,)."""
    if options.servers is None:
        return np.ones(len(servers), np.bool_)
    return np.isin(servers, [*options.servers])


def in_time(seconds: npt.NDArray[np.uint32], options: BinlogOptions) -> _Bools:
    """Return which events belong to the range of times. Shape (events,)."""
    last = _LAST_SECOND if options.end_time is None else options.end_time - 1
    return np.asarray((seconds >= options.start_time) & (seconds <= last), np.bool_)
