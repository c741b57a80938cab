"""
`ndb-conflict ingest`: binlogs of two clusters to a History on disk.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

import conflict.api.runs
from conflict.cli.common import UnpackedOption, allow_unpacked, console, progress_bars, warn_of
from conflict.cli.from_functions import Call, command_of
from conflict.cli.refusals import ExitCode, exit_with, messages
from conflict.cli.sources import load_run_of

if TYPE_CHECKING:
    from conflict.runs.ingest_job import Ingested


@command_of(conflict.api.runs.ingest)
def ingest(call: Call[Ingested], out: Path, unpacked_mib: UnpackedOption = None) -> None:
    """
    Read the binlogs of two clusters into a History: Parquet files by key bucket.

    Into an existing History, read only what is new in the binlogs; after an interruption, continue.

    Example: ndb-conflict ingest run.toml --out history
    """
    allow_unpacked(unpacked_mib)
    load_run_of(call)
    with progress_bars() as progress:
        ingested = call(progress=progress)
    if ingested.engine_reason:
        sentence = f"The {ingested.engine} engine read this: {ingested.engine_reason}."
        messages.print(sentence, highlight=False, markup=False)
    _print_ingested(ingested, out)
    warned = warn_of(ingested.remarks)
    if ingested.manifest.errors:
        raise typer.Exit(ExitCode.CUT_SHORT)
    exit_with(ExitCode.WARNED if warned else ExitCode.DONE)


def _print_ingested(ingested: Ingested, out: Path) -> None:
    manifest = ingested.manifest
    if ingested.read:
        console.print(f"Read {_segments(ingested.read)}; {ingested.there:,} were in the History already.")
    else:
        console.print(f"Nothing new; {_segments(ingested.there)} were in the History already.")
    for name, segments in manifest.segments.items():
        epochs = f"epochs {segments[0].first_epoch} to {segments[-1].last_epoch}" if segments else "no epochs"
        console.print(f"{name}: {sum(segment.changes for segment in segments):,} row changes of its own, {epochs}")
    console.print(f"The History is in [bold]{escape(str(out))}[/bold].")
    for name, error in manifest.errors.items():
        messages.print(
            f"[red]The binlogs of {name} could not be read to the end:[/red] {escape(error)}", soft_wrap=True
        )
        messages.print(f"{manifest.left_out.get(name, 0):,} row operations of an unfinished epoch are left out.")


def _segments(count: int) -> str:
    return f"{count:,} segment{'' if count == 1 else 's'}"
