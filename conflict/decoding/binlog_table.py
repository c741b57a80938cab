"""
The row changes of binlog files for Python: what `conflict.read_binlog` returns, and these in a few figures.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.option_values import Moment, is_full_name, known_table, seconds_of, words_of
from conflict.config.text_file import place_of, places_of
from conflict.decoding.inputs import Inputs, opened_inputs
from conflict.decoding.one_table import fitted_changes, joined_schema
from conflict.discovery.logs import log_source
from conflict.errors import ConfigurationError, LogWarning
from conflict.extras import imported
from conflict.telling.html import telling_html
from conflict.telling.shown_text import counted, one_line
from conflict.telling.terminal import telling_text
from conflict.telling.value import Table, Telling
from ndb_formats.columnar.batches import RowBatch
from ndb_formats.columnar.block_reader import METADATA
from ndb_formats.columnar.log_remarks import remarks_on_rows
from ndb_formats.columnar.log_scan import scan_log
from ndb_formats.columnar.records import RECORDS, block_records
from ndb_formats.columnar.selected_changes import (
    Block,
    ChangeReading,
    Changes,
    ends_log,
    selected_changes,
    selected_maps,
    selected_rows,
)
from ndb_formats.columnar.stretches import schema_at_start, table_names
from ndb_formats.columnar.table_changes import in_order
from ndb_formats.errors import CutFileError, FormatError
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection

_HEADINGS = ("table", "changes", "writes", "updates", "deletes")


@attrs.frozen
class TableChanges:
    """
    The changes of one table.

    Attributes:
        name: ``database.table``.
        changes: How many.
        writes: How many of them are writes.
        updates: How many are updates.
        deletes: How many are deletes.
    """

    name: str
    changes: int
    writes: int
    updates: int
    deletes: int


@attrs.frozen(repr=False)
class BinlogSummary:
    """
    Row changes in a few figures.

    Attributes:
        files: The files.
        tables: The tables that have changes, by name.
        first_time: Time of the first event with changes; None without changes.
        last_time: Time of the last one.
        epochs: How many NDB epochs have changes.
        first_epoch: The first of them; None if there is none.
        last_epoch: The last of them.
    """

    files: tuple[Path, ...]
    tables: tuple[TableChanges, ...]
    first_time: datetime | None
    last_time: datetime | None
    epochs: int
    first_epoch: int | None
    last_epoch: int | None

    @property
    def changes(self) -> int:
        """Row changes of all tables."""
        return sum(table.changes for table in self.tables)

    @property
    def telling(self) -> Telling:
        """What is told of them."""
        where = one_line(str(self.files[0])) if len(self.files) == 1 else f"{len(self.files):,} files"
        changes = f"{counted(self.changes, 'row change')} of {counted(len(self.tables), 'table')}"
        sentences = []
        if self.first_time is not None and self.last_time is not None:
            times = (f"{each:%Y-%m-%d %H:%M:%S}" for each in (self.first_time, self.last_time))
            sentences.append(f"From {' to '.join(times)} UTC.")
        if self.epochs:
            epochs = counted(self.epochs, "NDB epoch")
            sentences.append(f"{epochs} with changes, {self.first_epoch} to {self.last_epoch}.")
        table = Table("Row changes", _HEADINGS, [attrs.astuple(each) for each in self.tables])
        return Telling("Row changes", f"{where}: {changes}.", sentences, [table])

    def __repr__(self) -> str:
        return telling_text(self.telling)

    def _repr_html_(self) -> str:
        return telling_html(self.telling)


def _summary_of_batches(files: Sequence[Path], batches: Iterable[RowBatch]) -> BinlogSummary:
    """
    Return changes in a few figures.

    Args:
        files: The files that they are from.
        batches: The changes; values of columns are not looked at.
    """
    counts: Counter[tuple[str, Operation]] = Counter()
    times: list[int] = []
    epochs: set[int] = set()
    for batch in batches:
        counts[batch.full_name, batch.operation] += len(batch)
        ends = pc.min_max(batch.records.column("timestamp")).as_py()
        times = [min([*times[:1], ends["min"]]), max([*times[1:], ends["max"]])]
        epochs.update(np.unique(batch.records.column("epoch").drop_null().to_numpy(zero_copy_only=False)).tolist())
    tables = tuple(
        TableChanges(name, sum(kinds), *kinds)
        for name in sorted({name for name, _ in counts})
        for kinds in [[counts[name, operation] for operation in Operation]]
    )
    first, last = (datetime.fromtimestamp(time, UTC) for time in times) if times else (None, None)
    return BinlogSummary(
        tuple(files), tables, first, last, len(epochs), min(epochs, default=None), max(epochs, default=None)
    )


BATCH_ROWS = 1 << 15
# Without a table: the columns of `decode --wide`, but epochs and ids as the numbers that they are.
_EXACT = ("epoch", "transaction_id")
_ALL_TABLES = pa.schema([METADATA.field(field.name) if field.name in _EXACT else field for field in RECORDS])


@attrs.frozen(repr=False, slots=False)
class BinlogTable:
    """
    Row changes of binlog files, read anew whenever they are asked for; nothing is kept but the summary.

    With a table, the columns are those that `decode` writes to Parquet (docs/decode.md): both images are structs of the
    table's columns, and `before_columns` and `after_columns` name those that an image carries, because a column that it
    does not carry is null, as NULL is. Without one, images are maps from column name to text, and only the columns that
    an image carries are in them. Rows have the order of the files.

    Printed, it answers at a glance; a notebook shows that as a table.

    Attributes:
        files: The files, in order.
        table: ``database.table``; None for all tables.
        columns: Columns of the table; None for all.
        definitions: Definitions, for names and types that are not in the binlog; they follow its statements.
        at_end: Whether they are those at the end of the binlogs, not at the start.
        selection: Which changes.
        moments: Whether dates and timestamps have types of their own.
        rows: Most rows of a batch.
    """

    files: tuple[Path, ...]
    table: str | None = None
    columns: frozenset[str] | None = None
    definitions: Schema = attrs.field(factory=Schema)
    selection: Selection = attrs.field(factory=Selection)
    moments: bool = True
    rows: int = BATCH_ROWS
    at_end: bool = False

    @cached_property
    def summary(self) -> BinlogSummary:
        """
        What there is, in a few figures; the files are read once, without the values of columns.

        Raises:
            ConfigurationError: No file has changes of the table.
        """
        with opened_inputs(self.files) as inputs:
            parts = self._parts(inputs, (), selected_changes)
            found = _summary_of_batches(self.files, (batch for _, part in parts for batch in part))
            if self.table is not None and not found.tables:
                known_table(self.table, sorted(table_names(inputs.paths)), "the log", ConfigurationError)
            return found

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that have changes, as ``database.table``."""
        return tuple(table.name for table in self.summary.tables)

    @cached_property
    def schema(self) -> pa.Schema:
        """
        The columns.

        Raises:
            ConfigurationError: No file has changes of the table, or a column has types that no single one holds.
        """
        with opened_inputs(self.files) as inputs:
            return self._schema(inputs)

    def __getitem__(self, table: str) -> BinlogTable:
        """
        Return the changes of one table, ``database.table``, or a table that one database alone has.

        Raises:
            ConfigurationError: Several databases have it; or none, of a name without a database.
        """
        name = table
        if not is_full_name(table):
            with opened_inputs(self.files) as inputs:
                name = known_table(table, sorted(table_names(inputs.paths)), "the log", ConfigurationError)
        return attrs.evolve(self, table=name, selection=attrs.evolve(self.selection, tables=frozenset({name})))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """
        Yield the changes in record batches; memory is bounded by one of them.

        Raises:
            ConfigurationError: As `schema`.
            FormatError: A file cannot be read further, with its name and the position; all changes before have been
                yielded. One that only ends too early ends the log of its server, with a warning.
        """
        with opened_inputs(self.files) as inputs:
            schema = self._schema(inputs)
            for remark in remarks_on_rows(scan_log(inputs.paths, verify=False)):
                warnings.warn(LogWarning(remark.sentence), stacklevel=2)
            yield from self._records(inputs, schema)

    def to_arrow(self) -> pa.Table:
        """Return the changes as a table of Arrow; raises as iterating does."""
        return pa.Table.from_batches(self, self.schema)

    def to_pandas(self) -> Any:
        """
        Return the changes as a DataFrame of pandas; raises as iterating does.

        Each column of an image is a column of its own, ``after.x``. Integers and texts are nullable, and integers are
        exact; a column that an image does not carry is missing, as NULL is.
        """
        pd = imported("pandas")
        kinds = {kind: getattr(pd, f"{str(kind).capitalize().replace('Ui', 'UI')}Dtype")() for kind in _INTEGERS}
        # Kept as Arrow, texts would compare to masks of Arrow, which pandas does not join with those of integers.
        kinds[pa.string()] = pd.StringDtype("python")
        table = self.to_arrow().flatten()
        columns = [_with_signed_indices(column) for column in table.columns]
        return pa.table(columns, table.column_names).to_pandas(types_mapper=kinds.get, maps_as_pydicts="strict")

    def to_polars(self) -> Any:
        """
        Return the changes as a DataFrame of polars; raises as iterating does.

        Raises:
            ConfigurationError: polars is not installed.
        """
        return imported("polars").from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        return repr(self.summary)

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()  # the protocol of notebooks

    def _schema(self, inputs: Inputs) -> pa.Schema:
        if self.table is None:
            return _ALL_TABLES
        try:
            definitions = self._at_start(inputs)
            return joined_schema(inputs.paths, self.table, definitions, columns=self.columns, moments=self.moments)
        except FormatError as error:
            raise inputs.renamed(error) from error

    def _at_start(self, inputs: Inputs) -> Schema:
        return schema_at_start(inputs.paths, self.definitions) if self.at_end else self.definitions

    def _records(self, inputs: Inputs, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if self.table is None:
            for file, found in self._parts(inputs, None, selected_maps):
                if found:
                    yield block_records(found, file, schema)
        else:
            for file, parts in self._parts(inputs, self.columns, selected_rows):
                records = [fitted_changes(rows, file, schema, moments=self.moments) for rows in parts]
                if records:
                    yield in_order(records, [rows.places for rows in parts])

    def _parts(
        self,
        inputs: Inputs,
        columns: Collection[str] | None,
        select: Callable[[Sequence[str], Selection, ChangeReading], Iterator[Block[Changes]]],
    ) -> Iterator[tuple[str, list[Changes]]]:
        """Yield the selected changes block by block, with the name of their file."""
        moments = self.table is not None and self.moments
        try:
            definitions = self._at_start(inputs)
            said = set[str]()

            def noted(note: str) -> None:
                if note not in said:
                    said.add(note)
                    warnings.warn(LogWarning(note), stacklevel=3)

            def is_end(error: CutFileError) -> bool:
                if ends := ends_log(error):
                    noted(f"{inputs.renamed(error)}; what comes after it in the log of its server is not read")
                return ends

            reading = ChangeReading(
                definitions, moments=moments, columns=columns, verify=True, rows=self.rows, noted=noted, is_end=is_end
            )
            for block in select(inputs.paths, self.selection, reading):
                yield inputs.file_of(block.file), list(block.batches)
        except FormatError as error:
            raise inputs.renamed(error) from error


_INTEGERS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
]


def read_binlog(
    files: Path | str | Iterable[Path | str],
    table: str | None = None,
    *,
    columns: str | Iterable[str] | None = None,
    schema: Path | str | None = None,
    schema_at: str = "start",
    temporals: str = "typed",
    start_epoch: int = 0,
    stop_epoch: int | None = None,
    start_time: Moment | None = None,
    stop_time: Moment | None = None,
    server_ids: str | int | Iterable[int] = (),
    server_id_bits: int = 32,
    transactions: str | int | Iterable[int] = (),
    key: Mapping[str, object] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> BinlogTable:
    """
    Return the row changes of binlog files; nothing is read yet, but for the database of a table without one.

    Args:
        files: Files in order, which may be compressed with gzip or Zstandard; folders, index files and patterns stand
            for their binlogs, and a run file for those of its clusters, with its schema.
        table: ``database.table``, or a table that one database alone has; by default the changes of all tables, with
            images as maps of texts.
        columns: With `table`: its columns to decode. Lists can also be texts with commas.
        schema: File of CREATE TABLE statements, for names and types that are not in the binlog.
        schema_at: Which moment of the binlogs it describes: ``start`` or ``end``. Statements in them change it.
        temporals: ``typed``, or ``text``, which also holds zero dates.
        start_epoch: First NDB epoch.
        stop_epoch: Last NDB epoch; the log of each server stops for itself.
        start_time: First moment, a datetime or a text such as ``2026-01-31 08:00:00+01:00``; UTC without an offset.
        stop_time: Moment to stop before; the log of each server stops for itself.
        server_ids: Servers on which the changes were first made; by default all.
        server_id_bits: How many bits of a server id are that of a server; NDB leaves the others to applications.
        transactions: Ids of NDB transactions; by default all.
        key: Values of columns: rows in which an image has all of them are selected.
        batch_rows: Most rows of a batch when iterating.

    Raises:
        ConfigurationError: A path is missing or holds no binlog, or an argument cannot be used.
    """
    known = temporals in ("typed", "text") and schema_at in ("start", "end")
    if (columns is not None and table is None) or not known:
        message = "columns needs table; temporals is typed or text; schema_at is start or end"
        raise ConfigurationError(message)
    selection = Selection(
        start_time=seconds_of(start_time, "start_time") or 0,
        stop_time=seconds_of(stop_time, "stop_time"),
        start_epoch=start_epoch,
        stop_epoch=stop_epoch,
        server_ids=frozenset(map(int, words_of(server_ids))),
        server_id_bits=server_id_bits,
        transactions=frozenset(map(int, words_of(transactions))),
        key=tuple((name, str(value)) for name, value in (key or {}).items()),
    )
    given = places_of(files)
    source = log_source(given, None if schema is None else place_of(schema), at_end=schema_at == "end", unpacks=True)
    found = BinlogTable(
        source.files,
        None,
        None if columns is None else frozenset(words_of(columns)),
        source.definitions(source.files),
        selection,
        temporals == "typed",
        batch_rows,
        source.at_end,
    )
    return found if table is None else found[table]


def _with_signed_indices(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column that pandas takes: it knows no dictionary whose indices are unsigned, as those of ENUM are."""
    if not (pa.types.is_dictionary(column.type) and pa.types.is_unsigned_integer(column.type.index_type)):
        return column
    parts = [pa.DictionaryArray.from_arrays(each.indices.cast(pa.int32()), each.dictionary) for each in column.chunks]
    return pa.chunked_array(parts, pa.dictionary(pa.int32(), column.type.value_type))
