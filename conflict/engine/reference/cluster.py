"""
One cluster while its History is replayed: its rows, what it logs for the next applier, what it knows of its epochs.

An NDB transaction logs one event per row: an insert and an update are logged as an insert, an update and a delete as a
delete, a delete and an insert as an update, an insert and a delete not at all.

Source: `docs/concepts.md`, "What an NDB binlog holds".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import attrs

from conflict.engine.ledger.resolution import ClusterResult, LastWrite, OperationStep, Outcome, OutcomePlace
from conflict.engine.reference.keys import ForeignKeys, UniqueKeys
from conflict.engine.reference.row_store import Row, RowKey, RowStore, change_copies, redefine, touched_keys
from conflict.engine.reference.spelling import operations_of
from conflict.history.model import Cluster
from conflict.history.timeline import NO_FLAGS, DefinitionChange, EpochApply, RowChange, Transaction
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.rules.update_format import ndb_columns
from ndb_formats.types.values import Value

# The events of an applier belong to its own NDB transaction, whose id a History does not hold.
FROM_AN_APPLIER = 2**64 - 1


@attrs.frozen
class LoggedChange:
    """
    A row operation in a cluster's log.

    Attributes:
        change: The operation.
        group: Group of the epoch to which it belongs.
        ordinal: Its number among the cluster's own changes of the epoch; -1 for a change of its applier.
        server_id: Server under whose id it is logged; that server's cluster does not apply it again.
        setup: Its table as the cluster had it then.
        cause: The operation that it answers, if an applier refreshed or reflected the row: the first one on it.
        committed: Microsecond since 1970 at which it committed; None if not known.
        apply: Number of the epoch apply that logged it, among those of its cluster; -1 for an own change.
    """

    change: RowChange
    group: int
    ordinal: int
    server_id: int
    setup: TableSetup | None = attrs.field(default=None, repr=False, eq=False)
    cause: LoggedChange | None = attrs.field(default=None, repr=False, eq=False)
    committed: int | None = attrs.field(default=None, repr=False, eq=False)
    apply: int = attrs.field(default=-1, repr=False, eq=False)

    @property
    def row(self) -> RowKey:
        """The row that it changes."""
        return self.change.table, self.change.key

    @property
    def steps(self) -> Iterator[OperationStep]:
        """The operation, and what caused it."""
        entry: LoggedChange | None = self
        while entry is not None:
            refreshes = bool(entry.change.flags & ConflictFlag.REFRESH)
            yield OperationStep(entry.group, entry.ordinal, entry.apply, refreshes)
            entry = entry.cause

    def is_sent_on_by(self, apply: EpochApply, row: RowKey) -> bool:
        """Whether an epoch apply made it, of a given row."""
        return self.ordinal < 0 and self.group == apply.group and self.row == row


@attrs.frozen
class ExceptionRow:
    """A row that the applier of a server wrote to an exceptions table that is itself replicated, and its outcome."""

    server_id: int
    table: str
    row: tuple[Value, ...]
    outcome: OutcomePlace


LogEntry = LoggedChange | ExceptionRow


def merged_change(
    setup: TableSetup,
    layout: RowLayout,
    change: RowChange,
    before: Row | None,
    after: Row | None,
    written: frozenset[int],
    flags: ConflictFlag = NO_FLAGS,
) -> RowChange | None:
    """
    Return the one event that an NDB transaction logs for a row, in the format of its table.

    Args:
        setup: The table.
        layout: Layout of its rows.
        change: One of the operations, which identifies the row.
        before: The row before the transaction.
        after: The row after it.
        written: Positions of the columns that the transaction wrote.
        flags: Conflict flags of the event.

    Returns:
        The event; None if nothing is logged.
    """
    if after is None and before is None:
        return None
    operation = Operation.UPDATE_ROW
    if before is None or after is None:
        operation = Operation.WRITE_ROW if before is None else Operation.DELETE_ROW
    columns = ndb_columns(setup.format, setup.table, operation, written)
    if columns is None:
        return None
    return RowChange(
        change.table,
        change.key,
        columns.operation,
        _image(setup, layout, before, columns.before),
        _image(setup, layout, after, columns.after),
        FROM_AN_APPLIER,
        flags,
        unknown=after.lacking(columns.after or ()) if after is not None else frozenset(),
        unknown_before=before.lacking(columns.before or ()) if before is not None else frozenset(),
    )


def _image(setup: TableSetup, layout: RowLayout, row: Row | None, columns: Iterable[int] | None) -> RowImage | None:
    """Return an image of some columns of a row; None if none are given."""
    if columns is None:
        return None
    assert row is not None
    payloads = row.stored(setup, layout)
    present = tuple(ordinal for ordinal in columns if ordinal in payloads)
    return RowImage(layout, present, tuple(payloads[ordinal] for ordinal in present))


def refresh_change(setup: TableSetup, layout: RowLayout, change: RowChange, row: Row | None) -> RowChange:
    """
    Return the event that refreshes a row: a write of all its columns, or a delete if it is missing.

    Args:
        setup: Its table.
        layout: Layout of its rows.
        change: The operation that was rejected, which identifies the row.
        row: The row as it is now; None if it is missing.
    """
    table, key, flags = change.table, change.key, ConflictFlag.REFRESH
    if row is None:
        return RowChange(table, key, Operation.DELETE_ROW, _key_image(setup, change), None, FROM_AN_APPLIER, flags)
    columns = range(len(setup.table.columns))
    after, unknown = _image(setup, layout, row, columns), row.lacking(columns)
    return RowChange(table, key, Operation.WRITE_ROW, None, after, FROM_AN_APPLIER, flags, unknown=unknown)


def _key_image(setup: TableSetup, change: RowChange) -> RowImage:
    """Return an image of the key columns alone, from a change that carries them; one of a row not known may not."""
    source = change.before if change.before is not None else change.after
    assert source is not None
    present = tuple(ordinal for ordinal in sorted(setup.table.key_ordinals) if ordinal in source.present)
    payloads = tuple(source.payloads[source.present.index(ordinal)] for ordinal in present)
    return RowImage(source.layout, present, payloads)


@attrs.define
class ReplayedCluster:
    """
    One cluster.

    Attributes:
        cluster: The cluster as the History has it.
        setups: How its server set up each table, by ``database.table``.
        layouts: How the rows of each table are read, by ``database.table``.
        relays: Whether it logs what it applied for a third cluster (see `History.relays`).
        skip_missing: Skip operations that lack a value to compare, instead of stopping the applier.
        role: Its role, for the functions that have roles.
        store: Its rows.
        log: Per own epoch, what the next applier has to apply.
        relayed: Per own epoch and cluster, the highest foreign epoch whose `ndb_apply_status` row it logged.
        max_replicated_epoch: Highest own epoch known to have come back.
        unique_keys: Which row holds which unique value.
        foreign_keys: Which row refers to which.
        exceptions_count: Per applying SQL node, restarts of it and exceptions table, the last number used in
            ``NDB$count``.
        result: What it ends with.
        outcomes: What became of every operation that its applier received.
    """

    cluster: Cluster
    setups: dict[str, TableSetup]
    layouts: dict[str, RowLayout]
    relays: bool = False
    skip_missing: bool = False
    role: Role = attrs.field(init=False)
    store: RowStore = attrs.field(factory=RowStore, init=False)
    log: dict[int, list[LogEntry]] = attrs.field(factory=dict)
    relayed: dict[int, dict[str, int]] = attrs.field(factory=dict)
    max_replicated_epoch: int = 0
    unique_keys: UniqueKeys = attrs.field(init=False)
    foreign_keys: ForeignKeys = attrs.field(init=False)
    exceptions_count: Counter[tuple[int, int, str]] = attrs.field(factory=Counter)
    result: ClusterResult = attrs.field(factory=ClusterResult)
    outcomes: list[Outcome] = attrs.field(factory=list)
    _own_changes: Counter[int] = attrs.field(factory=Counter)

    def __attrs_post_init__(self) -> None:
        self.role = self.cluster.role
        if self.cluster.start is not None:
            self.max_replicated_epoch = self.cluster.start.returned
        self.unique_keys = UniqueKeys({name: setup.table for name, setup in self.setups.items()})
        self.foreign_keys = ForeignKeys.of(self.setups)

    @property
    def name(self) -> str:
        """Its name."""
        return self.cluster.name

    @property
    def server_id(self) -> int:
        """Server id of its logging and applying server."""
        return self.cluster.server_id

    @property
    def sends_on(self) -> bool:
        """Whether what its applier applied can reach an applier: a third cluster's, or one that takes all it gets."""
        return self.relays or bool(self.cluster.payloads.epochs and self.cluster.payloads.relays)

    def act_as(self, role: Role | None) -> None:
        """Take a role; none if its role is the one that it has."""
        self.role = self.role if role is None else role

    def commit(self, transaction: Transaction) -> None:
        """Make the changes of one of its own transactions, and log them."""
        for change in transaction.changes:
            self.make(change, transaction)
        self.log_changes(transaction)
        self.unique_keys.update({(change.table, change.key) for change in transaction.changes}, self.store)
        if self.foreign_keys.links:
            self.foreign_keys.update((row for each in transaction.changes for row in touched_keys(each)), self.store)
        self.store.commit()

    def log_changes(self, transaction: Transaction) -> None:
        """Log the changes of an own transaction."""
        log = self.log.setdefault(transaction.epoch, [])
        for change in transaction.changes:
            number, setup = self._own_changes[transaction.epoch], self.setups.get(change.table)
            logged = LoggedChange(
                change, transaction.group, number, self.server_id, setup, committed=transaction.committed
            )
            log.append(logged)
            self._own_changes[transaction.epoch] += 1

    def make(self, change: RowChange, transaction: Transaction) -> None:
        """Make a change of an own transaction."""
        key, setup, epoch = (change.table, change.key), self.setups.get(change.table), transaction.epoch
        self.result.unexplained += self.store.get(key) is None and change.operation is not Operation.WRITE_ROW
        if setup is not None and not setup.table.primary_key:
            change_copies(self.store, setup.table, change, local=True, epoch=epoch)
        else:
            at = transaction.committed
            by = LastWrite(self.name, epoch, change.operation, False, change.origin, self.server_id, at)
            self.store.write(change, local=True, epoch=epoch, by=by)

    def define(self, change: DefinitionChange) -> None:
        """Carry out a statement that changes definitions: tables are set up anew, some lose their rows."""
        moments = (self.setups, change.step.after.setups)
        for setup in (each.get(name) for name in change.step.renewed for each in moments):
            if setup is not None and setup.exceptions is not None:
                name = setup.exceptions.table.full_name
                for counted in [each for each in self.exceptions_count if each[2] == name]:
                    del self.exceptions_count[counted]
        if change.step.server_id != self.server_id:
            self.result.copied += sum(key[0] in change.step.copied for key in self.store.rows)
        before, self.setups = self.setups, change.step.after.setups
        for key in [key for key in self.store.rows if key[0] in change.step.emptied]:
            self.store.put(key, None)
        for key, row in [*self.store.rows.items()]:
            altered, setup, layout = change.step.altered.get(key[0]), before.get(key[0]), self.layouts.get(key[0])
            if altered and layout is not None:
                self.store.put(key, row.altered(altered, setup, layout))
        for name in change.step.touched:
            setup, layout = self.setups.get(name), self.layouts.get(name)
            if setup is not None and layout is not None and not setup.table.primary_key:
                redefine(self.store, name, setup.table, layout)
        self.store.commit()
        self.unique_keys = UniqueKeys({name: setup.table for name, setup in self.setups.items()})
        self.unique_keys.update([key for key in self.store.rows if key[0] in self.setups], self.store)
        self.foreign_keys = ForeignKeys.of(self.setups)
        self.foreign_keys.update(self.store.rows, self.store)

    def arriving(self, source: ReplayedCluster, epoch: int) -> list[LoggedChange]:
        """Return the operations of a foreign epoch that this cluster takes."""
        return [
            operation
            for entry in source.log.get(epoch, [])
            if isinstance(entry, LoggedChange)
            and self.takes(entry.server_id, source, epoch)
            and not self.cluster.drops(entry.change.table, source.name)
            for operation in self._operations(entry)
        ]

    def _operations(self, entry: LoggedChange) -> list[LoggedChange]:
        """Return the operations as which its applier takes a change of a log."""
        setup = self.setups.get(entry.change.table)
        if setup is None or entry.change.operation is not Operation.UPDATE_ROW:
            return [entry]
        operations = list(operations_of(entry.change, setup.table))
        return [entry] if len(operations) == 1 else [attrs.evolve(entry, change=each) for each in operations]

    def takes(self, server_id: int, source: ReplayedCluster, epoch: int) -> bool:
        """Whether its applier takes changes of a server from an epoch: not its own, if they are not compressed."""
        return epoch in source.cluster.payloads.epochs or self.cluster.takes(server_id, source.name)

    def forget_epochs(self, until: int) -> None:
        """Forget what it logged up to an own epoch, which no other cluster applies any more."""
        for by_epoch in (self.log, self.relayed, self._own_changes):
            for epoch in [each for each in by_epoch if each <= until]:
                del by_epoch[epoch]

    def applied(self, apply: EpochApply, source: ReplayedCluster) -> None:
        """Note that its applier committed an epoch: own epochs came back with it, and its own log says so."""
        self.result.applies.append(apply)
        # An own epoch came back when the next cluster of the ring applied it, and the source logged that.
        came_back = source.relayed.get(apply.foreign_epoch, {})
        self.max_replicated_epoch = max(self.max_replicated_epoch, came_back.get(self.name, 0))
        if apply.traced and apply.reported:
            logged = self.relayed.setdefault(apply.epoch, {})
            logged[source.name] = max(logged.get(source.name, 0), apply.foreign_epoch)
            if self.sends_on:
                logged.update({name: epoch for name, epoch in came_back.items() if name != self.name})
