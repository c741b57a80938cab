"""
The outputs of `decode`: a stream of lines, one table for all changes, or a folder of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from conflict.config.option_values import DecodedFormat
from conflict.decoding.decoding import Decoding
from conflict.decoding.staging import check_target, staged_file, staged_folder
from conflict.decoding.table_files import TableFiles, TableFormat, no_formulas
from conflict.errors import ConfigurationError
from ndb_formats.columnar.batches import RowBatch
from ndb_formats.columnar.lines import image_objects
from ndb_formats.columnar.records import RECORDS, records_of
from ndb_formats.columnar.selected_changes import Block
from ndb_formats.columnar.table_changes import IMAGES, in_order

__all__ = ["Output"]

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
            if self.form in _TABLES:
                _write_wide(out, decoding.blocks(moments=False), _TABLES[self.form])
                return
            for part in decoding.text() if self.form is DecodedFormat.TEXT else decoding.json_lines():
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
            for block in decoding.blocks(moments=self.moments):
                files.add(block)
            contents["tables"] = files.finish()


def _write_wide(out: BinaryIO, blocks: Iterable[Block], form: TableFormat) -> None:
    """Write the changes of all tables as one table, in the order of the files."""
    if form is TableFormat.PARQUET:
        writer = pq.ParquetWriter(out, RECORDS, compression="snappy")
    else:
        options = pyarrow.csv.WriteOptions(quoting_style="needed")
        writer = pyarrow.csv.CSVWriter(out, _WIDE_CSV, write_options=options)
    with writer:
        for block in blocks:
            records = [_wide(batch, block.file, form) for batch in block.batches]
            if records:
                writer.write_batch(in_order(records, block.batches))


def _wide(batch: RowBatch, file: str, form: TableFormat) -> pa.RecordBatch:
    records = records_of(batch, file)
    if form is TableFormat.PARQUET:
        return records
    images = {image: image_objects(batch, image) for image in IMAGES}
    flags = pc.binary_join(records.column("flags"), ",")
    columns = [{**images, "flags": flags}.get(name, records.column(name)) for name in RECORDS.names]
    columns = [no_formulas(each) if pa.types.is_string(each.type) else each for each in columns]
    return pa.RecordBatch.from_arrays(columns, schema=_WIDE_CSV)
