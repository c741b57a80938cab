"""
What a watch leaves in its folder: the record, and the state from which it goes on after it was ended or killed.

    records.jsonl   the record; it only grows, by whole lines
    state           where the watch was at some moment, and how long the record was then

After a kill the watch goes on from the state, decides once more what came after it, and finds the lines of that in the
record: none is written twice. They need not come in the same order.
"""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from conflict.errors import HistoryError
from conflict.history.grid.whole_files import PART

RECORD_FILE, STATE_FILE = "records.jsonl", "state"
_FORMAT = "ndb-conflict watch 1"


@attrs.define
class RecordFile:
    """
    The record of a watch.

    Attributes:
        path: The file.
        length: Bytes of the lines that are in it.
        there: Lines after the state, which were written before a kill and are decided once more, and how often.
    """

    path: Path
    length: int = 0
    there: Counter[bytes] = attrs.field(factory=Counter)

    @classmethod
    def opened(cls, path: Path, length: int) -> RecordFile:
        """
        Return a record, without a line that a kill cut.

        Args:
            path: The file.
            length: How long it was when the state was written.

        Raises:
            HistoryError: It is shorter.
        """
        found = path.read_bytes()[length:] if path.exists() and path.stat().st_size >= length else None
        if found is None and length:
            message = f"{path} is shorter than the state beside it says; watch with another --out"
            raise HistoryError(message)
        whole = (found or b"")[: (found or b"").rfind(b"\n") + 1]
        with path.open("ab") as file:
            file.truncate(length + len(whole))
        return cls(path, length + len(whole), Counter(whole.splitlines(keepends=True)))

    def append(self, lines: Iterable[bytes]) -> list[bytes]:
        """Append lines that are not there yet, and return those."""
        new = []
        for line in lines:
            if self.there[line]:
                self.there[line] -= 1
            else:
                new.append(line)
        if new:
            with self.path.open("ab") as file:
                file.write(b"".join(new))
            self.length += sum(map(len, new))
        return new

    def refuse_left(self) -> None:
        """
        Make sure that all lines that were there were decided once more.

        Raises:
            HistoryError: Some were not.
        """
        left = sum(self.there.values())
        if left:
            message = (
                f"{self.path} holds {left} records that the logs do not show any more: a file was changed after it had "
                "been read. Resolve the logs, and watch them with another --out"
            )
            raise HistoryError(message)

    def sync(self) -> None:
        """Wait until the record is on disk."""
        if self.path.exists():
            with self.path.open("rb") as file:
                os.fsync(file.fileno())


def save_state(folder: Path, run: str, state: Any, record: RecordFile) -> None:
    """
    Write the state, whole or not at all.

    Args:
        folder: The folder of the watch.
        run: The text of the run file.
        state: The state; it can be pickled.
        record: The record, which has all that was decided.
    """
    record.sync()
    part = folder / f"{STATE_FILE}{PART}"
    with part.open("wb") as file:
        pickle.dump((_FORMAT, run, record.length), file, pickle.HIGHEST_PROTOCOL)
        pickle.dump(state, file, pickle.HIGHEST_PROTOCOL)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / STATE_FILE)


def load_state(folder: Path, run: str) -> tuple[Any, int] | None:
    """
    Return the state, and how long the record was then; None if there is none.

    Args:
        folder: The folder of the watch.
        run: The text of the run file.

    Raises:
        HistoryError: It is of another run file or another version.
    """
    path = folder / STATE_FILE
    if not path.exists():
        return None
    with path.open("rb") as file:
        try:
            form, text, length = pickle.load(file)  # this program wrote it
            if form != _FORMAT:
                raise ValueError(form)
        except (pickle.UnpicklingError, ValueError, TypeError, EOFError, AttributeError, ImportError) as error:
            message = f"{path} is no state of this version of ndb-conflict; watch with another --out"
            raise HistoryError(message) from error
        if text != run:
            message = f"{path} is the state of a watch with another run file; give that one, or another --out"
            raise HistoryError(message)
        return pickle.load(file), length  # this program wrote it
