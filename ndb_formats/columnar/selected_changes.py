"""
The row changes of several files that a `Selection` selects, block by block.

A selection that starts inside a transaction is read from the start of that transaction, because the Table_map events
that its rows need, and its NDB epoch, come before them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ndb_formats.binlog_reader import FIRST_POSITION, server_of
from ndb_formats.columnar.batches import BatchReader, RowBatch
from ndb_formats.columnar.block_reader import BlockReader
from ndb_formats.columnar.event_chunks import EventChunk, read_chunks, with_server_bits
from ndb_formats.columnar.event_index import EventIndex, index_parts, map_bytes
from ndb_formats.columnar.mixed_rows import MixedReader, MixedRows
from ndb_formats.columnar.row_walk import RowWalk
from ndb_formats.columnar.stretches import Stretches
from ndb_formats.columnar.table_rows import TableReader, TableRows
from ndb_formats.columnar.tables import TableRegister
from ndb_formats.columnar.value_texts import value_texts
from ndb_formats.constants import APPLY_STATUS, TRANSACTION_STARTS, EventType
from ndb_formats.errors import CorruptError, CutFileError, FormatError
from ndb_formats.events.query_event import decode_query
from ndb_formats.schema.tables import Schema, split_full_name
from ndb_formats.selection import Selection
from ndb_formats.types.decimals import decimal_as_shown

_Bools = npt.NDArray[np.bool_]
_EVENTS_PER_ROW = 8
_MOST_NAMED = 10  # columns in a note


@attrs.frozen
class ChangeReading:
    """
    How changes are read.

    Attributes:
        schema: Definitions at the start of the log, for names and types that are not in the binlog; they follow its
            statements.
        moments: As for `read_batches`.
        columns: Names of the columns to decode, besides those that the selection looks at; None for all.
        verify: Whether to check checksums.
        rows: Most rows of a block.
        span: Most bytes of a file that a block covers, unless a single event has more.
        seen: Called with a file and the position that has been read.
        met: Called with the ``database.table`` names in the part of a file that was read.
        follows: Whether statements in the log change definitions.
        noted: Called with what is to be said of definitions: a sentence without a full stop.
        only: Files whose changes are read; of the others, only statements that change definitions. None for all.
        is_end: Called with the error of a file that ends inside an event; returns whether the log of its server just
            ends there, instead of the reading of all.
    """

    schema: Schema
    moments: bool = False
    columns: Collection[str] | None = None
    verify: bool = False
    rows: int = 1 << 15
    span: int = 1 << 25
    seen: Callable[[str, int], None] = lambda file, position: None
    met: Callable[[Iterable[str]], object] = lambda names: None
    follows: bool = True
    noted: Callable[[str], object] = lambda note: None
    only: Collection[str] | None = None
    is_end: Callable[[CutFileError], bool] = lambda error: False


Changes = TypeVar("Changes", RowBatch, TableRows, RowBatch | MixedRows)


@attrs.frozen(eq=False)
class Block(Generic[Changes]):
    """
    Changes that follow each other in a file.

    Attributes:
        file: Path of the file.
        batches: The changes, by table and kind or by table; their `places` give the order.
    """

    file: str
    batches: Sequence[Changes]


def ends_log(error: CutFileError) -> bool:
    """Whether a log just ends where its file ends inside an event: not if no event of the file is whole."""
    return (error.position or 0) > FIRST_POSITION


def selected_changes(files: Sequence[str], selection: Selection, reading: ChangeReading) -> Iterator[Block[RowBatch]]:
    """
    Yield the selected changes of files by table and kind, in blocks in the order of the files.

    Args:
        files: Paths in the order in which the files were written.
        selection: Which changes to select.
        reading: How to read them.

    Raises:
        FormatError: A file cannot be read further; all changes before have been yielded.
    """
    return _selected(files, selection, reading, BatchReader)


def selected_rows(files: Sequence[str], selection: Selection, reading: ChangeReading) -> Iterator[Block[TableRows]]:
    """Yield the selected changes of files by table, each in the order of the files; see `selected_changes`."""
    return _selected(files, selection, reading, TableReader)


def selected_maps(
    files: Sequence[str], selection: Selection, reading: ChangeReading
) -> Iterator[Block[RowBatch | MixedRows]]:
    """Yield the selected changes of files, those of a block together where that can be done; see `selected_changes`."""
    # The values of a key are looked for in batches.
    return _selected(files, selection, reading, BatchReader if selection.key else MixedReader)


def _selected(
    files: Sequence[str],
    selection: Selection,
    reading: ChangeReading,
    reader: Callable[[RowWalk], BlockReader[Changes]],
) -> Iterator[Block[Changes]]:
    if reading.columns is not None:
        columns = frozenset(reading.columns).union(name for name, _ in selection.key)
        reading = attrs.evolve(reading, columns=columns)
    doubtful: dict[str, dict[str, None]] = {}
    try:
        yield from _blocks(files, selection, reading, reader, doubtful)
    finally:
        for table, names in doubtful.items():
            if names:
                reading.noted(remark_on_signs(table, list(names)))


def _blocks(
    files: Sequence[str],
    selection: Selection,
    reading: ChangeReading,
    reader: Callable[[RowWalk], BlockReader[Changes]],
    doubtful: dict[str, dict[str, None]],
) -> Iterator[Block[Changes]]:
    """Yield the blocks; `doubtful` takes, by table, the columns whose negative values may be large ones."""

    def wanted(name: str) -> bool:
        database, table = split_full_name(name)
        chosen = name != APPLY_STATUS or APPLY_STATUS in selection.tables
        return chosen and selection.has_name(database, table)

    for part in selected_parts(files, selection, reading):
        register = TableRegister(part.schema, wanted, reading.columns, text=True, moments=reading.moments)
        walk = RowWalk(register, reading.rows)
        for chunk in part.chunks(selection, reading):
            for batches in reader(walk).blocks(chunk):
                kept = [batch.where(_kept_rows(batch, selection, part.first)) for batch in batches]
                for batch in kept:
                    if not isinstance(batch, MixedRows) and not batch.signs_known:
                        names = doubtful.setdefault(batch.full_name, {})
                        names |= dict.fromkeys(negative_columns(batch, names))
                yield Block(part.file, [batch for batch in kept if len(batch)])
                reading.met(register.names)
                for table, note in register.notes.items():
                    reading.noted(f"table {table}: {note}")
                if selection.stop_epoch is not None and walk.facts.epochs.max(initial=0) > selection.stop_epoch:
                    part.log.has_ended = True
                    break
            if part.log.has_ended:
                break
            if chunk.error is not None:
                part.log.ends_with(chunk.error, reading)


@attrs.define(eq=False)
class ServerLog:
    """
    The log of one server; a selection may want no more of it.

    Attributes:
        has_ended: Whether what the selection stops at has been met, or its end inside an event.
    """

    has_ended: bool = False

    def ends_with(self, error: FormatError, reading: ChangeReading) -> None:
        """
        End the log at a file that ends inside an event, if `reading` wants that.

        Raises:
            FormatError: It does not, or the error is another one.
        """
        if not isinstance(error, CutFileError) or not reading.is_end(error):
            raise error
        self.has_ended = True


@attrs.frozen(eq=False)
class SelectedPart:
    """
    A part of a file that is read for a selection, in which definitions stay.

    Attributes:
        file: Path of the file.
        first: First position that is selected.
        start: Position of its first event, which can be that of the transaction at `first`.
        stop: Position after its last event; None for the end of the file.
        schema: The definitions that are in force.
        log: The log that it is part of.
    """

    file: str
    first: int
    start: int
    stop: int | None
    schema: Schema
    log: ServerLog

    def chunks(self, selection: Selection, reading: ChangeReading) -> Iterator[EventChunk]:
        """Yield its chunks; the moment to stop at ends the log with the events before it."""
        events, size = max(reading.rows * _EVENTS_PER_ROW, 1024), reading.span
        for chunk in read_chunks(
            self.file, start=self.start, stop=self.stop, verify=reading.verify, events=events, span=size
        ):
            chunk = with_server_bits(chunk, selection.server_id_bits)  # noqa: PLW2901  # as it is to be read
            if len(chunk.stops):
                reading.seen(self.file, int(chunk.stops[-1]))
            if selection.stop_time is not None and (chunk.timestamps >= selection.stop_time).any():
                self.log.has_ended = True
                yield _first_events(chunk, int((chunk.timestamps >= selection.stop_time).argmax()))
                return
            yield chunk


def selected_parts(files: Sequence[str], selection: Selection, reading: ChangeReading) -> Iterator[SelectedPart]:
    """
    Yield the parts of files that are read for a selection, each from the transaction at its first position on.

    Whoever reads a part says in its log when that has ended; then no more parts of that log follow.

    Raises:
        FormatError: The first position is none of an event.
    """
    stretches = Stretches(reading.schema, follows=reading.follows)
    logs: dict[int | None, ServerLog] = {}
    for number, file in enumerate(files):
        log = logs.setdefault(server_of(file), ServerLog())
        if log.has_ended:
            continue
        first = selection.start_position if number == 0 else FIRST_POSITION
        stop = selection.stop_position if number == len(files) - 1 else None
        start = _transaction_start(file, first) if first > FIRST_POSITION else FIRST_POSITION
        for stretch in stretches.of(file):
            bounds = stretch.within(start, stop)
            is_read = reading.only is None or file in reading.only
            if bounds is not None and is_read and not log.has_ended:
                yield SelectedPart(file, first, *bounds, stretch.schema, log)
        for note in stretches.notes:
            reading.noted(note)
        stretches.notes.clear()


def _first_events(chunk: EventChunk, count: int) -> EventChunk:
    arrays = ("types", "starts", "ends", "positions", "stops", "server_ids", "timestamps")
    # The next positions are known, or are read at `starts`.
    nexts = chunk.next_positions[:count]
    return attrs.evolve(
        chunk, error=None, next_positions=nexts, **{name: getattr(chunk, name)[:count] for name in arrays}
    )


def _kept_rows(batch: RowBatch | TableRows | MixedRows, selection: Selection, start: int) -> _Bools:
    """Return which rows are selected, as far as tables and stops do not say so already. Shape (rows,)."""
    rows = batch.records
    kept = np.ones(len(batch), np.bool_)
    if start > FIRST_POSITION:
        kept &= rows.column("position").to_numpy() >= start
    if selection.start_time:
        kept &= rows.column("timestamp").to_numpy() >= selection.start_time
    if selection.start_epoch or selection.stop_epoch is not None:
        epochs = rows.column("epoch")
        known = epochs.fill_null(0).to_numpy()
        kept &= epochs.is_valid().to_numpy(zero_copy_only=False) & (known >= selection.start_epoch)
        kept &= known <= np.uint64(2**64 - 1 if selection.stop_epoch is None else selection.stop_epoch)
    for name, chosen in (("server_id", selection.server_ids), ("transaction_id", selection.transactions)):
        if chosen:
            column = rows.column(name)
            found = pc.is_in(column, pa.array(sorted(chosen), column.type))
            kept &= found.to_numpy(zero_copy_only=False)
    if selection.key and not isinstance(batch, MixedRows):
        kept &= _has_key(batch, selection.key)
    return kept


_SIGNS = (
    "the log does not say which integers are unsigned, and nothing defines the table: negative ones may be large ones; "
    "give its CREATE TABLE statement (--schema)"
)


def remark_on_signs(table: str, columns: Sequence[str]) -> str:
    """Return what is to be said of columns with negative values of a table whose signs are not known."""
    return f"table {table}: {_columns_text(columns)}: {_SIGNS}"


def negative_columns(batch: RowBatch | TableRows, known: Collection[str] = ()) -> Iterator[str]:
    """Yield the columns of integers with a negative value, but for those that are `known` to have some."""
    for image in ("before", "after"):
        for field in batch.records.schema.field(image).type if image in batch.records.schema.names else ():
            if pa.types.is_signed_integer(field.type) and field.name not in known:
                least = pc.min(batch.records.column(image).field(field.name)).as_py()
                if least is not None and least < 0:
                    yield field.name


def _columns_text(names: Sequence[str]) -> str:
    """Return columns in words; of many, the first ones and how many more there are."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{'column' if len(names) == 1 else 'columns'} {', '.join(names[:_MOST_NAMED])}{more}"


def _has_key(batch: RowBatch | TableRows, key: Sequence[tuple[str, str]]) -> _Bools:
    """Return which rows have an image that gives each of these columns its value."""
    kept = np.ones(len(batch), np.bool_)
    for column, value in key:
        found = np.zeros(len(batch), np.bool_)
        for image in ("before", "after"):
            if image in batch.records.schema.names and column in batch.layout.names:
                values = batch.records.column(image)
                if values.type.get_field_index(column) >= 0:
                    field = values.field(column)
                    shown = decimal_as_shown(value, field.type.scale) if pa.types.is_decimal(field.type) else value
                    same = pc.equal(value_texts(field, batch.types[column]), shown)
                    found |= same.fill_null(False).to_numpy(zero_copy_only=False)
        kept &= found
    return kept


def _transaction_start(file: str, position: int) -> int:
    """
    Return where the transaction starts that an event belongs to.

    Args:
        file: The binlog file.
        position: Position of the event.

    Raises:
        CorruptError: No event starts there.
        FormatError: The file cannot be read as far as that.
    """
    found, end = FIRST_POSITION, FIRST_POSITION
    data = map_bytes(file)
    for index in index_parts(file, stop=position + 1, verify=False):
        if index.error is not None and index.end <= position:
            raise index.error
        found = _last_start(index, data) or found
        end = index.end
        at = position in index.positions[-1:]
    if not at and end != position:
        message = f"no event starts at position {position}; one ends at {end}"
        raise CorruptError(message, file=file, position=position)
    return found


def _last_start(index: EventIndex, data: npt.NDArray[np.uint8]) -> int | None:
    """Return where the last transaction of an index starts."""
    starts, ends = index.bodies
    begins = np.isin(index.types, (EventType.QUERY_EVENT, *TRANSACTION_STARTS))
    for event in np.flatnonzero(begins)[::-1].tolist():
        at = int(index.positions[event])
        if index.types[event] != EventType.QUERY_EVENT:
            return at
        if decode_query(data[starts[event] : ends[event]].tobytes()).statement.upper() == "BEGIN":
            return at
    return None
