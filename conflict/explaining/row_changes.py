"""
The changes of a few rows, or of one transaction, in the binlogs of all clusters.

Rows of other tables are passed over without being decoded, and of the changes that are read only those of the wanted
rows are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration
from conflict.history.epochs import BinlogEpoch, EpochReader, read_epochs
from conflict.history.model import RowChange
from conflict.runs.options import no_progress
from ndb_formats.errors import FormatError
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage
from ndb_formats.schema.row_keys import key_text
from ndb_formats.types.values import Absent, Value

__all__ = ["Log", "LoggedChange", "Wanted", "WantedRow", "read_logs"]

# ``database.table``, and the primary key as text.
WantedRow = tuple[str, str]
Progress = Callable[[str, int, int], None]


@attrs.frozen
class Wanted:
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
class LoggedChange:
    """
    A row change as a binlog holds it.

    Attributes:
        cluster: Cluster whose binlog it is.
        epoch: Its own epoch.
        group: The group of that epoch.
        own: Whether the cluster made it itself; else its applier did.
        table: ``database.table``.
        key: Primary key as text, as it compares.
        operation: ``WRITE_ROW``, ``UPDATE_ROW`` or ``DELETE_ROW``.
        flags: Conflict flags.
        transaction_id: Id of its transaction; None if not logged.
        before: Columns of the before image; None if there is none.
        after: Columns of the after image; None if there is none.
        file: Binlog file.
        position: Position of its event.
        row: Number of the row in the event.
    """

    cluster: str
    epoch: int
    group: int
    own: bool
    table: str
    key: str
    operation: str
    flags: ConflictFlag
    transaction_id: int | None
    before: Mapping[str, Value] | None
    after: Mapping[str, Value] | None
    file: str
    position: int
    row: int

    @property
    def refresh(self) -> bool:
        """Whether it sends a row again after a conflict."""
        return bool(self.flags & ConflictFlag.REFRESH)


@attrs.define
class Log:
    """
    What the binlogs of one cluster hold of the wanted changes.

    Attributes:
        cluster: The cluster.
        changes: The changes, in order.
        times: Own epochs, each with the microsecond since 1970 at which it committed.
        reported: Own epochs that say which epochs of other servers were applied: per epoch, server id and epoch.
        error: Why the binlogs cannot be read to the end; None if they can.
    """

    cluster: str
    changes: list[LoggedChange] = attrs.field(factory=list)
    times: dict[int, int] = attrs.field(factory=dict, repr=False)
    reported: dict[int, list[tuple[int, int]]] = attrs.field(factory=dict, repr=False)
    error: str | None = None


def read_logs(configuration: Configuration, wanted: Wanted, progress: Progress = no_progress) -> dict[str, Log]:
    """
    Read the binlogs of all clusters.

    Args:
        configuration: The run, after `conflict.history.following`.
        wanted: Which changes are wanted.
        progress: As for `conflict.resolve`.

    Raises:
        HistoryError: Epochs do not rise.
    """
    logs: dict[str, Log] = {}
    for done, cluster in enumerate(configuration.clusters):
        progress("reading binlogs", done, len(configuration.clusters))
        logs[cluster.name] = _read(configuration, cluster, wanted)
    progress("reading binlogs", len(logs), len(logs))
    return logs


def _read(configuration: Configuration, cluster: ClusterConfiguration, wanted: Wanted) -> Log:
    definitions, tables = configuration.definitions.get(cluster.name), wanted.tables
    reader = EpochReader(
        cluster.server_id,
        configuration.data_schema,
        definitions=definitions,
        moment=None if definitions is None else definitions.start,
        without_key=True,
        wanted=lambda table, transaction: table in tables or transaction in wanted.transactions,
    )
    log, texts = Log(cluster.name), _key_texts(configuration, reader)
    last, stop = configuration.span.last.get(cluster.name), configuration.span.stop_time
    try:
        for epoch in read_epochs(cluster.files, reader):
            if (last is not None and epoch.number > last) or (stop is not None and epoch.time >= stop):
                break
            log.times[epoch.number] = epoch.committed
            if epoch.applied:
                log.reported[epoch.number] = [(each.server_id, each.epoch) for each in epoch.applied]
            log.changes += _wanted_changes(epoch, log.cluster, texts, wanted)
    except FormatError as error:
        log.error = str(error)
    return log


def _key_texts(configuration: Configuration, reader: EpochReader) -> Callable[[str, bytes], str]:
    """Return a function from table and identity to the key as text."""
    tables = {table.full_name: table for table in configuration.data_schema.tables}

    @cache
    def text_of(name: str, key: bytes) -> str:
        table, layout = tables.get(name), reader.layouts[name]
        if table is None or not table.primary_key:
            return ""
        return key_text(table.key_columns, [layout.codecs[ordinal] for ordinal in table.key_ordinals], key)

    return text_of


def _wanted_changes(
    epoch: BinlogEpoch, cluster: str, texts: Callable[[str, bytes], str], wanted: Wanted
) -> Iterator[LoggedChange]:
    """Yield the wanted changes of an epoch: the cluster's own, then its applier's."""
    own = ((each.group, change) for each in epoch.transactions for change in each.changes)
    parts: tuple[tuple[bool, Iterable[tuple[int, RowChange]]], ...] = ((True, own), (False, epoch.consequences))
    for mine, changes in parts:
        for group, change in changes:
            key = texts(change.table, change.key)
            if (change.table, key) in wanted.rows or (mine and _is_of(change, wanted.transactions)):
                yield _logged(change, cluster, (epoch.number, group), key, own=mine)


def _is_of(change: RowChange, transactions: Collection[int]) -> bool:
    return change.transaction_id is not None and change.transaction_id in transactions


def _logged(change: RowChange, cluster: str, place: tuple[int, int], key: str, *, own: bool) -> LoggedChange:
    origin = change.origin
    assert origin is not None  # it comes from a binlog
    return LoggedChange(
        cluster,
        *place,
        own,
        change.table,
        key,
        change.operation.name,
        change.flags,
        change.transaction_id,
        _values(change.before),
        _values(change.after),
        origin.file,
        origin.position,
        origin.row,
    )


def _values(image: RowImage | None) -> dict[str, Value] | None:
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
