"""
Files and folders that are written beside their place and renamed when they are whole.

Others may be able to write to the folder that the place is in. So names cannot be guessed, and nothing is opened that
is there already, or through a link.
"""

from __future__ import annotations

import os
import secrets
import shutil
from glob import escape
from pathlib import Path
from typing import BinaryIO

from conflict.errors import ConfigurationError

__all__ = [
    "PART",
    "is_moved_away",
    "new_file",
    "new_folder",
    "new_name",
    "put_back_left_over",
    "refuse_moved_away",
    "refuse_unwritable",
    "remove_left_over",
    "take_place",
]

PART = "part"  # how the name ends of what is unfinished
_OLD = "old"  # and of what is being replaced


def refuse_unwritable(target: Path) -> None:
    """
    Make sure that something can be made at a place, and the folders above it that are missing.

    Raises:
        ConfigurationError: It cannot.
    """
    above = next(folder for folder in target.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        message = f"{target}: nothing can be written into {above}; choose another place"
        raise ConfigurationError(message)


def new_name(target: Path, ending: str) -> Path:
    """Return a name beside a place, which nothing has; Spark ignores names that start with a dot."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.{ending}")


def new_file(path: Path) -> BinaryIO:
    """
    Open a new file for writing.

    Raises:
        FileExistsError: Something is there, if only a link.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o666), "wb")


def new_folder(target: Path, ending: str) -> Path:
    """Make a new folder beside a place, and the folders above it."""
    path = new_name(target, ending)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir()
    return path


def remove_left_over(target: Path, ending: str) -> None:
    """Remove what killed runs left beside a place; links are removed, and not followed."""
    for path in target.parent.glob(_left_over(target, ending)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def take_place(beside: Path, target: Path) -> None:
    """
    Put a folder in its place; what is there takes the place of the new one, where the caller removes it.

    Raises:
        OSError: It cannot be put there; what was there is there again.
    """
    old = new_name(target, _OLD)
    try:
        if os.path.lexists(target):
            target.rename(old)
        beside.rename(target)
    finally:  # also where an interruption comes between two steps
        if os.path.lexists(old):
            old.rename(beside if os.path.lexists(target) else target)


def is_moved_away(target: Path) -> bool:
    """Whether a killed run had moved away what was in a place, and nothing is there now."""
    return not os.path.lexists(target) and any(target.parent.glob(_left_over(target, _OLD)))


def put_back_left_over(target: Path) -> None:
    """Put back what a killed run had moved away, if nothing took its place; else remove it."""
    left = sorted(target.parent.glob(_left_over(target, _OLD)), key=lambda path: path.stat().st_mtime)
    if left and not os.path.lexists(target):
        left[-1].rename(target)
    remove_left_over(target, _OLD)


def refuse_moved_away(target: Path) -> None:
    """
    Say to a reader that what it wants to read is beside its place.

    Raises:
        ConfigurationError: It is.
    """
    if is_moved_away(target):
        old = next(target.parent.glob(_left_over(target, _OLD)))
        message = f"{target}: a run that replaced it was killed; what was there is {old}: rename it, or run again"
        raise ConfigurationError(message)


def _left_over(target: Path, ending: str) -> str:
    return f"{escape(f'.{target.name}.')}{'[0-9a-f]' * 16}.{ending}"
