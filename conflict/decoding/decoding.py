"""
What `decode` reads and where it writes it: the selected changes of binlog files, and what there is to say about them.

The outputs are a stream of lines, one table for all changes, or a folder of tables. `decode --key` takes a key in every
form in which `explain` takes and prints one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from conflict.config.option_values import DecodedFormat, document_of_key, shown_range, values_by_column
from conflict.decoding.inputs import Inputs
from conflict.decoding.made_ahead import made_ahead
from conflict.decoding.staging import check_target, staged_file, staged_folder
from conflict.decoding.table_files import TableFiles, TableFormat, no_formulas
from conflict.errors import ConfigurationError
from ndb_formats.columnar.batches import RowBatch
from ndb_formats.columnar.event_index import index_parts
from ndb_formats.columnar.lines import image_objects, json_lines
from ndb_formats.columnar.log_remarks import remarks_on_rows
from ndb_formats.columnar.log_scan import LoggedEnd, ScannedChange, scan_log
from ndb_formats.columnar.mixed_rows import MixedRows
from ndb_formats.columnar.records import RECORDS, block_records, records_of
from ndb_formats.columnar.selected_changes import (
    Block,
    ChangeReading,
    Changes,
    ends_log,
    selected_changes,
    selected_maps,
    selected_rows,
)
from ndb_formats.columnar.stretches import ColumnNames, table_columns
from ndb_formats.columnar.table_changes import IMAGES, in_order
from ndb_formats.columnar.table_rows import TableRows
from ndb_formats.constants import APPLY_STATUS
from ndb_formats.errors import CutFileError, did_you_mean
from ndb_formats.events.table_map import TableMap
from ndb_formats.findings import LogRemark
from ndb_formats.schema.row_keys import value_text
from ndb_formats.schema.tables import Schema, split_full_name
from ndb_formats.selection import Selection
from ndb_formats.text.log_text import log_text
from ndb_formats.text.row_printer import TextOptions


def asked_key(
    given: Sequence[str], selection: Selection, binlogs: Sequence[str], schema: Schema, *, follows: bool
) -> tuple[tuple[str, str], ...]:
    """
    Return columns and values as a `Selection` takes them.

    Args:
        given: Each ``COLUMN=VALUE``, or several with commas between, or a JSON object of them, or the value alone of a
            key of one column.
        selection: Which tables are selected.
        binlogs: The files as they can be read; they are looked through for columns only if anything is given.
        schema: Definitions at the start of the log.
        follows: Whether statements in the log change definitions.

    Raises:
        ConfigurationError: No selected table has such a column, or the names of columns are not known.
        FormatError: A file cannot be read at all.
    """
    if not given:
        return ()

    def wanted(table_map: TableMap) -> bool:
        name = table_map.full_name
        return selection.has_table(table_map) and (name != APPLY_STATUS or name in selection.tables)

    tables = table_columns(binlogs, wanted, schema, follows=follows)
    return tuple(pair for text in given for pair in _pairs(text, tables))


def _pairs(given: str, tables: Mapping[str, ColumnNames]) -> Iterator[tuple[str, str]]:
    """
    Yield the columns and values of one ``--key``.

    Raises:
        ConfigurationError: As for `asked_key`.
    """
    names = [*dict.fromkeys(name for table in tables.values() for name in table.all)]
    document = document_of_key(given, names)
    if document is not None:
        yield from ((name, value_text(value)) for name, value in document.items())
        return
    column, equals, value = given.partition("=")
    keys = [table.primary_key for table in tables.values()]
    if not equals and len(keys) == 1 and len(keys[0]) == 1:
        yield keys[0][0], given
    elif found := values_by_column(given, names):
        yield from found.items()
    elif tables and all(name.startswith("@") for name in names):
        message = (
            f"--key {given}: the names of the columns of {', '.join(sorted(tables))} are not known: give --schema "
            f"FILE, or @1={value if equals else given} for the first one"
        )
        raise ConfigurationError(message)
    elif not equals or not column:
        message = f"--key {given}: give a column and its value, as in --key id=7"
        raise ConfigurationError(message)
    elif len(tables) == 1:
        (table,) = tables
        message = (
            f"--key {given}: table {table} has no column {column}; its columns are {', '.join(names)}"
            f"{did_you_mean(column, names)}"
        )
        raise ConfigurationError(message)
    elif tables:
        message = (
            f"--key {given}: none of the tables {', '.join(sorted(tables))} has a column {column}"
            f"{did_you_mean(column, names)}"
        )
        raise ConfigurationError(message)
    else:
        yield column, value  # no such table is there, which is said instead


_TEXT_ROWS = 1 << 12  # the text of a block should stay in the processor's caches


@attrs.define(eq=False)
class Decoding:
    """
    The changes to decode.

    Attributes:
        inputs: The files.
        selection: Which changes.
        schema: Definitions at the start of the log, for names and types.
        text_options: What is printed as text.
        verify: Whether to check checksums.
        seen: Called with a file and the position up to which it has been read.
        cuts: Why what comes after in the log of a server was not read: a file ends inside an event.
        definition_notes: What is to be said of definitions.
        found: Whether anything was selected.
    """

    inputs: Inputs
    selection: Selection
    schema: Schema
    text_options: TextOptions
    verify: bool
    seen: Callable[[str, int], None] = lambda file, position: None
    cuts: list[CutFileError] = attrs.field(factory=list)
    found: bool = False
    definition_notes: dict[str, None] = attrs.field(factory=dict)
    _tables: set[str] = attrs.field(factory=set)

    def text(self) -> Iterator[bytes]:
        """
        Yield the text of the selected events.

        Raises:
            FormatError: A file cannot be read further, other than that it ends too early.
        """
        # Without definitions, the text is that of mysqlbinlog, which follows none.
        reading = self._reading(rows=_TEXT_ROWS, follows=self.schema.has_tables)
        for part in log_text(self.inputs.paths, self.selection, reading, self.text_options):
            self.found |= bool(part)
            yield part

    def json_lines(self) -> Iterator[bytes]:
        """Yield the selected changes as JSON lines; raises as `text`."""
        for block in self.blocks(rows=_TEXT_ROWS):
            yield json_lines(block)

    def blocks(self, *, rows: int = 1 << 15) -> Iterator[Block[RowBatch]]:
        """
        Yield the selected changes by table and kind, block by block; raises as `text`.

        Args:
            rows: Most rows of a block.
        """
        return self._found(selected_changes(self.inputs.paths, self.selection, self._reading(rows=rows)))

    def mixed_blocks(self) -> Iterator[Block[RowBatch | MixedRows]]:
        """Yield the selected changes, those of a block together where that can be done; raises as `text`."""
        return self._found(selected_maps(self.inputs.paths, self.selection, self._reading(rows=1 << 15)))

    def table_blocks(self, *, moments: bool) -> Iterator[Block[TableRows]]:
        """
        Yield the selected changes by table, block by block; raises as `text`.

        Args:
            moments: Whether dates and timestamps have types of their own.
        """
        reading = self._reading(rows=1 << 15, moments=moments)
        return self._found(selected_rows(self.inputs.paths, self.selection, reading))

    def _found(self, blocks: Iterator[Block[Changes]]) -> Iterator[Block[Changes]]:
        for block in blocks:
            self.found |= bool(block.batches)
            yield Block(self.inputs.file_of(block.file), block.batches)

    def notes(self) -> list[str]:
        """Return a sentence for every definition that does not fit, and for every filter that matched nothing."""
        return [*self.definition_notes, *self._unmatched()]

    def _unmatched(self) -> list[str]:
        chosen = self.selection
        databases = {split_full_name(name)[0] for name in self._tables}
        there = f"tables with changes there: {', '.join(sorted(self._tables)) or 'none'}"
        notes = [f"--table {name} matches nothing; {there}" for name in sorted(chosen.tables - self._tables)]
        notes += [f"--database {name} matches nothing; {there}" for name in sorted(chosen.databases - databases)]
        if not notes and not self.found and chosen != Selection():
            times = self._times() if chosen.start_time or chosen.stop_time is not None else ""
            notes.append(f"the filters match nothing in these files{times}")
        return notes

    def _times(self) -> str:
        """Return from when to when the events of the files are."""
        parts = (index_parts(path, verify=False) for path in self.inputs.paths)
        times = np.concatenate([np.zeros(0, np.int64), *(part.timestamps for file in parts for part in file)])
        known = times[times > 0]  # events that no server logged have none
        return f", whose events are from {shown_range(int(known.min()), int(known.max()))}" if len(known) else ""

    def remarks(self, *, as_text: bool) -> list[LogRemark]:
        """Return what the files hold besides rows; text shows statements, so that it lacks nothing of them."""
        items = scan_log(self.inputs.paths, verify=False)
        found = (item for item in items if not (as_text and isinstance(item, ScannedChange | LoggedEnd)))
        return list(remarks_on_rows(attrs.evolve(item, file=self.inputs.name_of(item.file)) for item in found))

    def _reading(self, *, rows: int, moments: bool = False, follows: bool = True) -> ChangeReading:
        return ChangeReading(
            self.schema,
            moments=moments,
            verify=self.verify,
            rows=rows,
            seen=self.seen,
            met=self._tables.update,
            follows=follows,
            noted=self._noted,
            is_end=self._is_end,
        )

    def _noted(self, note: str) -> None:
        for path in self.inputs.paths:
            note = note.replace(path, self.inputs.name_of(path))
        self.definition_notes[note] = None

    def _is_end(self, error: CutFileError) -> bool:
        """Keep what ends the log of a server."""
        ends = ends_log(error)
        self.cuts += [error] if ends else []
        return ends


_WIDE_CSV = pa.schema(
    [pa.field(field.name, pa.string() if field.name in (*IMAGES, "flags") else field.type) for field in RECORDS]
)


_TABLES = {DecodedFormat.CSV: TableFormat.CSV, DecodedFormat.PARQUET: TableFormat.PARQUET}


@attrs.frozen
class Output:
    """
    Where changes go, and in which form.

    Attributes:
        form: The format.
        target: The file, or the folder of tables; None for standard output.
        force: Whether to replace what is there.
        wide: Whether tables are one table.
        moments: Whether dates and timestamps have types of their own.
    """

    form: DecodedFormat
    target: Path | None
    force: bool = False
    wide: bool = False
    moments: bool = True

    @property
    def is_folder(self) -> bool:
        """Whether every table becomes a folder."""
        return self.form in _TABLES and not self.wide

    def check(self, inputs: Sequence[Path]) -> None:
        """
        Make sure that it can be written.

        Raises:
            ConfigurationError: It cannot.
        """
        if self.target is None and (self.is_folder or self.form is DecodedFormat.PARQUET):
            what = "a folder for the tables: --result-file FOLDER" if self.is_folder else "a file: --result-file FILE"
            also = "; or --wide for one table on standard output" if self.form is DecodedFormat.CSV else ""
            message = f"--format {self.form} needs {what}{also}"
            raise ConfigurationError(message)
        if self.wide and self.form not in _TABLES:
            message = "--wide is for --format csv and parquet"
            raise ConfigurationError(message)
        if self.target is not None:
            check_target(self.target, inputs, force=self.force, folder=self.is_folder)

    def write(self, decoding: Decoding, standard_output: BinaryIO) -> None:
        """
        Read everything and write it.

        Raises:
            FormatError: A file cannot be read; nothing is left in `target`.
        """
        if self.is_folder:
            self._write_tables(decoding)
            return
        with nullcontext(standard_output) if self.target is None else staged_file(self.target, force=self.force) as out:
            if self.form is DecodedFormat.PARQUET:
                _write_wide_parquet(out, made_ahead(decoding.mixed_blocks()))
                return
            if self.form is DecodedFormat.CSV:
                _write_wide_csv(out, made_ahead(decoding.blocks()))
                return
            for part in made_ahead(decoding.text() if self.form is DecodedFormat.TEXT else decoding.json_lines()):
                out.write(part)

    def _write_tables(self, decoding: Decoding) -> None:
        """Write every table into a folder of its own."""
        assert self.target is not None
        contents: dict[str, object] = {
            "format": self.form.value,
            "files": [str(file) for file in decoding.inputs.given],
        }
        with staged_folder(self.target, contents, force=self.force) as folder:
            files = TableFiles(folder, _TABLES[self.form], moments=self.moments)
            for block in made_ahead(decoding.table_blocks(moments=self.moments)):
                files.add(block)
            contents["tables"] = files.finish()


def _write_wide_parquet(out: BinaryIO, blocks: Iterable[Block[RowBatch | MixedRows]]) -> None:
    """Write the changes of all tables as one table, in the order of the files."""
    with pq.ParquetWriter(out, RECORDS, compression="snappy") as writer:
        for block in blocks:
            if block.batches:
                writer.write_batch(block_records(block.batches, block.file))


def _write_wide_csv(out: BinaryIO, blocks: Iterable[Block[RowBatch]]) -> None:
    """Write the changes of all tables as one table, in the order of the files."""
    options = pyarrow.csv.WriteOptions(quoting_style="needed")
    with pyarrow.csv.CSVWriter(out, _WIDE_CSV, write_options=options) as writer:
        for block in blocks:
            if block.batches:
                records = [_wide(batch, block.file) for batch in block.batches]
                writer.write_batch(in_order(records, [batch.places for batch in block.batches]))


def _wide(batch: RowBatch, file: str) -> pa.RecordBatch:
    records = records_of([batch], file)
    images = {image: image_objects(batch, image) for image in IMAGES}
    flags = pc.binary_join(records.column("flags"), ",")
    columns = [{**images, "flags": flags}.get(name, records.column(name)) for name in RECORDS.names]
    columns = [no_formulas(each) if pa.types.is_string(each.type) else each for each in columns]
    return pa.RecordBatch.from_arrays(columns, schema=_WIDE_CSV)
