"""
One run of epochs: its binlog to the staged parts of a grid, and a record that says that it is done.
"""

from __future__ import annotations

from typing import Any, Self

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from conflict.grid.epoch_files import epochs_part, epochs_table
from conflict.grid.folder import Folder
from conflict.grid.key_buckets import PartBuilder, TableNumbers
from conflict.grid.manifest import SegmentFacts, types_from_json, types_to_json
from conflict.grid.writer import write_parts
from conflict.history.epochs import EpochReader, read_epochs
from conflict.history.schedule import summarize
from conflict.ingestion.plan import digest_of
from conflict.ingestion.segment_columns import read_columns
from conflict.ingestion.segment_rows import UnreadableError
from conflict.ingestion.segments import Segment
from ndb_formats.errors import FormatError
from ndb_formats.schema.tables import Schema
from ndb_formats.types.column_types import WireType

__all__ = ["STAGED", "SegmentRecord", "SegmentTask", "load_record", "read_segment", "record_path"]

# What waits to be finished, and is deleted then.
STAGED = "staged"


@attrs.frozen
class SegmentTask:
    """
    One run to read.

    Attributes:
        cluster: Name of its cluster.
        server_id: That cluster's server id.
        files: The cluster's files, by number.
        segment: Which stretch of which file.
        schema: The tables to read.
        numbers: Their numbers.
        buckets: Into how many buckets keys are divided.
        history: Folder of the History.
    """

    cluster: str
    server_id: int
    files: tuple[str, ...]
    segment: Segment
    schema: Schema
    numbers: TableNumbers
    buckets: int
    history: Folder


@attrs.frozen
class SegmentRecord:
    """
    What became of a run.

    Attributes:
        facts: What is in it.
        types: Wire types of the columns of each table that it mentions.
        error: Why it could not be read to its end; None if it could.
        left_out: Row operations read of an epoch that was cut off.
    """

    facts: SegmentFacts
    types: dict[str, tuple[WireType, ...]]
    error: str | None
    left_out: int

    def to_json(self) -> dict[str, Any]:
        """Return the document."""
        return {**attrs.asdict(self, recurse=True), "types": types_to_json(self.types)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Read the document."""
        facts, types = SegmentFacts(**document["facts"]), types_from_json(document["types"])
        return cls(facts, types, document["error"], document["left_out"])


def record_path(cluster: str, segment: int) -> str:
    """Return the path of the record of one run below the History."""
    return f"{STAGED}/segments/cluster={cluster}/segment={segment:05d}.json"


def load_record(history: Folder, cluster: str, segment: int) -> SegmentRecord:
    """Return what became of a run that is done."""
    return SegmentRecord.from_json(history.read_json(record_path(cluster, segment)))


def read_segment(task: SegmentTask) -> None:
    """Read a run and write its parts; last of all, its record."""
    try:
        found = _by_columns(task) or _row_by_row(task)
    except UnreadableError:
        found = _row_by_row(task)
    segment, epochs = task.segment, found.epochs
    task.history.write_table(epochs_part(task.cluster, segment.number), epochs)
    stop = max(found.settled, segment.start)
    numbers = epochs.column("number")
    facts = SegmentFacts(
        file=str(segment.file),
        start=segment.start,
        stop=stop,
        first_epoch=numbers[0].as_py() if len(epochs) else 0,
        last_epoch=numbers[-1].as_py() if len(epochs) else 0,
        changes=pc.sum(epochs.column("changes")).as_py() or 0,
        digest=digest_of(segment.file, stop),
    )
    error = None if found.error is None else str(found.error)
    record = SegmentRecord(facts, found.types, error, found.left_out if error else 0)
    task.history.write_json(record_path(task.cluster, segment.number), record.to_json())


@attrs.frozen
class _SegmentContent:
    """
    What a run holds besides its rows.

    Attributes:
        epochs: Its epochs as `EPOCHS`.
        types: As in `SegmentRecord`.
        settled: Where the last event ends after which no transaction was open; 0 if there was none.
        error: Why it could not be read to its end; None if it could.
        left_out: Rows of an epoch that is not complete.
    """

    epochs: pa.Table
    types: dict[str, tuple[WireType, ...]]
    settled: int
    error: FormatError | None
    left_out: int


def _by_columns(task: SegmentTask) -> _SegmentContent | None:
    """
    Read a run in columns and write its rows; None where something in it is wrong.

    Raises:
        UnreadableError: Its rows are too many.
    """
    file = task.files.index(str(task.segment.file))
    found = read_columns(task.segment, task.server_id, task.schema, task.numbers, task.buckets, file)
    if found is None:
        return None
    write_parts(task.history, task.cluster, task.segment.number, found.tables())
    return _SegmentContent(found.epochs, found.shapes.types, found.settled, found.error, found.left_out)


def _row_by_row(task: SegmentTask) -> _SegmentContent:
    """Read a run with the scalar reader, which says what is wrong, and write its rows."""
    segment = task.segment
    reader = EpochReader(task.server_id, task.schema)
    builder = PartBuilder(task.numbers, task.buckets, task.files)
    summaries, error = [], None
    try:
        for epoch in read_epochs([segment.file], reader, {str(segment.file): (segment.start, segment.stop)}):
            builder.add(epoch)
            summaries.append(summarize(epoch))
    except FormatError as fault:
        error = fault
    write_parts(task.history, task.cluster, segment.number, builder.tables())
    types = {name: layout.types for name, layout in reader.layouts.items()}
    return _SegmentContent(epochs_table(summaries), types, reader.settled, error, reader.rows_pending)
