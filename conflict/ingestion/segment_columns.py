"""
One run of a cluster's binlog to the parts of a grid, in columns: the answers of `EpochReader` and `PartBuilder`.

The events of the run are walked by compiled code, which finds where the images of every row stand, its key and the
value that a conflict function compares; then events are divided into epochs and groups; then rows are put in order.
No Python runs per row, event or epoch. What cannot be read this way is left to the scalar reader, which says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.grid.epoch_files import EPOCHS
from conflict.grid.key_buckets import TableNumbers
from conflict.grid.schemas import IMAGES, STAGED_CHANGES, STAGED_CONSEQUENCES
from conflict.ingestion.kernels.epochs import count_grouped, group_events, order_rows
from conflict.ingestion.segment_rows import Events, Rows, SegmentWalk, Shapes, UnreadableError
from conflict.ingestion.segments import Segment
from ndb_formats.columnar.event_chunks import read_chunks
from ndb_formats.columnar.kernels.keys import copy_slices
from ndb_formats.errors import FormatError
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Schema

__all__ = ["SegmentColumns", "read_columns"]

_EVENTS, _SPAN = 1 << 18, 1 << 26
_MAX_OFFSET = 0x7FFFFFFF
_LEAST_ROOM = 16

Int64 = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class _Ordered:
    """
    Rows by bucket, and in order within each.

    Attributes:
        changes: The cluster's own. Shape (changes,), int64.
        consequences: All others. Shape (consequences,), int64.
        bounds: Where each bucket starts among both. Shape (2, buckets + 1), int64.
        ordinals: Number of each own row among those of its epoch. Shape (rows,), int32.
    """

    changes: Int64
    consequences: Int64
    bounds: Int64
    ordinals: npt.NDArray[np.int32]


@attrs.frozen(eq=False)
class SegmentColumns:
    """
    A run that was read.

    Attributes:
        epochs: Its epochs as `EPOCHS`.
        settled: Where the last event ends after which no transaction was open; 0 if there was none.
        error: Why it could not be read to its end; None if it could.
        left_out: Row operations of an epoch that is not complete.
        shapes: What its rows are.
    """

    epochs: pa.Table
    settled: int
    error: FormatError | None
    left_out: int
    shapes: Shapes
    _file: int
    _sources: Sequence[npt.NDArray[np.uint8]]
    _events: Events
    _rows: Rows
    _key_at: Int64
    _group_of: npt.NDArray[np.int32]
    _number_of: npt.NDArray[np.uint64]
    _ordered: _Ordered

    def tables(self) -> Iterator[tuple[int, pa.Table, pa.Table, pa.Table]]:
        """
        Yield, per bucket that has rows, its staged changes, images and staged consequences.

        Raises:
            UnreadableError: One of them is too large for one file.
        """
        changes, others = self._ordered.bounds
        for bucket in range(len(changes) - 1):
            own = self._ordered.changes[changes[bucket] : changes[bucket + 1]]
            other = self._ordered.consequences[others[bucket] : others[bucket + 1]]
            if len(own) or len(other):
                yield bucket, self._changes(own), self._images(own), self._consequences(other)

    def _changes(self, rows: Int64) -> pa.Table:
        events, found = self._events, self._rows
        event = found.event[rows]
        shape = events.shapes[event]
        columns = [
            self._identities(rows),
            pa.array(np.array(self.shapes.table, np.int16)[shape]),
            pa.array(np.array(self.shapes.operation, np.int8)[shape]),
            pa.array(events.flags[event].astype(np.int16)),
            pa.array(self._number_of[event]),
            pa.array(self._group_of[event]),
            pa.array(self._ordered.ordinals[rows]),
            _bitmaps(self.shapes.before, shape),
            pa.array(found.before_value[rows]),
            _bitmaps(self.shapes.after, shape),
            pa.array(found.after_value[rows]),
            pa.array(events.ids[event], mask=events.no_id[event]),
            pa.array(np.full(len(rows), self._file, np.int16)),
            pa.array(events.positions[event].view(np.uint64)),
            pa.array(found.number[rows]),
        ]
        return pa.table(columns, schema=STAGED_CHANGES)

    def _images(self, rows: Int64) -> pa.Table:
        found = self._rows
        columns = [
            self._gathered(rows, found.before_at, found.before_size),
            self._gathered(rows, found.after_at, found.after_size),
        ]
        return pa.table(columns, schema=IMAGES)

    def _consequences(self, rows: Int64) -> pa.Table:
        events = self._events
        event = self._rows.event[rows]
        shape = events.shapes[event]
        deleted = np.array(self.shapes.operation, np.int8)[shape] == Operation.DELETE_ROW
        refreshed = events.flags[event] & int(ConflictFlag.REFRESH) != 0
        columns = [
            self._identities(rows),
            pa.array(np.array(self.shapes.table, np.int16)[shape]),
            pa.array(self._number_of[event]),
            pa.array(self._group_of[event]),
            pa.array((1 + deleted + 2 * refreshed).astype(np.int8)),  # numbered so in `conflict.results.model.Effect`
        ]
        return pa.table(columns, schema=STAGED_CONSEQUENCES)

    def _identities(self, rows: Int64) -> pa.BinaryArray:
        return _binary([(self._rows.keys, slice(None))], self._key_at[rows], self._rows.key_size[rows])

    def _gathered(self, rows: Int64, starts: Int64, sizes: Int64) -> pa.BinaryArray:
        """Return images, wherever they stand."""
        sources: list[tuple[npt.NDArray[np.uint8], slice | Int64]] = [(self._sources[0], slice(None))]
        if len(self._sources) > 1:
            source = self._rows.source[rows]
            sources = [(data, np.flatnonzero(source == number)) for number, data in enumerate(self._sources)]
        return _binary(sources, starts[rows], sizes[rows])


def _binary(
    sources: Sequence[tuple[npt.NDArray[np.uint8], slice | Int64]], starts: Int64, sizes: Int64
) -> pa.BinaryArray:
    """
    Copy slices of bytes.

    Args:
        sources: Arrays of bytes, and which of the slices stand in each.
        starts: Where each starts in its array.
        sizes: Their bytes; -1 for NULL.
    """
    missing = sizes < 0
    sizes = np.maximum(sizes, 0)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    if offsets[-1] > _MAX_OFFSET:
        raise UnreadableError
    out = np.empty(offsets[-1], np.uint8)
    for data, chosen in sources:
        copy_slices(data, starts[chosen], sizes[chosen], offsets[:-1][chosen], out)
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    buffers = [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(sizes), buffers)


def _bitmaps(bitmap_of_shape: Sequence[bytes | None], shape: npt.NDArray[np.int32]) -> pa.DictionaryArray:
    """Return the columns that the images of rows carry; no bytes for no image."""
    different = pa.array([bitmap or b"" for bitmap in bitmap_of_shape], pa.binary()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(different.indices.take(pa.array(shape)), different.dictionary)


def read_columns(
    segment: Segment, server_id: int, schema: Schema, numbers: TableNumbers, buckets: int, file: int
) -> SegmentColumns | None:
    """
    Read a run.

    Args:
        segment: The stretch of the binlog.
        server_id: The cluster's own.
        schema: The tables to read.
        numbers: Their numbers.
        buckets: Into how many buckets keys are divided.
        file: Number of the file among the cluster's.

    Returns:
        What is in it; None where only the scalar reader can say what is wrong.
    """
    walk, error = SegmentWalk(schema, numbers, buckets), None
    try:
        stretches = read_chunks(
            segment.file, start=segment.start, stop=segment.stop, verify=True, events=_EVENTS, span=_SPAN
        )
        for stretch in stretches:
            walk.add(stretch)
            error = stretch.error
        if not walk.sources:
            return None
        return _columns(walk, server_id, buckets, file, error)
    except (FormatError, UnreadableError):
        return None


def _columns(walk: SegmentWalk, server_id: int, buckets: int, file: int, error: FormatError | None) -> SegmentColumns:
    events, rows, status = walk.events, walk.rows, walk.status
    bounds = np.searchsorted(status.event, np.arange(len(events.roles) + 1))
    room = max(2 * int(count_grouped(events.roles, bounds)), _LEAST_ROOM)
    room = 1 << (room - 1).bit_length()
    table = np.empty(room, np.uint64), np.empty(room, np.int8), np.zeros(room, np.int64), np.empty(room, np.int32)
    count = len(events.roles)
    group_of, epoch_of, own = np.zeros(count, np.int32), np.full(count, -1, np.int64), np.zeros(count, np.bool_)
    epochs = np.empty(count, np.uint64), np.empty(count, np.int32), np.empty(count, np.int32)
    length = len(status.event)
    applied = np.empty(length, np.int32), np.empty(length, np.uint64), np.empty(length, np.uint64)
    found, applied_count, left_out, last, fine = group_events(
        (events.roles, events.ids, events.no_id, events.servers, events.flags, events.rows),
        (bounds, status.servers, status.epochs, status.logs),
        np.uint64(server_id),
        table,
        group_of,
        epoch_of,
        own,
        epochs,
        applied,
    )
    if not fine:
        raise UnreadableError
    number, groups, applied_counts = epochs[0][:found], epochs[1][:found], epochs[2][:found]
    first_group = np.concatenate([np.zeros(1, np.int64), np.cumsum(groups, dtype=np.int64)])
    own_rows = np.zeros(first_group[-1], np.int64)
    ordinals, places = np.zeros(len(rows.event), np.int32), np.zeros((2, buckets), np.int64)
    changes, consequences = order_rows(
        rows.event, rows.bucket, epoch_of, group_of, own, first_group, own_rows, ordinals, places
    )
    begins = np.concatenate([np.zeros((2, 1), np.int64), np.cumsum(places, axis=1)], axis=1)
    return SegmentColumns(
        _epochs_table(number, first_group, own_rows, applied_counts, [each[:applied_count] for each in applied]),
        int(events.stops[last]) if last >= 0 else 0,
        error,
        left_out if error is not None else 0,
        walk.shapes,
        file,
        walk.sources,
        events,
        rows,
        np.cumsum(rows.key_size) - rows.key_size,
        group_of,
        np.append(number, np.uint64(0))[epoch_of],
        _Ordered(changes, consequences, begins, ordinals),
    )


def _epochs_table(
    number: npt.NDArray[np.uint64],
    first_group: Int64,
    own_rows: Int64,
    applied_counts: npt.NDArray[np.int32],
    applied: Sequence[npt.NDArray[Any]],
) -> pa.Table:
    """
    Return epochs as `EPOCHS`.

    Args:
        number: Of each epoch.
        first_group: Of each epoch, counted through. Shape (epochs + 1,).
        own_rows: Own rows of each group.
        applied_counts: Applied epochs of each epoch.
        applied: Group, server id and epoch of each of those.
    """
    rows_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(own_rows)])
    transactions = np.flatnonzero(own_rows)
    bounds = np.searchsorted(transactions, first_group)
    epoch = np.searchsorted(first_group, transactions, side="right") - 1
    applied_bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(applied_counts, dtype=np.int64)])

    def lists(offsets: Int64, values: npt.NDArray[Any], place: int) -> pa.ListArray:
        flat = pa.array(values).cast(EPOCHS.field(place).type.value_type)
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), flat)

    columns = [
        pa.array(number),
        pa.array(np.diff(rows_before[first_group])),
        lists(bounds, transactions - first_group[epoch], 2),
        *(lists(applied_bounds, values, 3 + place) for place, values in enumerate(applied)),
    ]
    return pa.table(columns, schema=EPOCHS)
