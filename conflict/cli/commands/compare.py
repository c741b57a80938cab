"""
`ndb-conflict compare`: what other functions and formats would have made of the same changes.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from conflict.cli.common import console, progress_bars
from conflict.cli.outputs import ForceOption, JsonOption, check_output, refuse_same_output, write_json
from conflict.cli.refusals import ExitCode, exit_with
from conflict.cli.sources import (
    ConflictFnOption,
    PrimaryOption,
    ReplicationOption,
    SchemaOption,
    SourcesArgument,
    additions_of,
    load_sources,
)

__all__ = ["compare"]


class CompareEngine(StrEnum):
    """An engine that compares, or the one that fits the run."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


def compare(
    sources: SourcesArgument,
    functions: Annotated[
        str,
        typer.Option(help="Functions, separated by commas: NDB$MAX(x),NDB$EPOCH()@london,LAST_COMMIT."),
    ] = "",
    formats: Annotated[str, typer.Option(help="Binlog types to try besides the one in the log: 3,9.")] = "",
    prefer: Annotated[
        str, typer.Option(help="The order of the functions: the most important criterion first.")
    ] = "lost-updates,divergence,traffic",
    engine: Annotated[CompareEngine, typer.Option(help="The engine; auto chooses as resolve does.")] = (
        CompareEngine.AUTO
    ),
    history: Annotated[
        Path | None, typer.Option(help="Compare on this History, made by `ingest`; it keeps one column per table.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the comparison as Parquet and JSON.")] = None,
    json_file: JsonOption = None,
    schema: SchemaOption = None,
    ndb_replication: ReplicationOption = None,
    conflict_fn: ConflictFnOption = None,
    primary: PrimaryOption = None,
    force: ForceOption = False,
) -> None:
    """
    Compare what other conflict functions and formats would have done with the same changes.

    Example: ndb-conflict compare run.toml --functions 'NDB$MAX(v),NDB$EPOCH()'
    """
    from conflict.cli.views.comparison import print_comparison
    from conflict.history.grid.folder import Folder
    from conflict.whatif.comparing.comparison import ComparisonWanted, compare_run
    from conflict.whatif.comparing.figures import parse_criteria
    from conflict.whatif.comparing.pairs import parse_formats

    wanted = ComparisonWanted(functions, parse_formats(formats) if formats else (), parse_criteria(prefer))
    loaded = load_sources(sources, additions_of(schema, ndb_replication, conflict_fn, primary))
    check_output(json_file, loaded.inputs, force=force)
    refuse_same_output(out, json_file)
    made, target = (None if path is None else Folder(str(path.absolute())) for path in (history, out))
    with progress_bars() as progress:
        found = compare_run(
            loaded, wanted, engine=engine.value, history=made, out=target, replace=force, progress=progress
        )
    print_comparison(console, found)
    write_json(json_file, found.to_json())
    if found.run.errors or found.run.unrelated or found.cut:
        exit_with(ExitCode.CUT_SHORT)
    if found.run.contradicted:
        exit_with(ExitCode.CONTRADICTED)
    exit_with(ExitCode.WARNED if found.run.remarks else ExitCode.DONE)
