"""
The command line `ndb-conflict`: its commands, and `main`.
"""

from __future__ import annotations

from typing import Any

import typer

from conflict.cli.check import check
from conflict.cli.common import refusing_bad_input
from conflict.cli.conformance import conformance
from conflict.cli.decode import decode
from conflict.cli.ingest import ingest
from conflict.cli.logging_format import logging
from conflict.cli.requirements import requirements
from conflict.cli.resolve import resolve

__all__ = ["app", "main"]

COMMANDS: tuple[Any, ...] = (resolve, ingest, check, requirements, decode, logging, conformance)

app = typer.Typer(
    help="Show what MySQL NDB Cluster logs of a change, and what happens when changes of two clusters meet.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    app.command()(refusing_bad_input(command))


def main() -> None:
    """Run the command line."""
    app()
