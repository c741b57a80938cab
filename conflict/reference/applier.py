"""
One cluster while it is replayed: what it did itself, and what its applier does.

An applier takes a foreign epoch as one NDB transaction.

A function that judges transactions makes the applier go over an epoch more than once:

    NORMAL   rows are judged one by one; a conflict on a table with such a function rolls the epoch back, to TRACK
    TRACK    the same again, and dependencies are written down; a conflict rolls back, to APPLY
    APPLY    transactions in conflict, and those that depend on them, are left out and their rows sent again

The applier stays in TRACK until an epoch had no such conflict.

Source: MySQL manual, "NDB$EPOCH_TRANS", and the state diagram in the server's `ndb_applier.cc`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from conflict.history.effects import Effect
from conflict.history.model import Cluster, EpochApply, Transaction
from conflict.reference.epoch_log import ExceptionRow, LogEntry, LoggedChange, merged_change, refresh_change
from conflict.reference.epoch_pass import EpochPass, Judged, PassKind, Stopped, write_row
from conflict.reference.open_decisions import open_decisions
from conflict.reference.row_store import Row, RowKey, RowStore
from conflict.reference.unique_keys import UniqueKeys
from conflict.results.model import ClusterResult, Outcome, Undecided
from conflict.rules.counters import (
    TRANSACTION_COMMITS,
    TRANSACTION_ITERATIONS,
    TRANSACTION_REJECTS,
)
from conflict.rules.decision import Cause, Verdict
from conflict.rules.exceptions_table import ConflictRecord
from conflict.rules.stop_messages import StopError, duplicate_value
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.rows_event import Operation

__all__ = ["ReplayedCluster"]


@attrs.define
class ReplayedCluster:
    """
    One cluster.

    Attributes:
        cluster: Its part of the History.
        setups: How its server set up each table.
        layouts: How the rows of each table are read.
        relays: Whether it logs what it applied for a third cluster. With two, that would only go back to its origin.
        skip_missing: Leave out operations that lack a value to compare, instead of stopping.
        store: Its rows.
        log: What it logs per own epoch that the next applier has to apply.
        relayed: Per own epoch and cluster, the highest foreign epoch whose `ndb_apply_status` row it logged.
        max_replicated_epoch: Highest own epoch seen coming back.
        result: What it ends with.
        outcomes: What became of every operation that it took.
    """

    cluster: Cluster
    setups: dict[str, TableSetup]
    layouts: dict[str, RowLayout]
    relays: bool = False
    skip_missing: bool = False
    store: RowStore = attrs.field(factory=RowStore)
    log: dict[int, list[LogEntry]] = attrs.field(factory=dict)
    relayed: dict[int, dict[str, int]] = attrs.field(factory=dict)
    max_replicated_epoch: int = 0
    result: ClusterResult = attrs.field(factory=ClusterResult)
    outcomes: list[Outcome] = attrs.field(factory=list)
    _state: PassKind = PassKind.NORMAL
    _judged: EpochPass | None = None
    _changed: dict[RowKey, list[tuple[tuple[int, int], Row | None]]] = attrs.field(factory=dict)
    _unique_keys: UniqueKeys = attrs.field(init=False)
    _record_counts: Counter[str] = attrs.field(factory=Counter)
    _ordinal: tuple[int, int] = (-1, 0)

    def __attrs_post_init__(self) -> None:
        self._unique_keys = UniqueKeys({name: setup.table for name, setup in self.setups.items()})

    def commit(self, transaction: Transaction) -> None:
        """Do what the cluster did itself."""
        log = self.log.setdefault(transaction.epoch, [])
        for change in transaction.changes:
            missing = self.store.get((change.table, change.key)) is None
            self.result.unexplained += missing and change.operation is not Operation.WRITE_ROW
            key = (change.table, change.key)
            place = (transaction.epoch, transaction.group)
            self._changed.setdefault(key, []).append((place, self.store.get(key)))
            write_row(self.store, change, local=True, epoch=transaction.epoch)
            ordinal = self._next_ordinal(transaction.epoch)
            log.append(LoggedChange(change, transaction.group, ordinal, self.cluster.server_id))
        self._unique_keys.update({(change.table, change.key) for change in transaction.changes}, self.store)
        self.store.commit()

    def _next_ordinal(self, epoch: int) -> int:
        last_epoch, ordinal = self._ordinal
        self._ordinal = (epoch, ordinal + 1 if epoch == last_epoch else 0)
        return self._ordinal[1]

    def judge(self, apply: EpochApply, source: ReplayedCluster) -> None:
        """Look for transactions in conflict in an epoch that is applied some own changes later."""
        if self.result.stop is not None:
            return
        try:
            if apply.restarted:
                self._state = PassKind.NORMAL
            self._judged = self._look(apply, source.cluster, self._changes(apply, source))
        except Stopped as stopped:
            self.result.stop = stopped.stop
        self.store.roll_back()

    def apply_epoch(self, apply: EpochApply, source: ReplayedCluster) -> None:
        """Apply one epoch of another cluster, unless this applier has stopped."""
        if self.result.stop is not None:
            return
        if apply.restarted and self._judged is None:
            self._state = PassKind.NORMAL
        changes, undecided = self._changes(apply, source), len(self.result.undecided)
        try:
            final = self._passes(apply, source.cluster, changes)
            self._check_unique_keys(final)
        except Stopped as stopped:
            self.store.roll_back()
            del self.result.undecided[undecided:]  # nothing of the epoch is counted
            self.result.stop = stopped.stop
            return
        entries = source.log.get(apply.foreign_epoch, [])
        received = [entry for entry in entries if isinstance(entry, ExceptionRow)]
        self._finish(final, source.cluster, received)
        self.result.applies.append(apply)
        self._changed.clear()
        # Of the clusters whose epochs come with this one, the first that took an own epoch tells that it came back.
        back = source.relayed.get(apply.foreign_epoch, {})
        self.max_replicated_epoch = max(self.max_replicated_epoch, back.get(self.cluster.name, 0))
        if apply.traced:
            news = self.relayed.setdefault(apply.epoch, {})
            news[source.cluster.name] = max(news.get(source.cluster.name, 0), apply.foreign_epoch)
            if self.relays:
                news.update({name: epoch for name, epoch in back.items() if name != self.cluster.name})

    def _changes(self, apply: EpochApply, source: ReplayedCluster) -> list[LoggedChange]:
        """Return the operations of a foreign epoch, but for those that come back to their origin."""
        return [
            entry
            for entry in source.log.get(apply.foreign_epoch, [])
            if isinstance(entry, LoggedChange) and entry.server_id != self.cluster.server_id
        ]

    def _passes(self, apply: EpochApply, source: Cluster, changes: Sequence[LoggedChange]) -> EpochPass:
        """Go over an epoch until a pass may be committed; return that pass, with the counters of the whole."""
        looked, self._judged = self._judged, None
        while True:
            current = looked or self._look(apply, source, changes)
            if not current.tracker.conflicting:
                if looked is None:
                    return current
                # Nothing stood against it then; that it is committed only now makes it another pass.
                looked = None
                continue
            self.store.roll_back()
            rejected = current.tracker.in_conflict()
            undecided = self._open_decisions(current, rejected, changes)
            final = self._pass(apply, source, changes, PassKind.APPLY, rejected)
            self._state = PassKind.TRACK
            if not final.tracker.conflicting:
                self.result.undecided += undecided
                final.counters.update(current.counters)
                final.counters.update(
                    {TRANSACTION_ITERATIONS: 1, TRANSACTION_REJECTS: len(rejected), TRANSACTION_COMMITS: 1}
                )
                return final
            # More conflicts, because rows changed since: what was found before is dropped.
            looked = None
            self.store.roll_back()

    def _open_decisions(
        self, looked: EpochPass, rejected: frozenset[int], changes: Sequence[LoggedChange]
    ) -> list[Undecided]:
        earlier = {}
        for key in dict.fromkeys((entry.change.table, entry.change.key) for entry in changes):
            states = [state for place, state in self._changed.get(key, ()) if place > looked.apply.arrived]
            if states:
                earlier[key] = [*states, self.store.get(key)]
        again = self._new_pass(looked.apply, PassKind.TRACK)
        return open_decisions(looked, rejected, changes, earlier, again) if earlier else []

    def _look(self, apply: EpochApply, source: Cluster, changes: Sequence[LoggedChange]) -> EpochPass:
        """Go over an epoch and find its transactions in conflict; without any, the pass may be committed."""
        if self._state is PassKind.NORMAL:
            current = self._pass(apply, source, changes, PassKind.NORMAL)
            if not current.tracker.conflicting:
                return current
            self.store.roll_back()
        current = self._pass(apply, source, changes, PassKind.TRACK)
        self._state = PassKind.TRACK if current.tracker.conflicting else PassKind.NORMAL
        return current

    def _pass(
        self,
        apply: EpochApply,
        source: Cluster,
        changes: Sequence[LoggedChange],
        kind: PassKind,
        rejected: frozenset[int] = frozenset(),
    ) -> EpochPass:
        current = self._new_pass(apply, kind, rejected)
        for entry in changes:
            current.handle(entry)
        self._number(current, source)
        return current

    def _new_pass(self, apply: EpochApply, kind: PassKind, rejected: frozenset[int] = frozenset()) -> EpochPass:
        return EpochPass(
            self.cluster.name,
            self.cluster.server_id,
            self.cluster.role,
            self.setups,
            self.store,
            self.max_replicated_epoch,
            apply,
            kind,
            rejected,
            self.skip_missing,
        )

    def _number(self, current: EpochPass, source: Cluster) -> None:
        """Fill in the exceptions rows of a pass. Their numbers are used up even if the pass is rolled back."""
        for judged in _in_order_of_records(current.judged):
            setup = self.setups[judged.entry.change.table]
            if setup.exceptions is not None:
                name = setup.exceptions.table.full_name
                self._record_counts[name] += 1
                record = self._record(judged, current.apply, source, self._record_counts[name])
                current.exceptions.append((setup.exceptions, setup.exceptions.row(record)))

    def _record(self, judged: Judged, apply: EpochApply, source: Cluster, count: int) -> ConflictRecord:
        change = judged.entry.change
        with_transaction = judged.decision.cause is Cause.TRANS_IN_CONFLICT
        return ConflictRecord(
            server_id=self.cluster.server_id,
            source_server_id=source.server_id,
            source_epoch=apply.foreign_epoch,
            count=count,
            operation=change.operation,
            cause=judged.decision.cause,
            transaction_id=judged.transaction_id,
            before=change.before,
            after=change.after,
            read=with_transaction and bool(change.flags & ConflictFlag.READ),
        )

    def _check_unique_keys(self, final: EpochPass) -> None:
        duplicate = self._unique_keys.update(final.touched, self.store)
        if duplicate is not None:
            change = final.touched[duplicate].change
            raise final.stopped(StopError.DUPLICATE_VALUE, change, duplicate_value(change.table))

    def _finish(self, final: EpochPass, source: Cluster, received: Sequence[ExceptionRow]) -> None:
        """Send again what was in conflict, and keep what the epoch did."""
        apply = final.apply
        # Takes without a trace can stand at one place; what the last of them did to a row counts.
        effects = self.result.effects.setdefault((apply.epoch, apply.group), {})
        effects.update(self._effects(final))
        log = self.log.setdefault(apply.epoch, [])
        log += self._logged(final)
        for exceptions, row in final.exceptions:
            name = exceptions.table.full_name
            self.result.exceptions.setdefault(name, []).append(row)
            if exceptions.replicated:
                log.append(ExceptionRow(name, row))
        for entry in received:
            self.result.exceptions.setdefault(entry.table, []).append(entry.row)
        for counter, value in final.counters.items():
            self.result.counters[counter] += value
        self.outcomes += [self._outcome(judged, apply, source) for judged in final.judged]
        self.store.commit()

    def _logged(self, final: EpochPass) -> Iterator[LoggedChange]:
        """Yield one event per row that the epoch changed here: reflected, or for a third cluster, or a refresh."""
        apply = final.apply
        for key, touched in final.touched.items():
            relayed = touched.server_id != self.cluster.server_id
            if key in final.refreshes or (relayed and not self.relays):
                continue
            setup, layout = self.setups[key[0]], self.layouts[key[0]]
            written = frozenset(touched.written)
            event = merged_change(
                setup, layout, touched.change, touched.before, self.store.get(key), written, touched.flags
            )
            if event is not None:
                yield LoggedChange(event, apply.group, -1, touched.server_id)
        for key, change in final.refreshes.items():
            row = self.store.get(key)
            event = refresh_change(self.setups[key[0]], self.layouts[key[0]], change, row)
            yield LoggedChange(event, apply.group, -1, self.cluster.server_id)
            if row is not None:
                self.store.put(key, attrs.evolve(row, local=True, epoch=apply.epoch))
            self.result.refreshes[key[0]] = self.result.refreshes.get(key[0], 0) + 1

    def _effects(self, final: EpochPass) -> dict[RowKey, Effect]:
        """What one NDB transaction did to a row is one event; an insert and its delete are none, a refresh wins."""
        effects = {}
        for key, touched in final.touched.items():
            if self.store.get(key) is not None:
                effects[key] = Effect.CHANGED
            elif touched.before is not None:
                effects[key] = Effect.DELETED
        for key in final.refreshes:
            effects[key] = Effect.REFRESHED if self.store.get(key) is not None else Effect.REFRESHED_ABSENT
        return effects

    def _outcome(self, judged: Judged, apply: EpochApply, source: Cluster) -> Outcome:
        entry, decision = judged.entry, judged.decision
        change = entry.change
        return Outcome(
            applier=self.cluster.name,
            source=source.name,
            source_epoch=apply.foreign_epoch,
            epoch=apply.epoch,
            group=entry.group,
            ordinal=entry.ordinal,
            table=change.table,
            key=change.key,
            operation=change.operation,
            refresh=bool(change.flags & ConflictFlag.REFRESH),
            verdict=decision.verdict,
            cause=decision.cause,
            incoming=decision.incoming,
            stored=decision.stored,
            origin=change.origin,
        )


def _in_order_of_records(judged: Sequence[Judged]) -> list[Judged]:
    """Return what exceptions tables tell: rows of rejected transactions as they are met, all others after them."""
    rejected = [each for each in judged if each.decision.verdict is Verdict.REJECTED]
    return sorted(rejected, key=lambda each: each.decision.cause is not Cause.TRANS_IN_CONFLICT)
