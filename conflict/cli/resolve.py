"""
`ndb-conflict resolve`: binlogs of two clusters to a result.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import attrs
import typer

from conflict.cli.common import (
    Engine,
    EngineOption,
    ExitCode,
    FunctionOption,
    PolicyOption,
    RunFileArgument,
    console,
    load_run,
    progress_bars,
)
from conflict.cli.views.result import print_run
from conflict.compatibility.check import refuse_by_policy
from conflict.compatibility.deployment import Policy
from conflict.errors import ConfigurationError
from conflict.grid.folder import Folder
from conflict.history.hints import hints_of_run_file
from conflict.pipeline import ENGINES, ResolveOptions, check_built, refuse_python_rules, whole_or_not_at_all
from conflict.results.files import rejected_examples
from conflict.rules.counters import zero_counters

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
    if engine is not Engine.REFERENCE:
        refuse_python_rules(configuration)
    check_built(configuration)
    refuse_by_policy(configuration, policy)
    if out.exists():
        message = f"{out} exists already; give another folder, or remove it first"
        raise ConfigurationError(message)
    made = None if history is None else Folder(str(history.absolute()))
    options = ResolveOptions(made, final_rows, all_outcomes)
    target = Folder(str(out.absolute()))
    with progress_bars() as progress, whole_or_not_at_all(target) as work:
        run = ENGINES[engine](configuration, work, partial(hints_of_run_file, loaded), progress, options)
        zeros = zero_counters(configuration.functions)
        work.write_json("counters.json", {name: {**zeros, **each} for name, each in run.summary.counters.items()})
        work.write_json("run.json", run.to_json(configuration, engine.value, all_outcomes=all_outcomes))
    examples = rejected_examples(target, [cluster.name for cluster in configuration.clusters], EXAMPLES)
    print_run(console, configuration, run, examples, str(out))
    if run.errors:
        raise typer.Exit(ExitCode.CUT_SHORT)
