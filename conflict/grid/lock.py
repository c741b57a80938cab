"""
One writer at a time for a folder.

On this machine's filesystems the lock is the kernel's, so it ends with its process, however that ends. Elsewhere it is
a lease: a file with its owner and a time, which the owner renews, and which counts no longer when it is too old.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conflict.errors import ConfigurationError
from conflict.grid.beside import refuse_unwritable
from conflict.grid.folder import Folder

__all__ = ["only_writer"]

LEASE = 120  # seconds that a lease counts after it was renewed
_RENEWED_EVERY = LEASE / 4
_LOOKS = 50


@contextmanager
def only_writer(folder: Folder) -> Iterator[None]:
    """
    Keep all other writers of a folder out for the time of the block.

    Args:
        folder: The folder; it need not exist.

    Raises:
        ConfigurationError: Another process writes it, or its lock cannot be made.
    """
    with _lease(folder) if "://" in folder.uri else _lock(Path(folder.uri)):
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


@contextmanager
def _lease(folder: Folder) -> Iterator[None]:
    """Keep a file beside the folder that says who writes it, and since when nothing was heard of them."""
    name = folder.uri.rstrip("/").rsplit("/", 1)
    beside, path, owner = Folder(name[0]), f".{name[1]}.lock", _owner()
    if beside.exists(path):
        lease = beside.read_json(path)
        if time.time() - float(lease["time"]) < LEASE:
            raise ConfigurationError(_refusal(folder.uri, str(lease["owner"])))
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(_RENEWED_EVERY):
            beside.write_json(path, {"owner": owner, "time": time.time()})

    beside.write_json(path, {"owner": owner, "time": time.time()})
    renewer = threading.Thread(target=renew, daemon=True)
    renewer.start()
    try:
        yield
    finally:
        ended.set()
        renewer.join()
        beside.delete(path)


def _owner() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _refusal(folder: str, owner: str) -> str:
    return f"{folder} is being written by {owner or 'another process'}; wait for it, or give another folder"
