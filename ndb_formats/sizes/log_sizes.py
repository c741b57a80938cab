"""
How many bytes a log takes in every format, without writing it.

Rows events and their images are those that the server would write in the format; headers, checksums, extra row info and
the frames of transactions stay as they are in the log. Two bounds are kept wherever the log does not tell which columns
a statement set: `LEAST`, the columns that it must have set, and `MOST`, all that it may have set (see
`ndb_formats.rules.relogging`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.binlog_reader import FIRST_POSITION
from ndb_formats.columnar.block_reader import reason
from ndb_formats.columnar.event_chunks import EventChunk, read_chunks
from ndb_formats.columnar.kernels.layout import NULL_CELL
from ndb_formats.columnar.kernels.sizes import SizedShape, SizeState, SizeStop, account_events, join_events, size_rows
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.stretches import Stretches
from ndb_formats.columnar.tables import TableRegister
from ndb_formats.constants import DEFAULT_EVENT_SIZE, EVENT_HEADER_SIZE, EventType
from ndb_formats.cursor import Cursor
from ndb_formats.events.rows_event import ROWS_EVENTS, decode_rows_event
from ndb_formats.events.table_map import TableMap, decode_table_map, name_bytes
from ndb_formats.rules.formats import FORMATS, KeyChange
from ndb_formats.schema.row_keys import key_of
from ndb_formats.schema.tables import Schema
from ndb_formats.sizes.plan import KEY_CHANGES, SizePlan
from ndb_formats.sizes.tables import CHANGES, SizedTables
from ndb_formats.types.column_types import Codec

LEAST, MOST = 0, 1
_BLOCK_ROWS = 1 << 15
_EVENTS_PER_ROW = 8
_CHUNK_BYTES = 1 << 26
_MOST_COLUMNS = 4096

Int64 = npt.NDArray[np.int64]


@attrs.define(eq=False)
class Tally:
    """
    Bytes and numbers, added up. Arrays grow by table; a row of `kinds` is a table and a kind of change.

    Attributes:
        bytes: Bytes of rows events in each format. Shape (bounds, formats, kinds), int64.
        events: Number of these events. The same shape.
        lacking: Rows for which the log lacks columns that a format needs; they count without them. The same shape.
        rows: Rows; those for which the bounds differ; those of them without before values to compare. Shape (kinds, 3).
        columns: Bytes of the values of each column as logged, of before and after images. Shape (columns, 2).
        logged: Bytes and events of rows events as logged. Shape (kinds, 2).
        maps: Bytes and events of Table_map events. Shape (tables with such events, 2).
        others: Bytes and events of all other events, by type code. Shape (256, 2).
    """

    bytes: Int64
    events: Int64
    lacking: Int64
    rows: Int64
    columns: Int64
    logged: Int64
    maps: Int64
    others: Int64

    @classmethod
    def empty(cls) -> Tally:
        """Return one without tables."""
        cube = (2, len(FORMATS), 0)
        shapes = (cube, cube, cube, (0, 3), (0, 2), (0, 2), (0, 2), (256, 2))
        return cls(*(np.zeros(shape, np.int64) for shape in shapes))

    def grow(self, tables: int, columns: int) -> None:
        """Make room for so many tables and columns of all tables."""
        kinds = tables * len(CHANGES)
        for name in ("bytes", "events", "lacking"):
            setattr(self, name, _grown(getattr(self, name), 2, kinds))
        for name, count in (("rows", kinds), ("columns", columns), ("logged", kinds)):
            setattr(self, name, _grown(getattr(self, name), 0, count))

    @property
    def sums(self) -> tuple[Int64, ...]:
        """The argument `sums` of `size_rows`."""
        return self.bytes, self.events, self.lacking, self.rows, self.columns


def _grown(array: Int64, axis: int, count: int) -> Int64:
    missing = count - array.shape[axis]
    if missing <= 0:
        return array
    return np.pad(array, [(0, missing if each == axis else 0) for each in range(array.ndim)])


class LogSizer:
    """
    Adds up the sizes of files, in order.

    Attributes:
        tables: The tables met so far.
        tally: What was added up.
        event_size: ``binlog_row_event_max_size`` of the server.
    """

    def __init__(self, schema: Schema | None = None, *, event_size: int = DEFAULT_EVENT_SIZE) -> None:
        """
        Start with nothing.

        Args:
            schema: Definitions of tables; without one, a table needs full metadata in the log.
            event_size: ``binlog_row_event_max_size`` of the server.
        """
        self.tables = SizedTables(schema or Schema())
        self.tally = Tally.empty()
        self.event_size = event_size
        self._stretches = Stretches(schema or Schema())
        self._map_names: dict[bytes, str] = {}

    def begin(self, schema: Schema) -> None:
        """Take other definitions at the start of the logs that are added from here on."""
        self._stretches = Stretches(schema)

    @property
    def map_names(self) -> tuple[npt.NDArray[np.uint8], Int64]:
        """The argument `names` of `account_events`."""
        bounds = np.cumsum([0, *map(len, self._map_names)], dtype=np.int64)
        return np.frombuffer(b"".join(self._map_names), np.uint8), bounds

    @property
    def map_tables(self) -> tuple[str, ...]:
        """The tables of `Tally.maps`, as ``database.table``."""
        return tuple(self._map_names.values())

    def add_map_name(self, table_map: TableMap) -> None:
        """Make room for the Table_map events of a table."""
        self._map_names[name_bytes(table_map)] = table_map.full_name
        self.tally.maps = _grown(self.tally.maps, 0, len(self._map_names))

    def add(
        self,
        path: str | Path,
        *,
        start: int = FIRST_POSITION,
        stop: int | None = None,
        verify: bool = True,
        seen: Callable[[EventChunk], None] = lambda chunk: None,
    ) -> None:
        """
        Add a file, or a part of it. Definitions follow its statements; see `Stretches`.

        Args:
            path: The binlog file.
            start: Position of a transaction's first event.
            stop: Position to stop before; None for the end of the file.
            verify: Whether to check checksums.
            seen: Called with every chunk of events after it was added.

        Raises:
            FormatError: The file cannot be read further; what comes before is added.
        """
        for stretch in self._stretches.of(str(path), start=start, stop=stop):
            self.tables.define(stretch.schema)
            walk = RowWalk(TableRegister(stretch.schema, lambda table: True, None, text=False), _BLOCK_ROWS)
            work, events = _FileSizer(walk, self), _BLOCK_ROWS * _EVENTS_PER_ROW
            for chunk in read_chunks(
                path, start=stretch.start, stop=stretch.stop, verify=verify, events=events, span=_CHUNK_BYTES
            ):
                work.add(chunk)
                seen(chunk)
                if chunk.error is not None:
                    raise chunk.error


class _FileSizer:
    """Adds up the sizes of one file, chunk by chunk."""

    def __init__(self, walk: RowWalk, sizer: LogSizer) -> None:
        self._walk, self._sizer = walk, sizer
        self._plan = SizePlan(sizer.tables)
        self._state = np.array([0, -1, 0], np.int64)
        self._work = np.empty(_MOST_COLUMNS, np.int64), np.empty(_MOST_COLUMNS, np.int64), np.empty(64, np.uint64)
        self._pending = tuple(np.full((2, len(FORMATS)), -1, np.int64) for _ in range(3))
        self._last: tuple[object, ...] | None = None

    def add(self, chunk: EventChunk) -> None:
        """
        Add a chunk.

        Raises:
            FormatError: A row of it cannot be read; those before it are added.
        """
        joins, heads = np.zeros(len(chunk.types), np.bool_), np.zeros(len(chunk.types), np.int64)
        join_events(chunk.data, chunk.types, chunk.starts, chunk.ends, chunk.server_ids, chunk.trailer, joins, heads)
        if len(joins) and self._last is not None and self._last == _join_key(chunk, 0):
            joins[0] = True
        empty = np.ones(len(chunk.types), np.bool_)
        for count, fault in self._walk.blocks(chunk):
            self._add_shapes()
            self._size(chunk, count, joins, heads)
            empty[self._walk.rows.events[:count]] = False
            if fault is not None:
                raise reason(self._walk, chunk, fault)
        self._account(chunk)
        self._add_empty(chunk, np.flatnonzero(empty & (self._walk.facts.batches >= 0)))
        self._last = None
        if len(joins) and not _ends_statement(chunk, len(joins) - 1):
            self._last = _join_key(chunk, len(joins) - 1)

    def _add_shapes(self) -> None:
        """Add the shapes that the walk met for the first time."""
        facts, shapes = self._walk.facts, self._walk.register.shapes
        for number in range(len(self._plan), len(shapes)):
            events = np.flatnonzero(facts.batches == number)
            self._plan.add_shape(shapes[number], in_epoch=bool(len(events)) and not facts.no_epoch[events[0]])
        tables = self._sizer.tables
        self._sizer.tally.grow(len(tables.found), tables.defaults.count)

    def _size(self, chunk: EventChunk, count: int, joins: npt.NDArray[np.bool_], heads: Int64) -> None:
        """Add the rows of a block."""
        facts, plan = self._walk.facts, self._plan
        flags = np.where(facts.no_flags, np.uint16(0), facts.flags)
        events = (chunk.types, flags, joins, heads)
        rows = tuple(array[:count] for array in self._walk.rows)
        self._state[SizeState.ROW] = 0
        stop = SizeStop.VARIANT
        while stop != SizeStop.END:
            stop = SizeStop(
                size_rows(
                    chunk.data, chunk.base, chunk.trailer, events, rows, self._walk.cells, self._sizer.event_size,
                    plan.shape_arrays, plan.variant_arrays, self._state, self._work, self._pending,
                    self._sizer.tally.sums,
                )
            )  # fmt: skip
            row = int(self._state[SizeState.ROW])
            if stop == SizeStop.VARIANT:
                shape = int(self._walk.rows.batches[row])
                plan.add_variant(shape, int(self._state[SizeState.VARIANT]), self._work[2])
            elif stop == SizeStop.KEYS:
                self._state[SizeState.KEY_CHANGE] = KEY_CHANGES.index(self._key_change(chunk, row))

    def _key_change(self, chunk: EventChunk, row: int) -> KeyChange:
        """Return whether a row whose key has other text than before has another key."""
        shape, table = self._plan.defined(int(self._walk.rows.batches[row]))
        cells = self._walk.cells[int(self._walk.rows.first_cells[row]) :]
        before, after = shape.before or (), shape.after or ()
        old = {ordinal: cells[place] for place, ordinal in enumerate(before)}
        new = {ordinal: cells[len(before) + place] for place, ordinal in enumerate(after)}
        keys = []
        for image in (old, old | new):  # what the after image lacks did not change
            payloads = (_payload(chunk, shape.layout.codecs[each], int(image[each])) for each in table.key_ordinals)
            keys.append(key_of(table.key_columns, list(payloads)))
        return KeyChange.SPELLING if keys[0] == keys[1] else KeyChange.KEY

    def _account(self, chunk: EventChunk) -> None:
        """Add the events as they are."""
        sizer = self._sizer
        events = (chunk.types, chunk.starts, chunk.ends, self._walk.facts.batches)
        shapes = self._plan.shape_arrays[0]
        done = 0
        while done < len(chunk.types):
            tally = sizer.tally
            done = account_events(
                chunk.data, events, chunk.trailer, shapes, sizer.map_names, done, tally.logged, tally.maps, tally.others
            )
            if done < len(chunk.types):
                sizer.add_map_name(decode_table_map(chunk.body(done)))

    def _add_empty(self, chunk: EventChunk, events: Int64) -> None:
        """Add rows events in which there is no row: as they are."""
        tally = self._sizer.tally
        for event in events.tolist():
            kind = self._plan.shape_arrays[0][self._walk.facts.batches[event], SizedShape.KIND]
            size = EVENT_HEADER_SIZE + int(chunk.ends[event] - chunk.starts[event]) + chunk.trailer
            tally.bytes[:, :, kind] += size
            tally.events[:, :, kind] += 1


def _payload(chunk: EventChunk, codec: Codec, at: int) -> bytes | None:
    if at == NULL_CELL:
        return None
    start = chunk.base + at
    most = codec.width + (int.from_bytes(chunk.data[start : start + codec.width], "little") if codec.prefixed else 0)
    return codec.take(Cursor(chunk.data[start : start + most].tobytes()))


def _ends_statement(chunk: EventChunk, number: int) -> bool:
    """Return whether no row can join an event's rows: it is no rows event, or the last one of its statement."""
    if chunk.types[number] not in ROWS_EVENTS:
        return True
    return decode_rows_event(EventType(int(chunk.types[number])), chunk.body(number)).statement_end


def _join_key(chunk: EventChunk, number: int) -> tuple[object, ...] | None:
    """Return what consecutive rows events must have in common for rows to share an event; None for other events."""
    if chunk.types[number] not in ROWS_EVENTS:
        return None
    event = decode_rows_event(EventType(int(chunk.types[number])), chunk.body(number))
    return int(chunk.server_ids[number]), int(chunk.types[number]) >= EventType.WRITE_ROWS_EVENT, event.extra_bytes


def size_log(
    path: str | Path, *, schema: Schema | None = None, start: int = FIRST_POSITION, stop: int | None = None
) -> LogSizer:
    """
    Return the sizes of a file, or of a part of it; see `LogSizer`.

    Raises:
        FormatError: The file cannot be read.
    """
    sizer = LogSizer(schema)
    sizer.add(path, start=start, stop=stop)
    return sizer
