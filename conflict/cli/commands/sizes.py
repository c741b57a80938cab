"""
`ndb-conflict sizes`: how many bytes a log takes in every format.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from conflict.cli.common import InexactKeysOption, console, messages, progress_bars, warn_of
from conflict.cli.exit_codes import ExitCode, exit_with
from conflict.cli.outputs import ForceOption, JsonOption, check_output, refuse_same_output, write_json
from conflict.errors import ConfigurationError
from ndb_formats.constants import DEFAULT_EVENT_SIZE
from ndb_formats.errors import CutFileError

if TYPE_CHECKING:
    from conflict.cli.views.sizes_files import FileFacts
    from conflict.discovery.log_source import LogSource
    from ndb_formats.columnar.compression import CompressionMeter
    from ndb_formats.columnar.event_chunks import EventChunk
    from ndb_formats.columnar.log_sizes import LogSizer
    from ndb_formats.schema.tables import Schema

__all__ = ["sizes"]

_MEGABYTE = 1_000_000


def sizes(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="Binlogs, in order: files, folders; or a run file.")
    ],
    schema: Annotated[
        Path | None, typer.Option(help="CREATE TABLE statements, for keys and defaults.", exists=True, dir_okay=False)
    ] = None,
    row_event_max_size: Annotated[
        int, typer.Option(help="binlog_row_event_max_size of the server.", min=256)
    ] = DEFAULT_EVENT_SIZE,
    inexact_keys: InexactKeysOption = False,
    json_file: JsonOption = None,
    force: ForceOption = False,
    plot: Annotated[Path | None, typer.Option(help="Draw a chart: FILE.png or FILE.svg.")] = None,
) -> None:
    """
    Show how many bytes a log would take in every format: binlog_row_image and the NDB binlog types.

    Example: ndb-conflict sizes binlog.000001 --schema schema.sql
    """
    from conflict.cli.views.sizes import print_sizes, sizes_json
    from conflict.cli.views.sizes_chart import check_chart_file, draw_sizes
    from conflict.cli.views.sizes_files import FileFacts
    from conflict.discovery.log_source import log_source
    from ndb_formats.columnar.compression import CompressionMeter
    from ndb_formats.columnar.log_remarks import log_remarks
    from ndb_formats.columnar.log_sizes import LogSizer
    from ndb_formats.columnar.size_report import size_report

    refuse_same_output(json_file, plot)
    source = log_source(files, schema)
    files = _given_once(source.files)
    for target in (json_file, plot):
        check_output(target, [*files, schema], force=force)
    check_chart_file(plot)
    definitions = _definitions(source, inexact_keys=inexact_keys)
    lengths = [file.stat().st_size for file in files]
    sizer, meter = LogSizer(definitions, event_size=row_event_max_size), CompressionMeter(sum(lengths))
    facts = [FileFacts(file, length) for file, length in zip(files, lengths, strict=True)]
    read, cuts = _measure(facts, sizer, meter)
    report = size_report(sizer, [each.size for each in read], meter.found)
    unknown = [table.name for table in report.tables if not table.known]
    if report.tables and len(unknown) == len(report.tables):
        names = ", ".join(unknown)
        message = f"no definition of {names}, so other formats are not known; give CREATE TABLE statements, --schema"
        raise ConfigurationError(message)
    print_sizes(console, report)
    write_json(json_file, sizes_json(report) | {"files": [each.document() for each in read]})
    if plot is not None:
        draw_sizes(report, plot)
    warned = warn_of(log_remarks(files))
    for cut in cuts:
        messages.print(
            f"[yellow]warning:[/yellow] {escape(str(cut))}; the sizes are of what comes before", soft_wrap=True
        )
    if cuts:
        raise typer.Exit(ExitCode.CUT_SHORT)
    exit_with(ExitCode.WARNED if warned or unknown else ExitCode.DONE)


def _measure(
    facts: Sequence[FileFacts], sizer: LogSizer, meter: CompressionMeter
) -> tuple[list[FileFacts], list[CutFileError]]:
    """
    Measure files; return those that were read, and why others were not.

    A file that ends inside an event ends the log of its server, but not those of others.
    """
    from ndb_formats.binlog_reader import server_of
    from ndb_formats.columnar.size_report import size_report

    read: list[FileFacts] = []
    cuts: list[CutFileError] = []
    ended: set[int | None] = set()
    before, total = size_report(sizer, []), sum(each.size for each in facts)
    with progress_bars() as progress:
        for each in facts:
            server, done = server_of(each.file), sum(one.size for one in read)
            if server in ended:
                continue
            read.append(each)

            def seen(chunk: EventChunk, facts: FileFacts = each, done: int = done) -> None:
                meter.add(chunk)
                facts.add(chunk)
                at = int(chunk.stops[-1]) if len(chunk.stops) else 0
                progress("reading MB", (done + at) // _MEGABYTE, total // _MEGABYTE)

            try:
                sizer.add(each.file, seen=seen)
            except CutFileError as error:
                cuts.append(error)
                ended.add(server)
            after = size_report(sizer, [one.size for one in read])
            each.measured(before, after)
            before = after
    return read, cuts


def _given_once(files: Sequence[Path]) -> list[Path]:
    if len({file.resolve() for file in files}) < len(files):
        message = "a binlog file is given twice, and would count twice; give each once"
        raise ConfigurationError(message)
    return [*files]


def _definitions(source: LogSource, *, inexact_keys: bool) -> Schema:
    """Return the definitions at the start of the logs."""
    from ndb_formats.columnar.stretches import schema_at_start
    from ndb_formats.schema.exact_keys import with_inexact_keys

    found = source.definitions(source.files)
    if source.at_end:
        found = schema_at_start([*map(str, source.files)], found)
    return with_inexact_keys(found) if inexact_keys else found
