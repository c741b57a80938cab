"""
The command line `ndb-conflict`: its commands, and `main`.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from conflict.cli.lazy_commands import group_of

__all__ = ["COMMANDS", "app", "main"]

# Where each is, and the first sentence of its documentation.
COMMANDS = {
    "resolve": (
        "conflict.cli.resolve:resolve",
        "Resolve the binlogs of two clusters: find what was applied, what was rejected and why, and the final rows.",
    ),
    "init": (
        "conflict.cli.init:init",
        "Write the run file that amounts to bare binlogs, with comments on what to check.",
    ),
    "ingest": (
        "conflict.cli.ingest:ingest",
        "Read the binlogs of two clusters into a History: Parquet files by segment of the binlog and key bucket.",
    ),
    "check": (
        "conflict.cli.check:check",
        "Check what a configuration will do and what servers will refuse; read no binlog.",
    ),
    "requirements": (
        "conflict.cli.requirements:requirements",
        "Show which conflict function can work with which binlog type, why not, and what would work.",
    ),
    "check-replica": (
        "conflict.cli.check_replica:check_replica",
        "Check, table by table, whether changes of a source find their rows on a replica and give the same rows.",
    ),
    "logging": (
        "conflict.cli.logging_format:logging",
        "Show how statements are logged: as statements, as rows, both or not at all, with the server's messages.",
    ),
    "sizes": (
        "conflict.cli.sizes:sizes",
        "Show how many bytes a log would take in every format: binlog_row_image and the NDB binlog types.",
    ),
    "rewrite": (
        "conflict.cli.rewrite:rewrite",
        "Write the changes of binlog files in another format, and say which changes the log does not hold enough of.",
    ),
    "decode": (
        "conflict.cli.decode:decode",
        "Show what binlog files hold: text with mysqlbinlog's ### lines, JSON lines, CSV or Parquet.",
    ),
    "conformance": (
        "conflict.cli.conformance:conformance",
        "Judge an engine by the recordings of real clusters in a folder.",
    ),
}

app = typer.Typer(
    cls=group_of(COMMANDS),
    help="Show what MySQL NDB Cluster logs of a change, and what happens when changes of two clusters meet.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ndb-conflict {version('ndb-conflict')}")
        raise typer.Exit


@app.callback()
def _options(
    show: Annotated[  # the callback answers
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    app()
