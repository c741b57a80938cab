"""
Binlog files as text, block by block: the lines of `event_lines` and `row_lines`, with rows built from columns.

Rows events that mysqlbinlog does not print to their end (a column of a type that it cannot print, an image without
columns), JSON diffs, and events that cannot be read go through the scalar printer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.batches import reason_of
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.selected_changes import ChangeReading, selected_parts
from ndb_formats.columnar.tables import TableRegister
from ndb_formats.columnar_text.event_printer import EventPrinter
from ndb_formats.columnar_text.event_selection import EventSelection
from ndb_formats.columnar_text.row_pieces import Part, has_key, parts_of
from ndb_formats.columnar_text.row_printer import RowPrinter, RowTextError, TextOptions
from ndb_formats.constants import EventType
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection

__all__ = ["TextOptions", "log_text"]

Bools = npt.NDArray[np.bool_]


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
        chosen, events = EventSelection(selection, part.first), EventPrinter(walk, rows, options.table_metadata)
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
    chosen: EventSelection
    events: EventPrinter
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
                raise error or reason_of(self.walk, chunk, fault)
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

    def _kept_rows(self, part: Part, chunk: EventChunk, events: range, kept: Bools) -> Part:
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
