"""
One cluster while its History is replayed: its rows, what it logs, and what it knows of its own epochs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence

import attrs

from conflict.history.effects import Effect
from conflict.history.model import START, Cluster, DefinitionChange, EpochApply, Position, RowMoment, Transaction
from conflict.reference.epoch_log import LogEntry, LoggedChange
from conflict.reference.foreign_keys import ForeignKeys
from conflict.reference.row_store import Row, RowKey, RowStore
from conflict.reference.rows_without_key import change_copies, redefine, touched_keys
from conflict.reference.unique_keys import UniqueKeys
from conflict.results.model import ClusterResult, LastWrite, Outcome
from conflict.rules.roles import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.rows_event import Operation

__all__ = ["OVERLAPPING", "KnownTransactions", "OtherConflictsError", "ReplayedCluster", "rows_at_start"]

# Parallel workers may judge an epoch before so many epochs in front of it are committed.
OVERLAPPING = 4
# (own epoch, group) -> row -> effect
Effects = Mapping[tuple[int, int], Mapping[RowKey, Effect]]


@attrs.frozen
class KnownTransactions:
    """
    What is known of the transactions of an epoch from all rows, also from those that a History lacks.

    Attributes:
        in_conflict: Those in conflict.
        passed: Those with a row that the applier did not refresh.
        told: Those that were the last one to touch a row that the applier refreshed, apart from `passed`.
        alone: Those that touched one row, which was refreshed.
    """

    in_conflict: frozenset[int] = frozenset()
    passed: frozenset[int] = frozenset()
    told: frozenset[int] = frozenset()
    alone: frozenset[int] = frozenset()


class OtherConflictsError(Exception):
    """Rows lead to other transactions in conflict than are given."""


def rows_at_start(cluster: Cluster) -> RowStore:
    """Return the rows of a cluster at the start of its log: none, or those that are given."""
    start = cluster.start
    if start is None:
        return RowStore()
    given = {
        key: Row(dict(payloads), local=False, epoch=0, partial=True, dated=False)
        for key, payloads in start.rows.items()
    }
    return RowStore(given, older=True, given=start.tables)


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
        earlier: Per row changed here during the applier's last epochs, its states before each change, with the own
            position (epoch, group) of the change.
        unique_keys: Which row holds which unique value.
        foreign_keys: Which row refers to which.
        exceptions_count: Per exceptions table, the last number used in ``NDB$count``.
        given: Per epoch apply of its applier, what is known of its transactions; None if the rows here tell all.
        shown: What its binlog shows of its applier's work: effects on rows by own epoch and group. It tells what rows
            were that are older than the log, and nothing else.
        untold: Per own epoch, the rows that its applier sent on without this log telling what it sent.
        last_untold: Per row of these, the last such epoch: the row may have been changed here then.
        met: Rows that were not known when an operation on them arrived.
        result: What it ends with.
        outcomes: What became of every operation that its applier received.
    """

    cluster: Cluster
    setups: dict[str, TableSetup]
    layouts: dict[str, RowLayout]
    relays: bool = False
    skip_missing: bool = False
    shown: Effects = attrs.field(factory=dict)
    role: Role = attrs.field(init=False)
    given: Sequence[KnownTransactions] | None = None
    store: RowStore = attrs.field(init=False)
    log: dict[int, list[LogEntry]] = attrs.field(factory=dict)
    relayed: dict[int, dict[str, int]] = attrs.field(factory=dict)
    max_replicated_epoch: int = 0
    earlier: dict[RowKey, list[tuple[tuple[int, int], Row | None]]] = attrs.field(factory=dict)
    unique_keys: UniqueKeys = attrs.field(init=False)
    foreign_keys: ForeignKeys = attrs.field(init=False)
    exceptions_count: Counter[str] = attrs.field(factory=Counter)
    untold: dict[int, set[RowKey]] = attrs.field(factory=dict)
    last_untold: dict[RowKey, int] = attrs.field(factory=dict)
    met: set[RowKey] = attrs.field(factory=set)
    result: ClusterResult = attrs.field(factory=ClusterResult)
    outcomes: list[Outcome] = attrs.field(factory=list)
    _own_changes: Counter[int] = attrs.field(factory=Counter)
    _applied_at: deque[Position] = attrs.field(factory=lambda: deque([START] * OVERLAPPING, OVERLAPPING))

    def __attrs_post_init__(self) -> None:
        self.role = self.cluster.role
        self.store = rows_at_start(self.cluster)
        self.unique_keys = UniqueKeys({name: setup.table for name, setup in self.setups.items()})
        self.foreign_keys = ForeignKeys.of(self.setups)
        self.foreign_keys.update(self.store.rows, self.store)

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

    @property
    def known_transactions(self) -> KnownTransactions | None:
        """What is known of the transactions of the epoch that its applier applies now; None if nothing is given."""
        return None if self.given is None else self.given[len(self.result.applies)]

    def commit(self, transaction: Transaction) -> None:
        """Make the changes of one of its own transactions, and log them."""
        epoch, position = transaction.epoch, (transaction.epoch, transaction.group)
        log = self.log.setdefault(epoch, [])
        for change in transaction.changes:
            key, setup = (change.table, change.key), self.setups.get(change.table)
            row = self.store.get(key)
            self.result.unexplained += row is None and change.operation is not Operation.WRITE_ROW
            if setup is not None and not setup.table.primary_key:
                change_copies(self.store, setup.table, change, local=True, epoch=epoch)
            else:
                self.overwrite(key, position, row)
                by = LastWrite(self.name, epoch, change.operation, origin=change.origin)
                self.store.write(change, local=True, epoch=epoch, by=by)
            log.append(LoggedChange(change, transaction.group, self._own_changes[epoch], self.server_id, setup))
            self._own_changes[epoch] += 1
        self.unique_keys.update({(change.table, change.key) for change in transaction.changes}, self.store)
        if self.foreign_keys.links:
            self.foreign_keys.update((row for each in transaction.changes for row in touched_keys(each)), self.store)
        self.store.commit()

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

    @property
    def last_applied(self) -> Position:
        """The own position at which its applier committed last."""
        return self._applied_at[-1]

    def overwrite(self, key: RowKey, position: Position, before: Row | None) -> None:
        """Note that a row was changed at an own position."""
        self.earlier.setdefault(key, []).append((position, before))

    def rows_at(self, moments: Iterable[RowMoment]) -> dict[RowKey, Row | None]:
        """Return rows as they stood some time ago; as they are now if they did not change since."""
        found = {}
        for each in moments:
            key = each.table, each.key
            states = (state for position, state in self.earlier.get(key, ()) if position > each.after)
            found[key] = next(states, self.store.get(key))
        return found

    def _forget(self, until: Position) -> None:
        """Forget states before changes up to an own position."""
        kept = {key: [each for each in states if each[0] > until] for key, states in self.earlier.items()}
        self.earlier = {key: states for key, states in kept.items() if states}

    def leave_untold(self, epoch: int, row: RowKey) -> None:
        """Note that it is not known what its applier sent on of a row in an own epoch."""
        self.untold.setdefault(epoch, set()).add(row)
        self.last_untold[row] = epoch

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
        if not self.relays:  # else it may apply the epochs of several clusters side by side
            self._forget(self._applied_at[0])
        self._applied_at.append((apply.epoch, apply.group))
        # An own epoch came back when the next cluster of the ring applied it, and the source logged that.
        came_back = source.relayed.get(apply.foreign_epoch, {})
        self.max_replicated_epoch = max(self.max_replicated_epoch, came_back.get(self.name, 0))
        if apply.traced and apply.reported:
            logged = self.relayed.setdefault(apply.epoch, {})
            logged[source.name] = max(logged.get(source.name, 0), apply.foreign_epoch)
            if self.relays:
                logged.update({name: epoch for name, epoch in came_back.items() if name != self.name})
