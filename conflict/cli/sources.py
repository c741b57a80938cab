"""
What `resolve`, `ingest` and `init` are given: a run file, or bare binlogs and what they lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conflict.cli.common import load_run
from conflict.cli.refusals import messages
from conflict.errors import ConfigurationError

if TYPE_CHECKING:
    from conflict.cli.from_functions import Call
    from conflict.config.run_file import RunFile
    from conflict.discovery.draft import Additions
    from conflict.discovery.logs import FoundLog

__all__ = [
    "ConflictFnOption",
    "PrimaryOption",
    "ReplicationOption",
    "SchemaOption",
    "SourcesArgument",
    "additions_of",
    "additions_of_call",
    "load_run_of",
    "load_sources",
    "show_logs",
]

SourcesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN_FILE | BINLOGS...",
        help="A run file (.toml); or the binlogs of both clusters: folders, index files, patterns or files.",
    ),
]
SchemaOption = Annotated[
    Path | None,
    typer.Option(help="CREATE TABLE statements, for bare binlogs that neither create nor describe their tables."),
]
ReplicationOption = Annotated[
    Path | None,
    typer.Option("--ndb-replication", help="Rows of mysql.ndb_replication, for bare binlogs: .sql, .csv, .tsv, .toml."),
]
ConflictFnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--conflict-fn",
        metavar="TABLE=FUNCTION",
        help="For bare binlogs: 'shop.orders=NDB$MAX(version)', in single quotes; or 'shop.*=...'.",
    ),
]
PrimaryOption = Annotated[
    str | None, typer.Option(metavar="CLUSTER", help="For bare binlogs and functions by epoch: the primary cluster.")
]


def additions_of(
    schema: Path | None, ndb_replication: Path | None, conflict_fn: Sequence[str] | None, primary: str | None
) -> Additions:
    """Return what a user adds to bare binlogs; imported when it is needed."""
    from conflict.discovery import draft

    return draft.additions_of(schema, ndb_replication, conflict_fn, primary)


def load_sources(
    sources: Sequence[Path],
    additions: Additions,
    functions: list[str] | None = None,
    *,
    inexact_keys: bool = False,
) -> RunFile:
    """
    Read a run file, or draft one from bare binlogs; add rules in Python.

    Raises:
        ConfigurationError: What is given is missing or wrong, or something is added to a run file.
    """
    from conflict.discovery.draft import Additions, draft_run

    if len(sources) == 1 and sources[0].suffix == ".toml":
        if additions != Additions():
            message = f"{sources[0]} is a run file, which has entries for the options of bare binlogs; change it there"
            raise ConfigurationError(message)
        return load_run(sources[0], functions, inexact_keys=inexact_keys)
    draft = draft_run(sources, additions, Path("run.toml"))
    show_logs(draft.logs)
    return load_run(draft.run, functions, inexact_keys=inexact_keys)


def load_run_of(call: Call[Any]) -> RunFile:
    """
    Read a run file, or draft one from bare binlogs and print which were found; call the function with that.

    Raises:
        ConfigurationError: What is given is missing or wrong, or something is added to a run file.
    """
    from conflict.library import run_of

    run = run_of(call.sources, additions_of_call(call), show_logs)
    call.sources = [run]
    return run


def additions_of_call(call: Call[Any]) -> Additions:
    """Return what is said besides bare binlogs, and take it from the call."""
    return additions_of(*(call.options.pop(name) for name in ("schema", "ndb_replication", "conflict_fn", "primary")))


def show_logs(logs: Sequence[FoundLog]) -> None:
    """Print which binlogs were found."""
    for log in logs:
        files = f"{len(log.files):,} binlog files" if len(log.files) > 1 else "1 binlog file"
        last = f" to {log.files[-1].name}" if len(log.files) > 1 else ""
        messages.print(
            f"Cluster {log.name} is server {log.server_id}: {files}, {log.files[0].name}{last}.",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
