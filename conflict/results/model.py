"""
What resolving a History gives; the same whichever engine made it.
"""

from __future__ import annotations

import attrs

from conflict.history.effects import Effect
from conflict.history.model import EpochApply, Origin
from conflict.rules.counters import zero_counters
from conflict.rules.decision import Cause, Decision, Verdict
from ndb_formats.events.rows_event import Operation
from ndb_formats.types.values import Value

__all__ = ["ClusterResult", "Outcome", "Resolution", "Stop", "Undecided"]


@attrs.frozen
class Stop:
    """
    An applier stopped with an error; the epoch at hand was undone, earlier ones stay.

    Attributes:
        error: Server error number.
        foreign_epoch: Epoch of the other cluster that it could not apply.
        table: ``database.table``.
        column: Column whose value is missing, if one is.
        operation: Operation at fault.
        origin: Where that operation stands in the other cluster's binlog.
        message: What is wrong and what to do.
    """

    error: int
    foreign_epoch: int
    table: str
    column: str | None
    operation: Operation
    origin: Origin | None
    message: str


@attrs.frozen
class Outcome:
    """
    What became of one row operation on the cluster that took it.

    Attributes:
        applier: Cluster that took it.
        source: Cluster that made it.
        source_epoch: Its epoch there.
        epoch: Own epoch in which it was taken.
        group: Group of that epoch to which it belongs there.
        ordinal: Its number among the row changes that the source itself made in that epoch; -1 for a refresh.
        table: ``database.table``.
        key: Identity of its row.
        operation: Write, update or delete.
        refresh: Whether it is a refresh operation, made by the other applier.
        verdict: Applied, rejected or ignored.
        cause: Why, if rejected.
        incoming: Value of the operation that was compared, if any.
        stored: What it was compared with, if anything.
        origin: Where it stands in a binlog; None for a refresh.
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


@attrs.frozen
class Undecided:
    """
    A decision that the binlogs leave open, though what came of its transaction is known.

    Attributes:
        applier: Cluster that took it.
        source_epoch: Epoch of the other cluster.
        table: ``database.table``.
        key: Identity of its row.
        operation: Write, update or delete.
        decided: What was decided here, and is counted; None if the operation was not reached.
        candidates: What may have been decided, that among it.
        origin: Where it stands in the other cluster's binlog; None for what its applier made.
    """

    applier: str
    source_epoch: int
    table: str
    key: bytes
    operation: Operation
    decided: Decision | None
    candidates: tuple[Decision, ...]
    origin: Origin | None = None


@attrs.define
class ClusterResult:
    """
    What one cluster ends with.

    Attributes:
        rows: Per table, its rows; values of the columns that can be decoded, in column order.
        exceptions: Per exceptions table, its rows; values in column order.
        counters: Status counters, as differences.
        refreshes: Per table, how many rows this cluster's applier refreshed.
        unexplained: Own updates and deletes of rows that should not be there. None in a complete History;
            otherwise rows were there before it starts, or a function other than the recorded one is tried.
        effects: Per own epoch and group of a take, what it did to each row (table, key).
        versions: Epoch of the last change of every row, and whether it was made in this cluster, by the row.
        applies: Epochs that its applier took, in order.
        stop: Why its applier stopped; None if it did not.
        undecided: Decisions that the binlogs leave open.
    """

    rows: dict[str, list[tuple[Value, ...]]] = attrs.field(factory=dict)
    exceptions: dict[str, list[tuple[Value, ...]]] = attrs.field(factory=dict)
    counters: dict[str, int] = attrs.field(factory=zero_counters)
    refreshes: dict[str, int] = attrs.field(factory=dict)
    unexplained: int = 0
    effects: dict[tuple[int, int], dict[tuple[str, bytes], Effect]] = attrs.field(factory=dict, repr=False)
    versions: dict[tuple[str, bytes], tuple[int, bool]] = attrs.field(factory=dict, repr=False)
    applies: list[EpochApply] = attrs.field(factory=list, repr=False)
    stop: Stop | None = None
    undecided: list[Undecided] = attrs.field(factory=list, repr=False)


@attrs.define
class Resolution:
    """
    The result of a run.

    Attributes:
        clusters: What each cluster ends with.
        outcomes: What became of every operation that an applier took, in order per applier.
        differing_rows: Per table, how many rows differ between the clusters; tables without any are not there.
    """

    clusters: dict[str, ClusterResult]
    outcomes: list[Outcome] = attrs.field(factory=list, repr=False)
    differing_rows: dict[str, int] = attrs.field(factory=dict)
