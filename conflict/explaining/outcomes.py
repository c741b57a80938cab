"""
What a result says of the operations of a few rows, or of a transaction: outcomes, applied epochs, what is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from conflict.engine.ledger.layout import MERGED, UNDECIDED, UNLOGGED, unlogged_path
from conflict.explaining.events import Winner
from conflict.explaining.row_changes import WantedRow
from conflict.history.grid.schemas import PLACE
from conflict.history.timeline import Origin
from conflict.history.unlogged import UnloggedKind
from conflict.results.result import Result
from conflict.rules.decision import Cause, Decision, Verdict, decision_of
from ndb_formats.events.rows_event import Operation

# Applier, epoch of the source, row and operation.
OpenDecision = tuple[str, int, WantedRow, str]


@attrs.frozen
class Applied:
    """The applying of an epoch of `source` in an own epoch and group of the applier."""

    source: str
    source_epoch: int
    epoch: int
    group: int


@attrs.frozen
class RecordedOutcome:
    """
    What an applier decided on one operation; the attributes are the columns of `OUTCOMES`.

    Attributes:
        applier: The applier's cluster.
        columns: The row of `outcomes/`.
        merged: What was written in its place, if it was merged: per column a row of `merged/`.
    """

    applier: str
    columns: Mapping[str, Any] = attrs.field(repr=False)
    merged: Sequence[Mapping[str, Any]] = attrs.field(default=(), repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    @property
    def decision(self) -> Decision:
        """The decision."""
        cause = Cause[self["cause"]] if self["cause"] else Cause.NONE
        writes = tuple((each["name"], each["value"]) for each in self.merged)
        return Decision(Verdict[self["verdict"]], cause, self["incoming"], self["stored"], writes)

    @property
    def own_decision(self) -> Decision | None:
        """Of an operation that put its transaction in conflict itself: the decision that did."""
        own = self["own_cause"]
        return Decision(Verdict.REJECTED, Cause[own], self["incoming"], self["stored"]) if own else None

    @property
    def row(self) -> WantedRow:
        """The row that it is about."""
        return self["table"], self["identity"]

    @property
    def open_decision(self) -> OpenDecision:
        """What tells its open decision from others, but for operations of one kind on one row in one epoch."""
        return self.applier, self["source_epoch"], self.row, self["operation"]

    @property
    def operation(self) -> Operation:
        """The kind of the operation."""
        return Operation[self["operation"]]

    @property
    def place(self) -> Origin | None:
        """Where the operation stands in a binlog; None for what an applier logged."""
        return None if self["file"] is None else Origin(*(self[name] for name in PLACE))

    @property
    def winner(self) -> Winner | None:
        """The operation that won."""
        if self["winner_cluster"] is None:
            return None
        place = None if self["winner_file"] is None else Origin(*(self[f"winner_{name}"] for name in PLACE))
        return Winner(
            self["winner_cluster"],
            self["winner_epoch"],
            self["winner_operation"],
            bool(self["winner_refresh"]),
            place,
        )


def of_rows(rows: Iterable[WantedRow]) -> pc.Expression:
    """Return the condition that an outcome is of one of some rows."""
    chosen = pc.scalar(False)
    keys: dict[str, list[bytes]] = {}
    for table, key in rows:
        keys.setdefault(table, []).append(key)
    for table, own in keys.items():
        chosen |= (pads.field("table") == table) & pads.field("identity").isin(pa.array(own, pa.binary()))
    return chosen


def open_decisions(
    result: Result, rows: Iterable[WantedRow], name_of: Callable[[str, str, Cause], str]
) -> dict[OpenDecision, tuple[str, ...]]:
    """
    Return what else could have been decided on some rows, where the binlogs leave it open.

    Args:
        result: The result.
        rows: The rows.
        name_of: Applier, table and cause to the name of the cause in the exceptions table.
    """
    found: dict[OpenDecision, tuple[str, ...]] = {}
    for applier in result.clusters:
        path = f"undecided/applier={applier}"
        if not result.folder.exists(path):
            continue
        files = pads.dataset(result.folder.here(path), schema=UNDECIDED, format="parquet", partitioning=None)
        for each in files.to_table(filter=of_rows(rows)).to_pylist():
            causes = ((text, decision_of(text).cause) for text in each["candidates"])
            names = (name_of(applier, each["table"], cause) if cause else text for text, cause in causes)
            place = applier, each["source_epoch"], (each["table"], each["identity"]), each["operation"]
            found[place] = tuple(dict.fromkeys((*found.get(place, ()), *names)))
    return found


def decided(outcomes: pa.Table) -> list[RecordedOutcome]:
    """Return outcomes in the order in which they were decided."""
    rows = [RecordedOutcome(row["applier"], row) for row in outcomes.to_pylist()]
    return sorted(rows, key=lambda each: (each.applier, each["epoch"], each["source_epoch"], each["group"]))


def applied_epochs(result: Result) -> dict[str, list[Applied]]:
    """Return, per applier, the epochs that it applied, in order."""
    return {name: list(_applied(result.applied_epochs(name))) for name in result.clusters}


def _applied(table: pa.Table) -> Iterator[Applied]:
    columns: Sequence[Sequence[Any]] = [table[name].to_pylist() for name in attrs.fields_dict(Applied)]
    for row in zip(*columns, strict=True):
        yield Applied(*row)


def applied_again(result: Result) -> dict[tuple[str, str, int, int], str]:
    """Return why epochs were applied again, by applier, source, its epoch and the own epoch of the applier."""
    moved = {
        (each["applier"], each["source"], epoch): each["source_servers"][1]
        for each in result.run["cutovers"]
        for epoch in each["applied_again"]
    }
    found: dict[tuple[str, str, int, int], str] = {}
    for each in result.run["repeated_epochs"]:
        place = each["applier"], each["source"], each["source_epoch"]
        if each["first"] != each["epoch"]:
            set_back = "the replica was set back"
            found[*place, each["epoch"]] = (
                f"the channel had moved to server {moved[place]}" if place in moved else set_back
            )
    return found


def with_merges(result: Result, outcomes: Sequence[RecordedOutcome]) -> list[RecordedOutcome]:
    """Return outcomes, those of merges with what was written in their place."""
    names, found = MERGED.names[:-1], dict[tuple[Any, ...], list[dict[str, Any]]]()
    for applier in {each.applier for each in outcomes if each["verdict"] == Verdict.MERGED.name}:
        rows = {each.row for each in outcomes}
        files = pads.dataset(result.folder.here(f"merged/applier={applier}"), schema=MERGED, partitioning=None)
        for each in files.to_table(filter=of_rows(rows)).to_pylist():
            found[applier, *(each[name] for name in names)] = each["columns"]
    if not found:
        return list(outcomes)
    return [
        attrs.evolve(each, merged=found.get((each.applier, *(each[name] for name in names)), ())) for each in outcomes
    ]


_GONE = {
    UnloggedKind.GONE.value: "are gone, and the row is what it was before them",
    UnloggedKind.MAY_BE_GONE.value: "may be gone, and what the row was then is not known",
}


def unlogged_changes(result: Result, row: WantedRow) -> Iterator[str]:
    """Yield, as sentences, where a cluster changed a row without a log."""
    for name in result.run["unlogged_changes"]:
        for each in result.folder.read_table(unlogged_path(name), UNLOGGED).to_pylist():
            if (each["table"], each["identity"]) != row:
                continue
            if UnloggedKind(each["change"]).by_crash:
                yield (
                    f"All data nodes of {name} went down after its epoch {each['after_epoch']} and came back from a "
                    f"global checkpoint: its last changes of the row {_GONE[each['change']]}."
                )
            else:
                yield (
                    f"{name} {each['change']} the row without a log, between its epochs {each['after_epoch']} and "
                    f"{each['shown_epoch']}: what the row on {name} was there is not known."
                )
