"""
A simulation as binlogs: the files that each server would have written.

The forms of row events in which a cluster of a simulation logs rows, found as rows come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import attrs
import numpy as np

from conflict.engine.kernels.arrays import Int32, Int64, UInt64
from conflict.engine.kernels.records import Records
from conflict.whatif.simulating.configuration import CLOCK_START
from conflict.whatif.simulating.kernels.logged_rows import RowKind, SimulatedRows
from conflict.whatif.simulating.kernels.row_events import (
    CHECKSUM,
    HEADER,
    Bytes,
    RowsToPack,
    Templates,
    pack_rows,
    packed_bytes,
    seal_events,
)
from conflict.whatif.simulating.kernels.world import RESOLVE_BIT
from conflict.whatif.simulating.logged_rows import EpochStretch, logged_epochs, stretches
from conflict.whatif.simulating.run import Simulated
from ndb_formats.constants import ColumnCode
from ndb_formats.events.rows_event import ConflictFlag, ExtraRowInfo, Operation, RowsEvent, encode_rows_event
from ndb_formats.events.table_map import TableMap
from ndb_formats.rules.row_image_rules import EventColumns, ordered, stored_columns
from ndb_formats.rules.update_format import UpdateFormat, effective_format, ndb_columns
from ndb_formats.schema.tables import Table
from ndb_formats.writing.binlog_writer import APPLY_STATUS_TABLE, BinlogSettings, BinlogWriter, rows_shape

_LOG_NAME = b"binlog"  # of a row of `ndb_apply_status`
_WIDTHS = {ColumnCode.LONG: 4, ColumnCode.LONGLONG: 8, ColumnCode.VARCHAR: 1 + len(_LOG_NAME)}
_KINDS, _FLAGS = 8, 8  # more than there are


@attrs.frozen
class _LoggedTable:
    """
    A table as a cluster logs it.

    Attributes:
        table: Its definition.
        table_map: Its Table_map event.
        format: How it is logged.
    """

    table: Table
    table_map: TableMap
    format: UpdateFormat


@attrs.define
class _TemplateSet:
    """
    The forms that were met, numbered in that order.

    Attributes:
        settings: How the server writes.
        tables: The tables by number; `ndb_apply_status` is the last one.
    """

    settings: BinlogSettings
    tables: Sequence[_LoggedTable]
    _numbers: dict[tuple[int, int], int] = attrs.field(factory=dict)

    def forms_of(self, rows: SimulatedRows, update_format: UpdateFormat | None = None) -> tuple[Int32, Templates]:
        """
        Return the number of the form of each row event, and all forms.

        Args:
            rows: The row events.
            update_format: How all tables are logged; None for each as it is.

        Returns:
            The numbers, -1 for a row that is not logged, shape (rows,); and the forms by number.
        """
        numbers = self._numbers_of(rows)
        shapes = [self._shape(*pair, update_format) for pair in self._numbers]
        # An insert and an update that is logged as a write can have one form.
        distinct = list(dict.fromkeys(shapes))
        places = {shape: place for place, shape in enumerate(distinct)}
        which = np.array([places[shape] for shape in shapes], np.int32)
        templates = _templates(distinct, rows.after.shape[1])
        return np.where(numbers < 0, np.int32(-1), which[numbers]), templates

    def _numbers_of(self, rows: SimulatedRows) -> Int32:
        forms = (rows.table.astype(np.int64) + 1) * _KINDS * _FLAGS + rows.kind * _FLAGS + rows.flags
        sets, which = np.unique(_deciding_columns(rows), return_inverse=True)
        both, place = np.unique(forms * len(sets) + which, return_inverse=True)
        pairs = [(int(each) // len(sets), int(sets[int(each) % len(sets)])) for each in both]
        found = np.array([self._numbers.setdefault(pair, len(self._numbers)) for pair in pairs], np.int32)
        return np.where(rows.kind == RowKind.NOTHING, np.int32(-1), found[place])

    def _shape(self, form: int, written: int, update_format: UpdateFormat | None) -> tuple[TableMap, RowsEvent]:
        """Return the Table_map event of a form, and its rows event without rows."""
        number, kind, flags = form // _FLAGS // _KINDS - 1, RowKind(form // _FLAGS % _KINDS), form % _FLAGS
        logged = self.tables[number]
        columns = _columns(logged.table, update_format or logged.format, kind, written)
        extra = ExtraRowInfo(0, ConflictFlag(flags) if flags else None)
        return logged.table_map, rows_shape(self.settings, logged.table, logged.table_map, columns, extra)


def _templates(shapes: Sequence[tuple[TableMap, RowsEvent]], ordinals: int) -> Templates:
    """Return forms for compiled code."""
    heads = [encode_rows_event(shape) for _, shape in shapes]
    widths = np.zeros((len(shapes), ordinals), np.int32)
    nullable: UInt64 = np.zeros(len(shapes), np.uint64)
    for place, (table_map, _) in enumerate(shapes):
        widths[place, : len(table_map.types)] = [_WIDTHS[each.code] for each in table_map.types]
        nullable[place] = _bits([ordinal for ordinal, null in enumerate(table_map.nullable) if null])
    starts: Int64 = np.cumsum([0, *map(len, heads)], dtype=np.int64)
    return Templates(
        heads=np.frombuffer(b"".join(heads), np.uint8),
        starts=starts,
        types=np.array([shape.type for _, shape in shapes], np.uint8),
        before=np.array([_bits(shape.before or ()) for _, shape in shapes], np.uint64),
        after=np.array([_bits(shape.after or ()) for _, shape in shapes], np.uint64),
        nullable=nullable,
        widths=widths,
    )


def _deciding_columns(rows: SimulatedRows) -> UInt64:
    """Return the written columns of updates, which decide on the columns of their images; 0 for all else."""
    return np.where(rows.kind == RowKind.UPDATE, rows.written, np.uint64(0))


def _columns(table: Table, update_format: UpdateFormat, kind: RowKind, written: int) -> EventColumns:
    """Return the columns of a row event."""
    if kind in (RowKind.STATUS, RowKind.NOTHING):
        return EventColumns(Operation.WRITE_ROW, None, ordered(stored_columns(table)))
    if kind is RowKind.REFRESH_DELETE:
        return EventColumns(Operation.DELETE_ROW, ordered(table.key_ordinals), None)
    resolve = {len(table.columns) - 1} if written & int(RESOLVE_BIT) else set()
    ordinals = {bit + 1 for bit in range(len(table.columns) - 1) if written >> bit & 1} | resolve
    found = ndb_columns(update_format, table, Operation(int(kind)), ordinals)
    assert found is not None  # tables of a model are logged
    return found


def _bits(ordinals: Sequence[int]) -> int:
    return sum(1 << ordinal for ordinal in ordinals)


_FILE_BYTES = 1 << 30  # max_binlog_size
COMPARED_TYPES = (2, 3, 6, 7, 8, 9)
MICROSECONDS = 1_000_000
_COLUMN_BYTES = 9  # of a column in an image, with its bit for NULL, at most


def write_binlogs(
    run: Simulated,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
    file_bytes: int = _FILE_BYTES,
) -> dict[str, list[str]]:
    """
    Write the binlog files of the clusters, each cluster's into a folder of its name.

    Args:
        run: The simulation.
        folder: Where the folders go.
        progress: Called with what is done and what there is to do.
        file_bytes: A file ends with the epoch that makes it longer than this.

    Returns:
        The names of the files of each cluster, in order, relative to `folder`.
    """
    total, done = sum(len(logged_epochs(run, side)) for side in range(len(run.model.sites))), 0
    files = {}
    for side, site in enumerate(run.model.sites):
        (folder / site.name).mkdir()
        log = _LogFiles(_Packer.of(run, side), folder / site.name, CLOCK_START - run.start + site.skew, file_bytes)
        for stretch in stretches(run, side):
            log.write(stretch)
            done += len(stretch.epochs)
            progress(done, total)
        log.close()
        files[site.name] = [f"{site.name}/{name}" for name in log.names]
    return files


def bytes_by_type(run: Simulated) -> dict[str, dict[int, int]]:
    """Return how many bytes of row events each cluster logs if all tables have a binlog type, by cluster and type."""
    found = {}
    for side, site in enumerate(run.model.sites):
        packer, sizes = _Packer.of(run, side), dict.fromkeys(COMPARED_TYPES, 0)
        for stretch in stretches(run, side):
            for number in sizes:
                rows = packer.rows(stretch, effective_format(number))
                limit = packer.settings.row_event_max_size
                sizes[number] += int(packed_bytes(stretch.starts, rows, limit, _room(stretch, rows)))
        found[site.name] = sizes
    return found


@attrs.frozen(eq=False)
class _Epoch:
    """The row events of an epoch, without positions and checksums, and their tables; both until the next epoch."""

    record: Records
    moment: int
    tables: list[Table]
    events: Bytes


@attrs.define
class _Packer:
    """
    Packs the rows of a cluster into row events.

    Attributes:
        server_ids: Of all clusters.
        tables: Its tables, `ndb_apply_status` last.
        templates: The forms of its row events.
        settings: How its server writes.
    """

    server_ids: Int64
    tables: Sequence[Table]
    templates: _TemplateSet
    settings: BinlogSettings

    @classmethod
    def of(cls, run: Simulated, side: int) -> _Packer:
        """Return that of a cluster."""
        site = run.model.sites[side]
        setups = list(run.model.setups[site.name].values())
        settings = BinlogSettings(server_id=site.server_id)
        tables = [*(setup.table for setup in setups), APPLY_STATUS_TABLE]
        formats = [*(setup.format for setup in setups), effective_format(None)]
        numbering = BinlogWriter(BytesIO(), settings)
        known = [
            _LoggedTable(table, numbering.table_map(table), each) for table, each in zip(tables, formats, strict=True)
        ]
        ids = [each.server_id for each in run.model.sites]
        return cls(np.array(ids), tables, _TemplateSet(settings, known), settings)

    def writer(self, out: BinaryIO) -> BinlogWriter:
        """Return what writes a file, in which tables have the numbers that the row events name."""
        writer = BinlogWriter(out, self.settings)
        for table in self.tables:
            writer.table_map(table)
        return writer

    def rows(self, stretch: EpochStretch, update_format: UpdateFormat | None = None) -> RowsToPack:
        """Return the rows of a stretch with their forms, in the format of each table, or all tables in one."""
        rows = stretch.rows
        status = rows.kind == RowKind.STATUS
        rows.after[status, 2] = int.from_bytes(bytes([len(_LOG_NAME)]) + _LOG_NAME, "little")
        rows.after[status, 3:] = 0
        forms, templates = self.templates.forms_of(rows, update_format)
        authors = self.server_ids[rows.server]
        return RowsToPack(forms, authors, rows.transaction, rows.before, rows.after, templates)

    def epochs(self, stretch: EpochStretch, clock: int) -> Iterator[_Epoch]:
        """Yield the epochs of a stretch; `clock` is what the clock shows at time 0, in microseconds since 1970."""
        rows, limit = self.rows(stretch), self.settings.row_event_max_size
        data = _room(stretch, rows)
        for record, (first, stop) in zip(stretch.epochs, pairwise(stretch.starts.tolist()), strict=True):
            moment = clock + int(record["closed"])
            size = pack_rows(first, stop, rows, limit, moment // MICROSECONDS, data)
            yield _Epoch(record, moment, self._tables(stretch.rows, rows.form, slice(first, stop)), data[:size])

    def _tables(self, rows: SimulatedRows, forms: Int32, part: slice) -> list[Table]:
        """Return the tables of some rows, in the order in which they are met first."""
        met, first = np.unique(rows.table[part][forms[part] >= 0], return_index=True)
        return [self.tables[number] for number in met[np.argsort(first)]]


def _room(stretch: EpochStretch, rows: RowsToPack) -> Bytes:
    """Return room for the row events of any epoch of a stretch."""
    head = HEADER + CHECKSUM + int(np.diff(rows.templates.starts).max(initial=0))
    longest = head + 2 * rows.after.shape[1] * _COLUMN_BYTES
    return np.empty(longest * int(np.diff(stretch.starts).max(initial=0)), np.uint8)


@attrs.define
class _LogFiles:
    """
    Writes the files of a cluster's log.

    Attributes:
        packer: Makes its row events.
        folder: Where the files go.
        clock: What the cluster's clock shows at time 0, in microseconds since 1970.
        file_bytes: As for `write_binlogs`.
        names: The files so far.
    """

    packer: _Packer
    folder: Path
    clock: int
    file_bytes: int
    names: list[str] = attrs.field(factory=list)
    _out: BinaryIO | None = None
    _writer: BinlogWriter | None = None
    _moment: int = 0

    def write(self, stretch: EpochStretch) -> None:
        """Write a stretch of epochs."""
        for epoch in self.packer.epochs(stretch, self.clock):
            self._moment, events = epoch.moment, epoch.events
            writer = self._open(epoch.moment)
            writer.write_packed_epoch(
                int(epoch.record["number"]), epoch.tables, events.data, partial(seal_events, events), epoch.moment
            )

    def close(self) -> None:
        """End the last file."""
        self._open(self._moment).finish()
        self._finish()

    def _open(self, moment: int) -> BinlogWriter:
        """Return the writer of a file that has room."""
        if self._writer is not None and self._writer.position > self.file_bytes:
            self._writer.finish(_name(len(self.names) + 1))
            self._finish()
        if self._writer is None:
            self.names.append(_name(len(self.names) + 1))
            self._out = (self.folder / self.names[-1]).open("wb")
            self._writer = self.packer.writer(self._out)
            self._writer.start(moment)
        return self._writer

    def _finish(self) -> None:
        if self._out is not None:
            self._out.close()
        self._out = self._writer = None


def _name(number: int) -> str:
    return f"binlog.{number:06}"
