"""
`ndb-conflict sizes`: how many bytes a log takes in every format.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

import conflict.api.binlogs
from conflict.cli.common import console, progress_bars, warn_of
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with, messages
from conflict.decoding.staging import check_output, refuse_same_output

if TYPE_CHECKING:
    from conflict.whatif.sizing.measured_log import MeasuredLog


@command_of(conflict.api.binlogs.sizes)
def sizes(
    call: Call[MeasuredLog],
    files: list[Path],
    schema: Path | None,
    ndb_replication: Path | None,
    force: bool,
    plot: Path | None,
    json_file: JsonOption = None,
) -> None:
    """
    Show how many bytes a log would take in every format: binlog_row_image and the NDB binlog types.

    Example: ndb-conflict sizes binlog.000001 --schema schema.sql
    """
    from conflict.discovery.logs import log_source
    from conflict.telling.terminal import print_telling
    from conflict.whatif.sizing.telling import tell_sizes
    from ndb_formats.columnar.log_remarks import log_remarks

    refuse_same_output(json_file, plot)
    files = [*log_source(files, schema).files]
    check_output(json_file, [*files, schema, ndb_replication], force=force)
    with progress_bars() as progress:
        found = call(progress=progress)
    report, cuts, document = found.report, found.cuts, found.document()
    print_telling(console, tell_sizes(document))
    write_json(json_file, document)
    if plot is not None:
        console.print(f"The chart is in {plot}.", markup=False, highlight=False, soft_wrap=True)
    warned = warn_of(log_remarks(files))
    for cut in cuts:
        messages.print(
            f"[yellow]warning:[/yellow] {escape(str(cut))}; the sizes are of what comes before", soft_wrap=True
        )
    if cuts:
        raise typer.Exit(ExitCode.CUT_SHORT)
    exit_with(ExitCode.WARNED if warned or not all(table.known for table in report.tables) else ExitCode.DONE)
