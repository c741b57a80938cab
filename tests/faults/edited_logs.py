"""
Recorded binlogs that are edited row by row, as a server would have written them had something else happened.

What an applier did not do takes along its rows, its row of ``mysql.ndb_apply_status``, and all that follows: an epoch
that holds nothing else is not logged, so the other cluster never applied it, and so on. Table_map events of tables
without rows go, and the last rows event of an epoch has the mark of its end.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.history.row_identities import key_of_change
from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import APPLY_STATUS, EventType
from ndb_formats.events.header import EventHeader, decode_format_description
from ndb_formats.events.query_event import decode_query
from ndb_formats.events.row_image import RowImage, layout_of
from ndb_formats.events.rows_event import (
    ROWS_EVENTS,
    STATEMENT_END,
    ConflictFlag,
    Operation,
    RowsEvent,
    decode_rows_event,
    encode_rows,
    encode_rows_event,
)
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.tables import Schema
from ndb_formats.writing.event_stream import EventStream

Raw = tuple[EventHeader, bytes]
Row = tuple[str, bytes]  # table, key
_GTIDS = (EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT)
_CONSEQUENCE = ConflictFlag.REFLECTED | ConflictFlag.REFRESH


@attrs.frozen(eq=False)
class LoggedRow:
    """
    One row of a rows event.

    Attributes:
        transaction_id: Id of its transaction; None if there is none.
        table: ``database.table``.
        key: Identity of the row; empty for a table that is not known, and for `mysql.ndb_apply_status`.
        operation: Write, update or delete.
        before: Before image.
        after: After image.
        own: Whether the cluster itself made the change.
        flags: Conflict flags.
        status: Of `mysql.ndb_apply_status`: server id and epoch.
    """

    transaction_id: int | None
    table: str
    key: bytes
    operation: Operation
    before: RowImage | None = attrs.field(repr=False)
    after: RowImage | None = attrs.field(repr=False)
    own: bool
    flags: ConflictFlag
    status: tuple[int, int] | None = None

    @property
    def row(self) -> Row:
        """Table and key."""
        return self.table, self.key


@attrs.frozen(eq=False)
class LoggedRows:
    """A rows event: its header, what it holds besides rows, and its rows."""

    header: EventHeader
    event: RowsEvent = attrs.field(repr=False)
    rows: tuple[LoggedRow, ...]


@attrs.frozen(eq=False)
class LoggedEpoch:
    """
    One binlog transaction.

    Attributes:
        number: The epoch.
        head: The events before its rows, Table_map events among them.
        events: Its rows events.
        tail: What ends it.
    """

    number: int
    head: tuple[Raw, ...] = attrs.field(repr=False)
    events: tuple[LoggedRows, ...]
    tail: tuple[Raw, ...] = attrs.field(repr=False)

    def rows(self) -> Iterator[LoggedRow]:
        """Yield its rows."""
        return (row for event in self.events for row in event.rows)

    def applied(self) -> dict[tuple[int, int], int | None]:
        """Return the foreign epochs that were applied in it, by server and epoch, with the id of their groups."""
        foreign = (row for row in self.rows() if row.status is not None and row.status[1] != self.number)
        return {row.status: row.transaction_id for row in foreign if row.status is not None}

    def group(self, transaction_id: int | None) -> list[LoggedRow]:
        """Return the rows of a group."""
        return [row for row in self.rows() if row.transaction_id == transaction_id and row.status is None]

    def own(self) -> list[LoggedRow]:
        """Return the changes that the cluster itself made."""
        return [row for row in self.rows() if row.own]

    def kept(self, keep: Callable[[LoggedRow], bool]) -> LoggedEpoch | None:
        """Return it with some of its rows alone; None if nothing is left but its own number."""
        found = [attrs.evolve(each, rows=tuple(filter(keep, each.rows))) for each in self.events]
        events = tuple(each for each in found if each.rows)
        if all(row.status is not None and row.status[1] == self.number for each in events for row in each.rows):
            return None
        return attrs.evolve(self, events=events)

    def raws(self) -> Iterator[Raw]:
        """Yield its events."""
        used = {each.event.table_id for each in self.events}
        for header, body in self.head:
            is_map = header.type_code == EventType.TABLE_MAP_EVENT
            if not is_map or decode_table_map(body).table_id in used:
                yield header, body
        for place, each in enumerate(self.events, start=1):
            flags = each.event.flags & ~STATEMENT_END | STATEMENT_END * (place == len(self.events))
            images = [(row.before, row.after) for row in each.rows]
            event = attrs.evolve(each.event, flags=flags, body=encode_rows(each.event, images))
            yield each.header, encode_rows_event(event)
        yield from self.tail


def _renamed(row: LoggedRow, server_id: int) -> LoggedRow:
    """Return a row as another SQL node logs it: the number of an epoch stands beside the id of who logs."""
    if row.status is None or not row.own or row.after is None:
        return row
    payloads = (server_id.to_bytes(4, "little"), *row.after.payloads[1:])
    return attrs.evolve(row, status=(server_id, row.status[1]), after=attrs.evolve(row.after, payloads=payloads))


Item = LoggedEpoch | Raw


@attrs.frozen(eq=False)
class EditedLog:
    """
    The log of one SQL node: its epochs, and the events between them.

    Attributes:
        cluster: Name of its cluster.
        server_id: Its server id.
        start: Its Format_description event.
        items: What follows.
    """

    cluster: str
    server_id: int
    start: Raw = attrs.field(repr=False)
    items: tuple[Item, ...] = attrs.field(repr=False)

    @classmethod
    def read(cls, cluster: str, server_id: int, files: Sequence[Path], schema: Schema) -> EditedLog:
        """Read the files of a log, as if they were one."""
        raws = [(event.header, event.body) for file in files for event in read_events(file)]
        ends = (EventType.FORMAT_DESCRIPTION_EVENT, EventType.ROTATE_EVENT, EventType.PREVIOUS_GTIDS_LOG_EVENT)
        rest = [raw for raw in raws if raw[0].type_code not in ends]
        return cls(cluster, server_id, raws[0], tuple(_items(rest, server_id, schema)))

    @property
    def epochs(self) -> list[LoggedEpoch]:
        """Its epochs."""
        return [item for item in self.items if isinstance(item, LoggedEpoch)]

    def place(self, epoch: int) -> int:
        """Return where an epoch stands among the items."""
        return next(
            place for place, item in enumerate(self.items) if isinstance(item, LoggedEpoch) and item.number == epoch
        )

    def mapped(self, change: Callable[[LoggedEpoch], LoggedEpoch | None]) -> EditedLog:
        """Return it with other epochs in place of its own ones; None leaves one out."""
        items = [change(item) if isinstance(item, LoggedEpoch) else item for item in self.items]
        return attrs.evolve(self, items=tuple(item for item in items if item is not None))

    def without(self, epochs: Collection[int]) -> EditedLog:
        """Return it without some epochs."""
        return self.mapped(lambda epoch: None if epoch.number in epochs else epoch)

    def twin(self, server_id: int) -> EditedLog:
        """Return the log of another SQL node of the cluster: the same epochs under its own id."""

        def renamed(event: LoggedRows) -> LoggedRows:
            if event.header.server_id != self.server_id:
                return event
            header, rows = event.header, tuple(_renamed(row, server_id) for row in event.rows)
            other = EventHeader(header.timestamp, header.type_code, server_id, 0, 0, header.flags)
            return attrs.evolve(event, header=other, rows=rows)

        log = self.mapped(lambda epoch: attrs.evolve(epoch, events=tuple(map(renamed, epoch.events))))
        start, body = self.start
        other = EventHeader(start.timestamp, start.type_code, server_id, 0, 0, start.flags)
        return attrs.evolve(log, server_id=server_id, start=(other, body))

    def written(
        self, folder: Path, cuts: Sequence[int] = (), first: Mapping[int, Raw] | None = None, skip: Collection[int] = ()
    ) -> LoggingServer:
        """
        Write it.

        Args:
            folder: Where.
            cuts: Before which of its items another file begins.
            first: Per file, by number, an event at its start.
            skip: Numbers of files that are not written.
        """
        paths, bounds = [], [0, *cuts, len(self.items)]
        for number in range(len(bounds) - 1):
            if number in skip:
                continue
            out = io.BytesIO()
            stream = EventStream(out)
            stream.start(self.start[0], decode_format_description(self.start[1]))
            opening = (first or {}).get(number)
            raws = [opening] if opening is not None else []
            for item in self.items[bounds[number] : bounds[number + 1]]:
                raws += item.raws() if isinstance(item, LoggedEpoch) else [item]
            for header, body in raws:
                stream.put(header, body)
            paths.append(folder / f"{self.cluster}{self.server_id}.{number + 1:06d}")
            paths[-1].write_bytes(out.getvalue())
        return LoggingServer(self.server_id, tuple(paths))


def _items(raws: Sequence[Raw], server_id: int, schema: Schema) -> Iterator[Item]:
    maps: dict[int, TableMap] = {}
    head, events, inside = list[Raw](), list[LoggedRows](), False
    for header, body in raws:
        kind = EventType(header.type_code)
        statement = decode_query(body).statement if kind is EventType.QUERY_EVENT else ""
        if kind in _GTIDS or statement == "BEGIN":
            inside = inside or statement == "BEGIN"
            head.append((header, body))
        elif not inside:
            yield from head
            yield header, body
            head = []
        elif statement == "COMMIT" or kind is EventType.XID_EVENT:
            numbers = [row.status for event in events for row in event.rows if row.own and row.status is not None]
            yield LoggedEpoch(numbers[0][1], tuple(head), tuple(events), ((header, body),))
            head, events, inside = [], [], False
        elif kind in ROWS_EVENTS:
            rows = decode_rows_event(kind, body)
            table_map = maps[rows.table_id]
            events.append(LoggedRows(header, rows, tuple(_rows(header, rows, table_map, server_id, schema))))
        else:
            if kind is EventType.TABLE_MAP_EVENT:
                maps[decode_table_map(body).table_id] = decode_table_map(body)
            head.append((header, body))


def _rows(
    header: EventHeader, event: RowsEvent, table_map: TableMap, server_id: int, schema: Schema
) -> Iterator[LoggedRow]:
    table = schema.find(table_map.database, table_map.table)
    transaction = event.extra.transaction_id if event.extra else None
    flags = (event.extra.flags if event.extra else None) or ConflictFlag(0)
    own = header.server_id == server_id and not flags & _CONSEQUENCE
    for before, after in event.rows(layout_of(table_map, table)):
        key, status = b"", None
        if table_map.full_name == APPLY_STATUS:
            assert after is not None
            server, epoch = (int.from_bytes(after.payloads[place] or b"", "little") for place in (0, 1))
            status, own = (server, epoch), server == server_id and not after.payloads[2]
        elif table is not None and table.primary_key:
            key = key_of_change(table, before, after)
        name = table_map.full_name if table is None else table.full_name
        yield LoggedRow(transaction, name, key, event.operation, before, after, own, flags, status)


@attrs.frozen(eq=False)
class EditedPair:
    """
    The logs of two clusters that replicate to each other.

    Attributes:
        configuration: The run.
        logs: Their logs.
    """

    configuration: Configuration = attrs.field(repr=False)
    logs: tuple[EditedLog, EditedLog]

    @classmethod
    def read(cls, configuration: Configuration) -> EditedPair:
        """Read the log of the first SQL node of each cluster."""
        first, second = (
            EditedLog.read(each.name, each.server_id, each.log.files, configuration.schema)
            for each in configuration.clusters
        )
        return cls(configuration, (first, second))

    def with_log(self, side: int, log: EditedLog) -> EditedPair:
        """Return it with another log of a side."""
        return attrs.evolve(self, logs=(log, self.logs[1]) if side == 0 else (self.logs[0], log))

    def without_rows(self, side: int, drop: Callable[[LoggedEpoch, LoggedRow], bool]) -> EditedPair:
        """Return it without some rows of one log, and without all that follows from them."""
        log = self.logs[side].mapped(lambda epoch: epoch.kept(lambda row: not drop(epoch, row)))
        return self.with_log(side, log).settled(side, _lost(self.logs[side], log))

    def settled(self, side: int, lost: Collection[int]) -> EditedPair:
        """Return it where epochs of a side were never logged: the other one never applied them."""
        pair = self
        while lost:
            other, server = 1 - side, pair.logs[side].server_id
            log = pair.logs[other].mapped(_without_status({(server, epoch) for epoch in lost}))
            pair, lost, side = pair.with_log(other, log), _lost(pair.logs[other], log), other
        return pair

    def configured(self, *servers: Sequence[LoggingServer]) -> Configuration:
        """Return the run on written logs, one or more of each cluster."""
        clusters: Iterable[ClusterConfiguration] = (
            attrs.evolve(cluster, servers=tuple(given))
            for cluster, given in zip(self.configuration.clusters, servers, strict=True)
        )
        return attrs.evolve(self.configuration, clusters=tuple(clusters))

    def written(self, folder: Path) -> Configuration:
        """Write both logs, each as one file, and return the run."""
        return self.configured(*([log.written(folder)] for log in self.logs))

    def highest(self, side: int) -> dict[int, int]:
        """Return the max replicated epoch of a side before it applied each epoch of the other one."""
        own, epochs = self.logs[side].server_id, self.logs[1 - side].epochs
        found, highest = dict[int, int](), 0
        for epoch in epochs:
            found[epoch.number] = highest
            highest = max([highest, *(number for server, number in epoch.applied() if server == own)])
        return found


def _without_status(gone: set[tuple[int, int]]) -> Callable[[LoggedEpoch], LoggedEpoch | None]:
    """Return what leaves out the rows of `mysql.ndb_apply_status` with some servers and epochs."""
    return lambda epoch: epoch.kept(lambda row: row.status not in gone)


def _lost(before: EditedLog, after: EditedLog) -> set[int]:
    """Return the epochs that a log no longer has."""
    return {each.number for each in before.epochs} - {each.number for each in after.epochs}
