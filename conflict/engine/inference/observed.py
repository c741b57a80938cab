"""
A cluster whose History is replayed beside its binlog, and a pass over its rows, which are not all known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import attrs

from conflict.engine.inference.rows import NOT_KNOWN, OlderRow, rows_at_start
from conflict.engine.ledger.resolution import ClusterResult
from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.engine.reference.decide import decide_by_function, missing_image
from conflict.engine.reference.epoch_pass import ApplierStopped, DecidedOperation, EpochPass
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.shown_effects import Effect
from conflict.history.timeline import OVERLAPPING, START, EpochApply, Position, RowChange, RowMoment, Transaction
from conflict.history.unlogged import UnloggedChange
from conflict.rules.decision import APPLIED, IGNORED, Decision
from conflict.rules.functions import ConflictFunction
from conflict.rules.own_rule import Image
from conflict.rules.table_setup import TableSetup
from ndb_formats.schema.tables import Table

# (own epoch, group) -> row -> effect
Effects = Mapping[Position, Mapping[RowKey, Effect]]


@attrs.frozen
class KnownTransactions:
    """
    What is known of the transactions of an epoch from all rows, also from those that a History lacks.

    Attributes:
        in_conflict: Those in conflict.
        passed: Those with a row that the applier did not refresh.
        last_touching: Those that were the last one to touch a row that the applier refreshed, apart from `passed`.
        alone: Those that touched one row, which was refreshed.
    """

    in_conflict: frozenset[int] = frozenset()
    passed: frozenset[int] = frozenset()
    last_touching: frozenset[int] = frozenset()
    alone: frozenset[int] = frozenset()


class OtherConflictsError(Exception):
    """Rows lead to other transactions in conflict than are given."""


# What going on changes of a cluster, besides its rows, their keys and its result.
_CHANGING = (
    *("log", "relayed", "earlier", "unclear", "last_unclear", "met", "role", "max_replicated_epoch"),
    *("exceptions_count", "_own_changes", "_applied_at", "_overwritten"),
)


@attrs.define
class ObservedCluster(ReplayedCluster):
    """
    One cluster, with what its binlog shows of its applier's work.

    Attributes:
        shown: Effects on rows by own epoch and group. They show what rows were that are older than the log.
        given: Per epoch apply of its applier, what is known of its transactions; None if the rows here show all.
        earlier: Per row changed here during the applier's last epochs, its states before each change, with the own
            position (epoch, group) of the change.
        unclear: Per own epoch, the rows that its applier sent on without this log showing what it sent.
        last_unclear: Per row of these, the last such epoch: the row may have been changed here then.
        met: Rows that were not known when an operation on them arrived, or that were forgotten.
    """

    shown: Effects = attrs.field(factory=dict)
    given: Sequence[KnownTransactions] | None = None
    earlier: dict[RowKey, list[tuple[Position, Row | None]]] = attrs.field(factory=dict)
    unclear: dict[int, set[RowKey]] = attrs.field(factory=dict)
    last_unclear: dict[RowKey, int] = attrs.field(factory=dict)
    met: set[RowKey] = attrs.field(factory=set)
    _unlogged: dict[Position, list[UnloggedChange]] = attrs.field(factory=dict)
    _kept: dict[Position, dict[RowKey, Row | None]] = attrs.field(factory=dict)
    _overwritten: deque[tuple[Position, RowKey]] = attrs.field(factory=deque)  # the order of what `earlier` has
    _applied_at: deque[Position] = attrs.field(factory=lambda: deque([START] * OVERLAPPING, OVERLAPPING))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.store = rows_at_start(self.cluster)
        self.foreign_keys.update(self.store.rows, self.store)
        for each in self.cluster.unlogged:
            self._unlogged.setdefault(each.after, []).append(each)
            if each.kept is not None:
                self._kept.setdefault(each.kept, {})[each.table, each.key] = None
        self._keep(START)

    @property
    def known_transactions(self) -> KnownTransactions | None:
        """What is known of the transactions of the epoch that its applier applies now; None if nothing is given."""
        return None if self.given is None else self.given[len(self.result.applies)]

    def shown_by(self, apply: EpochApply) -> Mapping[RowKey, Effect]:
        """Return the effects that its binlog shows of an epoch apply."""
        return self.shown.get((apply.epoch, apply.group), {}) if apply.traced else {}

    def passed_over(self, apply: EpochApply) -> bool:
        """Whether its binlog shows an epoch on rows of tables without a primary key: none of these stopped it there."""
        keyless = (name for name, setup in self.setups.items() if not setup.table.primary_key)
        return not {table for table, _ in self.shown_by(apply)}.isdisjoint(keyless)

    def commit(self, transaction: Transaction) -> None:
        """Make the changes of one of its own transactions, and log them."""
        super().commit(transaction)
        self.forget_unlogged((transaction.epoch, transaction.group))

    def forget_unlogged(self, position: Position) -> None:
        """Take rows back that were changed without a log, or by a crash, after an own position: to what is known."""
        for each in self._unlogged.pop(position, ()):
            row = each.table, each.key
            self.store.put(row, NOT_KNOWN if each.kept is None else self._kept[each.kept][row])
            self.last_unclear[row] = each.shown[0]
            self.met.add(row)
            self.unique_keys.update({row}, self.store)
            self.foreign_keys.update({row}, self.store)
        self.store.commit()
        self._keep(position)

    def may_be_lost(self, apply: EpochApply, row: RowKey) -> bool:
        """Whether a crash may have taken what an epoch apply did to a row, before its log had it."""
        place = apply.epoch, apply.group
        lost = (each for each in self.cluster.unlogged if each.kind.by_crash and (each.table, each.key) == row)
        return not apply.traced and any(each.after <= place <= each.shown for each in lost)

    def _keep(self, position: Position) -> None:
        """Keep rows as they stand at an own position, to which a crash takes them back."""
        kept = self._kept.get(position, {})
        kept.update({row: self.store.get(row) for row in kept})

    def make(self, change: RowChange, transaction: Transaction) -> None:
        """Make a change of an own transaction."""
        setup, key = self.setups.get(change.table), (change.table, change.key)
        if setup is None or setup.table.primary_key:
            self.overwrite(key, (transaction.epoch, transaction.group), self.store.get(key))
        super().make(change, transaction)

    @property
    def last_applied(self) -> Position:
        """The own position at which its applier committed last."""
        return self._applied_at[-1]

    def overwrite(self, key: RowKey, position: Position, before: Row | None) -> None:
        """Note that a row was changed at an own position."""
        self.earlier.setdefault(key, []).append((position, before))
        self._overwritten.append((position, key))

    def rows_at(self, moments: Iterable[RowMoment]) -> dict[RowKey, Row | None]:
        """Return rows as they stood some time ago; as they are now if they did not change since."""
        found = {}
        for each in moments:
            key = each.table, each.key
            states = (state for position, state in self.earlier.get(key, ()) if position > each.after)
            found[key] = next(states, self.store.get(key))
        return found

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Let it go on, and take all of that back in the end."""
        kept = {name: _copied(getattr(self, name)) for name in _CHANGING}
        result, outcomes = self.result, self.outcomes
        self.result, self.outcomes = ClusterResult(), []
        self.store.begin_trial()
        try:
            yield
        finally:
            rows = self.store.end_trial()
            for name, each in kept.items():
                setattr(self, name, each)
            self.result, self.outcomes = result, outcomes
            self.unique_keys.update(rows, self.store)
            self.foreign_keys.update(rows, self.store)

    def forget_epochs(self, until: int) -> None:
        """Forget what it logged up to an own epoch, which no other cluster applies any more."""
        super().forget_epochs(until)
        for epoch in [each for each in self.unclear if each <= until]:
            del self.unclear[epoch]

    def leave_unclear(self, epoch: int, row: RowKey) -> None:
        """Note that it is not known what its applier sent on of a row in an own epoch."""
        self.unclear.setdefault(epoch, set()).add(row)
        self.last_unclear[row] = epoch

    def applied(self, apply: EpochApply, source: ReplayedCluster) -> None:
        """Note that its applier committed an epoch."""
        super().applied(apply, source)
        if not self.relays:  # else it may apply the epochs of several clusters side by side
            self._forget(self._applied_at[0])
        self._applied_at.append((apply.epoch, apply.group))

    def _forget(self, until: Position) -> None:
        """Forget states before changes up to an own position."""
        while self._overwritten and self._overwritten[0][0] <= until:
            _, key = self._overwritten.popleft()
            del self.earlier[key][0]
            if not self.earlier[key]:
                del self.earlier[key]


def _copied(each: Any) -> Any:
    """Return a copy of an attribute; one of a mapping has copies of its values."""
    return {key: copy(value) for key, value in each.items()} if type(each) is dict else copy(each)


@attrs.define
class ObservedPass(EpochPass):
    """
    A pass over rows that are not all known, or that were judged some time before the commit.

    Attributes:
        early: Rows that are judged as they stood some time ago, until an operation is applied: that locks the row.
        locked: Rows of `early` on which an operation was applied.
    """

    early: Mapping[RowKey, Row | None] = attrs.field(factory=dict)
    locked: set[RowKey] = attrs.field(factory=set)

    def handle_all(self, entries: Iterable[LoggedChange], *, went_on: bool = False) -> None:
        """
        Handle operations of an epoch that is tried.

        Args:
            entries: The operations.
            went_on: Whether the binlog shows that none stopped the applier; else nothing comes after one that does.
        """
        for entry in entries:
            try:
                self.handle(entry)
            except ApplierStopped:
                if not went_on:
                    return

    def change_copies(self, entry: LoggedChange) -> None:
        """
        Apply an operation on a table without a primary key.

        Where no row has its values, and the binlog shows others of the epoch, the applier passed the operation over:
        `replica_skip_errors=1032` does so row by row, while errors of tables with a key come with whole epochs.
        """
        try:
            super().change_copies(entry)
        except ApplierStopped:
            if not isinstance(self.cluster, ObservedCluster) or not self.cluster.passed_over(self.apply):
                raise
            self.decided.append(DecidedOperation(entry, IGNORED))

    def decide(self, entry: LoggedChange, setup: TableSetup) -> tuple[Decision, Row | None]:
        """Return the decision, and the row on which it was made."""
        key = entry.row
        if key in self.early and key not in self.locked:
            early = self.early[key]
            decision = self.decide_on(early, entry, setup)
            if not decision.verdict.writes_row:
                return decision, early
            self.locked.add(key)
        return super().decide(entry, setup)

    def lacks_value(self, change: RowChange, setup: TableSetup) -> bool:
        """Whether an operation lacks the value that the function of its table compares; not that it is not known."""
        function = setup.function
        unknown = function is not None and compares_unknown(change, function, setup.table)
        return not unknown and super().lacks_value(change, setup)

    def judge(self, row: Row | None, entry: LoggedChange, setup: TableSetup, function: ConflictFunction) -> Decision:
        """Return the decision of a conflict function; APPLIED where it compares a value that is not known."""
        change, table = entry.change, setup.table
        if missing_image(change, function, table) is not None and compares_unknown(change, function, table):
            known = self.cluster.max_replicated_epoch
            return APPLIED if row is not None else decide_by_function(row, change, function, table, known)
        if not isinstance(row, OlderRow):
            return super().judge(row, entry, setup, function)
        judged = row
        if function.column is not None and row.assumed is not None:
            assumed = {table.ordinal(function.column): row.assumed.to_bytes(8, "little")}
            judged = attrs.evolve(row, payloads={**row.payloads, **assumed})
        decision = super().judge(judged, entry, setup, function)
        known = row.dated if function.column is None else row.assumed is None
        return decision if known else attrs.evolve(decision, stored=None)


def compares_unknown(change: RowChange, function: ConflictFunction, table: Table) -> bool:
    """Whether a function compares a value that an operation brings, but that is not known."""
    if function.column is None or change.doubtful:
        return function.column is not None
    before = function.spec.needs.get(change.operation) is Image.BEFORE
    return table.ordinal(function.column) in (change.unknown | change.unknown_before if before else change.unknown)
