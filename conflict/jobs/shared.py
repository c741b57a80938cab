"""
Values that every task of a stage needs: written once to shared storage, and read once by each process.
"""

from __future__ import annotations

import pickle
import uuid
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import attrs

from conflict.grid.folder import Folder

__all__ = ["Shared", "share"]

Value = TypeVar("Value")


@attrs.frozen
class Shared(Generic[Value]):
    """
    A value in a file.

    Attributes:
        folder: Where the file is.
        name: Its name, which is never used twice.
    """

    folder: Folder
    name: str

    def load(self) -> Value:
        """Return the value; a process that uses only a few values reads each of them once."""
        return cast(Value, _read(self.folder, self.name))


def share(folder: Folder, value: Value) -> Shared[Value]:
    """Write a value, which can be pickled, to a new file in a folder."""
    shared: Shared[Value] = Shared(folder, uuid.uuid4().hex)
    folder.write_bytes(shared.name, pickle.dumps(value, protocol=5))
    return shared


@lru_cache(maxsize=4)  # the epoch applies of a run, and the conflicts and changed transactions of a round
def _read(folder: Folder, name: str) -> Any:
    return pickle.loads(folder.read_bytes(name))
