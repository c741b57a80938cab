"""
`ndb-conflict resolve`: binlogs of two clusters to a result.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import attrs
import typer

import conflict.pipeline
from conflict.cli.common import (
    Engine,
    EngineOption,
    FunctionOption,
    PolicyOption,
    RunFileArgument,
    console,
    load_run,
    progress_bars,
)
from conflict.cli.exit_codes import ExitCode, exit_with
from conflict.cli.views.result import print_run
from conflict.compatibility.deployment import Policy
from conflict.grid.folder import Folder
from conflict.pipeline import ResolveOptions
from conflict.results.files import rejected_examples

__all__ = ["resolve"]

EXAMPLES = 2  # rejected operations that the summary explains


class OnMissing(StrEnum):
    """What the applier does with an operation that lacks the value that its function compares."""

    STOP = "stop"
    SKIP = "skip"


def resolve(
    run_file: RunFileArgument,
    out: Annotated[Path, typer.Option(help="Folder for the result; must not exist.")],
    engine: EngineOption = Engine.SPARK,
    function: FunctionOption = None,
    policy: PolicyOption = Policy.MANUAL,
    on_missing: Annotated[
        OnMissing,
        typer.Option(help="Where an operation lacks the value to compare: stop the applier as servers do, or skip it."),
    ] = OnMissing.STOP,
    history: Annotated[
        Path | None, typer.Option(help="Resolve this History, made by `ingest`, and read no binlogs.")
    ] = None,
    final_rows: Annotated[
        bool, typer.Option(help="Write the final rows of the tables, which reads all images of the History.")
    ] = True,
    all_outcomes: Annotated[
        bool, typer.Option("--all-outcomes", help="Write an outcome for every operation, those applied among them.")
    ] = False,
) -> None:
    """
    Resolve the binlogs of two clusters: find what was applied, what was rejected and why, and the final rows.

    Example: ndb-conflict resolve run.toml --out result
    """
    loaded = load_run(run_file, function)
    configuration = attrs.evolve(loaded.configuration, skip_missing=on_missing is OnMissing.SKIP)
    made = None if history is None else Folder(str(history.absolute()))
    options = ResolveOptions(made, final_rows, all_outcomes)
    loaded = attrs.evolve(loaded, configuration=configuration)
    with progress_bars() as progress:
        run = conflict.pipeline.resolve(
            loaded, str(out), engine=engine.value, policy=policy, options=options, progress=progress
        )
    examples = rejected_examples(Folder(str(out)), [cluster.name for cluster in configuration.clusters], EXAMPLES)
    print_run(console, configuration, run, examples, str(out))
    if run.errors:
        exit_with(ExitCode.CUT_SHORT)
    exit_with(ExitCode.CONTRADICTED if run.contradicted else ExitCode.DONE)
