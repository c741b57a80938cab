"""
Files that commands write: never an input, nothing that is there without --force, and whole or not at all.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conflict.cli.common import console
from conflict.decoding.staging import STANDARD_OUTPUT, staged_file

if TYPE_CHECKING:
    import pyarrow as pa


ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]


def _told_apart(context: typer.Context, json_file: Path | None) -> Path | None:
    """Leave standard output to the document, if that goes there: what is for people goes to standard error."""
    if json_file == STANDARD_OUTPUT:
        console.stderr = True
        context.call_on_close(lambda: setattr(console, "stderr", False))
    return json_file


def no_standard_output(target: Path | None) -> Path | None:
    """Return the file of an option that takes no ``-``."""
    if target == STANDARD_OUTPUT:
        message = "- is standard output, which takes JSON alone; give a file"
        raise typer.BadParameter(message)
    return target


JsonOption = Annotated[
    Path | None,
    typer.Option(
        "--json",
        callback=_told_apart,
        help="Also write the answers to this file, as JSON; - writes them alone to standard output.",
    ),
]


def write_json(target: Path | None, document: object) -> None:
    """Write a document to the file given with ``--json``, if one was given, or to standard output."""
    text = json.dumps(document, indent=1) + "\n"
    if target == STANDARD_OUTPUT:
        typer.echo(text, nl=False)
    elif target is not None:
        with staged_file(target) as out:
            out.write(text.encode())


def write_parquet(target: Path | None, table: pa.Table) -> None:
    """Write a table to the file given with ``--parquet``, if one was given."""
    if target is not None:
        import pyarrow.parquet as pq  # only where a table is written

        with staged_file(target) as out:
            pq.write_table(table, out)
