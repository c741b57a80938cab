"""
`ndb-conflict conformance`: an engine against recordings of real clusters.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from conflict.cli.common import console, progress_bars
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.cli.refusals import ExitCode
from conflict.decoding.staging import check_output


class Engine(StrEnum):
    """The reference engine works change by change; the columnar engine in this process, or on Spark."""

    REFERENCE = "reference"
    LOCAL = "local"
    SPARK = "spark"


def conformance(
    folder: Annotated[Path, typer.Argument(help="A folder with recordings.", exists=True, file_okay=False)],
    engine: Annotated[Engine, typer.Option(help="The engine to use.")] = Engine.LOCAL,
    json_file: JsonOption = None,
    force: ForceOption = False,
    without_steps: Annotated[
        bool,
        typer.Option("--without-steps", help="Ignore the recorded steps: take the schedule from the binlogs alone."),
    ] = False,
) -> None:
    """
    Compare an engine with the recordings of real clusters in a folder.

    Example: ndb-conflict conformance tests/recordings/conflict --engine reference
    """
    from conflict.cli.views.conformance import print_conformance
    from conflict.judge.case import find_recordings
    from conflict.judge.judge import CaseStatus, judge_all, verdicts_json

    check_output(json_file, folder.rglob("*"), force=force)
    recordings = find_recordings(folder)
    with progress_bars() as progress:
        verdicts = list(judge_all(recordings, engine, partial(progress, "judging cases"), use_steps=not without_steps))
    print_conformance(console, verdicts)
    write_json(json_file, verdicts_json(verdicts))
    if any(verdict.status is CaseStatus.FAIL for verdict in verdicts):
        raise typer.Exit(ExitCode.CONTRADICTED)
