"""
The recordings of real clusters that come with the program, compressed: those of tests/recordings/conflict.
"""

from __future__ import annotations

import shutil
import tarfile
from importlib.resources import files
from pathlib import Path

from conflict.errors import ConfigurationError
from conflict.history.grid.whole_files import new_folder

ARCHIVE = "cases.tar.xz"


def write_cases(target: Path) -> int:
    """
    Write the recordings into a new folder, whole or not at all, and return how many there are.

    Raises:
        ConfigurationError: Something is there already.
    """
    if target.exists():
        message = f"{target} exists already; give a new folder"
        raise ConfigurationError(message)
    beside = new_folder(target, "part")
    try:
        with (
            (files("conflict") / "judge" / ARCHIVE).open("rb") as raw,
            tarfile.open(fileobj=raw, mode="r:xz") as archive,
        ):
            archive.extractall(beside, filter="data")
        count = sum(1 for _ in beside.rglob("scenario.json"))
        beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return count
