"""
Files that commands write: never an input, nothing that is there without --force, and whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from conflict.errors import ConfigurationError
from conflict.grid.beside import new_file, new_name

__all__ = ["ForceOption", "JsonOption", "check_output", "refuse_overwriting", "whole_file", "write_json"]

ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Also write the answers to this file, as JSON.")]


def check_output(target: Path | None, inputs: Iterable[Path | None], *, force: bool) -> None:
    """
    Make sure, before the work, that a command may write a file.

    Args:
        target: The file; None for an option that was not given.
        inputs: The files that the command reads; None for an option that was not given.
        force: Whether a file that is there may be replaced.

    Raises:
        ConfigurationError: It is an input, is there already, or its folder is missing or not writable.
    """
    if target is None:
        return
    refuse_overwriting(target, inputs)
    if target.is_dir():
        message = f"{target} is a folder; give a file"
        raise ConfigurationError(message)
    if target.exists() and not force:
        message = f"{target} exists already; --force replaces it"
        raise ConfigurationError(message)
    if not target.parent.is_dir():
        message = f"{target}: there is no folder {target.parent}; make it first"
        raise ConfigurationError(message)
    if not os.access(target.parent, os.W_OK):
        message = f"{target}: the folder {target.parent} is not writable"
        raise ConfigurationError(message)


def refuse_overwriting(target: Path | None, inputs: Iterable[Path | None]) -> None:
    """
    Make sure that a command does not overwrite a file that it reads.

    Args:
        target: The file to write; None for standard output.
        inputs: The files that the command reads; None for an option that was not given.

    Raises:
        ConfigurationError: The target is one of the inputs, by this or another name.
    """
    if target is None or not target.exists():
        return
    for file in inputs:
        if file is not None and file.exists() and target.samefile(file):
            same = "" if target == file else f" (the same file as {file})"
            message = f"{target}{same} is an input of this command and would be overwritten; give another output file"
            raise ConfigurationError(message)


@contextmanager
def whole_file(target: Path) -> Iterator[BinaryIO]:
    """Open a file beside `target` that takes its place when all is written, and disappears on an error."""
    part = new_name(target, "part")
    try:
        with new_file(part) as out:
            yield out
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_json(target: Path | None, document: object) -> None:
    """Write a document to the file given with ``--json``, if one was given."""
    if target is not None:
        with whole_file(target) as out:
            out.write((json.dumps(document, indent=1) + "\n").encode())
