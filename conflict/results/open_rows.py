"""
Rows for which the binlogs do not show when an applier judged them, where another moment decides otherwise.

The row itself does not depend on the moment: all of its moments have the effect that the binlog shows. Counters and
exceptions rows do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from conflict.history.model import Origin, Position
from conflict.results.model import Undecided
from conflict.rules.decision import Cause, Decision
from ndb_formats.events.rows_event import Operation
from ndb_formats.types.values import Value

__all__ = ["JudgedOperation", "OpenEpoch", "OpenRow", "RowAnswer", "ranges_with_rows", "undecided_rows"]


@attrs.frozen
class JudgedOperation:
    """
    An operation as it was judged at one moment.

    Attributes:
        number: Its number among the operations of the foreign epoch.
        operation: Write, update or delete.
        decision: The decision.
        exceptions: The row that it adds to an exceptions table, without a number: table, and values in column order.
        origin: Where it is in the other cluster's binlog; None for one that its applier logged.
    """

    number: int
    operation: Operation
    decision: Decision
    exceptions: tuple[str, tuple[Value, ...]] | None = None
    origin: Origin | None = None

    @property
    def with_transaction(self) -> bool:
        """Whether it was rejected because its transaction is in conflict."""
        return self.decision.cause is Cause.TRANS_IN_CONFLICT


@attrs.frozen
class RowAnswer:
    """
    The consequences of a row's operations at one moment.

    Attributes:
        operations: The operations on it, in order.
        counters: Status counters that they move, sorted by name.
    """

    operations: tuple[JudgedOperation, ...]
    counters: tuple[tuple[str, int], ...] = ()


@attrs.frozen
class OpenRow:
    """
    A row of an epoch whose moment is open.

    Attributes:
        table: ``database.table``.
        key: Identity of the row.
        answers: The consequences of its moments, without repetition.
        chosen: Number of the answer that was chosen.
    """

    table: str
    key: bytes
    answers: tuple[RowAnswer, ...]
    chosen: int


@attrs.frozen
class OpenEpoch:
    """
    An epoch apply with rows whose moments are open.

    Attributes:
        applier: The applying cluster.
        foreign_epoch: The epoch.
        position: The own position at which it was committed.
        rows: The rows.
        rejected: The other operations that are rejected, in the order of their exceptions rows.
    """

    applier: str
    foreign_epoch: int
    position: Position
    rows: tuple[OpenRow, ...]
    rejected: tuple[JudgedOperation, ...] = ()


def undecided_rows(epochs: Iterable[OpenEpoch]) -> dict[str, list[Undecided]]:
    """Return, per applier, the operations on which the moments decide otherwise."""
    found: dict[str, list[Undecided]] = {}
    for epoch in epochs:
        found.setdefault(epoch.applier, []).extend(
            undecided for row in epoch.rows for undecided in _undecided_operations(epoch, row)
        )
    return found


def _undecided_operations(epoch: OpenEpoch, row: OpenRow) -> Iterator[Undecided]:
    for judged in zip(*(answer.operations for answer in row.answers), strict=True):
        outcomes = {(each.decision.verdict, each.decision.cause): each.decision for each in reversed(judged)}
        if len(outcomes) > 1:
            chosen = judged[row.chosen]
            candidates = tuple(outcomes[outcome] for outcome in sorted(outcomes))
            yield Undecided(
                epoch.applier,
                epoch.foreign_epoch,
                row.table,
                row.key,
                chosen.operation,
                chosen.decision,
                candidates,
                chosen.origin,
            )


def ranges_with_rows(
    ranges: Mapping[str, Mapping[str, tuple[int, int]]],
    counters: Mapping[str, Mapping[str, int]],
    epochs: Iterable[OpenEpoch],
) -> dict[str, dict[str, tuple[int, int]]]:
    """
    Return the ranges of counters widened by open rows.

    Args:
        ranges: Per cluster, least and greatest value of each counter that depends on other open decisions.
        counters: Per cluster, the counters as they were counted.
        epochs: Epoch applies with open rows.
    """
    widened = {name: dict(each) for name, each in ranges.items()}
    for applier, row in ((epoch.applier, row) for epoch in epochs for row in epoch.rows):
        mine = widened.setdefault(applier, {})
        moved = [Counter(dict(answer.counters)) for answer in row.answers]
        now = moved[row.chosen]
        for name in {name for each in moved for name in each}:
            values = [each[name] - now[name] for each in moved]
            if min(values) < max(values):
                count = counters[applier].get(name, 0)
                least, most = mine.get(name, (count, count))
                mine[name] = (least + min(values), most + max(values))
    return {name: dict(sorted(each.items())) for name, each in widened.items()}
