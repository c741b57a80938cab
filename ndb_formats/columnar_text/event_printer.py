"""
Events of a chunk as text.

Most events of a log are of four types, whose lines are made here from a few of their bytes; all others go through
`event_lines`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from ndb_formats.binlog_reader import Event, locate
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import table_id_of
from ndb_formats.columnar_text.row_printer import RowPrinter
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.header import EventHeader
from ndb_formats.events.rows_event import ROWS_EVENTS, STATEMENT_END, operation_of
from ndb_formats.selection import DecodingState, decode_event
from ndb_formats.text.event_lines import clock_text, event_lines, rows_title
from ndb_formats.text.row_lines import extra_row_lines, rows_event_lines

__all__ = ["EventPrinter"]

_MOST_KNOWN = 4096
_FIRST_V2 = EventType.WRITE_ROWS_EVENT
_TABLE_ID = 6
_ROWS_HEAD = 10  # table id, flags, and size of the extra row info
_QUICK = frozenset(
    {EventType.QUERY_EVENT, EventType.TABLE_MAP_EVENT, EventType.XID_EVENT, *ROWS_EVENTS}
    - {EventType.PARTIAL_UPDATE_ROWS_EVENT}
)


@attrs.define(eq=False)
class EventPrinter:
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
    # What follows the first line's facts, by type and body.
    _known: dict[tuple[int, bytes], bytes] = attrs.field(factory=dict)

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
                    self._add_lines(Event(chunk.file, position, header, chunk.body(event)), event, lines)
            except FormatError as error:
                return [*texts, place * bool(lines) + b"".join(line + b"\n" for line in lines)], error
            texts.append(place + b"".join(line + b"\n" for line in lines))
        return texts, None

    def _tail(self, chunk: EventChunk, event: int, code: int) -> bytes:
        """Return what follows the facts of an event's header, without its rows."""
        if code in ROWS_EVENTS:
            return self._rows_tail(chunk, event, code)
        body = chunk.body(event)
        key = (code, body)
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            decoded = decode_event(Event(chunk.file, 0, EventHeader(0, code, 0, 0, 0, 0), body), DecodingState())
            first, *lines = event_lines(decoded, table_metadata=self.table_metadata)
            self._known[key] = b"".join(line + b"\n" for line in (first[first.index(b"\t") + 1 :], *lines))
        return self._known[key]

    def _rows_tail(self, chunk: EventChunk, event: int, code: int) -> bytes:
        """Return title and extra row info of a rows event."""
        start = int(chunk.starts[event])
        head = chunk.data[start : start + _ROWS_HEAD].tobytes()
        size = int.from_bytes(head[_TABLE_ID + 2 : _ROWS_HEAD], "little") - 2 if code >= _FIRST_V2 else 0
        extra = chunk.data[start + _ROWS_HEAD : start + _ROWS_HEAD + size].tobytes() if size else b""
        key = (code, head[:_ROWS_HEAD] + extra)
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
