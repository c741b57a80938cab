"""
`ndb-conflict diverge`: the shortest schedule after which two clusters differ, or none in a small scope.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

import conflict.api.searching
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with
from conflict.decoding.staging import check_output, refuse_same_output
from conflict.whatif.diverging.scope import Goal

if TYPE_CHECKING:
    from conflict.whatif.diverging.divergence import Divergence


@command_of(conflict.api.searching.diverge)
def diverge(
    call: Call[Divergence],
    recording: Path | None,
    find: Annotated[list[Goal] | None, typer.Option(help="What to look for; can be repeated. All by default.")] = None,
    json_file: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """
    Search everything that two clusters can do in a small scope for the shortest way to differ.

    Example: ndb-conflict diverge --function 'NDB$EPOCH()' --find difference
    """
    from conflict.telling.terminal import print_telling
    from conflict.whatif.diverging.telling import tell_searches

    check_output(json_file, [], force=force)
    refuse_same_output(recording, json_file)
    call.options["find"] = find
    with progress_bars() as progress:
        found = call(progress=progress)
    document = found.document()
    for each in document["searches"]:
        print_telling(console, tell_searches([each]))
    write_json(json_file, document)
    if recording is not None and not found.found:
        console.print(f"No schedule was found, so there is no recording in {escape(str(recording))}.", soft_wrap=True)
    ended = ExitCode.DONE if found.complete else ExitCode.WARNED
    exit_with(ExitCode.CONTRADICTED if found.found else ended)
