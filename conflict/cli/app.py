"""
The command line `ndb-conflict`: its commands, and `main`.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from conflict.cli.cut_files import say_cut_files
from conflict.cli.exit_codes import ExitCode
from conflict.cli.lazy_commands import group_of
from conflict.cli.refusals import closed_pipe

__all__ = ["COMMANDS", "app", "main"]

# Where each is, and what it does, in words that fit beside its name on 80 columns.
COMMANDS = {
    "demo": (
        "conflict.cli.commands.demo:demo",
        "Resolve a recording that comes with the program.",
    ),
    "resolve": (
        "conflict.cli.commands.resolve:resolve",
        "Find what was applied, what was rejected and why.",
    ),
    "conflicts": (
        "conflict.cli.commands.conflicts:conflicts",
        "Count the conflicts of a result: where, when and why.",
    ),
    "compare": (
        "conflict.cli.commands.compare:compare",
        "Try other functions and formats on the same changes.",
    ),
    "explain": (
        "conflict.cli.commands.explain:explain",
        "Show why a row ended as it did.",
    ),
    "init": (
        "conflict.cli.commands.init:init",
        "Write the run file for bare binlogs, with comments.",
    ),
    "ingest": (
        "conflict.cli.commands.ingest:ingest",
        "Read binlogs into a History, to resolve it often.",
    ),
    "check": (
        "conflict.cli.commands.check:check",
        "Check what a configuration will do, without binlogs.",
    ),
    "requirements": (
        "conflict.cli.commands.requirements:requirements",
        "Show which function works with which binlog type.",
    ),
    "check-replica": (
        "conflict.cli.commands.check_replica:check_replica",
        "Check whether a replica can apply what a source logs.",
    ),
    "logging": (
        "conflict.cli.commands.logging_format:logging",
        "Show which statements are logged as rows.",
    ),
    "sizes": (
        "conflict.cli.commands.sizes:sizes",
        "Show how many bytes a log takes in every format.",
    ),
    "rewrite": (
        "conflict.cli.commands.rewrite:rewrite",
        "Write the changes of binlogs in another format.",
    ),
    "decode": (
        "conflict.cli.commands.decode:decode",
        "Show what binlogs hold: text, JSON, CSV or Parquet.",
    ),
    "simulate": (
        "conflict.cli.commands.simulate:simulate",
        "Simulate a workload on two clusters.",
    ),
    "workload": (
        "conflict.cli.commands.workload:workload",
        "Learn a workload to simulate from binlogs.",
    ),
    "sweep": (
        "conflict.cli.commands.sweep:sweep",
        "Simulate a grid of models, and find where a limit lies.",
    ),
    "report": (
        "conflict.cli.commands.report:report",
        "Write results as one HTML page.",
    ),
    "diverge": (
        "conflict.cli.commands.diverge:diverge",
        "Search for the shortest way to make clusters differ.",
    ),
    "warm-up": (
        "conflict.cli.commands.warm_up:warm_up",
        "Compile what later commands need, for all users.",
    ),
    "conformance": (
        "conflict.cli.commands.conformance:conformance",
        "Compare an engine with recordings of real clusters.",
    ),
}

app = typer.Typer(
    cls=group_of(COMMANDS),
    help="Show how MySQL NDB Cluster logs changes, and what happens when changes of two clusters conflict.\n\n"
    "Start with: ndb-conflict demo",
    no_args_is_help=True,
    rich_markup_mode=None,
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
    say_cut_files()
    try:
        app()
    except BrokenPipeError:  # of a message about usage
        closed_pipe()
        sys.exit(ExitCode.CUT_SHORT)
