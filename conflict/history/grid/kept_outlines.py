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
from ndb_formats.columnar.file_outline import FileOutline, digest_of_ends
from ndb_formats.columnar.log_scan import LoggedTable, LogItem, item_of
from ndb_formats.constants import EVENT_HEADER_SIZE
from ndb_formats.events.header import decode_header, encode_header

__all__ = ["KeptEvent", "KeptOutline", "OutlinesOf", "known_or_made", "outlines_to_keep"]

OutlinesOf = Callable[[Sequence[Path]], Sequence[FileOutline]]
_MOST_STARTS = 1000


@attrs.frozen
class KeptEvent:
    """
    An event that says something besides rows.

    Attributes:
        position: As of `ndb_formats.binlog_reader.Event`; so are the next two.
        payload_position: See there.
        server: See there.
        data: Header and body, in hexadecimal digits.
        of_ndb: Of a Table_map event, as of `ndb_formats.columnar.log_scan.LoggedTable`.
        packed: See there.
    """

    position: int
    payload_position: int
    server: str
    data: str = attrs.field(repr=False)
    of_ndb: bool
    packed: bool

    @classmethod
    def of(cls, event: Event, item: LogItem) -> KeptEvent:
        """Return what is kept of an event."""
        data = (encode_header(event.header) + event.body).hex()
        of_ndb, packed = (item.of_ndb, item.packed) if isinstance(item, LoggedTable) else (False, False)
        return cls(event.position, event.payload_position, event.server, data, of_ndb, packed)

    def event(self, file: str) -> Event:
        """Return the event."""
        data = bytes.fromhex(self.data)
        header, body = decode_header(data), data[EVENT_HEADER_SIZE:]
        return Event(file, self.position, header, body, self.server, self.payload_position)


@attrs.frozen
class KeptOutline:
    """
    The outline of a file that could be read to its end.

    Attributes:
        file: Path of the file.
        size: Its bytes.
        digest: Digest of its ends, by which it is recognized.
        divided_from: From where on the History may go on reading it.
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
        events = tuple(each.event(self.file) for each in self.events)
        pairs = zip(events, self.events, strict=True)
        found = (item_of(event, of_ndb=each.of_ndb, packed=each.packed) for event, each in pairs)
        items = tuple(item for item in found if item is not None)
        starts = np.array(self.starts, np.int64)
        return FileOutline(
            self.file, self.size, items, True, starts, self.size, None, events, self.digest, self.divided_from
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
        if found is None or not found.whole or found.end != found.size or found.events is None:
            continue
        starts = found.starts[found.starts >= stop].tolist()
        if found.divided_from <= stop and len(starts) <= _MOST_STARTS:
            events = map(KeptEvent.of, found.events, found.items)
            yield KeptOutline(file, found.size, found.digest, stop, tuple(starts), tuple(events))


def known_or_made(kept: Iterable[KeptOutline], make: OutlinesOf) -> OutlinesOf:
    """Return what gives the outlines of files: the kept one of a file that is as it was, else one that is made."""
    known = {each.file: each for each in kept}

    def outlines_of(files: Sequence[Path]) -> list[FileOutline]:
        same = {file for file in files if str(file) in known and known[str(file)].holds(file)}
        rest = [file for file in files if file not in same]
        return [*(known[str(file)].outline() for file in same), *(make(rest) if rest else ())]

    return outlines_of
