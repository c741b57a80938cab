"""
What became of a schedule, as values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from conflict.engine.ledger.resolution import Stop
from conflict.extras import data_frame
from conflict.rules.decision import Cause, Verdict
from conflict.typed.notation import key_text
from conflict.typed.rules import Rules
from conflict.typed.schedule import Schedule
from ndb_formats.types.values import Value

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Value]


@attrs.frozen
class JudgedChange:
    """
    What an applier decided on one row operation.

    Attributes:
        applier: The cluster that applied it.
        step: Its step, among those of this cluster, from 1.
        source: The cluster that logged it.
        source_step: The step of that cluster which logged it; 0 for the rows at first.
        table: ``database.table``.
        key: The key of its row.
        operation: write, update or delete, as it was logged.
        refresh: Whether the other applier made it, and no user.
        verdict: The verdict.
        cause: Why it was rejected.
        words: The decision as a clause.
        lost: Whether a change of a user was lost by that.
    """

    applier: str
    step: int
    source: str
    source_step: int
    table: str
    key: tuple[Value, ...]
    operation: str
    refresh: bool
    verdict: Verdict
    cause: Cause
    words: str
    lost: bool = False


@attrs.frozen
class LostChange:
    """
    A change of a user that did not survive.

    Attributes:
        cluster: The cluster on which it was made.
        step: Its step there.
        table: ``database.table``.
        key: The key of its row.
        operation: write, update or delete, as it was logged.
        why: As a clause: it was rejected, or overwritten by a change that had not seen it.
    """

    cluster: str
    step: int
    table: str
    key: tuple[Value, ...]
    operation: str
    why: str


@attrs.frozen
class DifferingRow:
    """
    A row that is different on the two clusters.

    Attributes:
        table: ``database.table``.
        key: Its key.
        rows: The row on each cluster, by name; None where there is none.
    """

    table: str
    key: tuple[Value, ...]
    rows: Mapping[str, Row | None]


@attrs.frozen(repr=False)
class Decided:
    """
    What became of a schedule.

    Attributes:
        history: The History.
        rules: What decided.
        judged: What appliers decided, per applier in order.
        counters: By cluster, the status counters that moved, and by how much.
        exceptions: By cluster and exceptions table, its rows.
        stops: By cluster whose applier stopped, why.
        differing: The rows that differ.
        lost: The changes of users that did not survive.
        unsettled: By cluster, how many row operations of its log the other one has still to apply.
        notes: By cluster and step, what it did not do.
    """

    history: Schedule
    rules: Rules
    judged: tuple[JudgedChange, ...]
    counters: Mapping[str, Mapping[str, int]]
    exceptions: Mapping[str, Mapping[str, Sequence[Row]]]
    stops: Mapping[str, Stop]
    differing: tuple[DifferingRow, ...]
    lost: tuple[LostChange, ...]
    unsettled: Mapping[str, int]
    notes: Mapping[tuple[str, int], Sequence[str]]
    _rows: Mapping[str, Mapping[str, Sequence[Row]]] = attrs.field(repr=False)
    _refreshed: Mapping[tuple[str, int], Sequence[str]] = attrs.field(repr=False)
    _stopped: Mapping[str, int] = attrs.field(repr=False)

    @property
    def converged(self) -> bool:
        """Whether both clusters hold the same rows, and nothing is on its way."""
        return not self.differing and not any(self.unsettled.values()) and not self.stops

    def rows(self, cluster: str, table: str = "") -> list[dict[str, Value]]:
        """Return the rows of a table on a cluster at the end, by column; by default of the first table."""
        return [dict(row) for row in self._rows[cluster][self.history.tables.named(table).name]]

    def refreshed(self, cluster: str, step: int) -> Sequence[str]:
        """Return the rows that a step refreshed on the other cluster, in words."""
        return self._refreshed.get((cluster, step), ())

    def stopped_step(self, cluster: str) -> int | None:
        """Return the step at which the applier of a cluster stopped; None if it did not."""
        return self._stopped.get(cluster)

    def to_pandas(self) -> pd.DataFrame:
        """Return what appliers decided as a table, one row for each operation."""
        rows = [
            {**attrs.asdict(each), "key": key_text(each.key), "verdict": each.verdict.name, "cause": each.cause.name}
            for each in self.judged
        ]
        return data_frame(rows, [field.name for field in attrs.fields(JudgedChange)])


def row_words(history: Schedule, table: str, key: tuple[Value, ...]) -> str:
    """Return the name of a row: ``row 1``, and its table if there are several."""
    of = "" if len(history.tables.by_name) == 1 else f" of {history.tables.by_name[table].table.name}"
    return f"row {key_text(key)}{of}"
