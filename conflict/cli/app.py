"""
The command line: `ndb-conflict`.

Exit codes: 0 done; 1 a recording is contradicted; 2 the input is refused; 3 a binlog could not be read
to its end, and the result covers what comes before that.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from conflict.cli.check import check
from conflict.cli.decode import decode
from conflict.cli.output_file import refuse_overwriting
from conflict.cli.requirements import requirements_command
from conflict.cli.terminal import print_conformance, print_run
from conflict.compatibility.pairing import Policy
from conflict.compatibility.whole_run import refuse_by_policy
from conflict.config.run_file import RunFile, load_run_file
from conflict.conformance.judge import FAIL, report, to_json
from conflict.errors import ConflictError
from conflict.grid.folder import Folder
from conflict.grid.manifest import MANIFEST
from conflict.history.hints import hints_of_run_file
from conflict.ingestion.plan import PLAN
from conflict.pipeline import ENGINES, ResolveOptions, check_built, refuse_python_rules, run_ingest, whole_or_not_at_all
from conflict.results.files import rejected_examples
from conflict.rules.counters import zero_counters
from conflict.rules.user_policies import load_functions
from ndb_formats.errors import FormatError

__all__ = ["main"]

CONTRADICTED, REFUSED, CUT_SHORT = 1, 2, 3
EXAMPLES = 2

app = typer.Typer(
    help="What MySQL NDB Cluster logs of a change, and what happens when changes meet.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
console = Console()
messages = Console(stderr=True)


class Engine(StrEnum):
    """Which engine resolves: the reference, change by change; the kernels in this process, or on Spark."""

    REFERENCE = "reference"
    LOCAL = "local"
    SPARK = "spark"


class OnMissing(StrEnum):
    """What becomes of an operation that lacks the value that its function compares."""

    STOP = "stop"
    SKIP = "skip"


RunFileArgument = Annotated[Path, typer.Argument(help="The run file (TOML).", exists=True, dir_okay=False)]
EngineOption = Annotated[Engine, typer.Option(help="Which engine resolves.")]
FunctionOption = Annotated[
    list[str] | None,
    typer.Option("--function", metavar="MODULE:NAME", help="A conflict function of your own; can be given repeatedly."),
]
MissingOption = Annotated[
    OnMissing,
    typer.Option(help="Where an operation lacks the value to compare: stop its applier, as servers do, or skip it."),
]
HistoryOption = Annotated[
    Path | None,
    typer.Option(help="A History made by `ingest`: it is resolved as it is, without reading binlogs."),
]
FinalRowsOption = Annotated[
    bool,
    typer.Option(help="Write the rows that the tables hold at the end; all images of the History are read for that."),
]
AllOutcomesOption = Annotated[bool, typer.Option("--all-outcomes", help="Write a row for every operation.")]
PolicyOption = Annotated[Policy, typer.Option(help="Which functions go with which binlog types.")]


@app.command()
def resolve(
    run_file: RunFileArgument,
    out: Annotated[Path, typer.Option(help="Folder for the result; must not exist.")],
    engine: EngineOption = Engine.SPARK,
    function: FunctionOption = None,
    policy: PolicyOption = Policy.MANUAL,
    on_missing: MissingOption = OnMissing.STOP,
    history: HistoryOption = None,
    final_rows: FinalRowsOption = True,
    all_outcomes: AllOutcomesOption = False,
) -> None:
    """Resolve the binlogs of two clusters: what was applied, what was rejected and why, and what both end with."""
    with _refusals(), _bars() as progress:
        loaded = _load(run_file)
        functions = load_functions(function or ())
        skip = on_missing is OnMissing.SKIP
        configuration = attrs.evolve(loaded.configuration, functions=functions, skip_missing=skip)
        check_built(configuration)
        if engine is not Engine.REFERENCE:
            refuse_python_rules(configuration)
        refuse_by_policy(configuration, policy)
        _must_be_new(out)
        made = None if history is None else Folder(str(history.absolute()))
        options = ResolveOptions(made, final_rows, all_outcomes)
        with whole_or_not_at_all(Folder(str(out.absolute()))) as work:
            run = ENGINES[engine.value](configuration, work, partial(hints_of_run_file, loaded), progress, options)
            counters = {name: {**zero_counters(functions), **counted} for name, counted in run.summary.counters.items()}
            work.write_json("counters.json", counters)
            work.write_json("run.json", run.to_json(configuration, engine.value, all_outcomes=all_outcomes))
    clusters = [cluster.name for cluster in configuration.clusters]
    examples = rejected_examples(Folder(str(out)), clusters, EXAMPLES)
    print_run(console, configuration, run, examples, str(out))
    if run.errors:
        raise typer.Exit(CUT_SHORT)


@app.command()
def ingest(
    run_file: RunFileArgument,
    out: Annotated[Path, typer.Option(help="Folder for the History; one that is there is continued.")],
) -> None:
    """
    Read the binlogs of two clusters into a History: Parquet by run of epochs and key bucket.

    Into a History that is there already, what has been added to the binlogs is read; one that was cut off is finished.
    """
    with _refusals(), _bars() as progress:
        loaded = _load(run_file)
        _must_be_new_or_history(out)
        ingested = run_ingest(
            loaded.configuration, Folder(str(out.absolute())), partial(hints_of_run_file, loaded), progress
        )
    manifest = ingested.manifest
    done = f"Read {_segments(ingested.read)};" if ingested.read else f"Nothing new; {_segments(ingested.there)}"
    there = f" {ingested.there:,}" if ingested.read else ""
    console.print(f"{done}{there} were there already.")
    for name, segments in manifest.segments.items():
        epochs = f"epochs {segments[0].first_epoch} to {segments[-1].last_epoch}" if segments else "no epochs"
        console.print(f"{name}: {sum(segment.changes for segment in segments):,} row changes of its own, {epochs}")
    console.print(f"The History is in [bold]{escape(str(out))}[/bold].")
    for name, error in manifest.errors.items():
        messages.print(
            f"[red]The binlogs of {name} could not be read to the end:[/red] {escape(error)}", soft_wrap=True
        )
        messages.print(f"{manifest.left_out.get(name, 0):,} row operations of an unfinished epoch are left out.")
    if manifest.errors:
        raise typer.Exit(CUT_SHORT)


@app.command()
def conformance(
    folder: Annotated[Path, typer.Argument(help="A folder of recordings.", exists=True, file_okay=False)],
    engine: EngineOption = Engine.SPARK,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the verdicts here.")] = None,
) -> None:
    """Judge an engine by recordings of real clusters."""
    with _refusals(), _bars() as progress:
        refuse_overwriting(json_file, folder.rglob("*"))
        verdicts = list(report(folder, engine.value, lambda done, total: progress("judging cases", done, total)))
    print_conformance(console, verdicts)
    if json_file is not None:
        json_file.write_text(json.dumps(to_json(verdicts), indent=1) + "\n", "utf-8")
    if any(verdict.status == FAIL for verdict in verdicts):
        raise typer.Exit(CONTRADICTED)


@app.command(name="decode")
@functools.wraps(decode)
def _decode(**arguments: Any) -> None:
    with _refusals():
        decode(**arguments)


@app.command(name="requirements")
@functools.wraps(requirements_command)
def _requirements(**arguments: Any) -> None:
    with _refusals():
        requirements_command(**arguments)


@app.command(name="check")
@functools.wraps(check)
def _check(**arguments: Any) -> None:
    with _refusals():
        check(**arguments)


def _load(run_file: Path) -> RunFile:
    return load_run_file(run_file.absolute())  # Spark's tasks need not run in the folder that this process runs in


def _must_be_new(out: Path) -> None:
    if out.exists():
        message = f"{out} exists already; give another folder, or remove it first"
        raise typer.BadParameter(message)


def _segments(count: int) -> str:
    return f"{count:,} segment{'' if count == 1 else 's'}"


def _must_be_new_or_history(out: Path) -> None:
    ours = any((out / name).exists() for name in (MANIFEST, PLAN))
    if out.exists() and not ours and (not out.is_dir() or any(out.iterdir())):
        message = f"{out} exists already and is no History; give another folder, or remove it first"
        raise typer.BadParameter(message)


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn refused input into one clear line and an exit code."""
    try:
        yield
    except (ConflictError, FormatError) as error:
        messages.print(f"[red]{escape(str(error))}[/red]", soft_wrap=True)
        raise typer.Exit(REFUSED) from error


class _Bars:
    """One progress bar per stage."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stages: dict[str, int] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._stages:
            self._stages[stage] = self._progress.add_task(stage, total=total)
        self._progress.update(self._progress.tasks[self._stages[stage]].id, completed=done, total=total)


@contextmanager
def _bars() -> Iterator[_Bars]:
    columns = (TextColumn("{task.description:>16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        yield _Bars(progress)


def main() -> None:
    """Run the command line."""
    app()
