"""
Which runs write to a folder on object storage, and which of them were killed or have failed.

A run has a sign of life, a small object that it writes again every few seconds. If one does not change for long, its
run is dead; so is one that says in it that it has failed. What a dead run uploaded is the next run's, which uses what
it can if both began with the same version. It removes the rest when it has published
a version: from then on a run that only slept cannot publish, since both began with the same version.
"""

from __future__ import annotations

import os
import posixpath
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import attrs

from ndb_formats.stored import naming, storage

_SIGNS = "writers"
_FAILED = b"failed"
_EVERY, _DEAD_AFTER, _LOOK_EVERY = 5.0, 40.0, 0.5  # seconds


@attrs.frozen
class SignOfLife:
    """
    The sign of a run.

    Attributes:
        place: Address below which the run uploads; a folder of the one that it writes to.
    """

    place: str

    @property
    def address(self) -> str:
        """Where it is."""
        root, name = posixpath.split(self.place)
        return f"{root}/{_SIGNS}/{name}"

    @property
    def written(self) -> Any:
        """
        When it was written, by the clock of the storage.

        Raises:
            FileNotFoundError: Its run has ended.
        """
        with naming(self.address):
            return storage(self.address).modified(self.address)

    def write(self) -> None:
        """Write it."""
        with naming(self.address):
            storage(self.address).pipe_file(self.address, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def remove(self) -> None:
        """Remove it; if that fails, the next run does."""
        with suppress(Exception):
            storage(self.address).rm_file(self.address)

    @contextmanager
    def shown(self, leaves: Callable[[BaseException], bool]) -> Iterator[None]:
        """
        Show it in the block.

        Args:
            leaves: Called with the error if the block fails; returns whether what was uploaded is left to the next run.
        """
        ended = threading.Event()
        self.write()
        thread = threading.Thread(target=self._renew, args=(ended,), daemon=True)
        thread.start()
        try:
            try:
                yield
            finally:
                ended.set()
                thread.join()
        except BaseException as error:
            self._end(leaves=leaves(error))
            raise
        self.remove()

    def _end(self, *, leaves: bool) -> None:
        if leaves:
            with suppress(Exception):  # then it becomes old
                storage(self.address).pipe_file(self.address, _FAILED)
        else:
            self.remove()

    def _renew(self, ended: threading.Event) -> None:
        while not ended.wait(_EVERY):
            with suppress(OSError):  # the next time it may do
                self.write()

    def dead(self) -> list[SignOfLife]:
        """
        Return the signs of dead runs, the oldest first.

        A run whose sign is young may be dead, too: this waits until its sign changes, or is old, or says so.
        """
        root = posixpath.dirname(self.place)
        with naming(root):
            try:
                names = storage(root).ls(f"{root}/{_SIGNS}", detail=False)
            except FileNotFoundError:
                return []
        others = [SignOfLife(f"{root}/{posixpath.basename(name)}") for name in names]
        found = [(written, each) for each in others if each != self and (written := self._since(each)) is not None]
        return [each for _, each in sorted(found, key=lambda known: known[0])]

    def _since(self, other: SignOfLife) -> Any:
        """Return when another sign was written last, if its run is dead; else None."""
        try:
            written = other.written
            if storage(other.address).cat_file(other.address) == _FAILED:
                return written
            end = time.monotonic() + _DEAD_AFTER - max((self.written - written).total_seconds(), 0)
            while time.monotonic() < end:
                time.sleep(_LOOK_EVERY)
                if other.written != written:
                    return None
        except FileNotFoundError:
            return None
        return written
