"""
Records as JSON Lines, CSV or Parquet, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from conflict.config.option_values import RecordFormat
from conflict.decoding.staging import staged_file
from conflict.decoding.table_files import no_formulas
from conflict.errors import ConfigurationError
from conflict.operating.records.layout import JSON_TEXTS, RECORD, json_lines, moment_texts


def format_of(given: RecordFormat | None, target: Path | None) -> RecordFormat:
    """
    Return the format of records: the one that is given, else that of the file's suffix.

    Args:
        given: The format, if one was given.
        target: The file; None for standard output, which needs a format.

    Raises:
        ConfigurationError: The suffix says no format, or Parquet would go to standard output.
    """
    if given is RecordFormat.PARQUET and target is None:
        message = "--format parquet writes a file; give its name (--out records.parquet)"
        raise ConfigurationError(message)
    if given is not None:
        return given
    assert target is not None
    if target.suffix[1:] not in tuple(RecordFormat):
        message = (
            f"{target}: its suffix says no format; give --format, or {', '.join(f'.{each}' for each in RecordFormat)}"
        )
        raise ConfigurationError(message)
    return RecordFormat(target.suffix[1:])


def write_records(records: pa.RecordBatchReader, form: RecordFormat, out: BinaryIO) -> None:
    """Write records to a stream."""
    _WRITERS[form](records, out)
    out.flush()


def write_file(records: pa.RecordBatchReader, form: RecordFormat, target: Path) -> None:
    """Write records to a file, which appears whole."""
    with staged_file(target) as out:
        write_records(records, form, out)


def _write_lines(records: pa.RecordBatchReader, out: BinaryIO) -> None:
    out.writelines(json_lines(batch) for batch in records)


def _write_csv(records: pa.RecordBatchReader, out: BinaryIO) -> None:
    fields = [pa.field(each.name, pa.string()) if pa.types.is_timestamp(each.type) else each for each in RECORD]
    options = pyarrow.csv.WriteOptions(quoting_style="needed")
    with pyarrow.csv.CSVWriter(out, pa.schema(fields), write_options=options) as writer:
        for batch in records:
            writer.write_batch(pa.record_batch([_plain(batch, each) for each in RECORD], schema=pa.schema(fields)))


def _plain(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    """Return a column in types that CSV has."""
    column = batch.column(field.name)
    if pa.types.is_timestamp(field.type):
        return moment_texts(column)
    return no_formulas(column) if pa.types.is_string(field.type) and field.name not in JSON_TEXTS else column


def _write_parquet(records: pa.RecordBatchReader, out: BinaryIO) -> None:
    with pq.ParquetWriter(out, RECORD) as writer:
        for batch in records:
            writer.write_batch(batch)


_WRITERS: dict[RecordFormat, Callable[[pa.RecordBatchReader, BinaryIO], None]] = {
    RecordFormat.JSONL: _write_lines,
    RecordFormat.CSV: _write_csv,
    RecordFormat.PARQUET: _write_parquet,
}
