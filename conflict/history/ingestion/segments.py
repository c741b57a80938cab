"""
Segments: how binlog files are divided, by event headers alone, and what is kept of a segment that was read.

A segment is a piece of a binlog, a number of consecutive epochs. It starts where a transaction starts, so it can be
read on its own: NDB writes the Table_map events of an epoch inside its transaction. Its record says that it is done,
and what is in it, whichever reader read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conflict.history.grid.documents import read_object, to_json
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import SegmentFacts
from ndb_formats.columnar.file_outline import FileOutline, outline_of
from ndb_formats.errors import FormatError
from ndb_formats.types.column_types import WireType

DEFAULT_SEGMENT_BYTES = 32 * 1024 * 1024
_THREADS = 8  # a record waits for its storage
_places_of = partial(outline_of, with_items=False)


@attrs.frozen
class Segment:
    """
    A piece of one binlog file.

    Attributes:
        number: Its number among the cluster's segments, from 0.
        file: The binlog file.
        start: Position of its first event.
        stop: Position after its last event.
        server_id: Server id of the SQL node that wrote the file; 0 for that of the cluster.
        server_id_bits: See `ClusterConfiguration.server_id_bits`.
    """

    number: int
    file: Path
    start: int
    stop: int
    server_id: int = 0
    server_id_bits: int = 32


@attrs.frozen
class _SegmentPlan:
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
    stop: int | None = None,
    first_number: int = 0,
    cuts: Mapping[str, Sequence[int]] | None = None,
    outline: Callable[[Path], FileOutline] = _places_of,
) -> _SegmentPlan:
    """
    Divide a cluster's files into segments.

    A file whose headers cannot be followed to its end is divided up to the error, and no later file is read.

    Args:
        files: In the order in which they were written.
        segment_bytes: About how many bytes a segment has.
        start: Where to begin in the first file; what comes before was read earlier, or is read from another log.
        stop: Where to end in the last file; None for its end.
        first_number: Number of the first segment.
        cuts: Per file, positions of events in whose transaction a segment has to start, because what is in force
            changes there.
        outline: Returns the outline of a file.
    """
    segments: list[Segment] = []
    for number, file in enumerate(files):
        found = outline(file)
        if found.divided_from > (0 if number else start):
            found = _places_of(file)
        bounds = _divide(found, segment_bytes, 0 if number else start, (cuts or {}).get(str(file), ()))
        error = found.error
        if stop is not None and number == len(files) - 1:
            bounds, error = [*(each for each in bounds if each < stop), stop], None
        segments += [
            Segment(first_number + len(segments) + place, file, *pair) for place, pair in enumerate(pairwise(bounds))
        ]
        if error is not None:
            return _SegmentPlan(tuple(segments), error)
    return _SegmentPlan(tuple(segments), None)


def _divide(file: FileOutline, segment_bytes: int, start: int, cuts: Sequence[int]) -> list[int]:
    """Return where the segments of a file start and where the last one ends."""
    positions = file.starts[file.starts >= start]
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
    return [*starts, max(file.end, start) if file.error is None else file.size]


def _transaction_start(position: int, starts: npt.NDArray[np.int64], first: int) -> int:
    """Return where the transaction of an event starts; without GTID events, the event itself."""
    place = int(np.searchsorted(starts, position, "right"))
    return max(int(starts[place - 1]) if place else position, first)


@attrs.frozen(eq=False)
class SegmentContent:
    """
    A segment that was read.

    Attributes:
        epochs: Its epochs as `conflict.history.grid.epoch_files.EPOCHS`.
        images: Which columns the images of own changes carry, by table (see `conflict.history.shown_effects`).
        marks: Marks of the rows that the applier changed, by table (see `conflict.history.roles`).
        types: Wire types of the columns of each table that it mentions.
        settled: Where the last event ends after which no transaction was open; 0 for none.
        error: Why it could not be read to its end; None if it could.
        left_out: Row operations of the epoch that the error cut off.
        parts: Staged changes and staged consequences of each bucket; made one by one.
        keyless: The rows of tables without a primary key, as `conflict.history.grid.schemas.KEYLESS`.
        begins: Where the transaction of each epoch begins in the file; None if it was read row by row. Shape (epochs,).
    """

    epochs: pa.Table
    images: dict[str, list[str]]
    marks: dict[str, list[str]]
    types: dict[str, tuple[WireType, ...]]
    settled: int
    error: FormatError | None
    left_out: int
    parts: Iterable[tuple[pa.Table, pa.Table]]
    keyless: pa.Table
    begins: npt.NDArray[np.int64] | None = None


STAGED = "staged"  # the folder of what an ingest deletes when it ends


@attrs.frozen
class SegmentRecord:
    """
    What was read of a segment.

    Attributes:
        facts: What is in it.
        types: Wire types of the columns of each table that it mentions.
        error: Why it could not be read to its end; None if it could.
        left_out: Row operations of the epoch that the error cut off.
        places: Where the blocks of its rows are, of each kind (see `conflict.history.grid.writer.write_parts`).
        wrong_key: Whether the error is that a table has another primary key (`ndb_formats.errors.WrongKeyError`).
    """

    facts: SegmentFacts
    types: dict[str, tuple[WireType, ...]]
    error: str | None
    left_out: int
    places: dict[str, bytes] = attrs.field(repr=False)
    wrong_key: bool = False


def record_path(cluster: str, segment: int) -> str:
    """Return the path of the record of one segment below the History."""
    return f"{STAGED}/segments/cluster={cluster}/segment={segment:05d}.json"


def write_record(history: Folder, cluster: str, segment: int, record: SegmentRecord) -> None:
    """Record that a segment is done."""
    history.write_json(record_path(cluster, segment), to_json(record))


def load_records(history: Folder, paths: Sequence[str]) -> dict[str, SegmentRecord]:
    """Return the records of segments that are done, by path."""
    with ThreadPoolExecutor(_THREADS) as threads:
        found = threads.map(lambda path: read_object(history, path, SegmentRecord), paths)
        return dict(zip(paths, found, strict=True))
