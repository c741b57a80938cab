"""
Reads a segment in columns, with the same result as the scalar reader.

Compiled code walks over the events and finds the images, the key and the compared value of every row. Events are then
divided into epochs and groups, and rows are put in order. No Python runs per row, event or epoch. What cannot be read
in this way is left to the scalar reader, which reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.config.definitions import TableVersion
from conflict.history.epochs import MICROSECONDS
from conflict.history.grid.epoch_files import EPOCHS
from conflict.history.grid.schemas import KEYLESS, STAGED_CHANGES, STAGED_CONSEQUENCES
from conflict.history.ingestion.kernels.epochs import GroupedEvents, OrderedRows, group_events, order_rows
from conflict.history.ingestion.kernels.events import EventRole
from conflict.history.ingestion.segment_arrays import Events, RowShapes, SegmentRows, UnreadableError
from conflict.history.ingestion.segment_walk import SegmentWalk
from conflict.history.ingestion.segments import Segment, SegmentContent
from conflict.history.roles import mark_of
from conflict.history.run import TableNumbers
from conflict.history.shown_effects import Effect, sorted_texts, text_of_bitmaps
from conflict.history.statement_places import NO_STATEMENTS, StatementPlaces
from ndb_formats.columnar.event_chunks import read_chunks, with_server_bits
from ndb_formats.columnar.kernel import read_only
from ndb_formats.columnar.kernels.keys import copy_rows, slice_offsets
from ndb_formats.errors import FormatError
from ndb_formats.events.rows_event import ConflictFlag, Operation

_CHUNK_EVENTS, _CHUNK_BYTES = 1 << 18, 1 << 26
_MAX_OFFSET = 0x7FFFFFFF

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]


def read_columns(
    segment: Segment,
    server_id: int,
    tables: Mapping[str, TableVersion],
    numbers: TableNumbers,
    buckets: int,
    file: int,
    statements: StatementPlaces = NO_STATEMENTS,
) -> SegmentContent:
    """
    Read a segment.

    Args:
        segment: The segment.
        server_id: The cluster's own.
        tables: The tables to read, by the names in the binlog.
        numbers: Their numbers.
        buckets: Into how many buckets keys are divided.
        file: Number of the file among the cluster's.
        statements: Where the statements of its sources stand in their logs.

    Raises:
        UnreadableError: The scalar reader has to read it; also while its parts are made, if one is too large.
    """
    walk, error = SegmentWalk(tables, numbers, buckets, statements), None
    try:
        chunks = read_chunks(
            segment.file, start=segment.start, stop=segment.stop, verify=True, events=_CHUNK_EVENTS, span=_CHUNK_BYTES
        )
        for chunk in chunks:
            walk.add(with_server_bits(chunk, segment.server_id_bits))
            error = chunk.error
    except FormatError:
        raise UnreadableError from None
    if not walk.sources:
        raise UnreadableError
    return _content(walk, server_id, buckets, file, error)


def _content(walk: SegmentWalk, server_id: int, buckets: int, file: int, error: FormatError | None) -> SegmentContent:
    events, rows, status = walk.events, walk.rows, walk.status
    status_bounds = np.searchsorted(status.event, np.arange(len(events.role) + 1))
    grouped: GroupedEvents = group_events(events, status, status_bounds, np.uint64(server_id))
    if not grouped.valid:
        raise UnreadableError
    first_group = _offsets(grouped.epochs.groups)
    ordered: OrderedRows = order_rows(rows.event, rows.bucket, buckets + 1, grouped.events, first_group)
    begin = grouped.epochs.begin
    before = np.maximum(begin - 1, 0)
    parts = _Parts(walk.shapes, walk.sources, file, events, rows, grouped, ordered)
    with_gtid = np.where(events.role[before] == EventRole.NONE, before, begin)  # old servers write no Gtid event
    return SegmentContent(
        epochs=_epochs_table(grouped, first_group, ordered.own_rows, _committed(events, grouped)),
        images=_logged_images(walk.shapes, events, rows.event[ordered.changes]),
        marks=_marks(walk.shapes, events, rows.event[ordered.consequences]),
        types=walk.shapes.types,
        settled=int(events.stop[grouped.settled]) if grouped.settled >= 0 else 0,
        error=error,
        left_out=grouped.pending if error is not None else 0,
        parts=parts.tables(),
        keyless=parts.keyless(),
        begins=events.position[with_gtid],
    )


def _logged_images(shapes: RowShapes, events: Events, own: Int64) -> dict[str, list[str]]:
    """Return which columns the images of own changes carry, given the event of each, reads left out."""
    reads = events.flags & int(ConflictFlag.READ) != 0
    found: dict[str, set[str]] = {}
    for shape in np.flatnonzero(np.bincount(events.shape[own[~reads[own]]])).tolist():
        text = text_of_bitmaps(Operation(shapes.operation[shape]), shapes.before[shape], shapes.after[shape])
        found.setdefault(shapes.numbers.tables[shapes.table[shape]].full_name, set()).add(text)
    return sorted_texts(found)


def _marks(shapes: RowShapes, events: Events, others: Int64) -> dict[str, list[str]]:
    """Return the marks of the rows that the applier changed, by table, given the event of each."""
    found: dict[str, set[str]] = {}
    there = np.flatnonzero(np.bincount(others))
    tables = shapes.tables_of(events.shape[there])
    for table, flags in set(zip(tables.tolist(), events.flags[there].tolist(), strict=True)):
        mark = mark_of(ConflictFlag(flags))
        if mark is not None:
            found.setdefault(shapes.numbers.tables[table].full_name, set()).add(mark.value)
    return sorted_texts(found)


@attrs.frozen(eq=False)
class _Parts:
    """The arrays of a segment, and the tables that are made of them."""

    shapes: RowShapes
    sources: Sequence[Bytes]
    file: int
    events: Events
    rows: SegmentRows
    grouped: GroupedEvents
    ordered: OrderedRows

    def tables(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield the parts of `SegmentContent`."""
        buckets = self._buckets
        # One array holds up to 2 GiB; a single transaction can be larger.
        large = sum(int(sizes.sum()) for sizes in (self.rows.before_size, self.rows.after_size)) > _MAX_OFFSET
        for bucket in range(0, buckets, 1 if large else buckets):
            yield from self._of_buckets(bucket, bucket + 1 if large else buckets)

    @property
    def _buckets(self) -> int:
        """How many buckets there are, without that of rows without a key, which stand after all others."""
        return int(self.ordered.bounds.shape[1]) - 2

    def keyless(self) -> pa.Table:
        """Return the rows of tables without a primary key, as `KEYLESS`."""
        parts = []
        for rows, bounds, own in zip(
            (self.ordered.changes, self.ordered.consequences), self.ordered.bounds, (True, False), strict=True
        ):
            chosen = rows[bounds[self._buckets] :]
            table = self._changes(chosen).append_column("own", pa.array(np.full(len(chosen), own)))
            parts.append(table.select(KEYLESS.names).cast(KEYLESS))
        return pa.concat_tables(parts)

    def _of_buckets(self, first: int, stop: int) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield the parts of some buckets, which are slices of the same tables."""
        changes, consequences = self.ordered.bounds[:, first : stop + 1]
        own = self.ordered.changes[changes[0] : changes[-1]]
        others = self.ordered.consequences[consequences[0] : consequences[-1]]
        tables = self._changes(own), self._consequences(others)
        for bucket in range(stop - first):
            mine, shown = (
                table.slice(int(each[bucket] - each[0]), int(each[bucket + 1] - each[bucket]))
                for table, each in zip(tables, (changes, consequences), strict=True)
            )
            yield mine, shown

    def _identities(self, rows: Int64) -> pa.BinaryArray:
        key_start = np.cumsum(self.rows.key_size) - self.rows.key_size
        return _binary([self.rows.keys], np.zeros(len(key_start), np.int32), rows, key_start, self.rows.key_size)

    def _changes(self, rows: Int64) -> pa.Table:
        events, found = self.events, self.rows
        event = found.event[rows]
        shape = events.shape[event]
        before_columns, after_columns = self.shapes.columns_of(shape)
        columns = [
            self._identities(rows),
            self.shapes.tables_of(shape),
            self.shapes.operations_of(shape),
            events.flags[event].astype(np.int16),
            self.grouped.epochs.number[self.grouped.events.epoch[event]],
            self.grouped.events.group[event],
            self.ordered.ordinals[rows],
            before_columns,
            found.before_value[rows],
            found.before_digest[rows],
            after_columns,
            found.after_value[rows],
            found.digest[rows],
            pa.array(events.transaction_id[event], mask=events.no_id[event]),
            np.full(len(rows), self.file, np.int32),
            events.position[event].view(np.uint64),
            events.payload_position[event],
            found.number[rows],
            self._images(rows, found.before_start, found.before_size),
            self._images(rows, found.after_start, found.after_size),
        ]
        return pa.table(columns, schema=STAGED_CHANGES)

    def _consequences(self, rows: Int64) -> pa.Table:
        event = self.rows.event[rows]
        shape = self.events.shape[event]
        deleted = self.shapes.operations_of(shape) == Operation.DELETE_ROW
        refreshed = self.events.flags[event] & int(ConflictFlag.REFRESH) != 0
        columns = [
            self._identities(rows),
            self.shapes.tables_of(shape),
            self.grouped.epochs.number[self.grouped.events.epoch[event]],
            self.grouped.events.group[event],
            _EFFECTS[refreshed.astype(np.int8), deleted.astype(np.int8)],
            self.events.flags[event].astype(np.int16),
            self.rows.digest[rows],
        ]
        return pa.table(columns, schema=STAGED_CONSEQUENCES)

    def _images(self, rows: Int64, starts: Int64, sizes: Int64) -> pa.BinaryArray:
        return _binary(self.sources, self.rows.source, rows, starts, sizes)


# By whether it is a refresh, and a delete; see `conflict.history.shown_effects.effect_of`.
_EFFECTS = np.array(
    [[Effect.CHANGED, Effect.DELETED], [Effect.REFRESHED, Effect.REFRESHED_ABSENT]],
    np.int8,
)


def _binary(
    sources: Sequence[Bytes], source: npt.NDArray[np.int32], rows: Int64, starts: Int64, sizes: Int64
) -> pa.BinaryArray:
    """
    Copy slices of bytes.

    Args:
        sources: Arrays of bytes.
        source: Number of the array that holds the slice of each row. Shape (all rows,).
        rows: The rows whose slices are wanted, in order. Shape (rows,).
        starts: Where the slice of each row starts in its array. Shape (all rows,).
        sizes: Its bytes; -1 for NULL. Shape (all rows,).

    Raises:
        UnreadableError: They are too large for one array.
    """
    offsets, targets = np.empty(len(rows) + 1, np.int64), np.full(len(sizes), -1, np.int64)
    missing = slice_offsets(sizes, rows, offsets, targets)
    if offsets[-1] > _MAX_OFFSET:
        raise UnreadableError
    out = np.empty(offsets[-1], np.uint8)
    for number, data in enumerate(sources):
        chosen = np.empty(0, np.bool_) if len(sources) == 1 else source == number
        copy_rows(read_only(data), chosen, starts, sizes, targets, out)
    valid = pa.py_buffer(np.packbits(sizes[rows] >= 0, bitorder="little")) if missing else None
    buffers = [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(rows), buffers)


def _offsets(sizes: npt.NDArray[Any]) -> Int64:
    """Return where pieces of some sizes start, one after the other, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _committed(events: Events, grouped: GroupedEvents) -> Int64:
    """Return the microsecond since 1970 at which each epoch committed, as the scalar reader. Shape (epochs,)."""
    begin = grouped.epochs.begin
    exact = np.where(begin > 0, events.committed[begin - 1], 0)
    return np.where(exact > 0, exact, events.second[begin].astype(np.int64) * MICROSECONDS)


def _epochs_table(grouped: GroupedEvents, first_group: Int64, own_rows: Int64, committed: Int64) -> pa.Table:
    """
    Return epochs as `EPOCHS`.

    Args:
        grouped: The events.
        first_group: First group of each epoch, all groups counted through, and the end. Shape (epochs + 1,).
        own_rows: Own rows of each group. Shape (groups,).
        committed: When each epoch committed. Shape (epochs,).
    """
    rows_before = _offsets(own_rows)
    transactions = np.flatnonzero(own_rows)
    transaction_bounds = np.searchsorted(transactions, first_group)
    epoch = np.searchsorted(first_group, transactions, side="right") - 1
    applied_bounds = _offsets(grouped.epochs.applied)

    def lists(name: str, offsets: Int64, values: npt.NDArray[Any]) -> pa.ListArray:
        flat = pa.array(values).cast(EPOCHS.field(name).type.value_type)
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), flat)

    columns = [
        pa.array(grouped.epochs.number),
        pa.array(np.diff(rows_before[first_group])),
        pa.array(committed),
        pa.array(grouped.epochs.unread),
        lists("transactions", transaction_bounds, transactions - first_group[epoch]),
        lists("applied_group", applied_bounds, grouped.applied.group),
        lists("applied_server_id", applied_bounds, grouped.applied.server_id),
        lists("applied_epoch", applied_bounds, grouped.applied.epoch),
    ]
    return pa.table(columns, schema=EPOCHS)
