"""
What planning needs of a binlog, read from that file alone: what it says besides rows, and where it can be divided.

So the outlines of many files can be made side by side, in threads or on other machines.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.binlog_reader import Event
from ndb_formats.columnar.event_index import EventIndex, recent_index
from ndb_formats.columnar.kernel_mode import are_interpreted, expect_files
from ndb_formats.columnar.log_scan import LogItem, items_of
from ndb_formats.constants import TRANSACTION_STARTS
from ndb_formats.errors import FormatError
from ndb_formats.stored import path_of, reading

__all__ = ["FileOutline", "digest_of_ends", "items_of_log", "outline_of", "outlines_of", "places_of"]


_MOST_KEPT = 1 << 20  # bytes of events: a log can have very many statements
_MOST_EVENTS = 1 << 13
_DIGEST_BYTES = 4096
# Of the first event's flags, the byte that says whether the server still writes the file.
_IN_USE_AT = 4 + 17


@attrs.frozen(eq=False)
class FileOutline:
    """
    What planning needs of one file.

    Attributes:
        file: Path of the file.
        size: Its bytes when it was read.
        items: What it says besides rows, in order, up to what cannot be read.
        whole: Whether nothing stands after the items that cannot be read.
        starts: Positions at which transactions start. Shape (transactions,), int64.
        end: Position after its last event; 0 if it has none.
        error: Why its headers cannot be followed to the end; None if they can.
        events: The event of each item; None if they are large.
        digest: Digest of its beginning and of the bytes before `end`; see `digest_of_ends`.
        divided_from: Transactions that start before it are left out.
    """

    file: str
    size: int
    items: tuple[LogItem, ...] = attrs.field(default=(), repr=False)
    whole: bool = False
    starts: npt.NDArray[np.int64] = attrs.field(factory=lambda: np.zeros(0, np.int64), repr=False)
    end: int = 0
    error: FormatError | None = None
    events: tuple[Event, ...] | None = attrs.field(default=None, repr=False)
    digest: str = ""
    divided_from: int = 0


def outline_of(file: str | Path) -> FileOutline:
    """Return the outline of a file; an error in it is the outline's."""
    try:
        index = recent_index(file)
    except FormatError as error:
        return _broken(file, error)
    items, events, size, whole = list[LogItem](), list[Event](), 0, index.error is None
    try:
        for item, event in items_of(index, verify=True):
            items.append(item)
            size += len(event.body)
            if size <= _MOST_KEPT:
                events.append(event)
    except FormatError:  # whoever reads the rows says why
        whole = False
    found = _divisible(index)
    kept = tuple(events) if size <= _MOST_KEPT and len(events) <= _MOST_EVENTS else None
    digest = digest_of_ends(path_of(file), found.end)
    return attrs.evolve(found, items=tuple(items), whole=whole, events=kept, digest=digest)


def places_of(file: str | Path) -> FileOutline:
    """Return the outline of a file without what it says."""
    try:
        return _divisible(recent_index(file))
    except FormatError as error:
        return _broken(file, error)


def _broken(file: str | Path, error: FormatError) -> FileOutline:
    return FileOutline(str(file), path_of(file).stat().st_size, error=error)


def _divisible(index: EventIndex) -> FileOutline:
    starts = index.positions[np.isin(index.types, TRANSACTION_STARTS)]
    size, end = path_of(index.file).stat().st_size, index.end if len(index) else 0
    return FileOutline(index.file, size, starts=starts, end=end, error=index.error)


def outlines_of(files: Sequence[Path]) -> list[FileOutline]:
    """Return the outline of each file, made in one thread per core: the kernels release Python's lock."""
    expect_files(files)
    with ThreadPoolExecutor(1 if are_interpreted() else os.cpu_count()) as threads:
        return list(threads.map(outline_of, files))


def items_of_log(outlines: Mapping[str, FileOutline], files: Iterable[Path]) -> Iterator[LogItem]:
    """Yield what the files of a log say besides rows, as `scan_log` does; those without an outline are not there."""
    for each in (outlines[str(file)] for file in files if str(file) in outlines):
        yield from each.items
        if not each.whole:
            return


def digest_of_ends(file: Path, stop: int) -> str:
    """Return a digest of the first and the last 4 KiB before a position of a file."""
    with reading(file, max(stop - _DIGEST_BYTES, 0), stop), file.open("rb") as stream:
        head = bytearray(stream.read(min(stop, _DIGEST_BYTES)))
        if len(head) > _IN_USE_AT:
            head[_IN_USE_AT] &= ~1  # the server clears this flag when it closes the file
        stream.seek(max(stop - _DIGEST_BYTES, len(head)))
        tail = stream.read(stop - stream.tell())
    return hashlib.sha256(bytes(head) + tail).hexdigest()
