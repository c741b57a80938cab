"""
What planning needs of a binlog, read from that file alone: what it says besides rows, and where it can be divided.

So the outlines of many files can be made side by side, in threads or on other machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.binlog_reader import Event
from ndb_formats.columnar.event_index import EventIndex, recent_index
from ndb_formats.columnar.kernel_mode import are_interpreted, expect_files
from ndb_formats.columnar.log_scan import LogItem, items_of
from ndb_formats.constants import TRANSACTION_STARTS
from ndb_formats.errors import FormatError
from ndb_formats.stored import digest_of_ends, path_of

_MOST_KEPT = 1 << 20  # bytes of events: a log can have very many statements


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


def outline_of(file: str | Path, *, with_items: bool = True) -> FileOutline:
    """Return the outline of a file, or what it has besides items; an error in it is the outline's."""
    path = path_of(file)
    try:
        index = recent_index(file)
    except FormatError as error:
        return FileOutline(str(file), path.stat().st_size, error=error)
    starts = index.positions[np.isin(index.types, TRANSACTION_STARTS)]
    end = index.end if len(index) else 0
    found = FileOutline(str(file), path.stat().st_size, starts=starts, end=end, error=index.error)
    return attrs.evolve(found, digest=digest_of_ends(path, end), **_said(index)) if with_items else found


def _said(index: EventIndex) -> dict[str, Any]:
    """Return what a file says, as attributes of its outline."""
    items, events, room, whole = list[LogItem](), list[Event](), _MOST_KEPT, index.error is None
    try:
        for item, event in items_of(index, verify=True):
            items.append(item)
            room -= event.header.size
            events += [event] if room >= 0 else []
    except FormatError:  # whoever reads the rows says why
        whole = False
    return {"items": tuple(items), "whole": whole, "events": tuple(events) if room >= 0 else None}


def outlines_of(files: Sequence[Path]) -> list[FileOutline]:
    """Return the outline of each file, made in one thread per core: the kernels release Python's lock."""
    expect_files(files)
    with ThreadPoolExecutor(1 if are_interpreted() else None) as threads:
        return list(threads.map(outline_of, files))


def items_of_log(outlines: Mapping[str, FileOutline], files: Iterable[str | Path]) -> Iterator[LogItem]:
    """Yield what the files of a log say besides rows, as `scan_log` does; those without an outline are not there."""
    for each in (outlines[str(file)] for file in files if str(file) in outlines):
        yield from each.items
        if not each.whole:
            return
