"""
Events of one cluster's binlogs to its own epochs.

A binlog transaction is one epoch. Inside it, row operations are grouped by the transaction id of their extra row info,
or, without ids, by their order (see `conflict.history.row_identities`). A group with an `ndb_apply_status` row of
another server is a foreign epoch that the applier applied; every other group is a user transaction. A cluster's own
changes are those with its own server id and without a reflect or refresh flag, outside the foreign epochs; everything
else is consequence.

A statement that an applier carries out can write `ndb_apply_status`, too, as TRUNCATE does and an ALTER that copies:
the row has the last epoch again, or 0, and where the statement stands in the source's binlog. Such a group is no
foreign epoch, and the rows in it are those that the statement copied.

Source: `docs/concepts.md`, "What an NDB binlog holds"; for statements, `Ndb_applier::define_apply_status_operations` of
the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from conflict.config.definitions import ClusterDefinitions, Moment, TableVersion
from conflict.history.row_identities import GroupPart, GroupsWithoutIds, identities_without_key, key_of_change
from conflict.history.statement_places import NO_STATEMENTS, StatementPlaces
from conflict.history.timeline import LAST_GROUP, DefinitionChange, Origin, ReturnedEpoch, RowChange, Transaction
from ndb_formats.binlog_reader import Event, locate, unpacked
from ndb_formats.constants import APPLY_STATUS, EventType
from ndb_formats.errors import CorruptError, SchemaError, UnsupportedError, WrongKeyError
from ndb_formats.events.gtid_event import decode_gtid
from ndb_formats.events.query_event import decode_query
from ndb_formats.events.row_image import RowImage, RowLayout, converted_image, layout_of
from ndb_formats.events.rows_event import ROWS_EVENTS, ConflictFlag, RowsEvent, decode_rows_event
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.tables import Schema, Table
from ndb_formats.selection import UNREAD_ROW_EVENTS, has_status_columns, is_status_image

_SERVER_ID, _EPOCH, _LOG_NAME, _, _END_POSITION = range(5)
Images = tuple[RowImage | None, RowImage | None]
_GTID_EVENTS = (EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT)
MICROSECONDS = 1_000_000  # in a second
_CONSEQUENCE = ConflictFlag.REFLECTED | ConflictFlag.REFRESH


@attrs.frozen
class AppliedEpoch:
    """
    A foreign epoch in this binlog.

    Attributes:
        group: Its number among the groups of the own epoch.
        server_id: Server that it came from; once that is known, the one by which its cluster is known.
        epoch: That server's epoch.
        through: The server that the binlog names: the SQL node from whose binlog it was applied.
    """

    group: int
    server_id: int
    epoch: int
    through: int = attrs.field(default=attrs.Factory(lambda self: self.server_id, takes_self=True), repr=False)


@attrs.frozen
class BinlogEpoch:
    """
    One own epoch as a binlog shows it.

    Attributes:
        number: The epoch.
        transactions: The cluster's own transactions.
        applied: Foreign epochs, in order.
        consequences: Row operations of the applier (applied, refreshed, reflected), each with its group.
        time: Second since 1970 at which it was logged.
        committed: Microsecond since 1970 at which it committed, by its Gtid event; else that of `time`.
        unread: Whether it has rows of tables that are not read.
        compressed: Whether it stands in a compressed transaction.
        returned: The row of `ndb_apply_status` in a compressed transaction that brings an older own epoch back.
    """

    number: int
    transactions: tuple[Transaction, ...]
    applied: tuple[AppliedEpoch, ...]
    consequences: tuple[tuple[int, RowChange], ...] = attrs.field(repr=False)
    time: int = attrs.field(default=0, eq=False)
    committed: int = attrs.field(default=0, eq=False)
    unread: bool = False
    compressed: bool = attrs.field(default=False, eq=False)
    returned: ReturnedEpoch | None = attrs.field(default=None, eq=False)

    @property
    def relays(self) -> bool:
        """Whether it has row operations that the applier took as they came, which `log_replica_updates` logs."""
        return any(not change.flags & _CONSEQUENCE for _, change in self.consequences)


@attrs.define
class _Open:
    """
    A binlog transaction that is being read.

    Attributes:
        wrong_key: Which of its changes does not fit its table's key.
        of_statements: The groups that are of statements that the applier carried out.
        returned: As in `BinlogEpoch`, before its group is known.
        returned_by: Id of the NDB transaction that brought it back; None if ids are not logged.
    """

    number: int | None = None
    time: int = 0
    committed: int = 0
    groups: dict[object, int] = attrs.field(factory=dict)
    of_statements: set[int] = attrs.field(factory=set)
    without_ids: GroupsWithoutIds = attrs.field(factory=GroupsWithoutIds)
    rows: list[tuple[int, int, RowChange]] = attrs.field(factory=list)
    applied: list[AppliedEpoch] = attrs.field(factory=list)
    wrong_key: WrongKeyError | None = None
    unread: bool = False
    compressed: bool = False
    returned: ReturnedEpoch | None = None
    returned_by: int | None = None

    def group_of(self, transaction_id: int | None, part: GroupPart) -> int:
        """Return the number of the group of the next event."""
        identity = self.without_ids.group_of(part) if transaction_id is None else transaction_id
        return self.groups.setdefault(identity, len(self.groups))


@attrs.define
class EpochReader:
    """
    Makes epochs of the events of one cluster.

    Attributes:
        server_id: The cluster's own server id.
        schema: Definitions of the tables to read; the rows of other tables are ignored.
        layouts: Layout of each table met so far.
        settled: Where the last event ends after which no transaction was open; 0 if there was none.
        definitions: The cluster's definitions over time, in place of `schema`; None if they do not change.
        moment: What is in force.
        changes: The changes of definitions so far.
        without_key: Whether to read tables without a primary key.
        wanted: Tells from table and transaction id whether rows are wanted; None for all. Groups count all the same.
        databases: The names in `schema` of databases that have other ones in the log.
        statements: Where the statements of its sources stand in their logs.
        server_id_bits: See `ClusterConfiguration.server_id_bits`.
    """

    server_id: int
    schema: Schema
    layouts: dict[str, RowLayout] = attrs.field(factory=dict)
    settled: int = 0
    definitions: ClusterDefinitions | None = None
    moment: Moment | None = None
    changes: list[DefinitionChange] = attrs.field(factory=list)
    without_key: bool = False
    wanted: Callable[[str, int | None], bool] | None = None
    databases: Mapping[str, str] = attrs.field(factory=dict)
    statements: StatementPlaces = NO_STATEMENTS
    server_id_bits: int = 32
    _last: int = 0
    _maps: dict[int, TableMap] = attrs.field(factory=dict)
    _of_maps: dict[int, tuple[TableMap, Table, RowLayout]] = attrs.field(factory=dict)  # layouts by table id
    _open: _Open | None = None
    _committed: int = 0

    def feed(self, event: Event) -> BinlogEpoch | None:
        """
        Read one event, and return the epoch that it completes, if any.

        Raises:
            FormatError: The event cannot be read; the error names file and position.
            WrongKeyError: The epoch that it completes has a change that does not fit the primary key of its table.
            NotBuiltError: A table has no primary key.
        """
        epoch = None
        self._refuse_end(event)
        with locate(event):
            for inner in unpacked(event):
                epoch = self._feed(inner)
                if epoch is not None:
                    break
        if self._open is None and not self._committed:  # a Gtid event belongs to the transaction that follows it
            self.settled = event.end
        return epoch

    def _refuse_end(self, event: Event) -> None:
        """Raise the error that ends the log for us, where it does."""
        error = None if self.definitions is None else self.definitions.error
        if error is not None and event.file == error.file and event.position >= (error.position or 0):
            raise error

    def _feed(self, event: Event) -> BinlogEpoch | None:
        kind = event.type
        committed, self._committed = self._committed, 0
        if kind in _GTID_EVENTS:
            self._committed = decode_gtid(event.body).committed or 0
        elif kind is EventType.TABLE_MAP_EVENT:
            table_map = decode_table_map(event.body, event.server)
            self._maps[table_map.table_id] = table_map
        elif kind in ROWS_EVENTS:
            assert kind is not None
            rows = decode_rows_event(kind, event.body)
            if kind is EventType.PARTIAL_UPDATE_ROWS_EVENT:
                message = "partial JSON updates cannot be resolved: NDB does not write them"
                raise UnsupportedError(message)
            self._rows(event, rows)
        elif kind is EventType.QUERY_EVENT:
            statement = decode_query(event.body).statement
            if statement == "BEGIN" or statement.startswith("XA START "):  # of another engine: NDB knows no XA
                seconds = event.header.timestamp
                self._open = _Open(time=seconds, committed=committed or seconds * MICROSECONDS)
            elif statement in ("COMMIT", "ROLLBACK"):
                return self._close()
            elif self.definitions is not None:
                self._follow(event, self.definitions)
        elif kind in (EventType.XID_EVENT, EventType.XA_PREPARE_LOG_EVENT):
            return self._close()
        elif kind in UNREAD_ROW_EVENTS:
            message = f"{UNREAD_ROW_EVENTS[kind]} cannot be read"
            raise UnsupportedError(message)
        return None

    def _follow(self, event: Event, definitions: ClusterDefinitions) -> None:
        """Take what a statement in the log does to definitions."""
        step = definitions.step_at(event.file, event.position)
        if step is not None:
            self.moment = step.after
            self.changes.append(DefinitionChange(self._last, step))

    @property
    def rows_pending(self) -> int:
        """Row operations read of an epoch that is not complete."""
        return 0 if self._open is None else len(self._open.rows)

    def _close(self) -> BinlogEpoch | None:
        opened, self._open = self._open, None
        if opened is None or (opened.number is None and not opened.rows and opened.wrong_key is None):
            return None  # a transaction of another engine, or of tables that are not read
        if opened.number is None:
            message = (
                f"the transaction that ends here has no {APPLY_STATUS} row with server id {self.server_id}; "
                "is this the right server id, and was the table written by NDB?"
            )
            raise CorruptError(message)
        if opened.wrong_key is not None:  # other engines log what NDB does not, so it counts in an epoch alone
            raise opened.wrong_key
        self._last = opened.number
        return _finish(opened, opened.number, self.server_id)

    def _rows(self, event: Event, rows: RowsEvent) -> None:
        table_map = self._maps.get(rows.table_id)
        if table_map is None:
            message = f"no TABLE_MAP_EVENT for table id {rows.table_id} comes before it"
            raise CorruptError(message)
        opened = self._open
        if opened is None:
            message = "it is outside a transaction"
            raise CorruptError(message)
        if table_map.full_name == APPLY_STATUS:
            self._apply_status(opened, event, rows, layout_of(table_map))
            return
        version = None if self.moment is None else self.moment.find(table_map.database, table_map.table)
        if version is not None and version.layout is not None:
            pairs = _converted(rows, table_map, version, version.layout)
            self._add(event, rows, opened, self._read_as(version), pairs)
            self.layouts.setdefault(version.history, version.layout)
            return
        database = self.databases.get(table_map.database, table_map.database)
        table = version.whole if version else self.schema.find(database, table_map.table)
        if table is None or (self.moment is not None and version is None):
            opened.unread = True
            return
        self._add(event, rows, opened, table, rows.rows(self._layout(table_map, table)))

    def _read_as(self, version: TableVersion) -> Table:
        """Return the table that the rows of a version belong to; without a key, its own types say what is compared."""
        if version.whole.primary_key or self.moment is None:
            return version.whole
        return attrs.evolve(version.whole, columns=self.moment.setups[version.history].table.columns)

    def _add(self, event: Event, rows: RowsEvent, opened: _Open, table: Table, pairs: Iterable[Images]) -> None:
        """Add the rows of an event."""
        transaction_id = rows.extra.transaction_id if rows.extra else None
        flags = (rows.extra.flags if rows.extra else None) or ConflictFlag(0)
        group = opened.group_of(transaction_id, self._part(event, flags))
        if self.wanted is not None and not self.wanted(table.full_name, transaction_id):
            return
        for number, (before, after) in enumerate(pairs):
            try:
                key, moved_to = self._identities(table, before, after)
            except WrongKeyError as error:
                error.located(file=event.file, position=event.position, event=event.header.type_name)
                opened.wrong_key = opened.wrong_key or error
                return
            origin = Origin(event.file, event.position, event.payload_position, number)
            change = RowChange(
                table.full_name,
                key,
                rows.operation,
                before,
                after,
                transaction_id,
                flags,
                origin,
                moved_to=moved_to,
                keyless=not table.primary_key,
            )
            opened.rows.append((group, self._author(event), change))

    def _author(self, event: Event) -> int:
        """Return the server that made the changes of a rows event."""
        return event.header.server_id & (1 << self.server_id_bits) - 1

    def _part(self, event: Event, flags: ConflictFlag) -> GroupPart:
        if flags & ConflictFlag.REFRESH:
            return GroupPart.REFRESH
        own = self._author(event) == self.server_id and not flags & _CONSEQUENCE
        return GroupPart.OWN if own else GroupPart.ARRIVING

    def _identities(self, table: Table, before: RowImage | None, after: RowImage | None) -> tuple[bytes, bytes | None]:
        """Return the identity of a row, and that of the row after an update in a table without a primary key."""
        if table.primary_key or not self.without_key:
            return key_of_change(table, before, after), None
        return identities_without_key(table, before, after)

    def _apply_status(self, opened: _Open, event: Event, rows: RowsEvent, layout: RowLayout) -> None:
        transaction_id = rows.extra.transaction_id if rows.extra else None
        opened.compressed = event.payload_position > 0  # BEGIN stands at 0
        for number, (_, after) in enumerate(rows.rows(layout)):
            if after is None:
                continue
            if not has_status_columns(layout.types) or not is_status_image(after.present):
                message = "it does not hold server_id, epoch and log_name as NDB writes them"
                raise CorruptError(message, table=APPLY_STATUS)
            # The injector's own columns are unsigned; its Table_map says so only with metadata.
            server_id, epoch = (
                int.from_bytes(after.payloads[place] or b"", "little") for place in (_SERVER_ID, _EPOCH)
            )
            if server_id == self.server_id and not after.payloads[_LOG_NAME]:
                opened.number = epoch
            elif server_id != self.server_id:
                group = opened.group_of(transaction_id, GroupPart.STATUS)
                if self._is_of_statement(after, server_id, epoch):
                    opened.of_statements.add(group)
                else:
                    opened.applied.append(AppliedEpoch(group, server_id, epoch))
            elif opened.compressed and opened.returned is None:
                origin = Origin(event.file, event.position, event.payload_position, number)
                opened.returned_by = transaction_id
                opened.returned = ReturnedEpoch(LAST_GROUP, epoch, server_id, origin)

    def _is_of_statement(self, row: RowImage, server_id: int, epoch: int) -> bool:
        """Whether a row of `ndb_apply_status` is of a statement that the applier carried out."""
        if epoch == 0 or not self.statements.ends or len(row.present) <= _END_POSITION:
            return epoch == 0
        end = int.from_bytes(row.payloads[_END_POSITION] or b"", "little")
        return self.statements.holds(server_id, row.payloads[_LOG_NAME] or b"", end)

    def _layout(self, table_map: TableMap, table: Table) -> RowLayout:
        last = self._of_maps.get(table_map.table_id)
        if last is not None and last[0] is table_map and last[1] is table:
            return last[2]
        layout = layout_of(table_map, table)
        known = self.layouts.setdefault(table.full_name, layout)
        if known != layout:
            message = "its columns change within the binlog; split the binlog where they do"
            raise SchemaError(message, table=table.full_name)
        self._of_maps[table_map.table_id] = table_map, table, known
        return known


def _converted(rows: RowsEvent, table_map: TableMap, version: TableVersion, layout: RowLayout) -> Iterator[Images]:
    """Yield the rows of an event as those of its History table."""
    for before, after in rows.rows(layout_of(table_map, version.table)):
        yield converted_image(before, version.places, layout), converted_image(after, version.places, layout)


def _finish(opened: _Open, number: int, server_id: int) -> BinlogEpoch:
    applied_groups = {applied.group for applied in opened.applied}
    own: dict[int, list[RowChange]] = {}
    consequences = []
    for group, author, change in opened.rows:
        if group in opened.of_statements:
            continue  # the statement moved a row to a new table
        if author == server_id and not change.flags & _CONSEQUENCE and group not in applied_groups:
            own.setdefault(group, []).append(change)
        else:
            consequences.append((group, change))
    committed = opened.committed or None
    made = ((group, tuple(changes)) for group, changes in sorted(own.items()))
    transactions = tuple(Transaction(number, group, changes, committed) for group, changes in made)
    returned = opened.returned
    if returned is not None:
        returned = attrs.evolve(returned, group=opened.groups.get(opened.returned_by, LAST_GROUP))
    return BinlogEpoch(
        number,
        transactions,
        tuple(opened.applied),
        tuple(consequences),
        opened.time,
        opened.committed,
        opened.unread,
        opened.compressed,
        returned,
    )
