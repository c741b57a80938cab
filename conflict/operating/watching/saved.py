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
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from conflict.errors import HistoryError
from conflict.history.grid.whole_files import PART
from conflict.history.run import Run
from conflict.program import program
from conflict.rules.table_setup import TableSetup
from ndb_formats.types.column_types import Codec, codec_of

RECORD_FILE, STATE_FILE = "records.jsonl", "state"


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


@attrs.frozen
class StateOf:
    """
    What a state belongs to; what follows from that is no part of it.

    Attributes:
        text: The text of the run file.
        run: The run.
    """

    text: str
    run: Run

    def save(self, folder: Path, state: Any, record: RecordFile) -> None:
        """
        Write a state, whole or not at all.

        Args:
            folder: The folder of the watch.
            state: The state; its run is `run`.
            record: The record, which has all that was decided.
        """
        record.sync()
        part = folder / f"{STATE_FILE}{PART}"
        with part.open("wb") as file:
            pickle.dump((program(), self.text, record.length), file, pickle.HIGHEST_PROTOCOL)
            _Pickler(file, self.run).dump(state)
            file.flush()
            os.fsync(file.fileno())
        part.replace(folder / STATE_FILE)

    def load(self, folder: Path) -> tuple[Any, int] | None:
        """
        Return the state in a folder, and how long the record was then; None if there is none.

        Raises:
            HistoryError: It is of another run file or another version.
        """
        path = folder / STATE_FILE
        if not path.exists():
            return None
        try:
            with path.open("rb") as file:
                made_by, text, length = pickle.load(file)
                known = (made_by, text) == (program(), self.text)
                found = _Unpickler(file, self.run).load() if known else None
        except (pickle.UnpicklingError, ValueError, TypeError, EOFError, AttributeError, ImportError) as error:
            raise HistoryError(_other_version(path)) from error
        if made_by != program():
            raise HistoryError(_other_version(path))
        if text != self.text:
            message = f"{path} is the state of a watch with another run file; give that one, or another --out"
            raise HistoryError(message)
        return found, length


def _other_version(path: Path) -> str:
    return f"{path} is no state of this version of ndb-conflict; watch with another --out"


class _Pickler(pickle.Pickler):
    """Leaves out the run and what it says of tables; takes codecs as what they mean."""

    def __init__(self, file: BinaryIO, run: Run) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._places = {id(setup): place for place, setup in _setups(run).items()}

    def persistent_id(self, found: Any) -> Any:
        """Return where an object is found again that is left out; None for others."""
        return _RUN if isinstance(found, Run) else self._places.get(id(found))

    def reducer_override(self, found: Any) -> Any:
        """Return how an object is made again; `NotImplemented` for the usual way."""
        if isinstance(found, Codec) and found.meaning is not None:
            meaning = found.meaning
            facts = {"unsigned": meaning.unsigned, "charset": meaning.charset, "members": meaning.members}
            return partial(codec_of, **facts), (meaning.wire,)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    """Puts the run and what it says of tables in their places."""

    def __init__(self, file: BinaryIO, run: Run) -> None:
        super().__init__(file)
        self._found: dict[Any, Any] = {_RUN: run, **_setups(run)}

    def persistent_load(self, place: Any) -> Any:
        """Return the object that was left out."""
        if place not in self._found:
            message = f"{place} is not in the run"
            raise pickle.UnpicklingError(message)
        return self._found[place]


_RUN = "run"


def _setups(run: Run) -> dict[tuple[str, str], TableSetup]:
    """Return how servers set up tables, by cluster and table."""
    return {(name, table): setup for name, own in run.setups.at_start.items() for table, setup in own.items()}
