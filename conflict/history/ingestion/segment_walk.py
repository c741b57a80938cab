"""
Walks over the events of a segment: finds the images, the key and the compared values of every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.config.definitions import TableVersion
from conflict.history.grid.columns import digests_of_columns
from conflict.history.ingestion.kernels.events import add_values, commit_times, image_slices, read_numbers, roles_of
from conflict.history.ingestion.segment_arrays import (
    Events,
    RowShapes,
    SegmentRows,
    StatusRows,
    UnreadableError,
    joined_pieces,
    no_status_rows,
)
from conflict.history.run import TableNumbers
from conflict.history.statement_places import NO_STATEMENTS, StatementPlaces
from ndb_formats.columnar.column_arrays import ColumnFaultError
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.columnar.kernels.keys import buckets_of
from ndb_formats.columnar.kernels.layout import by_kind, cells_of
from ndb_formats.columnar.keys import KeyRows, Slices, are_equal, key_parts, put_keys, slices
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.tables import BatchShape, ImageColumn, TableRegister
from ndb_formats.constants import APPLY_STATUS
from ndb_formats.errors import FormatError
from ndb_formats.events.rows_event import ConflictFlag
from ndb_formats.schema.tables import Schema

_ROWS_AT_ONCE = 1 << 17
_SERVER_ID, _EPOCH, _LOG_NAME, _, _END_POSITION = range(5)  # columns of ndb_apply_status
_MAX_FLAGS = 0x7FFF

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Cells = npt.NDArray[np.uint32]


class SegmentWalk:
    """
    Collects what is found in a segment, chunk by chunk.

    Attributes:
        shapes: The shapes of rows met so far.
        sources: The arrays of bytes that hold the images.
    """

    def __init__(
        self,
        tables: Mapping[str, TableVersion],
        numbers: TableNumbers,
        buckets: int,
        statements: StatementPlaces = NO_STATEMENTS,
    ) -> None:
        names = {name: _wanted_columns(version, numbers) for name, version in tables.items()}
        schema = Schema(tuple(version.table for version in tables.values()))
        wanted = {APPLY_STATUS, *names}
        self.shapes = RowShapes(tables, numbers)
        self.sources: list[npt.NDArray[np.uint8]] = []
        self._buckets, self._statements = buckets, statements
        self._walk = RowWalk(TableRegister(schema, wanted.__contains__, names, text=True, strict=True), _ROWS_AT_ONCE)
        self._events: list[Events] = []
        self._rows: list[SegmentRows] = []
        self._status: list[StatusRows] = [no_status_rows()]
        self._first_event = 0

    @property
    def events(self) -> Events:
        """All events."""
        return joined_pieces(self._events)

    @property
    def rows(self) -> SegmentRows:
        """All rows."""
        return joined_pieces(self._rows)

    @property
    def status(self) -> StatusRows:
        """All rows that were written to `ndb_apply_status`."""
        rows = joined_pieces(self._status)
        order = np.lexsort((rows.number, rows.event))
        return StatusRows._make(each[order] for each in rows)

    def add(self, chunk: EventChunk) -> None:
        """
        Walk over a chunk.

        Raises:
            UnreadableError: Something in it is wrong.
        """
        if not self.sources or self.sources[-1] is not chunk.data:
            self.sources.append(chunk.data)
        count = len(chunk.types)
        rows = np.zeros(count, np.int64)
        for found, fault in self._walk.blocks(chunk):
            if fault is not None:
                raise UnreadableError
            self._add_rows(chunk, found)
            rows += np.bincount(self._walk.rows[1][:found], minlength=count)
        facts = self._walk.facts
        if facts.flags.max(initial=0) > _MAX_FLAGS:
            raise UnreadableError
        of_status = np.array(self.shapes.of_status, np.bool_)
        self._events.append(
            Events(
                role=roles_of(chunk.data, chunk.types, chunk.starts, chunk.ends, facts.batches, of_status),
                transaction_id=facts.transaction_ids,
                no_id=facts.no_id,
                server_id=chunk.server_ids,
                flags=np.where(facts.no_flags, np.uint16(0), facts.flags),
                position=chunk.positions,
                payload_position=chunk.payload_positions.astype(np.uint32),
                stop=chunk.stops,
                second=chunk.timestamps,
                committed=commit_times(chunk.data, chunk.types, chunk.starts, chunk.ends),
                shape=facts.batches,
                rows=rows,
            )
        )
        self._first_event += count

    def _add_rows(self, chunk: EventChunk, count: int) -> None:
        """Keep what the walker found of the next `count` rows."""
        shapes = self._walk.register.shapes
        for shape in shapes[len(self.shapes) :]:
            self.shapes.add(shape)
        batch, event = (array[:count] for array in self._walk.rows[:2])
        number = self._walk.rows[2][:count]
        carries = [[bool(bitmap) for bitmap in each] for each in (self.shapes.before, self.shapes.after)]
        starts, sizes = image_slices(self._walk.rows[4][:count], chunk.base, batch, np.array(carries, np.bool_))
        values: tuple[UInt64, UInt64] = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
        keys = []
        order, bounds = by_kind(batch, count, len(shapes))
        for place in np.flatnonzero(np.diff(bounds)).tolist():
            rows = order[bounds[place] : bounds[place + 1]]
            cells = cells_of(self._walk.cells, self._walk.rows[3], rows, shapes[place].width)
            try:
                if self.shapes.of_status[place]:
                    self._add_status(shapes[place], chunk, cells, event[rows] + self._first_event, number[rows])
                    continue
                keys.append(self._keys(place, shapes[place], chunk, cells, rows))
                self._put_values(place, shapes[place], chunk, cells, rows, values)
            except (FormatError, ColumnFaultError):
                raise UnreadableError from None
        data, offsets = put_keys(keys, count)
        buckets = np.empty(count, np.int32)
        buckets_of(data, offsets, self._buckets, buckets)
        buckets[np.array(self.shapes.keyless, np.bool_)[batch]] = self._buckets  # rows without a key stand after all
        self._rows.append(
            SegmentRows(
                event=event + self._first_event,
                number=number.copy(),
                source=np.full(count, len(self.sources) - 1, np.int32),
                before_start=starts[0],
                before_size=sizes[0],
                after_start=starts[1],
                after_size=sizes[1],
                digest=self._digests(chunk, batch, event, (starts[1], sizes[1]), self.shapes.after),
                before_digest=self._digests(chunk, batch, event, (starts[0], sizes[0]), self._telling()),
                before_value=values[0],
                after_value=values[1],
                bucket=buckets,
                key_size=np.diff(offsets),
                keys=data,
            )
        )

    def _telling(self) -> list[bytes]:
        """Return the bitmaps of the before images that carry more than the key, by shape; no bytes for the others."""
        found = []
        for bitmap, table, status in zip(self.shapes.before, self.shapes.table, self.shapes.of_status, strict=True):
            key = () if status else self.shapes.numbers.tables[table].key_ordinals
            more = not status and int.from_bytes(bitmap, "little") & ~sum(1 << place for place in key)
            found.append(bitmap if more else b"")
        return found

    def _digests(
        self,
        chunk: EventChunk,
        batch: Int64,
        event: Int64,
        images: tuple[Int64, Int64],
        carried: Sequence[bytes],
    ) -> UInt64:
        """
        Return the digests of before or after images. Shape (rows,).

        Args:
            chunk: Holds the images.
            batch: The shape of each row. Shape (rows,).
            event: Its event. Shape (rows,).
            images: Where each image starts, and its bytes, -1 for none. Shape of both (rows,).
            carried: What images carry, by shape; those that carry no bytes have the digest 0, like reads, which write
                no values.
        """
        facts, (starts, sizes) = self._walk.facts, images
        upper = digests_of_columns(carried)
        if not upper.any():
            return np.zeros(len(batch), np.uint64)
        nothing = ((facts.flags & int(ConflictFlag.READ) != 0) & ~facts.no_flags)[event]
        nothing |= np.array([not each for each in carried], np.bool_)[batch]
        digests = np.where(nothing, np.uint64(0), upper[batch])
        add_values(chunk.data, starts, np.where(nothing, -1, sizes), digests)
        return digests

    def _keys(self, place: int, shape: BatchShape, chunk: EventChunk, cells: Cells, rows: Int64) -> KeyRows:
        """
        Return the keys of rows of one shape.

        Raises:
            UnreadableError: An update gives its row another key.
        """
        number = self.shapes.table[place]
        table = self.shapes.numbers.tables[number]
        places, split = self.shapes.places[place], len(shape.before_columns)
        before, after = (
            {places[column.ordinal]: (column, cell) for column, cell in zip(columns, chosen, strict=True)}
            for columns, chosen in ((shape.before_columns, cells[:split]), (shape.after_columns, cells[split:]))
        )

        def values(image: Mapping[int, tuple[ImageColumn, Cells]], ordinal: int) -> Slices:
            column, cell = image[ordinal]
            return slices(shape.layout.codecs[column.ordinal], chunk.data, chunk.base, cell)

        parts = []
        for key_column, ordinal in zip(table.key_columns, table.key_ordinals, strict=True):
            found = values(before or after, ordinal)
            parts.append(key_parts(key_column, found))
            if before and ordinal in after and not are_equal(key_column, found, values(after, ordinal)):
                raise UnreadableError
        return KeyRows(number, rows, parts)

    def _put_values(
        self,
        place: int,
        shape: BatchShape,
        chunk: EventChunk,
        cells: Cells,
        rows: Int64,
        values: tuple[UInt64, UInt64],
    ) -> None:
        """Put the values of the resolve column of rows of one shape into `values`, before and after."""
        numbers, places = self.shapes.numbers, self.shapes.places[place]
        resolve = numbers.resolve_ordinal(numbers.tables[self.shapes.table[place]].full_name)
        split = len(shape.before_columns)
        for columns, chosen, out in (
            (shape.before_columns, cells[:split], values[0]),
            (shape.after_columns, cells[split:], values[1]),
        ):
            for column, cell in zip(columns, chosen, strict=True):
                if places[column.ordinal] == resolve:
                    out[rows] = _compared(column, chunk, cell)

    def _add_status(self, shape: BatchShape, chunk: EventChunk, cells: Cells, event: Int64, number: Int32) -> None:
        """Keep rows of `ndb_apply_status` of one shape."""
        if shape.after is None:
            return
        if len(shape.after) <= _LOG_NAME:
            raise UnreadableError
        chosen = cells[len(shape.before_columns) :]
        server_id, epoch, log_name = (
            slices(shape.layout.codecs[shape.after[place]], chunk.data, chunk.base, chosen[place])
            for place in (_SERVER_ID, _EPOCH, _LOG_NAME)
        )
        numbers = [read_numbers(each.data, each.starts, each.lengths) for each in (server_id, epoch)]
        if not all(valid for _, valid in numbers):
            raise UnreadableError
        (server_ids, _), (epochs, _) = numbers
        of_statement = epochs == np.uint64(0)
        if self._statements.ends and len(shape.after) > _END_POSITION:
            end = slices(shape.layout.codecs[shape.after[_END_POSITION]], chunk.data, chunk.base, chosen[_END_POSITION])
            ends, _ = read_numbers(end.data, end.starts, end.lengths)
            for row in np.flatnonzero(self._statements.may_hold(server_ids, ends)).tolist():
                start = log_name.starts[row]
                name = chunk.data[start : start + log_name.lengths[row]].tobytes()
                of_statement[row] |= self._statements.holds(int(server_ids[row]), name, int(ends[row]))
        self._status.append(StatusRows(event, number, server_ids, epochs, log_name.lengths > 0, of_statement))


def _wanted_columns(version: TableVersion, numbers: TableNumbers) -> Sequence[str]:
    resolve = numbers.resolve_ordinal(version.history)
    table = version.table
    compared = [table.columns[version.places.index(resolve)].name] if resolve in version.places else []
    return [*table.primary_key, *compared]


def _compared(column: ImageColumn, chunk: EventChunk, cells: Cells) -> UInt64:
    """Return values as conflict functions compare them: 0 for NULL, for negative values and for other types."""
    array = column.array(chunk.data, chunk.base, cells)
    if not pa.types.is_integer(array.type):
        return np.zeros(len(cells), np.uint64)
    values = np.asarray((array.fill_null(0) if array.null_count else array).to_numpy())
    if pa.types.is_signed_integer(array.type):
        values = np.maximum(values, 0)
    return values.astype(np.uint64, copy=False)
