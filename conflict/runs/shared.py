"""
Values that every task of a stage needs: written once to shared storage, and read once by each process.
"""

from __future__ import annotations

import hashlib
import pickle
import uuid
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import attrs

from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder

__all__ = ["Shared", "share"]

Value = TypeVar("Value")


@attrs.frozen
class Shared(Generic[Value]):
    """
    A value in a file.

    Attributes:
        folder: Where the file is.
        name: Its name, which is never used twice.
        digest: SHA-256 of its bytes. Spark brings it to the tasks, so a file that somebody else wrote is not loaded.
    """

    folder: Folder
    name: str
    digest: str

    def load(self) -> Value:
        """
        Return the value; a process that uses only a few values reads each of them once.

        Raises:
            HistoryError: The file is not as it was written.
        """
        return cast(Value, _read(self.folder, self.name, self.digest))


def share(folder: Folder, value: Value) -> Shared[Value]:
    """Write a value, which can be pickled, to a new file in a folder."""
    data = pickle.dumps(value, protocol=5)
    shared: Shared[Value] = Shared(folder, uuid.uuid4().hex, hashlib.sha256(data).hexdigest())
    folder.write_bytes(shared.name, data)
    return shared


@lru_cache(maxsize=4)  # the epoch applies of a run, and the conflicts and changed transactions of a round
def _read(folder: Folder, name: str, digest: str) -> Any:
    data = folder.read_bytes(name)
    if hashlib.sha256(data).hexdigest() != digest:
        message = f"{folder.uri}/{name} is not what this run wrote; run the command again"
        raise HistoryError(message)
    return pickle.loads(data)
