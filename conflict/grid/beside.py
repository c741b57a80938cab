"""
Files and folders that are written beside their place and renamed when they are whole.

Others may be able to write to the folder that the place is in. So names cannot be guessed, and nothing is opened that
is there already, or through a link.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import BinaryIO

from conflict.errors import ConfigurationError

__all__ = [
    "new_file",
    "new_folder",
    "new_name",
    "put_back_left_over",
    "refuse_unwritable",
    "remove_left_over",
    "take_place",
]

_OLD = "old"  # how the name ends of what is being replaced


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
    Put a file or folder in its place; what is there is moved away, and removed when the new one is there.

    Raises:
        OSError: It cannot be put there; what was there is there again.
    """
    old = new_name(target, _OLD) if os.path.lexists(target) else None
    if old is not None:
        target.rename(old)
    try:
        beside.rename(target)
    except BaseException:
        if old is not None:
            old.rename(target)
        raise
    with suppress(OSError):  # the next run removes what cannot be removed now
        remove_left_over(target, _OLD)


def put_back_left_over(target: Path) -> None:
    """Put back what a killed run had moved away, if nothing took its place; else remove it."""
    left = sorted(target.parent.glob(_left_over(target, _OLD)), key=lambda path: path.stat().st_mtime)
    if left and not os.path.lexists(target):
        left[-1].rename(target)
    remove_left_over(target, _OLD)


def _left_over(target: Path, ending: str) -> str:
    return f"{escape(f'.{target.name}.')}{'[0-9a-f]' * 16}.{ending}"
