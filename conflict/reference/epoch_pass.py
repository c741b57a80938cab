"""
One pass of an applier over the operations of a foreign epoch.

The pass decides on every operation in the order of the log. Each operation sees the rows as the operations before it
left them. The caller commits the pass or rolls it back (see `conflict.reference.applier`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import attrs

from conflict.history.model import NO_FLAGS, Cluster, EpochApply, RowChange
from conflict.history.scheduling.fitting import fitted, misfit
from conflict.reference.cluster import ReplayedCluster
from conflict.reference.decide import (
    decide_as_secondary,
    decide_by_function,
    decide_without_function,
    missing_image,
)
from conflict.reference.dependencies import DependencyTracker
from conflict.reference.epoch_log import LoggedChange
from conflict.reference.row_store import Row, RowKey
from conflict.reference.rows_without_key import CopyChanges, as_own_row, change_copies, copies_of
from conflict.results.model import LastWrite, Stop, StopPlace
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
from conflict.rules.functions import ConflictFunction
from conflict.rules.roles import Role
from conflict.rules.stop_messages import (
    StopError,
    blob_refresh,
    missing_information,
    no_such_table,
    no_transaction_ids,
    role_not_set,
    row_not_found,
)
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import Value

__all__ = ["ApplierStopped", "ChangedRow", "DecidedOperation", "EpochPass"]

SKIPPED = Decision(Verdict.SKIPPED)
REJECTED_WITH_TRANSACTION = Decision(Verdict.REJECTED, Cause.TRANS_IN_CONFLICT)


class ApplierStopped(Exception):  # noqa: N818  # a signal inside this package, not an error
    """The applier cannot go on; carries the `Stop`, and its place if an operation stops it before the commit."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.message)
        self.stop = stop
        self.place: StopPlace | None = None


@attrs.frozen
class DecidedOperation:
    """An operation, the decision on it, and the row that it met; None if there was none, or it did not matter."""

    entry: LoggedChange
    decision: Decision
    met: Row | None = None


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
    """

    before: Row | None
    change: RowChange
    server_id: int
    written: set[int] = attrs.field(factory=set)
    flags: ConflictFlag = NO_FLAGS
    image: RowImage | None = None


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
        for entry in changes:
            try:
                self.handle(entry)
            except ApplierStopped as stopped:
                stopped.place = StopPlace(tuple(entry.steps), bool(self.rejected))
                raise
        self.make_exceptions_rows()

    def handle(self, entry: LoggedChange) -> None:
        """
        Handle one operation.

        Raises:
            ApplierStopped: The applier cannot go on.
        """
        change = entry.change
        setup = self.cluster.setups.get(change.table)
        if setup is None or setup.refusal is not None:
            message = no_such_table(change.table, self.cluster.name)
            raise self.stopped(StopError.NO_SUCH_TABLE, change, message)
        if entry.setup is not None and entry.setup.declared is not setup.declared:
            entry = self._fitted(entry, entry.setup, setup)
            change = entry.change
        if change.operation is Operation.UPDATE_ROW and not (change.after and change.after.present):
            # The server skips an update with an empty after image before it does anything else.
            self.decided.append(DecidedOperation(entry, IGNORED))
            return
        if not setup.table.primary_key and change.operation is not Operation.WRITE_ROW:
            self._change_copies(entry)  # a row that is found by a scan comes before no function
            return
        self.counters[REFLECTED_RECEIVED] += bool(change.flags & ConflictFlag.REFLECTED)
        self.counters[REFRESH_RECEIVED] += bool(change.flags & ConflictFlag.REFRESH)
        function = self.active_function(setup, change)
        self.tracker.touch(entry.row, entry.group)
        if entry.group in self.rejected:
            self._reject_with_transaction(entry, setup)
            return
        if not setup.table.primary_key:
            self._insert_copy(entry, function)
            return
        decision, met = self.decide(entry, setup, function)
        self.decided.append(DecidedOperation(entry, decision, met))
        if decision.verdict is Verdict.APPLIED:
            self._change_row(entry, function)
        elif decision.verdict is Verdict.REJECTED:
            assert function is not None
            self._note_conflict(entry, function, decision)
        self.counters[REFLECTED_DISCARDED] += decision.verdict is Verdict.DISCARDED

    def _change_copies(self, entry: LoggedChange) -> None:
        """Apply an operation on a table without a primary key."""
        store, table = self.cluster.store, self.cluster.setups[entry.change.table].table
        change = change_copies(store, table, entry.change, local=False, epoch=self.apply.epoch)
        if change is None:
            raise self.stopped(StopError.ROW_NOT_FOUND, entry.change, row_not_found(entry.change.table))
        entry = attrs.evolve(entry, change=change)
        self.decided.append(DecidedOperation(entry, APPLIED))
        self.copies.note(change, entry.server_id, copies_of(store, entry.row))

    def _insert_copy(self, entry: LoggedChange, function: ConflictFunction | None) -> None:
        """Apply an insert into a table without a primary key, which the primary reflects."""
        if function is not None and function.spec.transactional and entry.change.transaction_id is None:
            raise self.stopped(StopError.FROM_NDB, entry.change, no_transaction_ids(function))
        self._change_copies(entry)
        if function is not None and function.spec.uses_role and self.cluster.role is Role.PRIMARY:
            self.copies.reflected.append(entry.change)

    def _fitted(self, entry: LoggedChange, source: TableSetup, setup: TableSetup) -> LoggedChange:
        """Return an operation as the applier's own table takes it."""
        column = misfit(source, setup)
        if column is not None:
            raise self.stopped(StopError.NO_CONVERSION, entry.change, column[1], column[0])
        change = fitted(entry.change, source, setup)
        return attrs.evolve(entry, change=change if setup.table.primary_key else as_own_row(change, setup.table))

    def active_function(self, setup: TableSetup, change: RowChange) -> ConflictFunction | None:
        """Return the conflict function of a table; None if it has none or the role is PASS."""
        function, cluster = setup.function, self.cluster
        if function is not None and function.spec.uses_role:
            if cluster.role is Role.NONE:
                raise self.stopped(StopError.FROM_NDB, change, role_not_set(function, cluster.name))
            if cluster.role is Role.PASS:
                return None
        return function

    def _reject_with_transaction(self, entry: LoggedChange, setup: TableSetup) -> None:
        """Reject an operation because its transaction is in conflict; its row, if it has a key, is refreshed."""
        self.counters[TRANSACTION_ROW_REJECTS] += 1
        if any(column.is_blob for column in setup.table.columns):
            raise self.stopped(StopError.FROM_NDB, entry.change, blob_refresh(entry.change.table))
        self.decided.append(DecidedOperation(entry, REJECTED_WITH_TRANSACTION))
        if setup.table.primary_key:
            self.refreshes.setdefault(entry.row, entry.change)

    def decide(
        self, entry: LoggedChange, setup: TableSetup, function: ConflictFunction | None
    ) -> tuple[Decision, Row | None]:
        """Return the decision, and the row on which it was made."""
        row = self.cluster.store.get(entry.row)
        return self.decide_on(row, entry.change, setup, function), row

    def decide_on(
        self, row: Row | None, change: RowChange, setup: TableSetup, function: ConflictFunction | None
    ) -> Decision:
        """Return the decision on an operation that meets a row."""
        if function is None:
            return decide_without_function(row, change, setup.table)
        if function.spec.transactional and change.transaction_id is None:
            raise self.stopped(StopError.FROM_NDB, change, no_transaction_ids(function))
        if function.spec.uses_role and self.cluster.role is Role.SECONDARY:
            return decide_as_secondary(row, change, setup.table)
        return self.judge(row, change, setup.table, function)

    def judge(self, row: Row | None, change: RowChange, table: Table, function: ConflictFunction) -> Decision:
        """Return the decision of a conflict function."""
        missing = missing_image(change, function, table)
        if missing is None:
            return decide_by_function(row, change, function, table, self.cluster.max_replicated_epoch)
        if self.cluster.skip_missing:
            return SKIPPED
        message = missing_information(function, change.operation, missing)
        raise self.stopped(StopError.FROM_NDB, change, message, function.column)

    def _change_row(self, entry: LoggedChange, function: ConflictFunction | None) -> None:
        """Apply an operation to its row; the primary of NDB$EPOCH2 marks the row as reflected."""
        change, cluster = entry.change, self.cluster
        row = self.changed.setdefault(entry.row, ChangedRow(cluster.store.get(entry.row), change, entry.server_id))
        reflects = function is not None and function.spec.uses_role and cluster.role is Role.PRIMARY
        row.change = change
        row.server_id = cluster.server_id if reflects else entry.server_id
        row.flags = ConflictFlag.REFLECTED if reflects else NO_FLAGS
        from_log = entry.ordinal < 0 or change.flags & ConflictFlag.READ
        row.image = None if from_log else change.after
        if change.after is not None:
            row.written.update(change.after.present)
        refresh = bool(change.flags & ConflictFlag.REFRESH)
        by = LastWrite(self.source.name, self.apply.foreign_epoch, change.operation, refresh, change.origin)
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
        for each in sorted(rejected, key=lambda each: each.decision.cause is not Cause.TRANS_IN_CONFLICT):
            exceptions = self.cluster.setups[each.entry.change.table].exceptions
            if exceptions is not None:
                # A pass that is rolled back has used up its numbers all the same.
                self.cluster.exceptions_count[exceptions.table.full_name] += 1
                count = self.cluster.exceptions_count[exceptions.table.full_name]
                self.exceptions.append((exceptions, exceptions.row(self._record(each, count))))
                self.excepted.append(each)

    def _record(self, rejected: DecidedOperation, count: int) -> ConflictRecord:
        change = rejected.entry.change
        with_transaction = rejected.decision.cause is Cause.TRANS_IN_CONFLICT
        transaction_id = change.transaction_id if with_transaction else None
        return ConflictRecord(
            server_id=self.cluster.server_id,
            source_server_id=self.source.server_id,
            source_epoch=self.apply.foreign_epoch,
            count=count,
            operation=change.operation,
            cause=rejected.decision.cause,
            transaction_id=UNKNOWN_TRANSACTION_ID if transaction_id is None else transaction_id,
            before=change.before,
            after=change.after,
            read=with_transaction and bool(change.flags & ConflictFlag.READ),
        )

    def stopped(self, error: StopError, change: RowChange, message: str, column: str | None = None) -> ApplierStopped:
        """Return the signal that the applier stops at an operation."""
        stop = Stop(error, self.apply.foreign_epoch, change.table, column, change.operation, change.origin, message)
        return ApplierStopped(stop)
