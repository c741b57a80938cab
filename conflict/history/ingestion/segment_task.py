"""
The task of an ingest that reads one segment: from its binlog to the staged files of a History.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pyarrow.compute as pc

from conflict.config.definitions import ClusterDefinitions, Moment
from conflict.history.epochs import EpochReader
from conflict.history.grid.epoch_files import epochs_table
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import SegmentFacts
from conflict.history.grid.schemas import staged_part
from conflict.history.grid.writer import PartBuilder, write_parts
from conflict.history.ingestion.segment_arrays import UnreadableError, tables_in_force
from conflict.history.ingestion.segment_columns import read_columns
from conflict.history.ingestion.segments import Segment, SegmentContent, SegmentRecord, write_record
from conflict.history.reading.epoch_logs import read_epochs
from conflict.history.run import TableNumbers
from conflict.history.scheduling.summaries import summarize
from conflict.history.statement_places import NO_STATEMENTS, StatementPlaces
from ndb_formats.errors import FormatError, WrongKeyError
from ndb_formats.schema.tables import Schema
from ndb_formats.stored import digest_of_ends, reading


@attrs.frozen
class SegmentTask:
    """
    One segment to read.

    Attributes:
        cluster: Name of its cluster.
        server_id: Server id of the SQL node that wrote it.
        files: The cluster's files, by number.
        segment: The segment.
        schema: The tables to read.
        numbers: Their numbers.
        buckets: Into how many buckets keys are divided.
        history: Folder of the History.
        definitions: The cluster's definitions over time; None if `schema` holds for all time.
        databases: The names in `schema` of databases that have other ones in the log.
        statements: Where the statements of the cluster's sources stand in their logs.
    """

    cluster: str
    server_id: int
    files: tuple[str, ...]
    segment: Segment
    schema: Schema
    numbers: TableNumbers
    buckets: int
    history: Folder
    definitions: ClusterDefinitions | None = None
    databases: Mapping[str, str] = attrs.field(factory=dict)
    statements: StatementPlaces = NO_STATEMENTS

    def moment(self, position: int) -> Moment | None:
        """Return what is in force at a position of the segment's file, if that changes."""
        known = self.definitions
        return None if known is None else known.at(str(self.segment.file), position, self.files)

    @property
    def followed(self) -> bool:
        """Whether definitions can be followed through the segment."""
        error = None if self.definitions is None else self.definitions.error
        if error is None or error.file != str(self.segment.file):
            return True
        return (error.position or 0) >= self.segment.stop


def read_segment(task: SegmentTask) -> SegmentRecord:
    """Read a segment, and write its rows, then its epochs, then its record, which is returned."""
    with reading(task.segment.file, task.segment.start, task.segment.stop):
        return _read_segment(task)


def _read_segment(task: SegmentTask) -> SegmentRecord:
    try:
        content, places = _read_columns(task)
    except UnreadableError:
        content, places = _read_row_by_row(task)
    segment, epochs = task.segment, content.epochs
    task.history.write_table(staged_part("epochs", task.cluster, segment.number), epochs)
    stop = max(content.settled, segment.start)
    numbers = epochs.column("number")
    facts = SegmentFacts(
        file=str(segment.file),
        start=segment.start,
        stop=stop,
        first_epoch=numbers[0].as_py() if len(epochs) else 0,
        last_epoch=numbers[-1].as_py() if len(epochs) else 0,
        changes=pc.sum(epochs.column("changes")).as_py() or 0,
        images=content.images,
        digest=digest_of_ends(segment.file, stop),
        marks=content.marks,
        keyless=len(content.keyless),
    )
    error = None if content.error is None else str(content.error)
    record = SegmentRecord(
        facts,
        content.types,
        error,
        content.left_out if error else 0,
        places,
        wrong_key=isinstance(content.error, WrongKeyError),
    )
    write_record(task.history, task.cluster, segment.number, record)
    return record


def _read_columns(task: SegmentTask) -> tuple[SegmentContent, dict[str, bytes]]:
    """
    Read a segment in columns and write its rows; return it, and where these are.

    Raises:
        UnreadableError: The scalar reader has to read it.
    """
    if not task.followed:
        raise UnreadableError
    # What changes definitions stands at the start of a segment.
    tables = tables_in_force(task.schema, task.moment(task.segment.stop), task.databases)
    file = task.files.index(str(task.segment.file))
    content = read_columns(task.segment, task.server_id, tables, task.numbers, task.buckets, file, task.statements)
    if task.definitions is not None and len(content.keyless):
        raise UnreadableError  # the scalar reader says that this is not built
    places = write_parts(task.history, task.cluster, task.segment.number, content.parts, content.keyless)
    return content, places


def _read_row_by_row(task: SegmentTask) -> tuple[SegmentContent, dict[str, bytes]]:
    """Read a segment with the scalar reader, up to its first error, and write its rows; as `_read_columns`."""
    segment = task.segment
    reader = EpochReader(
        task.server_id,
        task.schema,
        definitions=task.definitions,
        moment=task.moment(segment.start),
        without_key=task.definitions is None,
        databases=task.databases,
        statements=task.statements,
        server_id_bits=segment.server_id_bits,
    )
    builder = PartBuilder(task.numbers, task.buckets, task.files)
    summaries, error = [], None
    try:
        for epoch in read_epochs([segment.file], reader, {str(segment.file): (segment.start, segment.stop)}):
            builder.add(epoch)
            summaries.append(summarize(epoch))
    except FormatError as fault:
        error = fault
    parts, keyless = builder.tables(), builder.keyless()
    places = write_parts(task.history, task.cluster, segment.number, parts, keyless)
    types = {name: layout.types for name, layout in reader.layouts.items()}
    content = SegmentContent(
        epochs_table(summaries),
        builder.images,
        builder.marks,
        types,
        reader.settled,
        error,
        reader.rows_pending,
        parts,
        keyless,
    )
    return content, places
