"""
`ndb-conflict window`: how long changes took to the other cluster over time, and how long they could conflict.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import conflict.api.operations
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with
from conflict.decoding.staging import check_output, refuse_same_output

if TYPE_CHECKING:
    from conflict.operating.window.window import Window

_ROWS = 12


@command_of(conflict.api.operations.window)
def window(
    call: Call[Window],
    plot: Path | None,
    force: bool,
    top: Annotated[int, typer.Option(min=1, help="Rows of the table by time to show.")] = _ROWS,
    json_file: JsonOption = None,
) -> None:
    """
    Show how long changes took to the other cluster over time, and how long they could conflict there.

    Example: ndb-conflict window build/result --by minute --plot window.svg
    """
    from conflict.operating.window.telling import tell_window
    from conflict.telling.terminal import print_telling

    refuse_same_output(json_file, plot)
    check_output(json_file, [Path(each) for each in call.sources], force=force)
    with progress_bars() as progress:
        found = call(progress=progress)
    document = found.document()
    print_telling(console, tell_window(document, top))
    write_json(json_file, document)
    if plot is not None:
        console.print(f"The chart is in {plot}.", markup=False, highlight=False, soft_wrap=True)
    exit_with(ExitCode.CUT_SHORT if not found.whole else ExitCode.WARNED if found.doubtful else ExitCode.DONE)
