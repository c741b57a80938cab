"""
`ndb-conflict sizes`: how many bytes a log takes in every format.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from conflict.cli.common import InexactKeysOption, console, messages, progress_bars, warn_of
from conflict.cli.outputs import ForceOption, JsonOption, check_output, refuse_same_output, write_json
from conflict.cli.refusals import ExitCode, exit_with
from ndb_formats.constants import DEFAULT_EVENT_SIZE

if TYPE_CHECKING:
    from ndb_formats.sizes.report import SizeReport

__all__ = ["sizes"]


def sizes(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="Binlogs, in order: files, folders; or a run file.")
    ],
    schema: Annotated[
        Path | None, typer.Option(help="CREATE TABLE statements, for keys and defaults.", exists=True, dir_okay=False)
    ] = None,
    ndb_replication: Annotated[
        Path | None,
        typer.Option(help="Rows of mysql.ndb_replication: sizes with the binlog type that each gives its table."),
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
    from conflict.cli.views.sizes_chart import check_chart_file
    from conflict.cli.views.sizes_files import configured_types, measured_log
    from conflict.discovery.log_source import log_source
    from ndb_formats.columnar.log_scan import log_remarks

    refuse_same_output(json_file, plot)
    source = log_source(files, schema)
    files = [*source.files]
    for target in (json_file, plot):
        check_output(target, [*files, schema, ndb_replication], force=force)
    check_chart_file(plot)
    definitions = source.definitions_at_start(inexact_keys=inexact_keys)
    types = configured_types(ndb_replication, files, definitions)
    with progress_bars() as progress:
        found = measured_log(files, definitions, row_event_max_size, progress)
    report, cuts = found.report, found.cuts
    print_sizes(console, report, types)
    write_json(json_file, sizes_json(report, types) | {"files": [each.document() for each in found.facts]})
    if plot is not None:
        _draw(report, plot)
    warned = warn_of(log_remarks(files))
    for cut in cuts:
        messages.print(
            f"[yellow]warning:[/yellow] {escape(str(cut))}; the sizes are of what comes before", soft_wrap=True
        )
    if cuts:
        raise typer.Exit(ExitCode.CUT_SHORT)
    exit_with(ExitCode.WARNED if warned or not all(table.known for table in report.tables) else ExitCode.DONE)


def _draw(report: SizeReport, plot: Path) -> None:
    from conflict.cli.views.sizes_chart import draw_sizes

    draw_sizes(report, plot)
    console.print(f"The chart is in {plot}.", markup=False, highlight=False, soft_wrap=True)
