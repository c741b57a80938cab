"""
The outlines of binlogs that a History keeps, so that a file which is as it was need not be read again to plan.

What a file says is kept as the events that say it, and decoded when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np

from ndb_formats.binlog_reader import Event
from ndb_formats.columnar.file_outline import FileOutline
from ndb_formats.columnar.log_scan import LoggedTable, item_of
from ndb_formats.stored import digest_of_ends

OutlinesOf = Callable[[Sequence[Path]], Sequence[FileOutline]]


@attrs.frozen
class KeptEvent:
    """An event that says something besides rows; `of_ndb` and `packed` as of `LoggedTable`, if it is one."""

    event: Event
    of_ndb: bool = False
    packed: bool = False


@attrs.frozen
class KeptOutline:
    """
    The outline of a file that could be read to its end.

    Attributes:
        file: Path of the file.
        size: Its bytes.
        digest: Digest of its ends, by which it is recognized.
        divided_from: Up to where the History has read it.
        starts: Positions from there on at which transactions start.
        events: What says something besides rows.
    """

    file: str
    size: int
    digest: str
    divided_from: int
    starts: tuple[int, ...]
    events: tuple[KeptEvent, ...] = attrs.field(repr=False)

    def holds(self, file: Path) -> bool:
        """Whether a file is as it was."""
        return file.stat().st_size == self.size and digest_of_ends(file, self.size) == self.digest

    def outline(self) -> FileOutline:
        """Return the outline."""
        found = (item_of(each.event, of_ndb=each.of_ndb, packed=each.packed) for each in self.events)
        return FileOutline(
            self.file,
            self.size,
            items=tuple(item for item in found if item is not None),
            whole=True,
            starts=np.array(self.starts, np.int64),
            end=self.size,
            events=tuple(each.event for each in self.events),
            digest=self.digest,
            divided_from=self.divided_from,
        )


def outlines_to_keep(outlines: Mapping[str, FileOutline], stops: Mapping[str, int]) -> Iterator[KeptOutline]:
    """
    Yield what a History keeps of outlines.

    Args:
        outlines: Those of the files that are there, by path.
        stops: Up to where the History has read each of its files.
    """
    for file, stop in stops.items():
        found = outlines.get(file)
        if found is not None and found.whole and found.end == found.size and found.events is not None:
            starts = tuple(found.starts[found.starts >= stop].tolist())
            events = tuple(
                KeptEvent(event, item.of_ndb, item.packed) if isinstance(item, LoggedTable) else KeptEvent(event)
                for event, item in zip(found.events, found.items, strict=True)
            )
            yield KeptOutline(file, found.size, found.digest, stop, starts, events)


def known_or_made(kept: Iterable[KeptOutline], make: OutlinesOf) -> OutlinesOf:
    """Return what gives the outlines of files: the kept one of a file that is as it was, else one that is made."""
    known = {each.file: each for each in kept}

    def outlines_of(files: Sequence[Path]) -> list[FileOutline]:
        same = {file for file in files if str(file) in known and known[str(file)].holds(file)}
        rest = [file for file in files if file not in same]
        return [*(known[str(file)].outline() for file in same), *(make(rest) if rest else ())]

    return outlines_of


def earlier_outlines(kept: Iterable[KeptOutline], known: Sequence[str], given: Sequence[Path]) -> list[FileOutline]:
    """
    Return the outlines of the files of a log that a History has read and that are not given any more.

    Args:
        kept: What it keeps.
        known: The files that it has read, in order.
        given: Those of the run. None comes before them if the History does not keep all outlines up to the first one.
    """
    outlines, first = {each.file: each for each in kept}, str(given[0]) if given else ""
    before = known[: known.index(first)] if first in known else ()
    return [outlines[file].outline() for file in before] if outlines.keys() >= set(before) else []
