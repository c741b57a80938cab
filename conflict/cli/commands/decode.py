"""
`ndb-conflict decode`: binlog files as text, JSON lines, Parquet or CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import attrs
import typer
from rich.markup import escape

import conflict.api.binlogs
from conflict.cli.common import UnpackedOption, allow_unpacked, progress_bars, warn_of
from conflict.cli.from_functions import options_of
from conflict.cli.refusals import ExitCode, messages
from conflict.config.arguments import SchemaAt, Temporals
from conflict.config.option_values import DecodedFormat, seconds_of
from conflict.errors import ConfigurationError
from ndb_formats.binlog_reader import FIRST_POSITION
from ndb_formats.errors import FormatError
from ndb_formats.stored import path_of

if TYPE_CHECKING:
    from conflict.decoding.inputs import Inputs


_MEGABYTE = 1_000_000


@options_of(conflict.api.binlogs.decode)
def decode(
    files: Annotated[
        list[Path], typer.Argument(help="Binlogs, in order: files, also .gz, .zst, pipes, -; folders; or a run file.")
    ],
    *,
    verbose: Annotated[int, typer.Option("-v", "--verbose", count=True, help="Show rows; twice: with types.")] = 0,
    form: Annotated[DecodedFormat, typer.Option("--format", help="The output format.")] = DecodedFormat.TEXT,
    result_file: Annotated[
        Path | None,
        typer.Option("--result-file", "-r", help="Write to this file, or folder of tables."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="CSV, Parquet: one table for all changes.")] = False,
    temporals: Temporals,
    column_names: Annotated[
        bool,
        typer.Option("--column-names", help="Text: columns by name, if the log has it."),
    ] = False,
    schema: Path | None,
    schema_at: SchemaAt,
    start_position: Annotated[
        int, typer.Option("--start-position", "-j", help="First position, in the first file.")
    ] = FIRST_POSITION,
    stop_position: Annotated[int | None, typer.Option(help="Position to stop before, in the last file.")] = None,
    start_datetime: Annotated[str | None, typer.Option(help="First moment: '2026-01-31 08:00:00'.")] = None,
    stop_datetime: Annotated[str | None, typer.Option(help="Moment to stop before, for each server.")] = None,
    zone: Annotated[str, typer.Option("--timezone", help="Zone of moments without an offset.")] = "UTC",
    database: Annotated[
        list[str] | None,
        typer.Option("--database", "-d", help="This database; can be repeated."),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(help="This database.table, or table of one database; can be repeated."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="Rows with this key: 5, a=1 or 'a=1, b=two'; repeated: with all."),
    ] = None,
    server_id: Sequence[int] | None,
    server_id_bits: int,
    transaction: Sequence[int] | None,
    start_epoch: int,
    stop_epoch: int | None,
    print_table_metadata: Annotated[bool, typer.Option(help="Text: columns and keys of tables.")] = False,
    verify_binlog_checksum: Annotated[bool, typer.Option("-c", help="Stop at a wrong checksum.")] = False,
    unpacked_mib: UnpackedOption = None,
) -> None:
    """
    Show what binlog files hold: text with mysqlbinlog's ### lines, JSON lines, CSV or Parquet.

    Example: ndb-conflict decode -vv binlog.000001

    To fetch: mysqlbinlog --raw -R --stop-never -h db1 -p -r a/ binlog.000001
    """
    from conflict.decoding.decoding import Decoding, Output, asked_key
    from conflict.decoding.inputs import opened_inputs
    from conflict.discovery.logs import full_names, log_source
    from ndb_formats.columnar.stretches import schema_at_start
    from ndb_formats.selection import Selection
    from ndb_formats.text.row_printer import TextOptions

    allow_unpacked(unpacked_mib)
    output = Output(form, result_file, force, wide, temporals is Temporals.TYPED)
    source = log_source(files, schema, at_end=schema_at is SchemaAt.END, unpacks=True)
    output.check([*source.files, *([] if schema is None else [schema])])
    selection = Selection(
        start_position=start_position,
        stop_position=stop_position,
        start_time=seconds_of(start_datetime, "--start-datetime", _zone(zone)) or 0,
        stop_time=seconds_of(stop_datetime, "--stop-datetime", _zone(zone)),
        databases=frozenset(database or ()),
        start_epoch=start_epoch,
        stop_epoch=stop_epoch,
        server_ids=frozenset(server_id or ()),
        server_id_bits=server_id_bits,
        transactions=frozenset(transaction or ()),
    )
    with opened_inputs(source.files) as inputs, _progress(inputs, shown=result_file is not None) as seen:
        definitions = source.definitions(inputs.paths)
        options = TextOptions(verbose, print_table_metadata, column_names or definitions.has_tables)
        try:
            if source.at_end:
                definitions = schema_at_start(inputs.paths, definitions)
            selection = attrs.evolve(selection, tables=full_names(table or (), inputs.paths))
            follows = form is not DecodedFormat.TEXT or definitions.has_tables
            selection = attrs.evolve(
                selection, key=asked_key(key or (), selection, inputs.paths, definitions, follows=follows)
            )
            decoding = Decoding(inputs, selection, definitions, options, verify_binlog_checksum, seen)
            output.write(decoding, typer.get_binary_stream("stdout"))
        except FormatError as error:
            raise inputs.renamed(error) from error
        remarks = decoding.remarks(as_text=form is DecodedFormat.TEXT)
    for note in (*decoding.notes(), *(str(inputs.renamed(each)) for each in decoding.cuts)):
        messages.print(f"[yellow]warning:[/yellow] {escape(note)}", soft_wrap=True)
    warned = warn_of(remarks)
    if decoding.cuts:
        raise typer.Exit(ExitCode.CUT_SHORT)
    if warned or decoding.notes():
        raise typer.Exit(ExitCode.WARNED)


def _zone(name: str) -> tzinfo:
    """Return a zone by its name or its offset."""
    if name == "UTC":
        return UTC  # also where no zones are installed
    try:
        if name[:1] in "+-":
            zone = datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo
            assert zone is not None
            return zone
        return ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError, OSError):
        message = f"--timezone {name} is not known; give a name such as Europe/Berlin, or an offset such as +01:00"
        raise ConfigurationError(message) from None


@contextmanager
def _progress(inputs: Inputs, *, shown: bool) -> Iterator[Callable[[str, int], None]]:
    """Show how far the files have been read."""
    if not shown:
        yield lambda file, position: None
        return
    sizes = [path_of(path).stat().st_size for path in inputs.paths]
    with progress_bars() as show:

        def seen(file: str, position: int) -> None:
            before = sum(sizes[: inputs.paths.index(file)])
            show("reading MB", (before + position) // _MEGABYTE, sum(sizes) // _MEGABYTE)

        yield seen
