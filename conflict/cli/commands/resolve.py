"""
`ndb-conflict resolve`: binlogs of two clusters to a result.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from conflict.checking.deployment import DeploymentPolicy
from conflict.cli.common import (
    FunctionOption,
    InexactKeysOption,
    PolicyOption,
    UnpackedOption,
    allow_unpacked,
    console,
    progress_bars,
)
from conflict.cli.outputs import ForceOption
from conflict.cli.refusals import ExitCode, exit_with, messages
from conflict.cli.sources import (
    ConflictFnOption,
    PrimaryOption,
    ReplicationOption,
    SchemaOption,
    SourcesArgument,
    additions_of,
    load_sources,
)
from conflict.config.option_values import seconds_of
from conflict.errors import ConfigurationError
from conflict.runs.engine_choice import LOCAL_BYTES, choose_engine
from ndb_formats.errors import did_you_mean

if TYPE_CHECKING:
    from conflict.config.configuration import Configuration
    from conflict.config.run_file import RunFile
    from conflict.results.run_document import ResolvedRun
    from conflict.runs.runner import ResolveOptions

__all__ = ["ResolveEngine", "code_of", "resolve", "show_resolved"]

EXAMPLES = 2  # rejected operations that the summary explains


class ResolveEngine(StrEnum):
    """An engine, or the one that fits the run."""

    AUTO = "auto"
    REFERENCE = "reference"
    LOCAL = "local"
    SPARK = "spark"


_DIGITS = 20  # of the highest epoch
_UTC = "; UTC without an offset"


class OnMissing(StrEnum):
    """What the applier does with an operation that lacks the value that its function compares."""

    STOP = "stop"
    SKIP = "skip"


def resolve(
    context: typer.Context,
    sources: SourcesArgument,
    out: Annotated[Path, typer.Option(help="Folder for the result.")] = Path("result"),
    engine: Annotated[
        ResolveEngine,
        typer.Option(help=f"The engine; auto is local for binlogs of up to {LOCAL_BYTES >> 20} MiB, else spark."),
    ] = ResolveEngine.AUTO,
    function: FunctionOption = None,
    policy: PolicyOption = DeploymentPolicy.MANUAL,
    on_missing: Annotated[
        OnMissing,
        typer.Option(help="Where an operation lacks the value to compare: stop the applier as servers do, or skip it."),
    ] = OnMissing.STOP,
    history: Annotated[
        Path | None, typer.Option(help="Resolve this History, made by `ingest`, and read no binlogs.")
    ] = None,
    keep_history: Annotated[
        Path | None,
        typer.Option(
            help="Keep what is read of the binlogs as a History in this folder; one that is there is continued."
        ),
    ] = None,
    final_rows: Annotated[
        bool, typer.Option(help="Write the final rows of the tables, which reads all images of the History.")
    ] = True,
    start_epoch: Annotated[
        list[str] | None,
        typer.Option(metavar="CLUSTER=EPOCH", help="Read a cluster from this own epoch on; the other one follows."),
    ] = None,
    stop_epoch: Annotated[
        list[str] | None, typer.Option(metavar="CLUSTER=EPOCH", help="Read a cluster up to this own epoch.")
    ] = None,
    start_datetime: Annotated[
        str | None,
        typer.Option(metavar="DATETIME", help=f"Read the first cluster from then on{_UTC}; the other one follows."),
    ] = None,
    stop_datetime: Annotated[
        str | None, typer.Option(metavar="DATETIME", help=f"Read up to this moment, exclusive{_UTC}.")
    ] = None,
    all_outcomes: Annotated[
        bool, typer.Option("--all-outcomes", help="Write an outcome for every operation, those applied among them.")
    ] = False,
    inexact_keys: InexactKeysOption = False,
    schema: SchemaOption = None,
    ndb_replication: ReplicationOption = None,
    conflict_fn: ConflictFnOption = None,
    primary: PrimaryOption = None,
    force: ForceOption = False,
    unpacked_mib: UnpackedOption = None,
) -> None:
    """
    Resolve the binlogs of two clusters: find what was applied, what was rejected and why, and the final rows.

    Example: ndb-conflict resolve run.toml --out result

    Example: ndb-conflict resolve london/ paris/ --conflict-fn 'shop.*=NDB$MAX(v)'
    """
    from conflict.cli.views.next_steps import print_next
    from conflict.history.grid.folder import Folder
    from conflict.runs.runner import ResolveOptions

    allow_unpacked(unpacked_mib)
    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    loaded = load_sources(sources, additions, function, inexact_keys=inexact_keys)
    span = attrs.evolve(
        loaded.configuration.span,
        first={
            **loaded.configuration.span.first,
            **_epochs("--start-epoch", start_epoch, loaded.configuration),
        },
        last=_epochs("--stop-epoch", stop_epoch, loaded.configuration),
        first_time=seconds_of(start_datetime, "--start-datetime"),
        stop_time=seconds_of(stop_datetime, "--stop-datetime"),
    )
    configuration = attrs.evolve(loaded.configuration, skip_missing=on_missing is OnMissing.SKIP, span=span)
    made, kept = (None if path is None else Folder(str(path.absolute())) for path in (history, keep_history))
    options = ResolveOptions(
        history=made, keep_history=kept, final_rows=final_rows, all_outcomes=all_outcomes, replace=force
    )
    shown = show_resolved(attrs.evolve(loaded, configuration=configuration), out, engine, policy, options)
    print_next(messages, out, *shown, context)
    exit_with(code_of(shown[0]))


def show_resolved(
    loaded: RunFile, out: Path, engine: ResolveEngine, policy: DeploymentPolicy, options: ResolveOptions
) -> tuple[ResolvedRun, list[dict[str, Any]]]:
    """Resolve a run and print its summary; return the result, and the rejected operations that were printed."""
    import conflict.pipeline
    from conflict.cli.views.result import print_run
    from conflict.history.grid.folder import Folder
    from conflict.results.files import rejected_examples

    configuration = loaded.configuration
    choice = choose_engine(configuration) if engine is ResolveEngine.AUTO else None
    chosen = engine.value if choice is None else choice.engine
    gc.freeze()  # what imports made stays, and need not be looked at again and again
    with progress_bars(time_left=True) as progress:
        resolved = conflict.pipeline.resolve(
            loaded, str(out), engine=chosen, policy=policy, options=options, progress=progress
        )
    if choice is not None and not resolved.engine:  # else the result says which other one resolved it, and why
        messages.print(f"The {chosen} engine resolved this: {choice.reason}.", highlight=False)
    examples = rejected_examples(Folder(str(out)), [cluster.name for cluster in configuration.clusters], EXAMPLES)
    print_run(console, resolved, examples, str(out))
    return resolved, examples


def code_of(resolved: ResolvedRun) -> ExitCode:
    """Return how a command ends with a result."""
    if resolved.errors or resolved.unrelated:
        return ExitCode.CUT_SHORT
    if resolved.contradicted:
        return ExitCode.CONTRADICTED
    return ExitCode.WARNED if resolved.remarks else ExitCode.DONE


def _epochs(option: str, texts: Sequence[str] | None, configuration: Configuration) -> dict[str, int]:
    """Return the epoch of each cluster that an option names."""
    epochs = {}
    for text in texts or ():
        name, equals, epoch = text.partition("=")
        number = int(epoch) if epoch.isdecimal() and len(epoch) <= _DIGITS else -1
        if name not in configuration.links.server_ids or not equals or not 0 <= number < 2**64:
            names = " or ".join(configuration.links.server_ids)
            meant = did_you_mean(name, configuration.links.server_ids)
            message = f"{option} {text} is not understood{meant}; give cluster {names}, =, and an own epoch of it"
            raise ConfigurationError(message)
        epochs[name] = number
    return epochs
