"""
One pass of an applier over the operations of a foreign epoch.

All operations are checked against the rows as they stand, in order, each seeing the ones before it. A pass may
be rolled back and another one made (see `conflict.reference.applier`).
"""

from __future__ import annotations

from collections import Counter
from enum import Enum

import attrs

from conflict.history.model import NO_FLAGS, EpochApply, RowChange
from conflict.reference.dependencies import DependencyTracker
from conflict.reference.epoch_log import LoggedChange
from conflict.reference.row_store import EMPTY_ROW, Row, RowKey, RowStore
from conflict.results.model import Stop
from conflict.rules.counters import (
    DELETE_DELETE,
    REFLECTED_DISCARDED,
    REFLECTED_RECEIVED,
    REFRESH_RECEIVED,
    TRANSACTION_ROW_CONFLICTS,
    TRANSACTION_ROW_REJECTS,
)
from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict, stored_precision
from conflict.rules.exceptions_table import UNKNOWN_TRANSACTION_ID, ExceptionsTable
from conflict.rules.functions import ConflictFunction, Image
from conflict.rules.roles import Role
from conflict.rules.stop_messages import (
    StopError,
    blob_refresh,
    missing_information,
    no_such_table,
    no_transaction_ids,
    role_not_set,
)
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import ABSENT, Value

__all__ = ["EpochPass", "Judged", "PassKind", "Stopped", "Touched", "write_row"]

APPLY = Decision(Verdict.APPLIED)
IGNORE = Decision(Verdict.IGNORED)
DISCARD = Decision(Verdict.DISCARDED)
REJECT_TRANSACTION = Decision(Verdict.REJECTED, Cause.TRANS_IN_CONFLICT)


class PassKind(Enum):
    """What a pass is for; named as in the server's source."""

    # Rows are judged one by one.
    NORMAL = "normal"
    # The same, and which transactions touch the same rows is written down.
    TRACK = "track dependencies"
    # Transactions in conflict are left out.
    APPLY = "apply dependencies"


class Stopped(Exception):  # noqa: N818  # a signal inside this package, not an error
    """The applier cannot go on; carries the `Stop`."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.message)
        self.stop = stop


@attrs.frozen
class Judged:
    """What was decided on an operation, and the transaction id that an exceptions table tells of it."""

    entry: LoggedChange
    decision: Decision
    transaction_id: int = UNKNOWN_TRANSACTION_ID


@attrs.define
class Touched:
    """A row that the pass changed: how it was before, which columns were written, and by which operation last."""

    before: Row | None
    change: RowChange
    server_id: int
    written: set[int] = attrs.field(factory=set)
    flags: ConflictFlag = NO_FLAGS


@attrs.define
class EpochPass:
    """
    One pass.

    Attributes:
        cluster: Name of the applying cluster.
        server_id: Its server id.
        role: Its role.
        setups: How its server set up each table.
        store: Its rows; what the pass changes can be rolled back.
        max_replicated_epoch: Highest own epoch known to have come back.
        apply: The take.
        kind: What the pass is for.
        rejected: Transactions to leave out; known only when dependencies are applied.
        tracker: Where dependencies are written down.
        skip_missing: Leave out operations that lack a value to compare, instead of stopping.
        counters: Status counters that the pass moves.
        judged: What became of each operation, in order.
        exceptions: Rows for exceptions tables.
        refreshes: Rows to send again, each with the first operation that was rejected.
        touched: Rows that were changed.
    """

    cluster: str
    server_id: int
    role: Role
    setups: dict[str, TableSetup]
    store: RowStore
    max_replicated_epoch: int
    apply: EpochApply
    kind: PassKind
    rejected: frozenset[int] = frozenset()
    skip_missing: bool = False
    tracker: DependencyTracker = attrs.field(factory=DependencyTracker)
    counters: Counter[str] = attrs.field(factory=Counter)
    judged: list[Judged] = attrs.field(factory=list)
    exceptions: list[tuple[ExceptionsTable, tuple[Value, ...]]] = attrs.field(factory=list)
    refreshes: dict[RowKey, RowChange] = attrs.field(factory=dict)
    touched: dict[RowKey, Touched] = attrs.field(factory=dict)

    def handle(self, entry: LoggedChange) -> None:
        """
        Handle one operation.

        Raises:
            Stopped: The applier cannot go on.
        """
        change = entry.change
        setup = self.setups.get(change.table)
        if setup is None or setup.refusal is not None:
            message = no_such_table(change.table, self.cluster)
            raise self.stopped(StopError.NO_SUCH_TABLE, change, message)
        if change.operation is Operation.UPDATE_ROW and not (change.after and change.after.present):
            # The server skips an update whose after image is empty before it looks at anything else.
            self.judged.append(Judged(entry, IGNORE))
            return
        self.counters[REFLECTED_RECEIVED] += bool(change.flags & ConflictFlag.REFLECTED)
        self.counters[REFRESH_RECEIVED] += bool(change.flags & ConflictFlag.REFRESH)
        function = self._active_function(setup, change)
        if self.kind is PassKind.TRACK:
            self.tracker.touch((change.table, change.key), entry.group)
        if entry.group in self.rejected:
            self._reject_with_transaction(entry, setup)
            return
        decision = self._decide(change, setup.table, function)
        self.judged.append(Judged(entry, decision))
        if decision.verdict is Verdict.APPLIED:
            self._apply(entry, function)
        elif decision.verdict is Verdict.REJECTED:
            assert function is not None
            self._count_conflict(entry, function, decision)
        self.counters[REFLECTED_DISCARDED] += decision.verdict is Verdict.DISCARDED

    def _active_function(self, setup: TableSetup, change: RowChange) -> ConflictFunction | None:
        function = setup.function
        if function is not None and function.spec.uses_role:
            if self.role is Role.NONE:
                raise self.stopped(StopError.FROM_NDB, change, role_not_set(function, self.cluster))
            if self.role is Role.PASS:
                return None
        return function

    def _reject_with_transaction(self, entry: LoggedChange, setup: TableSetup) -> None:
        """Leave out an operation because its transaction is in conflict; its row is sent again in any case."""
        change = entry.change
        self.counters[TRANSACTION_ROW_REJECTS] += 1
        if any(column.is_blob for column in setup.table.columns):
            raise self.stopped(StopError.FROM_NDB, change, blob_refresh(change.table))
        transaction_id = UNKNOWN_TRANSACTION_ID if change.transaction_id is None else change.transaction_id
        self.judged.append(Judged(entry, REJECT_TRANSACTION, transaction_id))
        self.refreshes.setdefault((change.table, change.key), change)

    def _decide(self, change: RowChange, table: Table, function: ConflictFunction | None) -> Decision:
        row = self.store.get((change.table, change.key))
        if function is None:
            return _decide_without_function(row, change, table)
        if function.spec.transactional and change.transaction_id is None:
            raise self.stopped(StopError.FROM_NDB, change, no_transaction_ids(function))
        reflected = bool(change.flags & ConflictFlag.REFLECTED)
        if function.spec.uses_role and self.role is Role.SECONDARY:
            # The secondary follows the primary: what the primary did itself is applied whatever is here.
            if reflected:
                return _decide_reflected(row, change.operation)
            return _decide_without_function(row, change, table)
        decision = self._decide_by_function(row, change, function)
        writes = function.spec.conditional_write and change.operation is Operation.WRITE_ROW
        if writes and row is None and _cannot_be_inserted(change, table):
            decision = Decision(Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS)
        return DISCARD if reflected and decision.verdict is Verdict.REJECTED else decision

    def _decide_by_function(self, row: Row | None, change: RowChange, function: ConflictFunction) -> Decision:
        before, after = _number(change.before, function), _number(change.after, function)
        needed = function.spec.needs.get(change.operation)
        if needed is not None and {Image.BEFORE: before, Image.AFTER: after}[needed] is None:
            if self.skip_missing:
                return Decision(Verdict.SKIPPED)
            message = missing_information(function, change.operation, needed)
            raise self.stopped(StopError.FROM_NDB, change, message, function.column)
        state = RowState(exists=False)
        if row is not None:
            stored = self._stored(row, change, function)
            state = RowState(True, row.local, stored_precision(row.epoch, function.gci_bits), stored)
        incoming = IncomingOperation(change.operation, before, after, self.max_replicated_epoch)
        return function.spec.decide(state, incoming)

    def _stored(self, row: Row, change: RowChange, function: ConflictFunction) -> int | None:
        if function.column is None:
            return None
        payload = row.payloads.get(self.setups[change.table].table.ordinal(function.column))
        return int.from_bytes(payload, "little") if payload is not None else 0

    def _apply(self, entry: LoggedChange, function: ConflictFunction | None) -> None:
        change = entry.change
        key = (change.table, change.key)
        touched = self.touched.setdefault(key, Touched(self.store.get(key), change, entry.server_id))
        reflects = function is not None and function.spec.reflects and self.role is Role.PRIMARY
        touched.change = change
        touched.server_id = self.server_id if reflects else entry.server_id
        touched.flags = ConflictFlag.REFLECTED if reflects else NO_FLAGS
        if change.after is not None:
            touched.written.update(change.after.present)
        write_row(self.store, change, local=False, epoch=self.apply.epoch)

    def _count_conflict(self, entry: LoggedChange, function: ConflictFunction, decision: Decision) -> None:
        """Count a rejected row, mark its transaction, and see to it that the row is sent again."""
        spec, change = function.spec, entry.change
        self.counters[spec.counter] += 1
        # A refresh could not be told from one of the row's later life in the same epoch.
        delete_delete = change.operation is Operation.DELETE_ROW and decision.cause is Cause.ROW_DOES_NOT_EXIST
        if spec.transactional and (not delete_delete or spec.delete_delete_conflicts):
            self.counters[TRANSACTION_ROW_CONFLICTS] += 1
            self.tracker.conflicting.add(entry.group)
        if spec.refreshes and delete_delete:
            self.counters[DELETE_DELETE] += 1
        elif spec.refreshes:
            self.refreshes.setdefault((change.table, change.key), change)

    def stopped(self, error: StopError, change: RowChange, message: str, column: str | None = None) -> Stopped:
        """Return the signal that the applier cannot go on."""
        stop = Stop(error, self.apply.foreign_epoch, change.table, column, change.operation, change.origin, message)
        return Stopped(stop)


def _decide_without_function(row: Row | None, change: RowChange, table: Table) -> Decision:
    """
    Nothing is judged: a write is an upsert, and what finds no row is ignored.

    So is an update on the secondary: the server sends it as a write, but without the primary key among
    the columns, and the data node makes no row of that.
    """
    if row is not None:
        return APPLY
    inserts = change.operation is Operation.WRITE_ROW and not _cannot_be_inserted(change, table)
    return APPLY if inserts else IGNORE


def _cannot_be_inserted(change: RowChange, table: Table) -> bool:
    """
    Whether a write that may also update lacks a column that a new row has to have.

    The data node refuses such a row as violating a constraint, and the applier takes every such error for
    a row that exists already.
    """
    assert change.after is not None
    present = {*change.after.present, *table.key_ordinals}
    return any(place not in present and column.must_be_given for place, column in enumerate(table.columns))


def _decide_reflected(row: Row | None, operation: Operation) -> Decision:
    """
    Decide on what the primary applied and sent back.

    It is needed only where both clusters deleted the row: a row that is here, or was changed here
    since, is newer than what comes back.
    """
    if operation is Operation.WRITE_ROW:
        return APPLY if row is None else DISCARD
    return DISCARD if row is None or row.local else APPLY


def _number(image: RowImage | None, function: ConflictFunction) -> int | None:
    """Return the resolve column's value; None if the image does not carry it. NULL compares as 0."""
    if image is None or function.column is None:
        return None
    value = image.value(image.layout.names.index(function.column))
    if value is ABSENT:
        return None
    assert value is None or isinstance(value, int)
    return value or 0


def write_row(store: RowStore, change: RowChange, *, local: bool, epoch: int) -> None:
    """Do a change to a row; the columns that it does not carry stay as they are."""
    key = (change.table, change.key)
    if change.operation is Operation.DELETE_ROW:
        store.put(key, None)
        return
    assert change.after is not None
    row = store.get(key) or EMPTY_ROW
    if change.before is not None and row is EMPTY_ROW:
        row = row.with_image(change.before, local=local, epoch=epoch)
    store.put(key, row.with_image(change.after, local=local, epoch=epoch))
