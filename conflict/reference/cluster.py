"""
One cluster while its History is replayed: its rows, what it logs, and what it knows of its own epochs.
"""

from __future__ import annotations

from collections import Counter

import attrs

from conflict.history.model import Cluster, DefinitionChange, EpochApply, RowChange, Transaction
from conflict.reference.epoch_log import LogEntry, LoggedChange
from conflict.reference.foreign_keys import ForeignKeys
from conflict.reference.row_store import RowStore
from conflict.reference.rows_without_key import change_copies, redefine, touched_keys
from conflict.reference.unique_keys import UniqueKeys
from conflict.results.model import ClusterResult, LastWrite, Outcome
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.rows_event import Operation

__all__ = ["ReplayedCluster"]


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
        exceptions_count: Per exceptions table, the last number used in ``NDB$count``.
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
    exceptions_count: Counter[str] = attrs.field(factory=Counter)
    result: ClusterResult = attrs.field(factory=ClusterResult)
    outcomes: list[Outcome] = attrs.field(factory=list)
    _own_changes: Counter[int] = attrs.field(factory=Counter)

    def __attrs_post_init__(self) -> None:
        self.role = self.cluster.role
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

    def act_as(self, role: Role | None) -> None:
        """Take a role; none if its role is the one that it has."""
        self.role = self.role if role is None else role

    def commit(self, transaction: Transaction) -> None:
        """Make the changes of one of its own transactions, and log them."""
        log = self.log.setdefault(transaction.epoch, [])
        for change in transaction.changes:
            self.make(change, transaction)
            number, setup = self._own_changes[transaction.epoch], self.setups.get(change.table)
            log.append(LoggedChange(change, transaction.group, number, self.server_id, setup))
            self._own_changes[transaction.epoch] += 1
        self.unique_keys.update({(change.table, change.key) for change in transaction.changes}, self.store)
        if self.foreign_keys.links:
            self.foreign_keys.update((row for each in transaction.changes for row in touched_keys(each)), self.store)
        self.store.commit()

    def make(self, change: RowChange, transaction: Transaction) -> None:
        """Make a change of an own transaction."""
        key, setup, epoch = (change.table, change.key), self.setups.get(change.table), transaction.epoch
        self.result.unexplained += self.store.get(key) is None and change.operation is not Operation.WRITE_ROW
        if setup is not None and not setup.table.primary_key:
            change_copies(self.store, setup.table, change, local=True, epoch=epoch)
        else:
            by = LastWrite(self.name, epoch, change.operation, origin=change.origin)
            self.store.write(change, local=True, epoch=epoch, by=by)

    def define(self, change: DefinitionChange) -> None:
        """Carry out a statement that changes definitions: tables are set up anew, some lose their rows."""
        moments = (self.setups, change.step.after.setups)
        for setup in (each.get(name) for name in change.step.renewed for each in moments):
            if setup is not None and setup.exceptions is not None:
                self.exceptions_count.pop(setup.exceptions.table.full_name, None)
        if change.step.server_id != self.server_id:
            self.result.copied += sum(key[0] in change.step.copied for key in self.store.rows)
        self.setups = change.step.after.setups
        for key in [key for key in self.store.rows if key[0] in change.step.emptied]:
            self.store.put(key, None)
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
        """Return the operations of a foreign epoch that this cluster takes, as it does not take its own."""
        return [
            entry
            for entry in source.log.get(epoch, [])
            if isinstance(entry, LoggedChange) and self.cluster.takes(entry.server_id, source.name)
        ]

    def applied(self, apply: EpochApply, source: ReplayedCluster) -> None:
        """Note that its applier committed an epoch: own epochs came back with it, and its own log says so."""
        self.result.applies.append(apply)
        # An own epoch came back when the next cluster of the ring applied it, and the source logged that.
        came_back = source.relayed.get(apply.foreign_epoch, {})
        self.max_replicated_epoch = max(self.max_replicated_epoch, came_back.get(self.name, 0))
        if apply.traced and apply.reported:
            logged = self.relayed.setdefault(apply.epoch, {})
            logged[source.name] = max(logged.get(source.name, 0), apply.foreign_epoch)
            if self.relays:
                logged.update({name: epoch for name, epoch in came_back.items() if name != self.name})
