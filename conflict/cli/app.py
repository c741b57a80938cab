"""
The command line `ndb-conflict`: its commands, and `main`.
"""

from __future__ import annotations

from typing import Any

import typer

from conflict.cli.check import check
from conflict.cli.check_replica import check_replica
from conflict.cli.common import refusing_bad_input
from conflict.cli.conformance import conformance
from conflict.cli.decode import decode
from conflict.cli.ingest import ingest
from conflict.cli.logging_format import logging
from conflict.cli.requirements import requirements
from conflict.cli.resolve import resolve
from conflict.cli.rewrite import rewrite
from conflict.cli.sizes import sizes

__all__ = ["app", "main"]

COMMANDS: tuple[Any, ...] = (
    resolve,
    ingest,
    check,
    requirements,
    check_replica,
    logging,
    sizes,
    rewrite,
    decode,
    conformance,
)

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
