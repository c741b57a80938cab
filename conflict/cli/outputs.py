"""
Files that commands write: never an input, nothing that is there without --force, and whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conflict.cli.common import console
from conflict.decoding.staging import check_target, staged_file
from conflict.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ForceOption",
    "JsonOption",
    "check_output",
    "no_standard_output",
    "refuse_same_output",
    "write_json",
    "write_parquet",
]

ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
STANDARD_OUTPUT = Path("-")


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


def check_output(target: Path | None, inputs: Iterable[Path | None], *, force: bool) -> None:
    """
    Make sure, before the work, that a command may write a file.

    Args:
        target: The file; None for an option that was not given; ``-`` is standard output, for JSON.
        inputs: The files, and folders with all their files, that the command reads; None for an option that was not
            given.
        force: Whether a file that is there may be replaced.

    Raises:
        ConfigurationError: It is an input, is there already, or its folder is missing or not writable.
    """
    if target is None or target == STANDARD_OUTPUT:
        return
    given = [each for each in inputs if each is not None]
    check_target(target, given, force=force, folder=False)
    for folder in given:
        if target.exists() and folder.is_dir() and folder.resolve() in target.resolve().parents:
            message = (
                f"{target} is in {folder}, an input of this command, and would be overwritten; give another output"
            )
            raise ConfigurationError(message)
    if not target.parent.is_dir():
        message = f"{target}: there is no folder {target.parent}; create it first"
        raise ConfigurationError(message)


def refuse_same_output(*targets: Path | None) -> None:
    """
    Make sure, before the work, that no two outputs of a command have the same place.

    Args:
        targets: The files and folders; None for an option that was not given.

    Raises:
        ConfigurationError: One would take the place of another.
    """
    seen = set()
    for target in targets:
        if target is None:
            continue
        if target.resolve() in seen:
            message = f"{target} is given for two outputs; give each a place of its own"
            raise ConfigurationError(message)
        seen.add(target.resolve())


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
