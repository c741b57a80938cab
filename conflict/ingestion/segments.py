"""
Divides a cluster's binlog files into segments, by event headers alone.

A segment is a piece of a binlog, a number of consecutive epochs. It starts where a transaction starts, so it can be
read on its own: NDB writes the Table_map events of an epoch inside its transaction.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.event_index import recent_index
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError

__all__ = ["DEFAULT_SEGMENT_BYTES", "Segment", "SegmentPlan", "plan_segments"]

DEFAULT_SEGMENT_BYTES = 32 * 1024 * 1024
_TRANSACTION_STARTS = np.array(
    [
        EventType.GTID_LOG_EVENT,
        EventType.ANONYMOUS_GTID_LOG_EVENT,
        EventType.GTID_TAGGED_LOG_EVENT,
        EventType.MARIADB_GTID_EVENT,
    ],
    np.uint8,
)


@attrs.frozen
class Segment:
    """
    A piece of one binlog file.

    Attributes:
        number: Its number among the cluster's segments, from 0.
        file: The binlog file.
        start: Position of its first event.
        stop: Position after its last event.
    """

    number: int
    file: Path
    start: int
    stop: int


@attrs.frozen
class SegmentPlan:
    """
    The segments of one cluster.

    Attributes:
        segments: In order.
        error: Why the headers could not be followed to the end; None if they could.
    """

    segments: tuple[Segment, ...]
    error: FormatError | None


def plan_segments(
    files: Sequence[Path],
    segment_bytes: int = DEFAULT_SEGMENT_BYTES,
    *,
    start: int = 0,
    first_number: int = 0,
    cuts: Mapping[str, Sequence[int]] | None = None,
) -> SegmentPlan:
    """
    Divide a cluster's files into segments.

    A file whose headers cannot be followed to its end is divided up to the error, and no later file is read.

    Args:
        files: In the order in which they were written.
        segment_bytes: About how many bytes a segment has.
        start: Where to begin in the first file; what comes before was read earlier.
        first_number: Number of the first segment.
        cuts: Per file, positions of events in whose transaction a segment has to start, because what is in force
            changes there.
    """
    segments: list[Segment] = []
    for number, file in enumerate(files):
        bounds, error = _divide(file, segment_bytes, 0 if number else start, (cuts or {}).get(str(file), ()))
        segments += [
            Segment(first_number + len(segments) + place, file, *pair) for place, pair in enumerate(pairwise(bounds))
        ]
        if error is not None:
            return SegmentPlan(tuple(segments), error)
    return SegmentPlan(tuple(segments), None)


def _divide(file: Path, segment_bytes: int, start: int, cuts: Sequence[int]) -> tuple[list[int], FormatError | None]:
    """Return where the segments of a file start and where the last one ends, and the error in its headers, if any."""
    try:
        index = recent_index(file)
    except FormatError as error:
        return [start, os.path.getsize(file)], error
    positions = index.positions[np.isin(index.types, _TRANSACTION_STARTS) & (index.positions >= start)]
    # Without GTID events there is no safe place to divide a file.
    starts = [start] if start or not len(positions) else [int(positions[0])]
    own = sorted({_transaction_start(cut, positions, starts[0]) for cut in cuts} - {starts[0]})
    while True:
        place = int(np.searchsorted(positions, starts[-1] + segment_bytes))
        nearest = [cut for cut in own if cut > starts[-1]][:1]
        following = [*nearest, *positions[place : place + 1].tolist()]
        if not following:
            break
        starts.append(min(following))
    # The last segment reaches to the end of the file, so that its task meets the error too.
    end = index.end if len(index) else 0
    return [*starts, max(end, start) if index.error is None else os.path.getsize(file)], index.error


def _transaction_start(position: int, starts: npt.NDArray[np.int64], first: int) -> int:
    """Return where the transaction of an event starts; without GTID events, the event itself."""
    place = int(np.searchsorted(starts, position, "right"))
    return max(int(starts[place - 1]) if place else position, first)
