"""
The epochs that the log of one SQL node holds: where each stands, and a digest of the changes in it.

Every SQL node of a cluster that logs has the same changes in the same epochs, under its own table ids, positions and
server id. So digests of row events without these tell which logs belong together, and where one differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Self, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from conflict.history.ingestion.kernels.epochs import GroupedEvents, group_events
from conflict.history.ingestion.kernels.events import EventRole, change_digests
from conflict.history.ingestion.segment_arrays import Events, UnreadableError
from conflict.history.ingestion.segment_walk import SegmentWalk
from conflict.history.run import TableNumbers
from ndb_formats.columnar.event_chunks import EventChunk, read_chunks
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError

Part = TypeVar("Part")

_CHUNK_EVENTS, _CHUNK_BYTES = 1 << 18, 1 << 26
_CHECKSUM = 4  # bytes of each event that a server adds when it writes its cache to the log


@attrs.frozen(eq=False)
class LoggedEpochs:
    """
    The epochs of one SQL node's log, in order. All arrays have shape (epochs,).

    Attributes:
        server_id: Server id of the SQL node.
        files: Its files.
        number: The epochs. uint64.
        file: Number of the file that holds each. int32.
        start: Where its transaction begins in the file. int64.
        stop: Where its transaction ends. int64.
        content: Digest of its row events, those of ``mysql.ndb_apply_status`` aside; 0 if there are none. uint64.
        whole: Whether all files could be read to their ends.
        incidents: How many epochs stand before each of its incidents.
        gaps: How many epochs stand before each place where a file is missing, as their numbers tell.
    """

    server_id: int
    files: tuple[Path, ...]
    number: npt.NDArray[np.uint64]
    file: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    content: npt.NDArray[np.uint64]
    whole: bool = True
    incidents: tuple[int, ...] = ()
    gaps: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.number)

    def has_epochs_of(self, other: LoggedEpochs) -> bool:
        """Whether both hold an epoch in which one of them has changes: empty epochs are alike in all clusters."""
        return len(self._same(other)) > 0

    def ends_with(self, epoch: int) -> bool:
        """Whether an epoch is its last one."""
        return len(self) > 0 and int(self.number[-1]) == epoch

    def count_up_to(self, epoch: int) -> int:
        """Return how many of its epochs are an epoch or before it."""
        return int(np.searchsorted(self.number, np.uint64(epoch), "right"))

    def broken(self, first: int, last: int) -> bool:
        """Whether changes between two epochs may be missing: it lacks one of them, or is broken between them."""
        places = np.searchsorted(self.number, np.array([first, last], np.uint64))
        if places[1] == len(self) or self.number[places].tolist() != [first, last]:
            return True
        return any(places[0] < each <= places[1] for each in (*self.incidents, *self.gaps))

    def shares_changes(self, other: LoggedEpochs) -> bool:
        """Whether both are logs of one cluster: most epochs that both hold, empty ones aside, have the same changes."""
        same = self._same(other)
        return 2 * int(same.sum()) > len(same)

    def _same(self, other: LoggedEpochs) -> npt.NDArray[np.bool_]:
        """Return, of each epoch that both hold and in which one has changes, whether these are the same."""
        _, here, there = np.intersect1d(self.number, other.number, return_indices=True)
        mine, theirs = self.content[here], other.content[there]
        same: npt.NDArray[np.bool_] = (mine == theirs)[(mine != 0) | (theirs != 0)]
        return same

    def differing(self, other: LoggedEpochs) -> npt.NDArray[np.uint64]:
        """Return the epochs that both hold, with other changes."""
        both, mine, theirs = np.intersect1d(self.number, other.number, return_indices=True)
        differing: npt.NDArray[np.uint64] = both[self.content[mine] != other.content[theirs]]
        return differing

    @classmethod
    def joined(cls, server_id: int, files: Sequence[Path], parts: Sequence[Self], *, whole: bool) -> Self:
        """Return the log of an SQL node from the epochs of its files."""
        arrays = {
            name: np.concatenate([np.zeros(0, kind), *(getattr(each, name) for each in parts)])
            for name, kind in _TYPES.items()
        }
        before = np.cumsum([0, *map(len, parts)]).tolist()
        incidents = tuple(start + each for start, part in zip(before, parts, strict=False) for each in part.incidents)
        steps = enumerate(pairwise(files), start=1)
        gaps = tuple(before[number] for number, pair in steps if number < len(before) and step_of_files(*pair) > 1)
        return cls(server_id, tuple(files), **arrays, whole=whole, incidents=incidents, gaps=gaps)


def step_of_files(first: Path, second: Path) -> int:
    """Return by how much the numbers of two files of a log rise; 1 if they have none, or other names before them."""
    if not (first.stem == second.stem and first.suffix[1:].isdecimal() and second.suffix[1:].isdecimal()):
        return 1
    return int(second.suffix[1:]) - int(first.suffix[1:])


_TYPES = {"number": np.uint64, "file": np.int32, "start": np.int64, "stop": np.int64, "content": np.uint64}


@attrs.frozen(eq=False)
class ScannedFile:
    """
    A file up to what cannot be read.

    Attributes:
        path: The file.
        number: Its number among the files of its SQL node.
        events: Its events.
        grouped: Its epochs.
        content: Digest of each rows event. Shape (events,), uint64.
        incidents: Positions of its incidents. int64.
        whole: Whether it could be read to its end.
    """

    path: Path
    number: int
    events: Events
    grouped: GroupedEvents
    content: npt.NDArray[np.uint64]
    incidents: npt.NDArray[np.int64]
    whole: bool

    @property
    def first(self) -> npt.NDArray[np.int64]:
        """The event with which each epoch begins in the file: its Gtid event, which old servers do not write."""
        begin = self.grouped.epochs.begin
        before = np.maximum(begin - 1, 0)
        first: npt.NDArray[np.int64] = np.where(self.events.role[before] == EventRole.NONE, before, begin)
        return first

    @property
    def last(self) -> npt.NDArray[np.int64]:
        """The event with which each epoch ends."""
        begin, ends = self.grouped.epochs.begin, np.flatnonzero(self.events.role == EventRole.END)
        return ends[np.searchsorted(ends, begin)] if len(begin) else begin

    @property
    def size(self) -> npt.NDArray[np.int64]:
        """Bytes of each epoch that the server kept before it logged them, or somewhat less. Shape (epochs,)."""
        events, begin, last = self.events, self.grouped.epochs.begin, self.last
        logged = events.stop[last] - events.position[begin] - _CHECKSUM * (last - begin + 1)
        # Of a compressed transaction, at least what comes before its last event was kept.
        size: npt.NDArray[np.int64] = np.maximum(logged, events.payload_position[last].astype(np.int64))
        return size

    def epochs(self, server_id: int) -> LoggedEpochs:
        """Return its epochs."""
        events, begin, first, last = self.events, self.grouped.epochs.begin, self.first, self.last
        changes = np.where(events.role == EventRole.STATUS, np.uint64(0), self.content)
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(changes)])
        return LoggedEpochs(
            server_id,
            (self.path,),
            self.grouped.epochs.number,
            np.full(len(begin), self.number, np.int32),
            events.position[first],
            events.stop[last],
            total[last] - total[begin],
            incidents=tuple(np.searchsorted(events.position[first], self.incidents).tolist()),
        )


def scan_epochs(server_id: int, files: Sequence[Path], most: int | None = None) -> LoggedEpochs:
    """
    Return the epochs of a log, up to what cannot be read.

    Args:
        server_id: Server id of the SQL node.
        files: Its files, oldest first.
        most: About how many bytes to read; None for all.
    """
    parts, whole = scan_files(server_id, files, lambda file: file.epochs(server_id), most)
    return LoggedEpochs.joined(server_id, files, parts, whole=whole)


def scan_files(
    server_id: int,
    files: Sequence[Path],
    take: Callable[[ScannedFile], Part],
    most: int | None = None,
    look: Callable[[EventChunk], None] = lambda chunk: None,
) -> tuple[list[Part], bool]:
    """
    Return what is taken of each file of a log, up to what cannot be read, and whether all could be read.

    Args:
        server_id: Server id of the SQL node.
        files: Its files, oldest first.
        take: What is taken of a file; the rest of it is not kept.
        most: As for `scan_epochs`.
        look: Called with each chunk of events before its file is taken.
    """
    parts, whole, left = list[Part](), True, most
    for number, file in enumerate(files):
        try:
            scanned = _scan(server_id, file, number, left, look)
        except (FormatError, UnreadableError):
            return parts, False
        parts.append(take(scanned))
        whole = scanned.whole
        left = None if left is None else left - file.stat().st_size
        if not whole or (left is not None and left <= 0):
            break
    return parts, whole


def _scan(server_id: int, file: Path, number: int, most: int | None, look: Callable[[EventChunk], None]) -> ScannedFile:
    """Return a file as it was scanned."""
    walk, digests, whole = SegmentWalk({}, TableNumbers((), {}), 1), list[npt.NDArray[np.uint64]](), True
    incidents = [np.zeros(0, np.int64)]
    for chunk in read_chunks(file, start=0, stop=most, verify=True, events=_CHUNK_EVENTS, span=_CHUNK_BYTES):
        walk.add(chunk)
        look(chunk)
        digests.append(change_digests(chunk.data, chunk.types, chunk.starts, chunk.ends))
        incidents.append(chunk.positions[chunk.types == EventType.INCIDENT_EVENT])
        whole = chunk.error is None
    events, status = walk.events, walk.status
    bounds = np.searchsorted(status.event, np.arange(len(events.role) + 1))
    grouped: GroupedEvents = group_events(events, status, bounds, np.uint64(server_id))
    if not grouped.valid:
        raise UnreadableError
    return ScannedFile(file, number, events, grouped, np.concatenate(digests), np.concatenate(incidents), whole)
