"""
The log of one cluster while it grows: its epochs from a position on, whole ones, and where each of them stands.

A log is files in the order of their names. Nothing is read twice. Before more of a file is read, the event in front of
the position has to be as it was: a program that starts again may write the file anew (`mysqlbinlog --raw`), and then
the file is waited for until it has come back to the position.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import attrs

from conflict.errors import HistoryError
from conflict.history.epochs import BinlogEpoch, EpochReader
from conflict.history.reading.epoch_logs import disordered
from ndb_formats.binlog_reader import FIRST_POSITION, Event, read_events
from ndb_formats.constants import EventType
from ndb_formats.errors import ChecksumError, CutFileError
from ndb_formats.events.query_event import decode_query

_DEFINES = re.compile(r"\s*(?:/\*.*?\*/\s*)*(?:CREATE|ALTER|DROP|RENAME|TRUNCATE)\b", re.IGNORECASE | re.DOTALL)


@attrs.frozen
class Extent:
    """
    Where an epoch stands.

    Attributes:
        file: The file.
        start: Position of its first event.
        stop: Position after its last event.
    """

    file: str
    start: int
    stop: int


@attrs.frozen
class TailedEpoch:
    """An epoch, and where it stands."""

    epoch: BinlogEpoch
    extent: Extent


@attrs.define
class Tail:
    """
    Reads the log of one cluster as it grows.

    Attributes:
        name: The cluster.
        reader: Makes epochs of events.
        tables: The names of its tables, without their databases.
        file: The file that is read; empty before the first one.
        position: Where to go on in it.
        waits: Why there is nothing more to read for now; empty if all that is there was read.
    """

    name: str
    reader: EpochReader
    tables: frozenset[str]
    file: str = ""
    position: int = FIRST_POSITION
    waits: str = ""
    _before: bytes = b""  # the event in front of the position
    _start: int = FIRST_POSITION  # of the transaction that is being read
    _last: int = -1

    def read(self, files: Sequence[Path]) -> Generator[TailedEpoch, None, None]:
        """
        Yield the epochs that are there now and were not yielded yet.

        Args:
            files: The files of the log that are there, in order.

        Raises:
            HistoryError: A file is gone before it was read to its end, holds other bytes than were read of it, or
                changes a definition.
            FormatError: A file cannot be read.
        """
        names = [str(file) for file in files]
        if not self.file and names:
            self.file = names[0]
        self.waits = ""
        while self.file:
            if self.file not in names:
                self._refuse_gone(names)
            else:
                yield from self._read_file()
            following = next((name for name in names if name > self.file), None)
            if self.waits or following is None:
                return
            self.file, self.position, self._before, self._start = following, FIRST_POSITION, b"", FIRST_POSITION

    def _refuse_gone(self, names: Sequence[str]) -> None:
        """Wait if nothing is there, as while a folder is written anew."""
        if self._ended:
            return
        if not names or names[-1] < self.file:
            self.waits = f"{self.file} is gone"
            return
        message = (
            f"cluster {self.name}: {self.file} is gone, which was read up to position {self.position} and not to its "
            "end. Bring it back; or resolve the logs that are left, and watch them from there with another --out"
        )
        raise HistoryError(message)

    @property
    def _ended(self) -> bool:
        """Whether the last event that was read ends its file."""
        return len(self._before) > 4 and self._before[4] in (EventType.ROTATE_EVENT, EventType.STOP_EVENT)

    def _read_file(self) -> Iterator[TailedEpoch]:
        """Yield the epochs of the present file."""
        size = os.path.getsize(self.file)
        if size < self.position:
            self.waits = f"{self.file} has {size} bytes, and was read up to {self.position}"
            return
        self._refuse_other_bytes()
        if size == self.position or size <= FIRST_POSITION:
            return
        last: Event | None = None
        try:
            for event in read_events(self.file, start=self.position):
                last = event
                found = self._take(event)
                if found is not None:
                    yield found
        except CutFileError:
            self.waits = f"{self.file} ends inside an event"
        except ChecksumError as error:
            if error.position is None or os.path.getsize(self.file) > size:
                raise
            self.waits = f"{self.file}, position {error.position}: {error}"
        finally:  # also of who reads no further for now
            if last is not None:
                with open(self.file, "rb") as file:
                    file.seek(last.position)
                    self._before = file.read(last.header.size)

    def _refuse_other_bytes(self) -> None:
        """
        Make sure that the file is the one that was read.

        Raises:
            HistoryError: It is not.
        """
        start = self.position - len(self._before)
        with open(self.file, "rb") as file:
            file.seek(start)
            found = file.read(len(self._before))
        # A server clears a flag of the first event when it closes the file.
        if found != self._before and start > FIRST_POSITION:
            message = (
                f"cluster {self.name}: {self.file} holds another event at position {start} than was read there. Bring "
                "the first file back; or resolve the logs, and watch them from there with another --out"
            )
            raise HistoryError(message)

    def _take(self, event: Event) -> TailedEpoch | None:
        """Read an event, and return the epoch that it completes, if any."""
        self._refuse_definition(event)
        epoch = self.reader.feed(event)
        start, self.position = self._start, event.end
        if self.reader.settled == event.end:
            self._start = event.end
        if epoch is None:
            return None
        if epoch.number <= self._last:
            raise disordered(f"{self.file}, position {event.position}", epoch.number, str(self._last))
        self._last = epoch.number
        return TailedEpoch(epoch, Extent(self.file, start, event.end))

    def _refuse_definition(self, event: Event) -> None:
        """
        Make sure that an event changes no definition of the tables.

        Raises:
            HistoryError: It does.
        """
        if event.type is not EventType.QUERY_EVENT:
            return
        statement = decode_query(event.body).statement
        if not _DEFINES.match(statement):
            return
        named = self.tables.intersection(re.findall(r"\w[\w$]*", statement))
        if named:
            message = (
                f"cluster {self.name}: {event.file}, position {event.position}: a statement changes table "
                f"{min(named)}, which only resolve follows: {statement[:100]}. Resolve the logs up to here, and "
                "watch the files after it with another --out"
            )
            raise HistoryError(message)
