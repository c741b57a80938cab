"""
One pass of an applier over the operations of a foreign epoch.

The pass decides on every operation in the order of the log. Each operation sees the rows as the operations before it
left them. The caller commits the pass or rolls it back (see `conflict.engine.reference.applier`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import attrs

from conflict.engine.ledger.resolution import LastWrite, Stop, StoppedAt, StopPlace, stop_at_returned
from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.engine.reference.decide import (
    DependencyTracker,
    decide_as_secondary,
    decide_by_function,
    decide_without_function,
    missing_image,
)
from conflict.engine.reference.row_store import CopyChanges, Row, RowKey, as_own_row, change_copies, copies_of
from conflict.engine.reference.sight import Sight, merged_change
from conflict.engine.reference.spelling import as_spelled_here
from conflict.history.model import Cluster
from conflict.history.run import fitted, misfit
from conflict.history.timeline import NO_FLAGS, EpochApply, ReturnedEpoch, RowChange
from conflict.rules.counters import (
    DELETE_DELETE,
    REFLECTED_DISCARDED,
    REFLECTED_RECEIVED,
    REFRESH_RECEIVED,
    TRANSACTION_ROW_CONFLICTS,
    TRANSACTION_ROW_REJECTS,
    moved_counters,
)
from conflict.rules.decision import APPLIED, IGNORED, Cause, Decision, Verdict
from conflict.rules.exceptions_table import UNKNOWN_TRANSACTION_ID, ConflictRecord, ExceptionsTable
from conflict.rules.foreign_keys import KeyLink
from conflict.rules.functions import ConflictFunction
from conflict.rules.stops import Misfit, ServerStop, StopFacts, first_stop, stop_facts
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.types.values import Value

SKIPPED = Decision(Verdict.SKIPPED)
# In the server, an operation after a refresh is one that the function rejects (error 920 of the data nodes).
AFTER_REFRESH = Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT)
REJECTED_WITH_TRANSACTION = Decision(Verdict.REJECTED, Cause.TRANS_IN_CONFLICT)


class ApplierStopped(Exception):  # noqa: N818  # a signal inside this package, not an error
    """The applier cannot go on; carries the `Stop`, and its place if an operation stops it before the commit."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.message)
        self.stop = stop
        self.place: StopPlace | None = None


def as_taken(entry: LoggedChange, setup: TableSetup) -> tuple[LoggedChange, Misfit | None]:
    """Return an operation as the applier's own table takes it, and a column that does not."""
    source = entry.setup
    if source is None or source.declared is setup.declared or setup.refusal is not None:
        return entry, None
    wrong = misfit(source, setup)
    if wrong is not None:
        return entry, wrong
    change = fitted(entry.change, source, setup)
    change = change if setup.table.primary_key else as_own_row(change, setup.table)
    return attrs.evolve(entry, change=change), None


@attrs.frozen
class DecidedOperation:
    """
    An operation, and what became of it.

    Attributes:
        entry: The operation.
        decision: The decision on it.
        met: The row that it met; None if there was none, or it did not matter.
        merged: What was written in its place, if it was merged.
    """

    entry: LoggedChange
    decision: Decision
    met: Row | None = None
    merged: RowImage | None = None


@attrs.define
class ChangedRow:
    """
    A row that the pass changed.

    Attributes:
        before: Its state before; None if it did not exist.
        change: The last operation on it.
        server_id: Server under whose id the change is logged.
        written: Positions of the columns that were written.
        flags: Conflict flags of the logged change.
        image: The after image of the last operation, if the source made it and it writes values.
        first: The first operation on it; None if the binlogs show what the pass did.
    """

    before: Row | None
    change: RowChange
    server_id: int
    written: set[int] = attrs.field(factory=set)
    flags: ConflictFlag = NO_FLAGS
    image: RowImage | None = None
    first: LoggedChange | None = None


@attrs.define
class EpochPass:
    """
    One pass.

    Attributes:
        cluster: The applying cluster. The pass changes its rows, which can be rolled back.
        source: The cluster whose epoch it is.
        apply: The epoch apply.
        rejected: Transactions in conflict, which the pass rejects whole.
        tracker: Dependencies between the transactions, and which of them are in conflict.
        counters: Status counters that the pass moves.
        decided: Every operation with its decision, in order.
        track: Pass TRACK, if it found the transactions in conflict that this one rejects.
        exceptions: Rows for exceptions tables.
        excepted: The rejected operation of each.
        refreshes: Rows to refresh, each with the first operation on it that was rejected.
        changed: Rows that were changed.
        copies: What happened to rows of tables without a primary key.
    """

    cluster: ReplayedCluster
    source: Cluster
    apply: EpochApply
    rejected: frozenset[int] = frozenset()
    tracker: DependencyTracker = attrs.field(factory=DependencyTracker)
    counters: Counter[str] = attrs.field(factory=Counter)
    decided: list[DecidedOperation] = attrs.field(factory=list)
    track: EpochPass | None = None
    exceptions: list[tuple[ExceptionsTable, tuple[Value, ...]]] = attrs.field(factory=list)
    excepted: list[DecidedOperation] = attrs.field(factory=list)
    refreshes: dict[RowKey, RowChange] = attrs.field(factory=dict)
    changed: dict[RowKey, ChangedRow] = attrs.field(factory=dict)
    copies: CopyChanges = attrs.field(factory=CopyChanges)

    def run(self, changes: Iterable[LoggedChange]) -> None:
        """
        Handle the operations of an epoch, and make the exceptions rows.

        Raises:
            ApplierStopped: The applier cannot go on.
        """
        returned = self._returned()
        for entry in changes:
            if returned is not None and entry.group > returned.group:
                break
            try:
                self.handle(entry)
            except ApplierStopped as stopped:
                stopped.place = StopPlace(tuple(entry.steps), bool(self.rejected))
                raise
        if returned is not None:
            stop = stop_at_returned(self.cluster.name, self.source.name, self.apply.foreign_epoch, returned)
            raise ApplierStopped(stop)
        self.make_exceptions_rows()

    def _returned(self) -> ReturnedEpoch | None:
        """
        Return the older epoch of its source that the epoch brings again and that stops the applier; None if none does.

        Source: `Ndb_applier::verify_next_epoch` in the server's ``ndb_applier.cc``.
        """
        returned = self.source.payloads.returned.get(self.apply.foreign_epoch)
        if returned is None or self.apply.source_server not in (0, returned.server):
            return None  # an applier compares the epochs of the SQL node from whose log it reads
        return None if self.cluster.cluster.shows_later(self.apply) else returned

    def handle(self, entry: LoggedChange) -> None:
        """
        Handle one operation.

        Raises:
            ApplierStopped: The applier cannot go on.
        """
        setup = self.cluster.setups.get(entry.change.table)
        if setup is None:
            raise self.stopped(ServerStop.NO_SUCH_TABLE, entry.change)
        entry, wrong = as_taken(entry, setup)
        change, facts = entry.change, self._facts(entry, setup, wrong)
        stop = first_stop(facts)
        if stop is not None:
            raise self.stopped(stop, change, wrong)
        if facts.empty:
            self.decided.append(DecidedOperation(entry, IGNORED))
            return
        if facts.scanned:
            self.change_copies(entry)
            return
        self.counters[REFLECTED_RECEIVED] += bool(change.flags & ConflictFlag.REFLECTED)
        self.counters[REFRESH_RECEIVED] += bool(change.flags & ConflictFlag.REFRESH)
        self.tracker.touch(entry.row, entry.group)
        if facts.rejected:
            self._reject_with_transaction(entry, setup)
            return
        if not setup.table.primary_key:
            self._insert_copy(entry, setup)
            return
        if self.cluster.cluster.applies_singly and entry.row in self.refreshes:
            decision, met = AFTER_REFRESH, None  # the row is refreshed at once, and nothing can follow that
        else:
            decision, met = self.decide(entry, setup)
        made = self._merged(entry, decision, met, setup) if decision.verdict is Verdict.MERGED else entry
        self.decided.append(DecidedOperation(entry, decision, met, None if made is entry else made.change.after))
        if decision.verdict.writes_row:
            self._change_row(made, setup)
        elif decision.verdict is Verdict.REJECTED:
            assert setup.function is not None
            self._note_conflict(entry, setup.function, decision)
        self.counters[REFLECTED_DISCARDED] += decision.verdict is Verdict.DISCARDED

    def _facts(self, entry: LoggedChange, setup: TableSetup, wrong: Misfit | None) -> StopFacts:
        """Return what can stop the applier at an operation."""
        change = entry.change
        compares = setup.function is not None and setup.refusal is None and wrong is None
        found = StopFacts(
            no_conversion=wrong is not None,
            empty=change.operation is Operation.UPDATE_ROW and not (change.after and change.after.present),
            rejected=entry.group in self.rejected,
            no_transaction_id=change.transaction_id is None,
            no_value=compares and not self.cluster.skip_missing and self.lacks_value(change, setup),
        )
        return stop_facts(setup, self.cluster.role, change.operation, found)

    def lacks_value(self, change: RowChange, setup: TableSetup) -> bool:
        """Whether an operation lacks the value that the function of its table compares."""
        return setup.function is not None and missing_image(change, setup.function, setup.table) is not None

    def change_copies(self, entry: LoggedChange) -> None:
        """
        Apply an operation on a table without a primary key.

        Raises:
            ApplierStopped: No row has its values.
        """
        store, table = self.cluster.store, self.cluster.setups[entry.change.table].table
        change = change_copies(store, table, entry.change, local=False, epoch=self.apply.epoch)
        if change is None:
            raise self.stopped(ServerStop.ROW_NOT_FOUND, entry.change)
        entry = attrs.evolve(entry, change=change)
        self.decided.append(DecidedOperation(entry, APPLIED))
        self.copies.note(change, entry.server_id, copies_of(store, entry.row))

    def _insert_copy(self, entry: LoggedChange, setup: TableSetup) -> None:
        """Apply an insert into a table without a primary key, which the primary reflects."""
        self.change_copies(entry)
        if setup.deployed(self.cluster.role).marks_reflected:
            self.copies.reflected.append(entry.change)

    def _reject_with_transaction(self, entry: LoggedChange, setup: TableSetup) -> None:
        """Reject an operation because its transaction is in conflict; its row, if it has a key, is refreshed."""
        self.counters[TRANSACTION_ROW_REJECTS] += 1
        self.decided.append(DecidedOperation(entry, REJECTED_WITH_TRANSACTION))
        if setup.table.primary_key:
            self.refreshes.setdefault(entry.row, entry.change)

    def decide(self, entry: LoggedChange, setup: TableSetup) -> tuple[Decision, Row | None]:
        """Return the decision, and the row on which it was made."""
        row = self.cluster.store.get(entry.row)
        return self.decide_on(row, entry, setup), row

    def decide_on(self, row: Row | None, entry: LoggedChange, setup: TableSetup) -> Decision:
        """Return the decision on an operation that meets a row."""
        deployed, change = setup.deployed(self.cluster.role), entry.change
        if deployed.as_secondary:
            return decide_as_secondary(row, change, setup.table)
        if deployed.judge is None:
            return decide_without_function(row, change, setup.table)
        return self.judge(row, entry, setup, deployed.judge)

    def judge(self, row: Row | None, entry: LoggedChange, setup: TableSetup, function: ConflictFunction) -> Decision:
        """Return the decision of a conflict function."""
        change, table, known = entry.change, setup.table, self.cluster.max_replicated_epoch
        if self.cluster.skip_missing and missing_image(change, function, table) is not None:
            return SKIPPED
        sight = None if function.spec.own is None else self._sight(entry, setup)
        return decide_by_function(row, change, function, table, known, sight)

    def _sight(self, entry: LoggedChange, setup: TableSetup) -> Sight:
        """Return what a rule of one's own sees of an operation."""
        committed = self.apply.committed if entry.committed is None else entry.committed
        hides = entry.change.operation is Operation.WRITE_ROW and (entry.setup or setup).format.as_write
        return Sight(setup, self.cluster.layouts[entry.change.table], entry.server_id, committed, hides)

    def _merged(self, entry: LoggedChange, decision: Decision, row: Row | None, setup: TableSetup) -> LoggedChange:
        """Return an operation with what a merge writes in place of what it brings."""
        layout = self.cluster.layouts[entry.change.table]
        return attrs.evolve(entry, change=merged_change(entry.change, decision, row, setup, layout))

    def _change_row(self, entry: LoggedChange, setup: TableSetup) -> None:
        """Apply an operation to its row; the primary of NDB$EPOCH2 marks the row as reflected."""
        cluster = self.cluster
        stored = cluster.store.get(entry.row)
        change = as_spelled_here(entry.change, stored, setup.table)
        row = self.changed.setdefault(entry.row, ChangedRow(stored, change, entry.server_id, first=entry))
        reflected = setup.deployed(cluster.role).marks_reflected
        row.change = change
        row.server_id = cluster.server_id if reflected else entry.server_id
        row.flags = ConflictFlag.REFLECTED if reflected else NO_FLAGS
        from_log = entry.ordinal < 0 or change.flags & ConflictFlag.READ
        row.image = None if from_log else change.after
        if change.after is not None:
            row.written.update(change.after.present)
        refresh = bool(change.flags & ConflictFlag.REFRESH)
        place, committed = (self.source.name, self.apply.foreign_epoch, change.operation), entry.committed
        committed = self.apply.committed if committed is None else committed
        by = LastWrite(*place, refresh, change.origin, entry.server_id, committed)
        cluster.store.write(change, local=False, epoch=self.apply.epoch, by=by)

    def _note_conflict(self, entry: LoggedChange, function: ConflictFunction, decision: Decision) -> None:
        """Count a rejected operation, mark its transaction, and have its row refreshed unless it is a delete-delete."""
        moved = moved_counters(function.spec, entry.change.operation, decision)
        self.counters.update(moved)
        if moved[TRANSACTION_ROW_CONFLICTS]:
            self.tracker.conflicting.add(entry.group)
        # As in the server, a delete-delete is counted and not refreshed.
        if function.spec.refreshes and not moved[DELETE_DELETE]:
            self.refreshes.setdefault(entry.row, entry.change)

    def make_exceptions_rows(self) -> None:
        """Number the rejected operations: those of rejected transactions as they came, and after them all others."""
        rejected = [each for each in self.decided if each.decision.verdict is Verdict.REJECTED]
        server = self.apply.server or self.cluster.server_id
        restarts = sum(self.apply.epoch >= first for first in self.cluster.cluster.restarts.get(server, ()))
        for each in sorted(rejected, key=lambda each: each.decision.cause is not Cause.TRANS_IN_CONFLICT):
            exceptions = self.cluster.setups[each.entry.change.table].exceptions
            if exceptions is not None:
                # A pass that is rolled back has used up its numbers all the same.
                counted = server, restarts, exceptions.table.full_name
                self.cluster.exceptions_count[counted] += 1
                count = self.cluster.exceptions_count[counted]
                self.exceptions.append((exceptions, exceptions.row(self._record(each, count))))
                self.excepted.append(each)

    def _record(self, rejected: DecidedOperation, count: int) -> ConflictRecord:
        change = rejected.entry.change
        with_transaction = rejected.decision.cause is Cause.TRANS_IN_CONFLICT
        transaction_id = change.transaction_id if with_transaction else None
        return ConflictRecord(
            server_id=self.apply.server or self.cluster.server_id,
            source_server_id=self.apply.source_server or self.source.server_id,
            source_epoch=self.apply.foreign_epoch,
            count=count,
            operation=change.operation,
            cause=rejected.decision.cause,
            transaction_id=UNKNOWN_TRANSACTION_ID if transaction_id is None else transaction_id,
            before=change.before,
            after=change.after,
            read=with_transaction and bool(change.flags & ConflictFlag.READ),
        )

    def stopped(
        self, kind: ServerStop, change: RowChange, wrong: Misfit | None = None, link: KeyLink | None = None
    ) -> ApplierStopped:
        """Return the signal that the applier stops at an operation."""
        setup = self.cluster.setups.get(change.table)
        at = StoppedAt(
            self.cluster.name,
            change.table,
            change.operation,
            self.apply.foreign_epoch,
            change.origin,
            function=None if setup is None else setup.function,
            misfit=wrong,
            link=link,
        )
        return ApplierStopped(at.stop(kind))
