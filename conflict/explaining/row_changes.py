"""
The changes of a few rows, or of one transaction, in the binlogs of all clusters.

The epochs that hold some are found in columns by compiled code, as for an ingest, and read row by row. What
cannot be read in columns is read row by row from end to end: a log whose definitions change or that is read up to a
moment, and a segment that is damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.arguments import no_progress
from conflict.config.configuration import ClusterConfiguration
from conflict.config.definitions import TableVersion
from conflict.engine.ledger.table_keys import TableKey
from conflict.history.epochs import BinlogEpoch, EpochReader
from conflict.history.grid.epoch_files import summaries_of
from conflict.history.grid.writer import identity_of
from conflict.history.ingestion.segment_arrays import UnreadableError, tables_in_force
from conflict.history.ingestion.segment_columns import read_columns
from conflict.history.ingestion.segments import Segment, SegmentContent, plan_segments
from conflict.history.reading.epoch_logs import read_epochs, read_log
from conflict.history.run import Run, TableNumbers
from conflict.history.scheduling.servers import of_clusters
from conflict.history.scheduling.summaries import Summary, summarize
from conflict.history.statement_places import NO_STATEMENTS, StatementPlaces
from conflict.history.timeline import DefinitionChange, Origin, RowChange
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import ConflictFlag
from ndb_formats.schema.tables import Schema
from ndb_formats.types.values import Absent, Value

Bool = npt.NDArray[np.bool_]
_WHOLE = 1  # bucket
_NO_END = 2**64  # above every epoch
# ``database.table``, and the identity of the row.
WantedRow = tuple[str, bytes]
Progress = Callable[[str, int, int], None]


@attrs.frozen
class WantedChanges:
    """
    Which changes are read: those of the rows, and those of the transactions.

    Attributes:
        rows: The rows.
        transactions: Ids of user transactions.
    """

    rows: frozenset[WantedRow] = frozenset()
    transactions: frozenset[int] = frozenset()

    @property
    def tables(self) -> frozenset[str]:
        """The tables of the rows."""
        return frozenset(table for table, _ in self.rows)


@attrs.frozen
class ChangeInLog:
    """
    A row change as a binlog holds it.

    Attributes:
        cluster: Cluster whose binlog it is.
        epoch: Its own epoch.
        group: The group of that epoch.
        own: Whether the cluster made it itself; else its applier did.
        key: Primary key as text, as it compares.
        logged: The change.
    """

    cluster: str
    epoch: int
    group: int
    own: bool
    key: str
    logged: RowChange

    @property
    def table(self) -> str:
        """Name of the table, ``database.table``."""
        return self.logged.table

    @property
    def row(self) -> WantedRow:
        """The row; of a table without a primary key, its values."""
        return self.logged.table, self.logged.key

    @property
    def operation(self) -> str:
        """``WRITE_ROW``, ``UPDATE_ROW`` or ``DELETE_ROW``."""
        return self.logged.operation.name

    @property
    def refresh(self) -> bool:
        """Whether it sends a row again after a conflict."""
        return bool(self.logged.flags & ConflictFlag.REFRESH)

    @property
    def place(self) -> Origin:
        """Where it stands in a binlog."""
        assert self.logged.origin is not None  # it comes from a binlog
        return self.logged.origin


@attrs.define
class RowLog:
    """
    What the binlogs of one cluster hold of the wanted changes.

    Attributes:
        cluster: The cluster.
        changes: The changes, in order.
        times: Own epochs, each with the microsecond since 1970 at which it committed.
        reported: Own epochs that say which epochs of other servers were applied: per epoch, server id and epoch.
        statements: The statements that change definitions.
        layouts: How the rows of each table are read that was met; how many were depends on the way of reading.
        error: Why the binlogs cannot be read to the end; None if they can.
    """

    cluster: str
    changes: list[ChangeInLog] = attrs.field(factory=list)
    times: dict[int, int] = attrs.field(factory=dict, repr=False)
    reported: dict[int, list[tuple[int, int]]] = attrs.field(factory=dict, repr=False)
    statements: list[DefinitionChange] = attrs.field(factory=list, repr=False)
    layouts: dict[str, RowLayout] = attrs.field(factory=dict, repr=False, eq=False)
    error: str | None = None

    def add(self, epochs: Iterable[Summary]) -> None:
        """Add when epochs committed, and what they say was applied."""
        for epoch in epochs:
            self.times[epoch.number] = epoch.committed or 0
            if epoch.applied:
                self.reported[epoch.number] = [(each.server_id, each.epoch) for each in epoch.applied]

    def by_row(self) -> dict[WantedRow, list[ChangeInLog]]:
        """Return the changes of each row, in order."""
        found: dict[WantedRow, list[ChangeInLog]] = {}
        for change in self.changes:
            found.setdefault(change.row, []).append(change)
        return found

    def of_rows(self, rows: Collection[WantedRow]) -> RowLog:
        """Return the log without the changes of other rows: those of another transaction that has the same id."""
        return attrs.evolve(self, changes=[each for each in self.changes if each.row in rows])


def read_logs(run: Run, wanted: WantedChanges, progress: Progress = no_progress) -> dict[str, RowLog]:
    """
    Read the binlogs of all clusters.

    Args:
        run: The run.
        wanted: Which changes are wanted.
        progress: As for `conflict.resolve`.

    Raises:
        HistoryError: Epochs do not rise.
    """
    logs, epochs = dict[str, RowLog](), dict[str, list[Summary]]()
    for done, cluster in enumerate(run.clusters):
        progress("reading binlogs", done, len(run.clusters))
        epochs[cluster.name] = []
        logs[cluster.name] = _read(run, cluster, wanted, epochs[cluster.name])
    progress("reading binlogs", len(logs), len(logs))
    for name, own in of_clusters(run.links, epochs).items():
        logs[name].add(own)
    return logs


def _read(run: Run, cluster: ClusterConfiguration, wanted: WantedChanges, epochs: list[Summary]) -> RowLog:
    """Return the wanted changes in the log of a cluster, and add its epochs to `epochs`."""
    definitions, tables, before = run.definitions.get(cluster.name), wanted.tables, run.kept_alone.get(cluster.name)
    last, stop = run.span.last.get(cluster.name, _NO_END), run.span.stop_time
    reader = EpochReader(
        cluster.server_id,
        run.data_schema,
        definitions=definitions,
        moment=run.moment_at_start(cluster),
        changes=[] if before is None else list(before.statements),
        without_key=True,
        wanted=lambda table, transaction: table in tables or transaction in wanted.transactions,
        databases=run.databases.of(cluster.name),
        statements=run.statements,
        server_id_bits=cluster.server_id_bits,
        last=0 if before is None else before.last_epoch,
    )
    log, texts = RowLog(cluster.name, layouts=reader.layouts), _key_texts(run, reader)
    in_columns = definitions is None and stop is None
    try:
        found = (
            _found(run, cluster, wanted, reader, log, epochs) if in_columns else read_log(run.log_of(cluster), reader)
        )
        for epoch in found:
            if epoch.number > last or (stop is not None and epoch.time >= stop):
                break
            epochs.append(summarize(epoch))
            log.changes += _wanted_changes(epoch, log.cluster, texts, wanted)
    except FormatError as error:
        log.error = str(error)
    log.statements += reader.changes
    return log


def _found(
    run: Run,
    cluster: ClusterConfiguration,
    wanted: WantedChanges,
    reader: EpochReader,
    log: RowLog,
    epochs: list[Summary],
) -> Iterator[BinlogEpoch]:
    """Yield the epochs with wanted changes, and those that cannot be read in columns; add all others to `epochs`."""
    schema, named = run.data_schema, wanted.tables
    chosen = schema if wanted.transactions else Schema(tuple(each for each in schema.tables if each.full_name in named))
    tables = tables_in_force(chosen, None, run.databases.of(cluster.name))
    numbers = TableNumbers(chosen.tables, {})
    last = run.span.last.get(cluster.name, _NO_END)
    for segment in _segments(run, cluster):
        file, reader.server_id = str(segment.file), segment.server_id
        found = wanted_epochs(segment, tables, numbers, wanted, run.statements)
        ranges = ((segment.start, segment.stop),) if found is None else found.ranges
        if found is not None:
            epochs += [each for each in summaries_of([found.epochs]) if each.number <= last]
        for start, stop in ranges:
            yield from read_epochs([segment.file], reader, {file: (start, stop)})
        if found is not None and found.error is not None:
            log.error = found.error
            return


def _segments(run: Run, cluster: ClusterConfiguration) -> Iterator[Segment]:
    """Yield the segments of what is read as the log of a cluster."""
    for piece in run.log_of(cluster):
        planned = plan_segments([piece.file], start=piece.start, stop=piece.stop, outline=run.outline_of)
        own, bits = piece.server_id, cluster.server_id_bits
        yield from (attrs.evolve(each, server_id=own, server_id_bits=bits) for each in planned.segments)
        if planned.error is not None:
            return


def _key_texts(run: Run, reader: EpochReader) -> Callable[[str, bytes], str]:
    """Return a function from table and identity to the key as text."""
    tables = {table.full_name: table for table in run.data_schema.tables}

    @cache
    def text_of(name: str, key: bytes) -> str:
        table = tables.get(name)
        return TableKey.of(table, reader.layouts[name]).text(key) if table is not None and table.primary_key else ""

    return text_of


def _wanted_changes(
    epoch: BinlogEpoch, cluster: str, texts: Callable[[str, bytes], str], wanted: WantedChanges
) -> Iterator[ChangeInLog]:
    """Yield the wanted changes of an epoch: the cluster's own, then its applier's."""
    own = ((each.group, change) for each in epoch.transactions for change in each.changes)
    parts: tuple[tuple[bool, Iterable[tuple[int, RowChange]]], ...] = ((True, own), (False, epoch.consequences))
    for mine, changes in parts:
        for group, change in changes:
            if (change.table, change.key) in wanted.rows or (mine and _is_of(change, wanted.transactions)):
                key = texts(change.table, change.key)
                yield ChangeInLog(cluster, epoch.number, group, mine, key, change)


def _is_of(change: RowChange, transactions: Collection[int]) -> bool:
    return change.transaction_id is not None and change.transaction_id in transactions


def values_of(image: RowImage | None) -> dict[str, Value] | None:
    """Return the columns that an image carries; one that cannot be decoded is told by its bytes."""
    if image is None:
        return None
    found: dict[str, Value] = {}
    for ordinal, payload in zip(image.present, image.payloads, strict=True):
        try:
            value = image.value(ordinal)
        except FormatError:
            value = payload
        if not isinstance(value, Absent):
            found[image.layout.names[ordinal]] = value
    return found


@attrs.frozen(eq=False)
class WantedEpochs:
    """
    What a segment holds of the wanted changes.

    Attributes:
        epochs: All epochs of the segment as `conflict.history.grid.epoch_files.EPOCHS`.
        ranges: First position and end of the transactions with wanted changes, in order.
        error: Why the segment could not be read to its end; None if it could.
    """

    epochs: pa.Table
    ranges: tuple[tuple[int, int], ...]
    error: str | None


def wanted_epochs(
    segment: Segment,
    tables: Mapping[str, TableVersion],
    numbers: TableNumbers,
    wanted: WantedChanges,
    statements: StatementPlaces = NO_STATEMENTS,
) -> WantedEpochs | None:
    """
    Find the epochs of a segment with wanted changes; None if only the scalar reader can read the segment.

    Args:
        segment: The segment, with the server id of its own changes.
        tables: The tables to read, by their names in the binlog.
        numbers: Their numbers.
        wanted: The wanted changes.
        statements: Where the statements of the cluster's sources stand in their logs.
    """
    try:
        content = read_columns(segment, segment.server_id, tables, numbers, _WHOLE, 0, statements)
        found = _epochs_with(content, numbers, wanted)
    except UnreadableError:
        return None
    assert content.begins is not None
    chosen = np.isin(content.epochs["number"].to_numpy(), found)
    bounds = pairwise([*content.begins.tolist(), segment.stop])
    ranges = tuple(bound for bound, here in zip(bounds, chosen.tolist(), strict=True) if here)
    return WantedEpochs(content.epochs, ranges, None if content.error is None else str(content.error))


def _epochs_with(content: SegmentContent, numbers: TableNumbers, wanted: WantedChanges) -> npt.NDArray[np.uint64]:
    """Return the epochs with wanted changes, of the cluster's own or of its applier."""
    found, identities = (
        [np.zeros(0, np.uint64)],
        [identity_of(numbers.number(table), key) for table, key in wanted.rows],
    )
    rows, ids = pa.array(identities, pa.binary()), pa.array(sorted(wanted.transactions), pa.uint64())
    for tables in content.parts:
        for part in tables:
            chosen = pc.is_in(part["identity"].cast(pa.binary()), value_set=rows).to_numpy()
            if wanted.transactions and "transaction_id" in part.column_names:
                chosen = chosen | pc.is_in(part["transaction_id"], value_set=ids).to_numpy()
            found.append(part["epoch"].to_numpy()[chosen])
    return np.unique(np.concatenate(found))
