"""
`ndb-conflict rewrite`: binlog files with the same changes in another format.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

import conflict.api.formats
from conflict.cli.common import console, progress_bars, warn_of
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with, messages
from conflict.decoding.staging import check_output, refuse_same_output

if TYPE_CHECKING:
    from conflict.decoding.rewritten import Rewritten


@command_of(conflict.api.formats.rewrite)
def rewrite(
    call: Call[Rewritten],
    files: list[Path],
    out: Path,
    schema: Path | None,
    force: bool,
    json_file: JsonOption = None,
) -> None:
    """
    Write the changes of binlog files in another format, and say which changes the log has too few columns for.

    Example: ndb-conflict rewrite binlog.000001 --binlog-type 8 --out minimal
    """
    from conflict.telling.terminal import print_telling
    from ndb_formats.columnar.log_remarks import log_remarks

    check_output(json_file, [*files, schema], force=force)
    refuse_same_output(*dict.fromkeys(out / file.name for file in files), json_file)
    with progress_bars() as progress:
        found = call(progress=progress)
    print_telling(console, found.telling())
    write_json(json_file, found.document())
    warned = warn_of(log_remarks(files))
    if found.cut is not None:
        said = f"{escape(str(found.cut))}; its complete transactions were written"
        messages.print(f"[yellow]warning:[/yellow] {said}", soft_wrap=True)
        raise typer.Exit(ExitCode.CUT_SHORT)
    exit_with(ExitCode.WARNED if warned or not found.complete else ExitCode.DONE)
