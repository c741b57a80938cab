"""
Files and folders that appear whole or not at all, with one writer at a time.

Each is written beside its place, and renamed when it is whole. Others may be able to write to the folder that the place
is in. So names cannot be guessed, and nothing is opened that is there already, or through a link.

A folder can replace another one without a moment at which both can be lost: what it replaces is moved away, the new one
is moved in, the old one removed last. A run that is killed in between leaves the old one beside its place; the next one
that wants to write there puts it back before it looks at what is there.

The lock of a writer is the kernel's, so it ends with its process, however that ends. Object storage has none; there,
one of the writers publishes what it wrote (see `conflict.history.grid.stored_folder`).
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from conflict.errors import ConfigurationError
from ndb_formats.stored import Stored

if TYPE_CHECKING:  # a command's help needs files alone, not Arrow
    from conflict.history.grid.folder import Folder


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


def _take_place(beside: Path, target: Path) -> None:
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


def _is_moved_away(target: Path) -> bool:
    """Whether a killed run had moved away what was in a place, and nothing is there now."""
    return not os.path.lexists(target) and any(target.parent.glob(_left_over(target, _OLD)))


def _put_back_left_over(target: Path) -> None:
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
    if not isinstance(target, Stored) and _is_moved_away(target):
        old = next(target.parent.glob(_left_over(target, _OLD)))
        message = f"{target}: a run that replaced it was killed; what was there is {old}: rename it, or run again"
        raise ConfigurationError(message)


def _left_over(target: Path, ending: str) -> str:
    return f"{escape(f'.{target.name}.')}{'[0-9a-f]' * 16}.{ending}"


def put_back(target: Path) -> str:
    """
    Put back what a killed run had moved away from a place, and return what to say of it.

    Raises:
        ConfigurationError: Another process writes there.
    """
    if not _is_moved_away(target):
        return ""
    with one_writer(target):
        _put_back_left_over(target)
    return " (a run that replaced it was killed; it is as it was before)"


@contextmanager
def whole_folder(target: Path, check: Callable[[], None]) -> Iterator[Path]:
    """
    Give a folder to write to, and put it in place of `target` only if nothing went wrong; one writer at a time.

    Args:
        target: Where the folder is to be.
        check: Refuses what is there, if it may not be replaced; called when no other process can write there.

    Raises:
        ConfigurationError: Another process writes there.
    """
    with one_writer(target):
        _put_back_left_over(target)
        check()
        remove_left_over(target, PART)
        work = new_folder(target, PART)
        try:
            yield work
            _take_place(work, target)
        finally:  # what was written before an error, or what was replaced
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def one_writer(target: Path) -> Iterator[None]:
    """
    Keep all other writers of a file or folder out for the time of the block.

    Raises:
        ConfigurationError: Another process writes there.
    """
    from conflict.history.grid.folder import Folder  # noqa: PLC0415  # loads Arrow, which help of commands need not

    with only_writer(Folder(str(target.absolute()))):
        yield


_LOOKS = 50


@contextmanager
def only_writer(folder: Folder) -> Iterator[None]:
    """
    Keep all other writers of a folder out for the time of the block; on object storage, publish what it wrote.

    Args:
        folder: The folder; it need not exist.

    Raises:
        ConfigurationError: Another process writes it, or its lock cannot be made; or another one has published.
    """
    from conflict.history.grid.stored_folder import StoredFolder  # noqa: PLC0415  # as above

    if isinstance(folder, StoredFolder):
        with folder.published():
            yield
        return
    with _lock(Path(folder.uri)):
        yield


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold the kernel's lock of a file beside the folder."""
    path = folder.with_name(f".{folder.name}.lock")
    refuse_unwritable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _owner_in(file)
            os.close(file)
            raise ConfigurationError(_refusal(str(folder), owner)) from None
        if _is_still(path, file):
            break
        os.close(file)  # its last owner has removed it in between
    try:
        os.ftruncate(file, 0)
        os.write(file, _owner().encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(file)


def _owner_in(file: int) -> str:
    """Return who holds a lock, as its file says; the owner writes it a moment after taking the lock."""
    for _ in range(_LOOKS):
        owner = os.pread(file, 1000, 0).decode("utf-8", "replace")
        if owner:
            return owner
        time.sleep(1 / _LOOKS)
    return ""


def _is_still(path: Path, file: int) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    mine = os.fstat(file)
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)


def _owner() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _refusal(folder: str, owner: str) -> str:
    return f"{folder} is being written by {owner or 'another process'}; wait for it, or give another folder"
