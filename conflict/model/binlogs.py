"""
A simulation as binlogs: the files that each server would have written.
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

from conflict.engine.kernels.arrays import Int32, Int64
from conflict.engine.kernels.records import Records
from conflict.model.kernels.logged_rows import LoggedRows, RowKind
from conflict.model.kernels.row_events import (
    CHECKSUM,
    HEADER,
    Bytes,
    RowsToPack,
    pack_rows,
    packed_bytes,
    seal_events,
)
from conflict.model.logged_rows import Stretch, logged_epochs, stretches
from conflict.model.row_templates import LOG_NAME, LoggedTable, TemplateSet
from conflict.model.run import CLOCK_START, Simulated
from ndb_formats.rules.update_format import UpdateFormat, effective_format
from ndb_formats.schema.tables import Table
from ndb_formats.writing.binlog_writer import APPLY_STATUS_TABLE, BinlogSettings, BinlogWriter

__all__ = ["FILE_BYTES", "bytes_by_type", "write_binlogs"]

FILE_BYTES = 1 << 30  # max_binlog_size
COMPARED_TYPES = (2, 3, 6, 7, 8, 9)
MICROSECONDS = 1_000_000
_COLUMN_BYTES = 9  # of a column in an image, with its bit for NULL, at most


def write_binlogs(
    run: Simulated,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
    file_bytes: int = FILE_BYTES,
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
    templates: TemplateSet
    settings: BinlogSettings

    @classmethod
    def of(cls, run: Simulated, side: int) -> _Packer:
        """Return that of a cluster."""
        site = run.model.sites[side]
        setups = list(run.model.setups()[site.name].values())
        settings = BinlogSettings(server_id=site.server_id)
        tables = [*(setup.table for setup in setups), APPLY_STATUS_TABLE]
        formats = [*(setup.format for setup in setups), effective_format(None)]
        numbering = BinlogWriter(BytesIO(), settings)
        known = [
            LoggedTable(table, numbering.table_map(table), each) for table, each in zip(tables, formats, strict=True)
        ]
        ids = [each.server_id for each in run.model.sites]
        return cls(np.array(ids), tables, TemplateSet(settings, known), settings)

    def writer(self, out: BinaryIO) -> BinlogWriter:
        """Return what writes a file, in which tables have the numbers that the row events name."""
        writer = BinlogWriter(out, self.settings)
        for table in self.tables:
            writer.table_map(table)
        return writer

    def rows(self, stretch: Stretch, update_format: UpdateFormat | None = None) -> RowsToPack:
        """Return the rows of a stretch with their forms, in the format of each table, or all tables in one."""
        rows = stretch.rows
        status = rows.kind == RowKind.STATUS
        rows.after[status, 2] = int.from_bytes(bytes([len(LOG_NAME)]) + LOG_NAME, "little")
        rows.after[status, 3:] = 0
        forms, templates = self.templates.forms_of(rows, update_format)
        authors = self.server_ids[rows.server]
        return RowsToPack(forms, authors, rows.transaction, rows.before, rows.after, templates)

    def epochs(self, stretch: Stretch, clock: int) -> Iterator[_Epoch]:
        """Yield the epochs of a stretch; `clock` is what the clock shows at time 0, in microseconds since 1970."""
        rows, limit = self.rows(stretch), self.settings.row_event_max_size
        data = _room(stretch, rows)
        for record, (first, stop) in zip(stretch.epochs, pairwise(stretch.starts.tolist()), strict=True):
            moment = clock + int(record["closed"])
            size = pack_rows(first, stop, rows, limit, moment // MICROSECONDS, data)
            yield _Epoch(record, moment, self._tables(stretch.rows, rows.form, slice(first, stop)), data[:size])

    def _tables(self, rows: LoggedRows, forms: Int32, part: slice) -> list[Table]:
        """Return the tables of some rows, in the order in which they are met first."""
        met, first = np.unique(rows.table[part][forms[part] >= 0], return_index=True)
        return [self.tables[number] for number in met[np.argsort(first)]]


def _room(stretch: Stretch, rows: RowsToPack) -> Bytes:
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

    def write(self, stretch: Stretch) -> None:
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
