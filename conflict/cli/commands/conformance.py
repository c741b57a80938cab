"""
`ndb-conflict conformance`: an engine, or a resolver, against recordings of real clusters.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

import conflict.api.judging
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.cli.refusals import ExitCode
from conflict.decoding.staging import check_output

if TYPE_CHECKING:
    from conflict.judge.report import Conformance


@command_of(conflict.api.judging.conformance)
def conformance(
    call: Call[Conformance], folder: Path, json_file: JsonOption = None, force: ForceOption = False
) -> None:
    """
    Compare an engine, or a resolver of yours, with the recordings of real clusters in a folder.

    Example: ndb-conflict conformance tests/recordings/conflict --engine reference

    Example: ndb-conflict conformance build/cases --resolver last_writer
    """
    from conflict.judge.report import tell_conformance
    from conflict.telling.terminal import print_telling

    check_output(json_file, folder.rglob("*"), force=force)
    with progress_bars() as progress:
        found = call(progress=progress)
    print_telling(console, tell_conformance(found))
    write_json(json_file, found.to_json())
    if found.failed:
        raise typer.Exit(ExitCode.CONTRADICTED)
