"""
One applier: takes a foreign epoch as one NDB transaction.

All its operations are checked against the rows as they stand, in order, each seeing the ones before it.
Refreshes are made after them, one per row, and send the row as it then stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from conflict.counters import DELETE_DELETE, REFRESH_RECEIVED
from conflict.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from conflict.engine.row_store import EMPTY_ROW, Row, RowKey, RowStore, stored_precision
from conflict.errors import NotBuiltError
from conflict.exceptions_table import UNKNOWN_TRANSACTION_ID, ConflictRecord, ExceptionsTable
from conflict.functions import ConflictFunction, Image
from conflict.history import Cluster, RowChange, Take, Transaction
from conflict.resolution import ClusterResult, Effect, Outcome, Stop, StopKind
from conflict.setup import TableSetup
from conflict.stop_words import missing_information, no_such_table
from ndb_formats.events.rows_event import Operation
from ndb_formats.extra_row_info import ConflictFlag
from ndb_formats.row_image import RowImage, RowLayout
from ndb_formats.values import ABSENT, Value

__all__ = ["ExceptionRow", "LogEntry", "Site"]

APPLY = Decision(Verdict.APPLIED)
IGNORE = Decision(Verdict.IGNORED)


@attrs.frozen
class ExceptionRow:
    """A row written to an exceptions table that is itself replicated."""

    table: str
    row: tuple[Value, ...]


@attrs.frozen
class LoggedChange:
    """A row operation that the other side has to apply, with its place in its epoch (see `Outcome`)."""

    change: RowChange
    group: int
    ordinal: int


LogEntry = LoggedChange | ExceptionRow


class _Stopped(Exception):  # noqa: N818  # a signal inside this module, not an error
    """The applier cannot go on; carries the `Stop`."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.message)
        self.stop = stop


@attrs.define
class _Attempt:
    """What one foreign epoch has done so far; dropped if the applier stops in it."""

    take: Take
    source: Cluster
    outcomes: list[Outcome] = attrs.field(factory=list)
    counters: dict[str, int] = attrs.field(factory=dict)
    exceptions: list[tuple[ExceptionsTable, tuple[Value, ...]]] = attrs.field(factory=list)
    received: list[ExceptionRow] = attrs.field(factory=list)
    refreshes: dict[RowKey, RowChange] = attrs.field(factory=dict)
    existed: dict[RowKey, bool] = attrs.field(factory=dict)

    def count(self, counter: str) -> None:
        self.counters[counter] = self.counters.get(counter, 0) + 1


@attrs.define
class Site:
    """
    One cluster while it is replayed.

    Attributes:
        cluster: Its part of the History.
        setups: How its server set up each table.
        layouts: How the rows of each table are read.
        store: Its rows.
        log: What it logs per own epoch that the other side has to apply: its own changes and refreshes.
        relayed: Per own epoch, the highest foreign epoch whose `ndb_apply_status` row it logged.
        max_replicated_epoch: Highest own epoch seen coming back.
        result: What it ends with.
    """

    cluster: Cluster
    setups: dict[str, TableSetup]
    layouts: dict[str, RowLayout]
    store: RowStore = attrs.field(factory=RowStore)
    log: dict[int, list[LogEntry]] = attrs.field(factory=dict)
    relayed: dict[int, int] = attrs.field(factory=dict)
    max_replicated_epoch: int = 0
    result: ClusterResult = attrs.field(factory=ClusterResult)
    outcomes: list[Outcome] = attrs.field(factory=list)
    _record_counts: dict[str, int] = attrs.field(factory=dict)
    _ordinal: tuple[int, int] = (-1, 0)

    def commit(self, transaction: Transaction) -> None:
        """Do what the cluster did itself."""
        log = self.log.setdefault(transaction.epoch, [])
        for change in transaction.changes:
            if not change.flags & ConflictFlag.READ:
                key = (change.table, change.key)
                missing = self.store.get(key) is None
                self.result.unexplained += missing and change.operation is not Operation.WRITE_ROW
                self._write(key, change, local=True, epoch=transaction.epoch)
            log.append(LoggedChange(change, transaction.group, self._next_ordinal(transaction.epoch)))
        self.store.commit()

    def _next_ordinal(self, epoch: int) -> int:
        last_epoch, ordinal = self._ordinal
        self._ordinal = (epoch, ordinal + 1 if epoch == last_epoch else 0)
        return self._ordinal[1]

    def take(self, take: Take, source: Site) -> None:
        """Apply one epoch of the other cluster, unless this applier has stopped."""
        if self.result.stop is not None:
            return
        attempt = _Attempt(take, source.cluster)
        counts = dict(self._record_counts)
        try:
            for entry in source.log.get(take.foreign_epoch, ()):
                if isinstance(entry, ExceptionRow):
                    attempt.received.append(entry)
                else:
                    self._apply(entry, attempt)
        except _Stopped as stopped:
            self.store.roll_back()
            self._record_counts = counts
            self.result.stop = stopped.stop
            return
        self._finish(attempt)
        back = source.relayed.get(take.foreign_epoch, 0)
        self.max_replicated_epoch = max(self.max_replicated_epoch, back)

    def _apply(self, entry: LoggedChange, attempt: _Attempt) -> None:
        change = entry.change
        setup = self.setups.get(change.table)
        if setup is None or setup.refusal is not None:
            message = no_such_table(change.table, self.cluster.name)
            raise _stopped(StopKind.NO_SUCH_TABLE, change, attempt, None, message)
        if change.flags & ConflictFlag.REFRESH:
            attempt.count(REFRESH_RECEIVED)
        key = (change.table, change.key)
        row = self.store.get(key)
        if setup.function is None:
            decision = _decide_without_function(row, change.operation)
        else:
            decision = self._decide(row, change, setup.function, attempt)
        attempt.outcomes.append(self._outcome(entry, attempt, decision))
        if decision.verdict is Verdict.APPLIED:
            if not change.flags & ConflictFlag.READ:
                attempt.existed.setdefault(key, row is not None)
                self._write(key, change, local=False, epoch=attempt.take.epoch)
        elif decision.verdict is Verdict.REJECTED:
            assert setup.function is not None
            self._reject(key, change, setup.function, setup.exceptions, decision, attempt)

    def _decide(self, row: Row | None, change: RowChange, function: ConflictFunction, attempt: _Attempt) -> Decision:
        if function.spec.decide is None:
            message = f"{function.spec.name} is not built yet"
            raise NotBuiltError(message)
        before, after = self._resolve_values(change, function, attempt)
        state = RowState(exists=False)
        if row is not None:
            state = RowState(
                True,
                row.local,
                stored_precision(row.epoch, function.gci_bits),
                self._stored(row, change, function),
            )
        return function.spec.decide(
            state, IncomingOperation(change.operation, before, after, self.max_replicated_epoch)
        )

    def _resolve_values(
        self, change: RowChange, function: ConflictFunction, attempt: _Attempt
    ) -> tuple[int | None, int | None]:
        """Return the resolve column's values in both images; stop if the one that is needed is absent."""
        if function.column is None:
            return None, None
        ordinal = self.layouts[change.table].names.index(function.column)
        values = {Image.BEFORE: _number(change.before, ordinal), Image.AFTER: _number(change.after, ordinal)}
        needed = function.spec.needs.get(change.operation)
        if needed is not None and values[needed] is None:
            message = missing_information(function, change.operation, needed)
            raise _stopped(StopKind.MISSING_INFORMATION, change, attempt, function.column, message)
        return values[Image.BEFORE], values[Image.AFTER]

    def _stored(self, row: Row, change: RowChange, function: ConflictFunction) -> int | None:
        if function.column is None:
            return None
        ordinal = self.layouts[change.table].names.index(function.column)
        payload = row.payloads.get(ordinal)
        return int.from_bytes(payload, "little") if payload is not None else 0

    def _reject(
        self,
        key: RowKey,
        change: RowChange,
        function: ConflictFunction,
        exceptions: ExceptionsTable | None,
        decision: Decision,
        attempt: _Attempt,
    ) -> None:
        attempt.count(function.spec.counter)
        delete_delete = change.operation is Operation.DELETE_ROW and decision.cause is Cause.ROW_DOES_NOT_EXIST
        if function.spec.refreshes and delete_delete:
            attempt.count(DELETE_DELETE)
        elif function.spec.refreshes:
            attempt.refreshes.setdefault(key, change)
        if exceptions is not None:
            name = exceptions.table.full_name
            self._record_counts[name] = self._record_counts.get(name, 0) + 1
            record = ConflictRecord(
                server_id=self.cluster.server_id,
                source_server_id=attempt.source.server_id,
                source_epoch=attempt.take.foreign_epoch,
                count=self._record_counts[name],
                operation=change.operation,
                cause=decision.cause,
                transaction_id=UNKNOWN_TRANSACTION_ID,
                before=change.before,
                after=change.after,
                read=bool(change.flags & ConflictFlag.READ),
            )
            attempt.exceptions.append((exceptions, exceptions.row(record)))

    def _finish(self, attempt: _Attempt) -> None:
        """Refresh what was in conflict, and keep what the epoch did."""
        log = self.log.setdefault(attempt.take.epoch, [])
        # Takes without a trace can stand at one place; what the last of them did to a row counts.
        effects = self.result.effects.setdefault((attempt.take.epoch, attempt.take.group), {})
        effects.update(self._effects(attempt))
        for key, change in attempt.refreshes.items():
            log.append(LoggedChange(self._refresh(key, change, attempt.take.epoch), attempt.take.group, -1))
            self.result.refreshes[key[0]] = self.result.refreshes.get(key[0], 0) + 1
        for exceptions, row in attempt.exceptions:
            name = exceptions.table.full_name
            self.result.exceptions.setdefault(name, []).append(row)
            if exceptions.replicated:
                log.append(ExceptionRow(name, row))
        for entry in attempt.received:
            self.result.exceptions.setdefault(entry.table, []).append(entry.row)
        for counter, value in attempt.counters.items():
            self.result.counters[counter] += value
        if attempt.take.traced:
            self.relayed[attempt.take.epoch] = attempt.take.foreign_epoch
        self.outcomes.extend(attempt.outcomes)
        self.store.commit()

    def _effects(self, attempt: _Attempt) -> dict[RowKey, Effect]:
        """What one NDB transaction did to a row is one event; an insert and its delete are none, a refresh wins."""
        effects = {}
        for key, existed in attempt.existed.items():
            if self.store.get(key) is not None:
                effects[key] = Effect.CHANGED
            elif existed:
                effects[key] = Effect.DELETED
        for key in attempt.refreshes:
            effects[key] = Effect.REFRESHED if self.store.get(key) is not None else Effect.REFRESHED_ABSENT
        return effects

    def _refresh(self, key: RowKey, change: RowChange, epoch: int) -> RowChange:
        """Make the row count as changed here and now, and return the event that sends it again."""
        layout, row = self.layouts[change.table], self.store.get(key)
        if row is None:
            operation, before, after = (
                Operation.DELETE_ROW,
                _key_image(self.setups[change.table], change),
                None,
            )
        else:
            present = tuple(sorted(row.payloads))
            operation, before = Operation.WRITE_ROW, None
            after = RowImage(layout, present, tuple(row.payloads[place] for place in present))
            self.store.put(key, attrs.evolve(row, local=True, epoch=epoch))
        return RowChange(change.table, change.key, operation, before, after, flags=ConflictFlag.REFRESH)

    def _write(self, key: RowKey, change: RowChange, *, local: bool, epoch: int) -> None:
        if change.operation is Operation.DELETE_ROW:
            self.store.put(key, None)
            return
        assert change.after is not None
        row = self.store.get(key) or EMPTY_ROW
        if change.before is not None and row is EMPTY_ROW:
            row = row.with_image(change.before, local=local, epoch=epoch)
        self.store.put(key, row.with_image(change.after, local=local, epoch=epoch))

    def _outcome(self, entry: LoggedChange, attempt: _Attempt, decision: Decision) -> Outcome:
        change = entry.change
        return Outcome(
            applier=self.cluster.name,
            source=attempt.source.name,
            source_epoch=attempt.take.foreign_epoch,
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


def _stopped(error: int, change: RowChange, attempt: _Attempt, column: str | None, message: str) -> _Stopped:
    epoch = attempt.take.foreign_epoch
    return _Stopped(Stop(error, epoch, change.table, column, change.operation, change.origin, message))


def _decide_without_function(row: Row | None, operation: Operation) -> Decision:
    """Without a function everything is applied idempotently: a write is an upsert, a missing row no error."""
    return IGNORE if row is None and operation is not Operation.WRITE_ROW else APPLY


def _number(image: RowImage | None, ordinal: int) -> int | None:
    """Return an unsigned value; None if the image does not carry it. NULL compares as 0."""
    value = ABSENT if image is None else image.value(ordinal)
    if value is ABSENT:
        return None
    assert value is None or isinstance(value, int)
    return value or 0


def _key_image(setup: TableSetup, change: RowChange) -> RowImage:
    """Return an image of the key columns alone, out of a change that carries them."""
    image: Sequence[RowImage | None] = [change.before, change.after]
    source = next(candidate for candidate in image if candidate is not None)
    present = tuple(sorted(setup.table.key_ordinals))
    payloads = tuple(source.payloads[source.present.index(ordinal)] for ordinal in present)
    return RowImage(source.layout, present, payloads)
