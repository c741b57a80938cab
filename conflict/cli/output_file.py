"""
Where a command writes a file that the user named.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from conflict.errors import ConfigurationError

__all__ = ["refuse_overwriting"]


def refuse_overwriting(target: Path | None, inputs: Iterable[Path | None]) -> None:
    """
    Make sure that a command does not write over a file that it reads.

    Args:
        target: The file to be written; None for standard output.
        inputs: The files that the command reads; None for one that was not given.

    Raises:
        ConfigurationError: The target is one of the inputs, under this or another name.
    """
    if target is None or not target.exists():
        return
    for file in inputs:
        if file is not None and file.exists() and target.samefile(file):
            same = "" if target == file else f" (the same file as {file})"
            message = f"{target}{same} is read by this command and would be overwritten; give another output file"
            raise ConfigurationError(message)
