"""
Binlog files as text, block by block: the lines of `event_lines` and `row_lines`, with rows built from columns.

Most events of a log are of four types, whose lines are made here from a few of their bytes; all others go through
`event_lines`. Rows events that mysqlbinlog does not print to their end (a column of a type that it cannot print, an
image without columns), JSON diffs, and events that cannot be read go through the scalar printer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.binlog_reader import Event, locate
from ndb_formats.columnar.block_reader import reason
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.selected_changes import ChangeReading, selected_parts
from ndb_formats.columnar.tables import TableRegister, table_id_of
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.header import EventHeader
from ndb_formats.events.rows_event import ROWS_EVENTS, STATEMENT_END, operation_of
from ndb_formats.events.table_map import decode_table_map
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import DecodingState, Selection, decode_event
from ndb_formats.text.event_lines import clock_text, event_lines, rows_title
from ndb_formats.text.row_lines import extra_row_lines, rows_event_lines
from ndb_formats.text.row_printer import RowPrinter, RowTextError, TextOptions, TextPart, has_key, parts_of

_Bools = npt.NDArray[np.bool_]
_ENDS = np.array([EventType.QUERY_EVENT, EventType.XID_EVENT], np.uint8)


class _EventSelection:
    """Selects the events of one file, block by block, in order."""

    def __init__(self, selection: Selection, start: int) -> None:
        """
        Start before the first event.

        Args:
            selection: What to select; its moment to stop at is left to the reader.
            start: First position.
        """
        self._selection = selection
        self._start = start
        self._epoch: int | None = None

    @property
    def key(self) -> Sequence[tuple[str, str]]:
        """The key by which rows are selected."""
        return self._selection.key

    def is_past(self, walk: RowWalk) -> bool:
        """Return whether the walk has met an epoch after the last selected one."""
        stop = self._selection.stop_epoch
        return stop is not None and int(walk.facts.epochs.max(initial=0)) > stop

    def kept(self, chunk: EventChunk, walk: RowWalk, events: range) -> _Bools:
        """Return which of these events are selected, as far as their own facts say. Shape (events,)."""
        chosen, part = self._selection, slice(events.start, events.stop)
        kept = chunk.positions[part] >= self._start
        if chosen.start_time:
            kept &= chunk.timestamps[part] >= chosen.start_time
        if chosen.server_ids:
            kept &= np.isin(chunk.server_ids[part], list(chosen.server_ids))
        if chosen.transactions:
            ids = np.array(sorted(chosen.transactions), np.uint64)
            kept &= np.isin(walk.facts.transaction_ids[part], ids) & ~walk.facts.no_id[part]
        if chosen.databases or chosen.tables:
            kept &= self._of_tables(chunk, walk, events)
        if chosen.start_epoch or chosen.stop_epoch is not None:
            kept &= self._in_epochs(chunk, walk, events)
        if chosen.by_row:
            kept &= walk.facts.batches[part] >= 0
        return kept

    def _of_tables(self, chunk: EventChunk, walk: RowWalk, events: range) -> _Bools:
        """Return which events are of a selected table, or of no table."""
        shapes = walk.register.shapes
        wanted = np.array([self._selection.has_table(shape.table_map) for shape in shapes] + [True], np.bool_)
        kept = wanted[walk.facts.batches[events.start : events.stop]]
        for event in np.flatnonzero(chunk.types[events.start : events.stop] == EventType.TABLE_MAP_EVENT).tolist():
            kept[event] = self._selection.has_table(decode_table_map(chunk.body(events.start + event)))
        return kept

    def _in_epochs(self, chunk: EventChunk, walk: RowWalk, events: range) -> _Bools:
        """Return which events belong to a selected epoch; that of an event is the last one before it."""
        facts, types = walk.facts, chunk.types
        kept = np.zeros(len(events), np.bool_)
        for number, event in enumerate(events):
            if facts.batches[event] >= 0:
                self._epoch = None if facts.no_epoch[event] else int(facts.epochs[event])
            kept[number] = self._selection.has_epoch(self._epoch)
            if types[event] in _ENDS:
                self._epoch = None
        return kept


_MOST_KNOWN = 4096
_FIRST_V2 = EventType.WRITE_ROWS_EVENT
_TABLE_ID = 6
_ROWS_HEAD = 10  # table id, flags, and size of the extra row info
_QUICK = frozenset(
    {EventType.QUERY_EVENT, EventType.TABLE_MAP_EVENT, EventType.XID_EVENT, *ROWS_EVENTS}
    - {EventType.PARTIAL_UPDATE_ROWS_EVENT}
)


@attrs.define(eq=False)
class _EventPrinter:
    """
    Prints the events of one file.

    Attributes:
        walk: The walk over its rows, which knows the tables.
        rows: Prints rows.
        table_metadata: Whether to print columns and primary key of each table.
    """

    walk: RowWalk
    rows: RowPrinter
    table_metadata: bool
    _last_position: int = -1
    # What follows the first line's facts, by type, body and server.
    _known: dict[tuple[int, bytes, str], bytes] = attrs.field(factory=dict)

    def texts(
        self, chunk: EventChunk, events: Sequence[int], scalar: Collection[int]
    ) -> tuple[list[bytes], FormatError | None]:
        """
        Return the text of events, each with its line ends.

        Args:
            chunk: Where they are.
            events: Their numbers.
            scalar: Those whose rows are printed with them.

        Returns:
            The texts, and why the last one ends too early; None if none does.
        """
        texts: list[bytes] = []
        facts = (chunk.types, chunk.positions, chunk.timestamps, chunk.server_ids, chunk.next_positions)
        chosen = [array[list(events)].tolist() for array in facts]
        for event, code, position, timestamp, server, end in zip(events, *chosen, strict=True):
            place = b"" if position == self._last_position else b"# at %d\n" % position
            self._last_position = position
            if code in _QUICK and event not in scalar:
                head = b"#%s server id %d  end_log_pos %d \t" % (clock_text(timestamp).encode(), server, end)
                texts.append(place + head + self._tail(chunk, event, code))
                continue
            lines: list[bytes] = []
            header = EventHeader(timestamp, code, server, 0, end, 0)
            try:
                with locate(Event(chunk.file, position, header, b"")):
                    self._add_lines(Event(chunk.file, position, header, chunk.body(event), chunk.server), event, lines)
            except FormatError as error:
                return [*texts, place * bool(lines) + b"".join(line + b"\n" for line in lines)], error
            texts.append(place + b"".join(line + b"\n" for line in lines))
        return texts, None

    def _tail(self, chunk: EventChunk, event: int, code: int) -> bytes:
        """Return what follows the facts of an event's header, without its rows."""
        if code in ROWS_EVENTS:
            return self._rows_tail(chunk, event, code)
        body = chunk.body(event)
        key = (code, body, chunk.server)
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            whole = Event(chunk.file, 0, EventHeader(0, code, 0, 0, 0, 0), body, chunk.server)
            decoded = decode_event(whole, DecodingState())
            first, *lines = event_lines(decoded, table_metadata=self.table_metadata)
            self._known[key] = b"".join(line + b"\n" for line in (first[first.index(b"\t") + 1 :], *lines))
        return self._known[key]

    def _rows_tail(self, chunk: EventChunk, event: int, code: int) -> bytes:
        """Return title and extra row info of a rows event."""
        start = int(chunk.starts[event])
        head = chunk.data[start : start + _ROWS_HEAD].tobytes()
        size = int.from_bytes(head[_TABLE_ID + 2 : _ROWS_HEAD], "little") - 2 if code >= _FIRST_V2 else 0
        extra = chunk.data[start + _ROWS_HEAD : start + _ROWS_HEAD + size].tobytes() if size else b""
        key = (code, head[:_ROWS_HEAD] + extra, chunk.server)
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            flags = int.from_bytes(head[_TABLE_ID : _TABLE_ID + 2], "little")
            kind = EventType(code)
            title = rows_title(
                kind.name, int.from_bytes(head[:_TABLE_ID], "little"), statement_end=bool(flags & STATEMENT_END)
            )
            operation = operation_of(kind)
            lines = extra_row_lines(extra, operation) if self.rows.verbose else ()
            self._known[key] = b"".join(line + b"\n" for line in (title.encode(), *lines))
        return self._known[key]

    def _add_lines(self, event: Event, number: int, lines: list[bytes]) -> None:
        """
        Add the lines of an event and its rows, as far as it can be read.

        Raises:
            FormatError: It cannot be read further.
        """
        state = DecodingState()
        batch = int(self.walk.facts.batches[number])
        if event.type in ROWS_EVENTS:
            table_id = table_id_of(event.body)
            found = self.walk.register.map_of(table_id)
            if batch >= 0:
                # Its table id may belong to another table by now.
                found = attrs.evolve(self.walk.register.shapes[batch].table_map, table_id=table_id)
            if found is not None:
                state.maps[table_id] = found
        decoded = decode_event(event, state)
        lines.extend(event_lines(decoded, table_metadata=self.table_metadata))
        if self.rows.verbose and decoded.rows is not None and decoded.table_map is not None:
            names = self.rows.names(decoded.table_map)
            for line in rows_event_lines(decoded.table_map, decoded.rows, verbose=self.rows.verbose, names=names):
                lines.append(line)  # noqa: PERF402 - the lines before an error are kept


def log_text(
    files: Sequence[str], selection: Selection, reading: ChangeReading, options: TextOptions
) -> Iterator[bytes]:
    """
    Yield the text of the selected events of files, in pieces that end with a line, in the character sets of the binlog.

    Args:
        files: Paths in the order in which the files were written.
        selection: Which events to select.
        reading: How to read them.
        options: What to print.

    Raises:
        FormatError: A file cannot be read further; everything before has been yielded.
    """
    for part in selected_parts(files, selection, reading):
        walk = RowWalk(TableRegister(Schema(), lambda table: True, None, text=False), reading.rows)
        rows = RowPrinter(options, part.schema)
        chosen, events = _EventSelection(selection, part.first), _EventPrinter(walk, rows, options.table_metadata)
        printer = _Printer(walk, chosen, events, rows)
        for chunk in part.chunks(selection, reading):
            yield from printer.chunk_text(chunk)
            reading.met(walk.register.names)
            if printer.is_past:
                part.log.has_ended = True
            if part.log.has_ended:
                break
            if chunk.error is not None:
                part.log.ends_with(chunk.error, reading)


@attrs.define(eq=False)
class _Printer:
    """
    Prints the chunks of one file.

    Attributes:
        walk: Where the rows are.
        chosen: Which events to print.
        events: Prints the lines of events.
        rows: Prints the lines of rows.
        is_past: Whether the selection ended.
    """

    walk: RowWalk
    chosen: _EventSelection
    events: _EventPrinter
    rows: RowPrinter
    is_past: bool = False
    # Whether the event whose rows go on in the next block is selected, and whether it has been printed.
    _open: tuple[bool, bool] = (False, False)

    def chunk_text(self, chunk: EventChunk) -> Iterator[bytes]:
        """
        Yield the text of the blocks of a chunk.

        Raises:
            FormatError: An event cannot be read; everything before has been yielded.
        """
        done = 0
        for found, fault in self.walk.blocks(chunk):
            at, begun = self.walk.place
            was_open = done > at  # rows of the faulty event have been printed
            events = range(done, max(at + (begun and fault is None), done))
            count = int(np.searchsorted(self.walk.rows.events[:found], events.stop))
            yield from self._block_text(chunk, events, count)
            self.is_past = self.chosen.is_past(self.walk)
            if self.is_past:
                return
            if fault is not None:
                text, error = ([], None) if was_open else self.events.texts(chunk, [fault], {fault})
                yield b"".join(text)
                raise error or reason(self.walk, chunk, fault)
            done = events.stop

    def _block_text(self, chunk: EventChunk, events: range, count: int) -> Iterator[bytes]:
        """Yield the text of these events, and of the first rows of the block."""
        kept = self.chosen.kept(chunk, self.walk, events)
        parts = [self._kept_rows(part, chunk, events, kept) for part in parts_of(self.walk, count)]
        was_open = self._open
        if events:
            self._open = (bool(kept[-1]), True)
        shown = np.flatnonzero(kept) + events.start
        if self.chosen.key:
            matched = np.unique(np.concatenate([part.events for part in parts] or [shown[:0]]))
            shown = np.intersect1d(shown, matched)
            if not was_open[1] and events.start - 1 in matched:
                shown = np.concatenate([[events.start - 1], shown])
            self._open = (self._open[0], events.stop - 1 in shown or (not events and was_open[1]))
        scalar = self._scalar_events(chunk, events, count) if self.rows.verbose else set()
        if not self.rows.verbose:
            parts = []
        while True:
            texts, error = self.events.texts(chunk, shown.tolist(), scalar)
            stop = events.stop if error is None else int(shown[len(texts) - 1])
            columnar = [part.where(~np.isin(part.events, list(scalar)) & (part.events < stop)) for part in parts]
            try:
                yield self.rows.joined(chunk, shown[: len(texts)], texts, columnar)
                break
            except RowTextError as failed:
                scalar |= failed.events
        if error is not None:
            raise error

    def _kept_rows(self, part: TextPart, chunk: EventChunk, events: range, kept: _Bools) -> TextPart:
        """Return the rows of selected events that have the key."""
        of_open = part.events < events.start
        mask = np.where(
            of_open, self._open[0], kept[np.where(of_open, 0, part.events - events.start)] if len(kept) else False
        )
        if self.chosen.key:
            mask &= has_key(part, chunk, self.rows.named_layout(part.shape.table_map), self.chosen.key)
        return part.where(mask)

    def _scalar_events(self, chunk: EventChunk, events: range, count: int) -> set[int]:
        """Return the rows events that go through the scalar printer."""
        inside = slice(events.start, events.stop)
        batches, numbers = self.walk.facts.batches[inside], np.arange(events.start, events.stop)
        regular = np.array([self.rows.is_regular(shape) for shape in self.walk.register.shapes] + [True], np.bool_)
        empty = ~np.isin(numbers, self.walk.rows.events[:count])
        partial = chunk.types[inside] == EventType.PARTIAL_UPDATE_ROWS_EVENT
        return set(numbers[(batches >= 0) & (empty | partial | ~regular[batches])].tolist())
