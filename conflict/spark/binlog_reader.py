"""
Reads binlog files in pieces, one Spark task each.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition

from conflict.decoding.inputs import Inputs, opened_inputs
from conflict.decoding.one_table import fitted_changes
from conflict.errors import ConfigurationError, LogWarning
from conflict.history.ingestion.segments import plan_segments
from conflict.spark.binlog_options import BinlogOptions
from conflict.spark.chosen_parts import chosen_parts, in_time, made_by
from conflict.spark.envelope import enveloped, facts_of
from conflict.spark.left_out import LeftOut
from ndb_formats.columnar.batches import RowBatch, read_batches
from ndb_formats.columnar.log_remarks import remarks_on_rows
from ndb_formats.columnar.log_scan import LogItem, scan_log
from ndb_formats.columnar.records import RECORDS, record_batches, records_of
from ndb_formats.columnar.selected_changes import negative_columns, remark_on_signs
from ndb_formats.columnar.stretches import Stretch, Stretches
from ndb_formats.columnar.table_rows import TableRows, read_table_rows
from ndb_formats.errors import FormatError
from ndb_formats.row_reader import read_rows
from ndb_formats.schema.tables import Schema
from ndb_formats.stored import path_of, reading

IMAGES = frozenset({"before", "after"})
_BATCH_ROWS = 1 << 14
_MAX_EPOCH = 2**64 - 1
_PIECE_BYTES, _EVEN = 1 << 25, 4


@attrs.frozen
class Piece(InputPartition):
    """
    A segment of one file in which definitions stay.

    Attributes:
        file: Path of the file.
        start: Position of its first event.
        stop: Position after its last event.
        schema: The definitions that are in force; None for those of the options.
        fault: Why definitions are not known after it; None if they are.
        packed: Whether the file is compressed; its positions are those of what it holds.
    """

    file: str
    start: int
    stop: int
    schema: Schema | None = None
    fault: FormatError | None = None
    packed: bool = False


@attrs.frozen
class Plan:
    """
    What is known of files before they are read.

    Attributes:
        files: Path, size and time of each file.
        pieces: Their pieces.
        remarks: What there is to say of them.
    """

    files: tuple[tuple[str, int, int], ...]
    pieces: tuple[Piece, ...]
    remarks: tuple[str, ...]

    @property
    def is_new(self) -> bool:
        """Whether the files are as they were."""
        return self.files == _identities(file for file, *_ in self.files)


def _identities(files: Iterable[str]) -> tuple[tuple[str, int, int], ...]:
    """Return path, size and time of files that are there."""
    facts = ((file, path_of(file).stat()) for file in files if path_of(file).exists())
    return tuple((file, fact.st_size, fact.st_mtime_ns) for file, fact in facts)


class BinlogReader(DataSourceReader):
    """
    Reads the changes of all tables, images as maps.

    Filters are not taken from Spark (`pushFilters`): Spark keeps the reader of a DataFrame, so the filter of one query
    would hold for the next one on the same DataFrame. The options choose what is read.
    """

    def __init__(self, options: BinlogOptions, names: Sequence[str], plan: Plan | None = None) -> None:
        """
        Read some columns.

        Args:
            options: What is read.
            names: The columns that are wanted; without ``before`` and ``after``, no value is decoded.
            plan: How, if that is known.
        """
        self.options = options
        self._plan = plan
        self._names = list(names)
        self._decoded = frozenset() if IMAGES.isdisjoint(names) else options.columns

    def partitions(self) -> Sequence[Piece]:
        """
        Divide the files into segments. An error in a file is raised by the task that meets it.

        Raises:
            LogWarning: There is a remark on the log, and the options do not ignore it.
        """
        plan = self._plan
        if plan is None or not plan.is_new:
            with opened_inputs(list(map(path_of, self.options.files))) as inputs:
                plan = self.plan(inputs)
        self.fail_with(plan.remarks)
        for each in self.options.unreadable:
            assert self.options.left_out is not None
            each.tell(self.options.left_out)
        return [*plan.pieces]

    def plan(self, inputs: Inputs) -> Plan:
        """Divide the files, as they can be read, into segments."""
        identities, stretches = _identities(self.options.files), Stretches(self.options.schema)
        pieces, items = list[Piece](), list[LogItem]()
        for file, path in zip(self.options.files, inputs.paths, strict=True):
            found = [*scan_log([path], verify=False)]
            pieces += self.pieces(file, path, list(stretches.of(path, items=found)))
            items += found
        remarks = (remark.sentence for remark in remarks_on_rows(items))
        return Plan(identities, tuple(pieces), (*remarks, *stretches.notes))

    def __getstate__(self) -> dict[str, Any]:
        """Return what a task needs: not the plan."""
        return {**self.__dict__, "_plan": None}

    def fail_with(self, remarks: Sequence[str]) -> None:
        """
        Fail if there are remarks.

        Raises:
            LogWarning: There are, and the options do not ignore them.
        """
        if remarks and self.options.fails:
            message = f"ndb_binlog: {'; '.join(remarks)}. To read the rows nevertheless, give option remarks as ignore"
            raise LogWarning(message)

    def pieces(
        self, file: str, path: str, stretches: Sequence[Stretch], start: int = 0, stop: int | None = None
    ) -> Iterator[Piece]:
        """
        Yield the pieces of a file that can hold rows that are wanted; it can be read at `path`.

        A compressed one is not cut, but at definitions.
        """
        size, packed = (path_of(path).stat().st_size if stop is None else stop) - start, path != file
        segments = plan_segments(
            [path_of(path)], size if packed else _piece_bytes(size), start=start, stop=stop
        ).segments
        chosen = chosen_parts(path, self.options, start, stop)
        for stretch in stretches:
            schema = None if stretch.schema == self.options.schema else stretch.schema
            within = [stretch.within(segment.start, segment.stop) for segment in segments]
            bounds = [chosen.within(start, stop) for start, stop in filter(None, within) if stop is not None]
            yield from (Piece(file, *each, schema, packed=packed) for each in filter(None, bounds))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """
        Yield the row changes of one segment.

        Raises:
            FormatError: The file cannot be read further.
            LogWarning: A negative value may be a large one, and the options do not ignore it.
            ConfigurationError: The file is not there.
        """
        if not isinstance(partition, Piece):  # Spark makes a partition of its own where there are none
            return
        file = path_of(partition.file)
        if not file.exists():
            message = (
                f"ndb_binlog: {partition.file} is not there for the executor on {socket.gethostname()}; give a path on "
                "storage that the driver and all executors share"
            )
            raise ConfigurationError(message)
        options = self.options
        found = 0
        piece = nullcontext() if partition.packed else reading(file, partition.start, partition.stop)
        with piece, opened_inputs([file]) as inputs:
            (path,) = inputs.paths
            try:
                for batch in self._batches(partition, path):
                    found += len(batch)
                    seconds, servers = (batch.records.column(name).to_numpy() for name in ("timestamp", "server_id"))
                    wanted = batch.where(in_time(seconds, options) & made_by(servers, options))
                    if not wanted.signs_known and (columns := list(negative_columns(wanted))):
                        self.fail_with([remark_on_signs(wanted.full_name, columns)])
                    if len(wanted):
                        yield self._records(wanted, partition.file)
            except FormatError as error:
                if options.end_epoch is not None and found == _rows_in_range(partition, path, options):
                    return
                if options.left_out is None:
                    raise inputs.renamed(error) from error
                why = str(inputs.renamed(error))
                left = LeftOut(partition.file, why, error.position, partition.start, partition.stop)
                left.tell(options.left_out)

    def _batches(self, piece: Piece, path: str) -> Iterator[RowBatch | TableRows]:
        """Yield the changes of a segment of the file at a path in the range of epochs."""
        for batch in self._changes(piece, path):
            yield batch.where(_in_epochs(batch.records.column("epoch"), self.options))

    def _changes(self, piece: Piece, path: str) -> Iterator[RowBatch | TableRows]:
        return read_batches(
            path,
            start=piece.start,
            stop=piece.stop,
            schema=piece.schema or self.options.schema,
            tables=self.options.tables,
            columns=self._decoded,
            batch_rows=_BATCH_ROWS,
            strict=False,
        )

    def _records(self, batch: RowBatch | TableRows, file: str) -> pa.RecordBatch:
        assert isinstance(batch, RowBatch)
        return records_of([batch], file, pa.schema([RECORDS.field(name) for name in self._names]))


class TableReader(BinlogReader):
    """Reads the changes of one table, images as structs of its columns."""

    def __init__(self, options: BinlogOptions, schema: pa.Schema, plan: Plan | None = None) -> None:
        super().__init__(options, schema.names, plan)
        self._schema = schema

    def _changes(self, piece: Piece, path: str) -> Iterator[RowBatch | TableRows]:
        assert self.options.tables is not None
        return read_table_rows(
            path,
            piece.start,
            piece.stop,
            schema=piece.schema or self.options.schema,
            tables=self.options.tables,
            columns=self._decoded,
            moments=self.options.moments,
            batch_rows=_BATCH_ROWS,
        )

    def _records(self, batch: RowBatch | TableRows, file: str) -> pa.RecordBatch:
        assert isinstance(batch, TableRows)
        return fitted_changes(batch, file, self._schema, moments=self.options.moments)


class EnvelopeReader(TableReader):
    """Reads the changes of one table as Debezium gives them."""

    def __init__(self, options: BinlogOptions, columns: pa.Schema, names: Sequence[str], plan: Plan) -> None:
        super().__init__(options, facts_of(columns, names), plan)
        self._wanted = list(names)

    def _records(self, batch: RowBatch | TableRows, file: str) -> pa.RecordBatch:
        return enveloped(super()._records(batch, file), batch.full_name, self._wanted)


def _piece_bytes(size: int) -> int:
    """Return how many bytes of a file a task reads: of a large file the same for a multiple of four tasks."""
    pieces = math.ceil(size / _PIECE_BYTES)
    return math.ceil(size / (pieces if pieces == 1 else _EVEN * math.ceil(pieces / _EVEN)))


def _in_epochs(epochs: pa.UInt64Array, options: BinlogOptions) -> npt.NDArray[np.bool_]:
    """Return which rows belong to the range of epochs; without a range, all do. Shape (rows,)."""
    if options.start_epoch == 0 and options.end_epoch is None:
        return np.ones(len(epochs), np.bool_)
    first = pa.scalar(min(options.start_epoch, _MAX_EPOCH), pa.uint64())
    last = pa.scalar(_MAX_EPOCH if options.end_epoch is None else min(options.end_epoch, _MAX_EPOCH), pa.uint64())
    within = pc.and_(pc.greater_equal(epochs, first), pc.less_equal(epochs, last)).fill_null(False)
    return np.asarray(within.to_numpy(zero_copy_only=False), np.bool_)


def _rows_in_range(piece: Piece, path: str, options: BinlogOptions) -> int:
    """
    Return how many rows the range of epochs has, counted by the scalar reader, which stops after the last epoch.

    Raises:
        FormatError: There is an error before that.
    """
    rows = read_rows(
        path,
        start=piece.start,
        stop=piece.stop,
        schema=piece.schema or options.schema,
        wanted=options.wants,
        last_epoch=options.end_epoch,
        strict=False,
    )
    last = options.end_epoch or 0
    in_range = (row for row in rows if row.epoch is not None and options.start_epoch <= row.epoch <= last)
    return sum(len(batch) for batch in record_batches(in_range))
