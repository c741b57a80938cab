"""
`ndb-conflict decode`: binlog files as text, JSON lines, Parquet or CSV.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO, TextIO

import pyarrow.parquet as pq
import typer

from conflict.cli.common import messages
from conflict.cli.exit_codes import ExitCode
from conflict.cli.outputs import refuse_overwriting
from conflict.errors import ConfigurationError
from ndb_formats.binlog_reader import FIRST_POSITION
from ndb_formats.errors import CutFileError
from ndb_formats.row_reader import LoggedRow, rows_of
from ndb_formats.row_records import RECORDS, json_line, record_batches
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection, select_events
from ndb_formats.text.event_lines import text_lines

__all__ = ["decode"]


class Format(StrEnum):
    """The output format."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def decode(
    files: Annotated[list[Path], typer.Argument(help="Binlog files, in order.", exists=True, dir_okay=False)],
    verbose: Annotated[int, typer.Option("-v", "--verbose", count=True, help="Show rows; twice: with types.")] = 0,
    form: Annotated[Format, typer.Option("--format", help="The output format.")] = Format.TEXT,
    result_file: Annotated[Path | None, typer.Option("--result-file", "-r", help="Write to this file.")] = None,
    schema: Annotated[Path | None, typer.Option(help="CREATE TABLE statements, for column names.")] = None,
    start_position: Annotated[int, typer.Option("--start-position", "-j", help="In the first file.")] = FIRST_POSITION,
    stop_position: Annotated[int | None, typer.Option(help="In the last file; exclusive.")] = None,
    start_datetime: Annotated[datetime | None, typer.Option(help="First moment, UTC.")] = None,
    stop_datetime: Annotated[datetime | None, typer.Option(help="Moment to stop before, UTC.")] = None,
    database: Annotated[
        list[str] | None, typer.Option("--database", "-d", help="Show this database only; can be repeated.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option(help="Show this table only, as database.table; can be repeated.")
    ] = None,
    start_epoch: Annotated[int, typer.Option(help="First NDB epoch.")] = 0,
    stop_epoch: Annotated[int | None, typer.Option(help="Last NDB epoch.")] = None,
    print_table_metadata: Annotated[bool, typer.Option(help="Show columns and keys of tables.")] = False,
    verify_binlog_checksum: Annotated[bool, typer.Option("-c", help="Stop at a wrong checksum.")] = False,
) -> None:
    """
    Show what binlog files hold: text with mysqlbinlog's ### lines, JSON lines, CSV or Parquet.

    Example: ndb-conflict decode -vv binlog.000001
    """
    refuse_overwriting(result_file, [*files, schema])
    selection = Selection(
        start_position=start_position,
        stop_position=stop_position,
        start_time=0 if start_datetime is None else _seconds(start_datetime),
        stop_time=None if stop_datetime is None else _seconds(stop_datetime),
        databases=frozenset(database or ()),
        tables=frozenset(table or ()),
        start_epoch=start_epoch,
        stop_epoch=stop_epoch,
    )
    events = select_events([str(file) for file in files], selection, verify=verify_binlog_checksum)
    definitions = Schema() if schema is None else parse_schema(schema.read_text("utf-8"))
    with _cut_file_as_exit_code():
        if form is not Format.TEXT:
            _write_rows(rows_of(events, definitions), form, result_file)
            return
        with _binary(result_file) as out:
            for line in text_lines(events, verbose=verbose, table_metadata=print_table_metadata):
                out.write(line + b"\n")


def _seconds(moment: datetime) -> int:
    return int(moment.replace(tzinfo=UTC).timestamp())


@contextmanager
def _cut_file_as_exit_code() -> Iterator[None]:
    """Show what comes before the end of a file that ends inside an event, as mysqlbinlog does, and say so."""
    try:
        yield
    except CutFileError as error:
        if (error.position or 0) <= FIRST_POSITION:
            raise  # not even its first event is whole
        messages.print(f"[yellow]warning:[/yellow] {error}", soft_wrap=True)
        raise typer.Exit(ExitCode.CUT_SHORT) from error


def _write_rows(rows: Iterator[LoggedRow], form: Format, result_file: Path | None) -> None:
    if form is Format.PARQUET:
        if result_file is None:
            message = "Parquet is not text; give --result-file"
            raise ConfigurationError(message)
        with pq.ParquetWriter(result_file, RECORDS) as writer:
            for batch in record_batches(rows):
                writer.write_batch(batch)
        return
    with _text(result_file) as out:
        if form is Format.JSON:
            out.writelines(json_line(row) + "\n" for row in rows)
            return
        table = csv.writer(out)
        table.writerow(RECORDS.names)
        for batch in record_batches(rows):
            for record in batch.to_pylist(maps_as_pydicts="strict"):
                table.writerow(_cell(value) for value in record.values())


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _binary(path: Path | None) -> AbstractContextManager[BinaryIO]:
    return nullcontext(typer.get_binary_stream("stdout")) if path is None else path.open("wb")


def _text(path: Path | None) -> AbstractContextManager[TextIO]:
    if path is None:
        return nullcontext(typer.get_text_stream("stdout"))
    return path.open("w", encoding="utf-8", errors="surrogateescape", newline="")
