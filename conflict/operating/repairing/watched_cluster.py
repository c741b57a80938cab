"""
A cluster that remembers which change of a user each of its rows has, and what rows were before some changes.

A refresh, and an operation that is reflected or sent on, is no change of a user: it brings the row as its sender had it
then, and so the change of a user that the sender's row had.
"""

from __future__ import annotations

from collections import Counter

import attrs

from conflict.engine.inference.observed import ObservedCluster
from conflict.engine.inference.rows import is_partial
from conflict.engine.inference.taken_effects import REFRESHES
from conflict.engine.ledger.resolution import Outcome
from conflict.engine.reference.cluster import ReplayedCluster
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.timeline import DefinitionChange, EpochApply, Origin, Position, RowChange, Transaction
from conflict.operating.repairing.statements import Payloads
from conflict.rules.decision import Verdict
from ndb_formats.events.rows_event import Operation


@attrs.frozen
class UserChange:
    """
    A change of a user.

    Attributes:
        cluster: Cluster on which it was made.
        position: Its own epoch and group.
        ordinal: Its number among the changes that users of the cluster made in that epoch.
        operation: What it was.
        origin: Where it is logged.
    """

    cluster: str
    position: Position
    ordinal: int
    operation: Operation
    origin: Origin | None

    @property
    def epoch(self) -> int:
        """The own epoch in which it was made."""
        return self.position[0]

    @property
    def place(self) -> tuple[int, int]:
        """Its place among all changes that users of its cluster made."""
        return self.epoch, self.ordinal


@attrs.define
class WatchedCluster(ObservedCluster):
    """
    A cluster that is watched.

    Attributes:
        watched: Own changes before which the row is noted.
        found: The row before each of these; None if it was missing.
        last_changes: By row, the change of a user that it has, or that removed it; absent if that is not known.
        repeated: The own changes that changed a row to what it was on the other cluster when they arrived there, each
            with the change of a user that the row had there. Of those that were rejected, watched ones alone.
    """

    watched: frozenset[Origin] = frozenset()
    found: dict[Origin, Row | None] = attrs.field(factory=dict)
    last_changes: dict[RowKey, UserChange] = attrs.field(factory=dict)
    repeated: dict[Origin, UserChange] = attrs.field(factory=dict)
    _idle: set[Origin] = attrs.field(factory=set)
    _left: dict[Origin, Payloads | None] = attrs.field(factory=dict)
    _sent: dict[tuple[Position, RowKey], UserChange | None] = attrs.field(factory=dict)
    _judged: int = 0

    def make(self, change: RowChange, transaction: Transaction) -> None:
        """Make a change of an own transaction."""
        origin, row = change.origin, (change.table, change.key)
        before = self.store.get(row)
        super().make(change, transaction)
        if origin is None:
            return
        if origin in self.watched:
            self.found[origin], self._left[origin] = before, self._stored(row)
        if _payloads(before) == _payloads(self.store.get(row)):
            self._idle.add(origin)

    def log_changes(self, transaction: Transaction) -> None:
        """Log the changes of an own transaction."""
        position, first = (transaction.epoch, transaction.group), self._own_changes[transaction.epoch]
        for ordinal, each in enumerate(transaction.changes, start=first):
            made = UserChange(self.name, position, ordinal, each.operation, each.origin)
            self.last_changes[each.table, each.key] = made
        super().log_changes(transaction)

    def applied(self, apply: EpochApply, source: ReplayedCluster) -> None:
        """Note that its applier committed an epoch."""
        super().applied(apply, source)
        assert isinstance(source, WatchedCluster)
        position = apply.epoch, apply.group
        changed, arrived = set[RowKey](), self.outcomes[self._judged :]
        counts = Counter((each.table, each.key) for each in arrived)
        for each in arrived:
            row = each.table, each.key
            if each.origin is not None and counts[row] == 1:
                self._compare(each, each.origin, position, source)
            if each.verdict is Verdict.MERGED:  # the row is what no change of a user left
                changed.add(row)
                self.last_changes.pop(row, None)
            if each.verdict is Verdict.APPLIED:
                changed.add(row)
                self._take(each, source)
        self._judged = len(self.outcomes)
        for row, effect in self.result.effects.get(position, {}).items():
            if row not in changed and effect not in REFRESHES:  # by a foreign key, or an epoch older than the log
                self.last_changes.pop(row, None)
            self._sent[position, row] = self.last_changes.get(row)

    def _take(self, outcome: Outcome, source: WatchedCluster) -> None:
        """Note which change of a user an operation brought that was applied."""
        row, position = (outcome.table, outcome.key), (outcome.source_epoch, outcome.group)
        brought: UserChange | None
        if outcome.ordinal < 0:
            brought = source._sent.get((position, row))
        else:
            brought = UserChange(source.name, position, outcome.ordinal, outcome.operation, outcome.origin)
        if brought is None:
            self.last_changes.pop(row, None)
        else:
            self.last_changes[row] = brought

    def _compare(self, outcome: Outcome, origin: Origin, position: Position, source: WatchedCluster) -> None:
        """Note whether a change left the row as it is here: it was rejected, or changed nothing."""
        row = outcome.table, outcome.key
        by, here = self.last_changes.get(row), self.store.get(row)
        if by is None or is_partial(here) or origin in source._idle:
            return
        if outcome.verdict is Verdict.APPLIED:
            states = [state for at, state in self.earlier.get(row, ()) if at == position]
            same = len(states) == 1 and _payloads(states[0]) == _payloads(here)
        else:
            same = origin in source._left and source._left[origin] == self._stored(row)
        if same:
            source.repeated[origin] = by

    def _stored(self, row: RowKey) -> Payloads | None:
        """Return what a row stores; None if it is missing, or its table is."""
        state, setup, layout = self.store.get(row), self.setups.get(row[0]), self.layouts.get(row[0])
        return None if state is None or setup is None or layout is None else state.stored(setup, layout)

    def define(self, change: DefinitionChange) -> None:
        """Carry out a statement that changes definitions; which change removed a row that it removed is not known."""
        super().define(change)
        self.last_changes = {row: each for row, each in self.last_changes.items() if row[0] not in change.step.emptied}


def _payloads(row: Row | None) -> Payloads | None:
    return None if row is None else row.payloads
