"""
The result of resolving a History, the same from either engine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

import attrs

from conflict.history.shown_effects import Effect
from conflict.history.timeline import EpochApply, Origin, ReturnedEpoch, RowChange
from conflict.rules.counters import zero_counters
from conflict.rules.decision import Cause, Decision, Verdict
from conflict.rules.foreign_keys import KeyLink
from conflict.rules.functions import ConflictFunction
from conflict.rules.own_rule import CHANGED_COLUMNS, Image
from conflict.rules.stops import Misfit, ServerStop, StopError
from ndb_formats.constants import APPLY_STATUS
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table
from ndb_formats.schema.value_conversions import KnownValue
from ndb_formats.types.values import Value


@attrs.frozen
class Stop:
    """
    An applier stopped with an error. The epoch was rolled back; earlier ones stay. See docs/functions.md, "Stops".

    Attributes:
        kind: Why.
        foreign_epoch: Epoch of the other cluster that it could not apply.
        table: ``database.table``.
        column: Column at fault, if one is.
        operation: The operation that stopped it.
        origin: Where that operation is in the other cluster's binlog.
        message: What is wrong, and what to do.
        words: The server's words, where they name more than a table.
    """

    kind: ServerStop
    foreign_epoch: int
    table: str
    column: str | None
    operation: Operation
    origin: Origin | None
    message: str
    words: str | None = None

    def named(self, own_name: Callable[[str], str], tables: Iterable[str]) -> Stop:
        """Return the stop with the names that its cluster uses for tables."""
        message = self.message
        for table in tables:
            message = own_name(table).join(re.split(rf"(?<![\w$.]){re.escape(table)}(?![\w$])", message))
        return attrs.evolve(self, table=own_name(self.table), message=message)

    @property
    def error(self) -> StopError:
        """Server error number."""
        return self.kind.error

    @property
    def server(self) -> str | None:
        """The server's words; None if they hold more than we know."""
        return self.words or self.kind.words_with(table=self.table, name=self.table.rpartition(".")[2])


def stop_at_returned(cluster: str, source: str, foreign_epoch: int, returned: ReturnedEpoch) -> Stop:
    """
    Return the stop of an applier to which an epoch brings an older one of the same source again.

    Args:
        cluster: The applier's cluster.
        source: The cluster whose epochs they are.
        foreign_epoch: The epoch that it could not apply.
        returned: The older one.
    """
    kind = ServerStop.RETURNED_EPOCH
    names = {"cluster": cluster, "source": source, "server": returned.server}
    names |= {"lower": _in_full(returned.epoch), "higher": _in_full(foreign_epoch)}
    names |= {"older": f"the older epoch {names['lower']}", "later": f"epoch {names['higher']}"}
    message = f"{kind.because(**names)}; {kind.advice.format(**names)}"
    words = kind.words_with(**names)
    return Stop(kind, foreign_epoch, APPLY_STATUS, None, Operation.WRITE_ROW, returned.origin, message, words)


def _in_full(epoch: int) -> str:
    """Return an epoch as the server prints it."""
    return f"{epoch >> 32}/{epoch & 0xFFFFFFFF} ({epoch})"


@attrs.frozen
class StoppedAt:
    """
    The operation at which an applier stops, and what belongs to it.

    Attributes:
        cluster: The applier's cluster.
        table: ``database.table``.
        operation: The operation.
        foreign_epoch: Its epoch.
        origin: Where it is in the other cluster's binlog.
        function: The conflict function of the table.
        misfit: The column that may not be converted, if one may not.
        link: The foreign key that does not hold, if one does not.
    """

    cluster: str
    table: str
    operation: Operation
    foreign_epoch: int
    origin: Origin | None
    function: ConflictFunction | None = None
    misfit: Misfit | None = None
    link: KeyLink | None = None

    def stop(self, kind: ServerStop) -> Stop:
        """Return the stop, in the words of its kind."""
        names: dict[str, object] = {"cluster": self.cluster, "table": self.table}
        if self.misfit is not None:
            names["misfit"] = self.misfit
        if self.link is not None:
            names |= {"child": self.link.child, "parent": self.link.parent, "key": self.link.key}
        column, function = None, self.function
        if kind is ServerStop.NO_CONVERSION and self.misfit is not None:
            column = self.misfit.column
        if function is not None:
            names["function"] = function.spec.name
        if kind is ServerStop.MISSING_INFORMATION and function is not None:
            column, names["change"] = function.column, _CHANGES[self.operation]
            image = function.spec.needs.get(self.operation, Image.BEFORE)
            changed = column is None or self.operation in function.spec.needs_changed
            names |= {"column": CHANGED_COLUMNS if changed else column, "image": image.value}
        message = f"{kind.because(**names)}; {kind.advice.format(**names)}"
        return Stop(kind, self.foreign_epoch, self.table, column, self.operation, self.origin, message)


_CHANGES = {Operation.WRITE_ROW: "a write", Operation.UPDATE_ROW: "an update", Operation.DELETE_ROW: "a delete"}


@attrs.frozen
class OperationStep:
    """
    An operation in a log, on the way from one that was decided to the own change that caused it.

    Attributes:
        group: Its group, as in `Outcome`.
        ordinal: Its ordinal, as in `Outcome`.
        apply: Number of the epoch apply that logged it, among those of its applier, from 0; -1 for an own change.
        refreshes: Whether it refreshes a row.
    """

    group: int
    ordinal: int
    apply: int
    refreshes: bool


@attrs.frozen
class StopPlace:
    """
    When an operation stops its applier, among others that would.

    Attributes:
        steps: The operation, and what caused it if an applier logged it.
        rejecting: Whether the pass rejected transactions; all operations are judged before.
    """

    steps: tuple[OperationStep, ...]
    rejecting: bool


@attrs.frozen
class LastWrite:
    """
    The operation that last wrote a row.

    Attributes:
        cluster: Cluster that logged it.
        epoch: Its epoch there.
        operation: Write, update or delete.
        refresh: Whether it is a refresh operation of that cluster's applier.
        origin: Where it is in a binlog; None for what an applier logged.
        site: Server id under which it was logged.
        committed: Microsecond since 1970 at which it committed there; None if not known.
    """

    cluster: str
    epoch: int
    operation: Operation
    refresh: bool = False
    origin: Origin | None = None
    site: int | None = attrs.field(default=None, eq=False)
    committed: int | None = attrs.field(default=None, eq=False)


@attrs.frozen
class OverwrittenChange:
    """
    A change of a cluster that its own applier overwrote.

    Attributes:
        change: The change.
        epoch: Its own epoch.
        group: Its group in that epoch.
        committed: Microsecond since 1970 at which its epoch committed; None if the other cluster did not apply it, or
            the binlog does not tell.
        applied_epoch: The own epoch in which the change that overwrote it was applied.
        winner: That change.
    """

    change: RowChange
    epoch: int
    group: int
    committed: int | None
    applied_epoch: int
    winner: LastWrite


@attrs.frozen
class Outcome:
    """
    The outcome of one row operation on the cluster that applied its epoch.

    Attributes:
        applier: Cluster that applied the epoch.
        source: Cluster that logged the operation.
        source_epoch: Its epoch there.
        epoch: Own epoch in which the applier applied it.
        group: Group of the source epoch to which it belongs.
        ordinal: Its number among the row changes that the source itself made in that epoch; -1 for a refresh.
        table: ``database.table``.
        key: Identity of its row.
        operation: Write, update or delete.
        refresh: Whether it is a refresh operation of the other applier.
        verdict: The verdict.
        cause: Why it was rejected.
        incoming: Value of the operation that was compared, if any.
        stored: Value that it was compared with, if any.
        origin: Where it is in a binlog; None for a refresh.
        committed: Microsecond since 1970 at which the source epoch committed; None if not known.
        transaction_id: Id of its transaction; None if not logged, and for what the source's applier logged.
        own_cause: Of an operation that is rejected with its transaction: why it put the transaction in conflict
            itself; `Cause.NONE` if others did. `incoming` and `stored` are then what was compared.
        winner: The operation that last wrote the row that it was rejected for; None if the row was missing, or nothing
            in the log wrote it.
        merged: The image that was written in place of what it brings, if it was merged.
    """

    applier: str
    source: str
    source_epoch: int
    epoch: int
    group: int
    ordinal: int
    table: str
    key: bytes
    operation: Operation
    refresh: bool
    verdict: Verdict
    cause: Cause = Cause.NONE
    incoming: int | None = None
    stored: int | None = None
    origin: Origin | None = None
    committed: int | None = None
    transaction_id: int | None = None
    own_cause: Cause = Cause.NONE
    winner: LastWrite | None = None
    merged: RowImage | None = None

    def merged_columns(self, table: Table) -> tuple[tuple[str, Value], ...]:
        """Return the columns that a merge wrote, without those of the key."""
        written = {} if self.merged is None else self.merged.by_name()
        return tuple((name, value) for name, value in written.items() if name not in table.primary_key)

    @property
    def place(self) -> OutcomePlace:
        """What tells it from other outcomes."""
        return OutcomePlace(self.applier, self.source_epoch, self.epoch, self.group, self.ordinal, self.table, self.key)


@attrs.frozen
class OutcomePlace:
    """What tells an outcome from others; attributes as of `Outcome`."""

    applier: str
    source_epoch: int
    epoch: int
    group: int
    ordinal: int
    table: str
    key: bytes


@attrs.frozen
class Undecided:
    """
    A decision that the binlogs leave open.

    The operation belongs to a transaction that was rejected in any case, or its row is older than the log.

    Attributes:
        applier: Cluster that made it.
        source_epoch: Epoch of the other cluster.
        table: ``database.table``.
        key: Identity of its row.
        operation: Write, update or delete.
        decided: The decision made here, which is counted; None if the applier did not reach the operation.
        candidates: The decisions that are possible, this one among them.
        origin: Where the operation is in the other cluster's binlog; None for one that its applier logged.
    """

    applier: str
    source_epoch: int
    table: str
    key: bytes
    operation: Operation
    decided: Decision | None
    candidates: tuple[Decision, ...]
    origin: Origin | None = None


@attrs.frozen
class ExceptionsPlace:
    """
    What a row of an exceptions table represents.

    Attributes:
        apply: Number of the epoch apply among those of its applier, from 0.
        own_cause: Whether the operation was rejected for a cause of its own, not with its transaction.
        steps: The operation, and what caused it if an applier logged it.
    """

    apply: int
    own_cause: bool
    steps: tuple[OperationStep, ...]


@attrs.define
class NotKnown:
    """
    What was never known of the rows of a table, because they are older than the log.

    Attributes:
        rows: Rows for which it is not known whether they exist.
        rows_in_part: Rows that exist, whose columns are not all known.
        columns: How many columns of these are not known.
    """

    rows: int = 0
    rows_in_part: int = 0
    columns: int = 0


@attrs.define
class ClusterResult:
    """
    The result on one cluster.

    Attributes:
        rows: Per table, its final rows; values of the columns that can be decoded, in column order.
        rows_in_part: Per table, its final rows with values that only the server knows, which are `NOT_KNOWN`.
        exceptions: Per exceptions table, its rows; values in column order.
        excepted: Per exceptions table, the outcome that each of these rows represents.
        rejected: Per exceptions table, those of its rows that this cluster made, each with what it represents.
        conflicting: By number of an epoch apply, the transactions with an operation in conflict.
        dependent: By number of an epoch apply with transactions in conflict, the pairs of transactions that touched a
            row one right after the other; only where the transactions in conflict are given.
        tracked_rows: By exceptions table and number of an epoch apply, the rows that pass TRACK made.
        counters: Status counters, as differences.
        counted: By number of an epoch apply, what it added to them; those that added nothing are left out.
        refreshes: Per table, the number of rows that this cluster's applier refreshed.
        unexplained: Number of own updates and deletes that found no row. There are none in a complete History, unless
            a function other than the recorded one is tried.
        effects: By own epoch and group of an epoch apply, its effect on each row (table, key).
        images: By own epoch and group, the last image that each row was given that the epoch apply changed.
        versions: Per row, the epoch of its last change, and whether this cluster made it.
        applies: The epochs that its applier applied, in order.
        stop: Why its applier stopped; None if it did not.
        stop_place: Which operation stopped it, if one did before the commit.
        undecided: Decisions that the binlogs leave open.
        not_known: Per table, what was never known of its rows; tables that are known as a whole are left out.
        further_rows: Per epoch apply that began in pass TRACK, found conflicts, and may have come after a restart, the
            exceptions rows that a pass makes; by its number among the epoch applies.
        copied: Rows that its applier copied for changes of definitions.
        overwritten: Its own changes that its applier overwrote with changes that had not seen them.
    """

    rows: dict[str, list[tuple[Value, ...]]] = attrs.field(factory=dict)
    rows_in_part: dict[str, list[tuple[KnownValue, ...]]] = attrs.field(factory=dict)
    exceptions: dict[str, list[tuple[Value, ...]]] = attrs.field(factory=dict)
    excepted: dict[str, list[OutcomePlace]] = attrs.field(factory=dict, repr=False)
    rejected: dict[str, list[tuple[ExceptionsPlace, tuple[Value, ...]]]] = attrs.field(factory=dict, repr=False)
    conflicting: dict[int, frozenset[int]] = attrs.field(factory=dict, repr=False)
    dependent: dict[int, frozenset[tuple[int, int]]] = attrs.field(factory=dict, repr=False)
    tracked_rows: Counter[tuple[str, int]] = attrs.field(factory=Counter, repr=False)
    counters: dict[str, int] = attrs.field(factory=zero_counters)
    counted: dict[int, Counter[str]] = attrs.field(factory=dict, repr=False)
    refreshes: dict[str, int] = attrs.field(factory=dict)
    unexplained: int = 0
    effects: dict[tuple[int, int], dict[tuple[str, bytes], Effect]] = attrs.field(factory=dict, repr=False)
    images: dict[tuple[int, int], dict[tuple[str, bytes], RowImage]] = attrs.field(factory=dict, repr=False)
    versions: dict[tuple[str, bytes], tuple[int, bool]] = attrs.field(factory=dict, repr=False)
    applies: list[EpochApply] = attrs.field(factory=list, repr=False)
    stop: Stop | None = None
    stop_place: StopPlace | None = attrs.field(default=None, repr=False)
    undecided: list[Undecided] = attrs.field(factory=list, repr=False)
    not_known: dict[str, NotKnown] = attrs.field(factory=dict)
    further_rows: dict[int, dict[str, int]] = attrs.field(factory=dict, repr=False)
    copied: int = 0
    overwritten: list[OverwrittenChange] = attrs.field(factory=list, repr=False)

    def unknown_of(self, table: str) -> NotKnown:
        """Return what was never known of the rows of a table, to be added to."""
        return self.not_known.setdefault(table, NotKnown())


@attrs.define
class Resolution:
    """
    The result of a run.

    Attributes:
        clusters: The result on each cluster.
        outcomes: The outcome of every operation that an applier received, in order per applier.
        differing_rows: Per table, the number of rows that differ between the clusters; tables without any are left out.
    """

    clusters: dict[str, ClusterResult]
    outcomes: list[Outcome] = attrs.field(factory=list, repr=False)
    differing_rows: dict[str, int] = attrs.field(factory=dict)
