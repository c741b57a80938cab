"""
What a result says of the operations of a few rows, or of a transaction: outcomes, applied epochs, final rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from conflict.explaining.row_changes import WantedRow
from conflict.explaining.story import Place, Winner
from conflict.history.grid.schemas import PLACE
from conflict.result import Result
from conflict.results.layout import OUTCOMES
from conflict.rules.decision import Cause, Decision, Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["Applied", "Decided", "applied_epochs", "decided", "outcomes_where"]


@attrs.frozen
class Applied:
    """The applying of an epoch of `source` in an own epoch and group of the applier."""

    source: str
    source_epoch: int
    epoch: int
    group: int


@attrs.frozen
class Decided:
    """
    What an applier decided on one operation; the attributes are the columns of `OUTCOMES`.

    Attributes:
        applier: The applier's cluster.
        columns: The row of `outcomes/`.
    """

    applier: str
    columns: Mapping[str, Any] = attrs.field(repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    @property
    def decision(self) -> Decision:
        """The decision."""
        cause = self["cause"]
        return Decision(
            Verdict[self["verdict"]], Cause[cause] if cause else Cause.NONE, self["incoming"], self["stored"]
        )

    @property
    def own_decision(self) -> Decision | None:
        """Of an operation that put its transaction in conflict itself: the decision that did."""
        own = self["own_cause"]
        return Decision(Verdict.REJECTED, Cause[own], self["incoming"], self["stored"]) if own else None

    @property
    def open_decision(self) -> tuple[str, int, str, str, str]:
        """What tells its open decision from others, but for operations of one kind on one row in one epoch."""
        return self.applier, self["source_epoch"], self["table"], self["key"], self["operation"]

    @property
    def operation(self) -> Operation:
        """The kind of the operation."""
        return Operation[self["operation"]]

    @property
    def place(self) -> Place | None:
        """Where the operation stands in a binlog; None for what an applier logged."""
        return None if self["file"] is None else Place(*(self[name] for name in PLACE))

    @property
    def winner(self) -> Winner | None:
        """The operation that won."""
        if self["winner_cluster"] is None:
            return None
        place = None if self["winner_file"] is None else Place(*(self[f"winner_{name}"] for name in PLACE))
        return Winner(
            self["winner_cluster"],
            self["winner_epoch"],
            self["winner_operation"],
            bool(self["winner_refresh"]),
            place,
        )


def outcomes_where(result: Result, chosen: pc.Expression, appliers: Iterable[str] | None = None) -> pa.Table:
    """
    Return the outcomes that a condition selects, without reading more than it needs.

    Args:
        result: The result.
        chosen: The condition, on the columns of `OUTCOMES`.
        appliers: Clusters; None for all.

    Returns:
        Columns as `OUTCOMES`, with `applier` before them.
    """
    parts = []
    for applier in result.clusters if appliers is None else appliers:
        path = f"outcomes/applier={applier}"
        if result.folder.exists(path):
            files = pads.dataset(f"{result.folder.uri}/{path}", schema=OUTCOMES, format="parquet", partitioning=None)
            found = files.to_table(filter=chosen)
            parts.append(found.add_column(0, "applier", pa.array([applier] * len(found), pa.string())))
    schema = pa.schema([("applier", pa.string()), *OUTCOMES])
    return pa.concat_tables(parts) if parts else schema.empty_table()


def of_rows(rows: Iterable[WantedRow]) -> pc.Expression:
    """Return the condition that an outcome is of one of some rows."""
    chosen = pc.scalar(False)
    keys: dict[str, list[str]] = {}
    for table, key in rows:
        keys.setdefault(table, []).append(key)
    for table, own in keys.items():
        chosen |= (pads.field("table") == table) & pads.field("key").isin(own)
    return chosen


def decided(outcomes: pa.Table) -> list[Decided]:
    """Return outcomes in the order in which they were decided."""
    rows = [Decided(row["applier"], row) for row in outcomes.to_pylist()]
    return sorted(rows, key=lambda each: (each.applier, each["epoch"], each["source_epoch"], each["group"]))


def applied_epochs(result: Result) -> dict[str, list[Applied]]:
    """Return, per applier, the epochs that it applied, in order."""
    return {name: list(_applied(result.applied_epochs(name))) for name in result.clusters}


def _applied(table: pa.Table) -> Iterator[Applied]:
    columns: Sequence[Sequence[Any]] = [table[name].to_pylist() for name in attrs.fields_dict(Applied)]
    for row in zip(*columns, strict=True):
        yield Applied(*row)
