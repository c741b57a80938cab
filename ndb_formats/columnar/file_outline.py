"""
What planning needs of a binlog, read from that file alone: what it says besides rows, and where it can be divided.

So the outlines of many files can be made side by side, in threads or on other machines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.event_index import EventIndex, recent_index
from ndb_formats.columnar.kernel_mode import are_interpreted, expect_files
from ndb_formats.columnar.log_scan import LogItem, items_of
from ndb_formats.constants import TRANSACTION_STARTS
from ndb_formats.errors import FormatError
from ndb_formats.stored import path_of

__all__ = ["FileOutline", "items_of_log", "outline_of", "outlines_of", "places_of"]


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
    """

    file: str
    size: int
    items: tuple[LogItem, ...] = attrs.field(default=(), repr=False)
    whole: bool = False
    starts: npt.NDArray[np.int64] = attrs.field(factory=lambda: np.zeros(0, np.int64), repr=False)
    end: int = 0
    error: FormatError | None = None


def outline_of(file: str | Path) -> FileOutline:
    """Return the outline of a file; an error in it is the outline's."""
    try:
        index = recent_index(file)
    except FormatError as error:
        return _broken(file, error)
    items, whole = list[LogItem](), index.error is None
    try:
        for item in items_of(index, verify=True):
            items.append(item)  # what came before an error stays
    except FormatError:  # whoever reads the rows says why
        whole = False
    return attrs.evolve(_divisible(index), items=tuple(items), whole=whole)


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
