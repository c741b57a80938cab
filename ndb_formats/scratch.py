"""
Where a process keeps files for a while.

All of them are below one folder of the process, which goes with it; what several processes read is below a folder of
theirs, which goes with the last of them (`for_all`). A process that is killed cannot remove it, so the
next one that makes a folder there does: the kernel's lock on a folder ends with its process, however that ends. In a
Python worker of Spark the folder is among those of its executor, which Spark removes with the executor.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "ndb-scratch-"  # short: sockets have names of some 100 bytes
_FETCHING = "fetching"  # who has locked it fetches


def scratch_folder() -> str:
    """Return a new folder that only this user may enter, and that goes with the process."""
    return tempfile.mkdtemp(prefix="", dir=_folder_of(os.getpid()))


def for_all(name: str, file: str, fetch: Callable[[str], None]) -> str:
    """
    Return where a file is that all processes of this user on this machine read: one of them fetches it.

    Args:
        name: Of what they do together. Their folder goes with the last of them.
        file: Name of the file.
        fetch: Fetches it to a place, where it appears whole.

    Raises:
        PermissionError: Another user has taken the folder.
    """
    folder = _shared_folder(name, os.getpid())
    with (folder / _FETCHING).open("wb") as fetching:
        fcntl.flock(fetching, fcntl.LOCK_EX)  # the others wait for the one that fetches
        place = folder / file
        if not place.exists():
            fetch(str(place))
    return str(place)


@cache
def _shared_folder(name: str, process: int) -> Path:
    """Return the folder of some processes, which this one keeps from now on."""
    above = _above(0)
    _remove_left_over(above)
    folder = Path(above, f"{_PREFIX}{name}")
    while True:
        folder.mkdir(0o700, exist_ok=True)
        held = _lock(str(folder), fcntl.LOCK_SH)
        if held is None:
            if folder.exists() and folder.stat().st_uid != os.getuid():
                message = f"{folder} belongs to another user"
                raise PermissionError(message)
            continue  # another process is removing it
        if folder.exists() and os.path.samestat(os.fstat(held), folder.stat()):
            break
        os.close(held)
    atexit.register(_remove_shared, folder, held, process)
    return folder


def _remove_shared(folder: Path, held: int, process: int) -> None:
    """Remove a folder of several processes, if this is the last one."""
    if os.getpid() == process:
        with suppress(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _folder_of(process: int) -> str:
    """Return the folder of this process; one that it forks has another."""
    above = _above(process)
    _remove_left_over(above)
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=above)
        _lock(folder)
        if os.path.lexists(folder):
            break  # else another process took it for one that was left
    atexit.register(_remove, folder, process)
    return folder


def _above(process: int) -> str:
    """Return where Spark keeps its own files, if it says so; else the temporary folder."""
    told = [each for each in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if os.access(each, os.W_OK)]
    return told[process % len(told)] if told else tempfile.gettempdir()


def _lock(folder: str, kind: int = fcntl.LOCK_EX) -> int | None:
    """Lock a folder; return what holds the lock, or None if another process has it, or it cannot be locked."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # it is another user's, or not there any more
        return None
    try:
        fcntl.flock(opened, kind | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened


def _remove_left_over(above: str) -> None:
    """Remove the folders of processes that are gone."""
    for folder in Path(above).glob(f"{_PREFIX}*"):
        held = _lock(str(folder))
        if held is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
