"""
Binlogs as a stream: files that grow, and that servers rotate.

An offset is a place in the log of each server, by server id: a file, and a position there before which every
transaction has ended. What lies between two offsets never changes, so a batch that runs again reads the same rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from conflict.discovery.logs import find_logs
from conflict.errors import ConfigurationError
from conflict.spark.binlog_reader import BinlogReader, Piece
from ndb_formats.binlog_reader import FIRST_POSITION
from ndb_formats.columnar.event_index import recent_index
from ndb_formats.columnar.log_remarks import remarks_on_rows
from ndb_formats.columnar.log_scan import LoggedEnd, LogItem, scan_log
from ndb_formats.columnar.settled import settled_positions
from ndb_formats.columnar.stretches import Stretch, Stretches
from ndb_formats.errors import CutFileError

Offset = dict[str, dict[str, Any]]


@attrs.frozen
class _Part:
    """A part of a file, from an event to before another one."""

    file: str
    start: int
    stop: int


@attrs.define
class _Limit:
    """How much more a batch may read; None for no limit."""

    files: int | None
    bytes: int | None
    begun: bool = False

    def take(self, part: _Part) -> _Part | None:
        """Return as much of a part as may be read, whole transactions; None for nothing."""
        if self.files == 0:
            return None
        if self.bytes is not None and part.stop - part.start > self.bytes:
            positions = settled_positions(part.file)
            later = [*positions[(positions > part.start) & (positions < part.stop)].tolist(), part.stop]
            fitting = [each for each in later if each <= part.start + self.bytes]
            if not fitting and self.begun:
                return None
            part = attrs.evolve(part, stop=max(fitting, default=later[0]))
        self.begun = True
        self.files = None if self.files is None else self.files - 1
        self.bytes = None if self.bytes is None else max(self.bytes - (part.stop - part.start), 0)
        return part


class BinlogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """
    Reads the rows of each batch as a reader of whole files does.

    Definitions are followed from the first file of each log on; this object keeps what it knows of finished files.
    """

    def __init__(self, reader: BinlogReader) -> None:
        self._reader = reader
        self._target: dict[str, list[tuple[str, int]]] | None = None
        self._stretches = Stretches(reader.options.schema)
        self._finished: dict[str, list[Stretch]] = {}
        self._turn = 0

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """Return where a stream begins: at the first file of each server."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        """Return the limit of a batch; where two are given, both hold."""
        options = self._reader.options
        if options.most_bytes is not None:
            return ReadMaxBytes(options.most_bytes)
        return ReadAllAvailable() if options.most_files is None else ReadMaxFiles(options.most_files)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """Read no further than the files go now."""
        self._target = self._logs()

    def reportLatestOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """Return where the files end now."""
        return {server: _place(*files[-1]) for server, files in self._logs().items()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802  # Spark's name
        """
        Return where a batch ends.

        Raises:
            ConfigurationError: A file is gone, or shorter than what was read of it.
        """
        options, logs = self._reader.options, self._target or self._logs()
        limited = not isinstance(limit, ReadAllAvailable)
        left = _Limit(options.most_files, options.most_bytes) if limited else _Limit(None, None)
        self._turn += 1
        servers, end = sorted(logs), dict(start)
        for number in range(len(servers)):  # another one comes first each time, so that each has its turn
            server = servers[(number + self._turn) % len(servers)]
            for part in _parts(logs[server], start.get(server)):
                taken = left.take(part)
                if taken is not None:
                    end[server] = _place(taken.file, taken.stop)
                if taken != part:
                    break
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[Piece]:
        """
        Divide what lies between two offsets.

        Raises:
            LogWarning: There is a remark on it, and the options do not ignore that.
            ConfigurationError: A file is gone, or shorter than what was read of it.
        """
        pieces, notes, items = list[Piece](), list[str](), list[LogItem]()
        found = self._files()
        for server, place in end.items():
            files = _until(found.get(server, []), place)
            parts = {part.file: part for part in _parts(files, start.get(server))}
            for file, _ in files:
                stretches = self._followed(file, notes, finished=file != place["file"])
                if (part := parts.get(file)) is not None:
                    pieces += self._reader.pieces(file, file, stretches, part.start, part.stop)
                    items += _items_of(part)
        self._reader.fail_with([*(remark.sentence for remark in remarks_on_rows(items)), *dict.fromkeys(notes)])
        return pieces

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the row changes of a piece, as `BinlogReader.read`."""
        return self._reader.read(partition)

    def _files(self) -> dict[str, list[tuple[str, int]]]:
        """Return the files of each server's log, by server id, and their sizes."""
        logs = find_logs([Path(each.removeprefix("file:")) for each in self._reader.options.paths])
        return {str(log.server_id): [(str(file), os.path.getsize(file)) for file in log.files] for log in logs}

    def _logs(self) -> dict[str, list[tuple[str, int]]]:
        """Return these files, and where each of them can be read to."""
        found = self._files()
        return {server: [*files[:-1], (files[-1][0], _readable(*files[-1]))] for server, files in found.items()}

    def _followed(self, file: str, notes: list[str], *, finished: bool) -> list[Stretch]:
        """Return the stretches of the next file of a log, and add what is to be said of them."""
        if file not in self._finished:
            follower = self._stretches if finished else self._stretches.copy()
            said = len(follower.notes)
            stretches = list(follower.of(file))
            notes += follower.notes[said:]
            if not finished:
                return stretches
            self._finished[file] = stretches
        return self._finished[file]


def _place(file: str, position: int) -> dict[str, Any]:
    return {"file": file, "position": position}


def _readable(file: str, size: int) -> int:
    """Return where the last whole transaction of a growing file ends; its size if a task has to say what is wrong."""
    error = recent_index(file).error
    return int(settled_positions(file)[-1]) if error is None or isinstance(error, CutFileError) else size


def _until(files: Sequence[tuple[str, int]], place: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the files up to a place, where the last one ends."""
    names = [name for name, _ in files]
    if place["file"] not in names:
        raise ConfigurationError(_gone(place))
    return [*files[: names.index(place["file"])], (place["file"], place["position"])]


def _parts(files: Sequence[tuple[str, int]], start: Mapping[str, Any] | None) -> Iterator[_Part]:
    """
    Yield what is there of files after a place; None for all.

    Raises:
        ConfigurationError: A file is gone, or shorter than what was read of it.
    """
    names = [name for name, _ in files]
    first, position = (0, FIRST_POSITION) if start is None else (None, int(start["position"]))
    if start is not None:
        if start["file"] not in names:
            raise ConfigurationError(_gone(start))
        first = names.index(start["file"])
    for file, stop in files[first:]:
        if stop < position:
            message = (
                f"ndb_binlog: {file} ends at {stop}, and the stream has read it up to {position}: it is another file. "
                "Bring the first one back, or start another stream with a checkpoint of its own"
            )
            raise ConfigurationError(message)
        if stop > position:
            yield _Part(file, position, stop)
        position = FIRST_POSITION


def _gone(place: Mapping[str, Any]) -> str:
    return (
        f"ndb_binlog: {place['file']} is gone, which the stream has read up to {place['position']}. Bring it back, or "
        "start another stream with a checkpoint of its own"
    )


def _items_of(part: _Part) -> Iterator[LogItem]:
    """Yield what a part of a file says besides rows; that a transaction is prepared, the next batch may end."""
    for item in scan_log([part.file], verify=False):
        prepares = isinstance(item, LoggedEnd) and item.text.upper().startswith("XA PREPARE")
        if part.start <= item.position < part.stop and not prepares:
            yield item
