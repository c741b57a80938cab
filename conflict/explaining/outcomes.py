"""
What a result says of the operations of a few rows, or of a transaction: outcomes, applied epochs, dependencies.

Transactions in conflict are trees: what each depends on, and what depends on it. `conflict.results.transactions` finds
the root of each in compiled loops over a whole result; here the branches are wanted too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from conflict.engine.reference.decide import DependencyTracker
from conflict.explaining.events import LogPlace, Winner
from conflict.explaining.row_changes import WantedRow
from conflict.explaining.story import Tree
from conflict.history.grid.schemas import PLACE
from conflict.result import Result
from conflict.results.conflicts import read_outcomes
from conflict.results.layout import UNDECIDED
from conflict.rules.decision import Cause, Decision, Verdict, decision_of
from ndb_formats.events.rows_event import Operation

__all__ = [
    "Applied",
    "ConflictEpoch",
    "DecidedOperation",
    "OpenDecision",
    "applied_epochs",
    "decided",
    "of_rows",
    "open_decisions",
    "reason_of",
    "trees_of",
]

_MOST_BRANCHES = 8  # of one transaction
_MOST_LEVELS = 12

Row = tuple[str, str]
# Applier, epoch of the source, table, key and operation.
OpenDecision = tuple[str, int, str, str, str]


@attrs.frozen
class Applied:
    """The applying of an epoch of `source` in an own epoch and group of the applier."""

    source: str
    source_epoch: int
    epoch: int
    group: int


@attrs.frozen
class DecidedOperation:
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
    def open_decision(self) -> OpenDecision:
        """What tells its open decision from others, but for operations of one kind on one row in one epoch."""
        return self.applier, self["source_epoch"], self["table"], self["key"], self["operation"]

    @property
    def operation(self) -> Operation:
        """The kind of the operation."""
        return Operation[self["operation"]]

    @property
    def place(self) -> LogPlace | None:
        """Where the operation stands in a binlog; None for what an applier logged."""
        return None if self["file"] is None else LogPlace(*(self[name] for name in PLACE))

    @property
    def winner(self) -> Winner | None:
        """The operation that won."""
        if self["winner_cluster"] is None:
            return None
        place = None if self["winner_file"] is None else LogPlace(*(self[f"winner_{name}"] for name in PLACE))
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
    keys: dict[str, list[str]] = {}
    for table, key in rows:
        keys.setdefault(table, []).append(key)
    for table, own in keys.items():
        chosen |= (pads.field("table") == table) & pads.field("key").isin(own)
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
            place = applier, each["source_epoch"], each["table"], each["key"], each["operation"]
            found[place] = tuple(dict.fromkeys((*found.get(place, ()), *names)))
    return found


def decided(outcomes: pa.Table) -> list[DecidedOperation]:
    """Return outcomes in the order in which they were decided."""
    rows = [DecidedOperation(row["applier"], row) for row in outcomes.to_pylist()]
    return sorted(rows, key=lambda each: (each.applier, each["epoch"], each["source_epoch"], each["group"]))


def applied_epochs(result: Result) -> dict[str, list[Applied]]:
    """Return, per applier, the epochs that it applied, in order."""
    return {name: list(_applied(result.applied_epochs(name))) for name in result.clusters}


def _applied(table: pa.Table) -> Iterator[Applied]:
    columns: Sequence[Sequence[Any]] = [table[name].to_pylist() for name in attrs.fields_dict(Applied)]
    for row in zip(*columns, strict=True):
        yield Applied(*row)


@attrs.frozen
class ConflictEpoch:
    """
    The transactions in conflict of one foreign epoch on one applier.

    Attributes:
        operations: By number of the transaction, its operations, in order.
        before: By number, the transactions that it depends on, each with the row that they share.
        after: By number, those that depend on it.
    """

    operations: Mapping[int, Sequence[DecidedOperation]]
    before: Mapping[int, Mapping[int, Row]]
    after: Mapping[int, Mapping[int, Row]]

    @classmethod
    def read(cls, result: Result, outcome: DecidedOperation) -> ConflictEpoch:
        """Read the epoch of an outcome."""
        chosen = (
            (pads.field("cause") == Cause.TRANS_IN_CONFLICT.name)
            & (pads.field("source") == outcome["source"])
            & (pads.field("source_epoch") == outcome["source_epoch"])
            & (pads.field("epoch") == outcome["epoch"])
        )
        return cls.of(decided(read_outcomes(result.folder, [outcome.applier], chosen)))

    @classmethod
    def of(cls, outcomes: Iterable[DecidedOperation]) -> ConflictEpoch:
        """Return the epoch of some outcomes: transactions that touch a row one right after the other depend."""
        operations: dict[int, list[DecidedOperation]] = {}
        tracker = DependencyTracker()
        before: dict[int, dict[int, Row]] = {}
        after: dict[int, dict[int, Row]] = {}
        for each in sorted(outcomes, key=lambda each: (each["group"], each["ordinal"])):
            group, row = each["group"], (each["table"], each["key"])
            operations.setdefault(group, []).append(each)
            previous = tracker.touch(row, group)
            if previous is not None:
                before.setdefault(group, {}).setdefault(previous, row)
                after.setdefault(previous, {}).setdefault(group, row)
        return cls(operations, before, after)

    def own(self, group: int) -> list[DecidedOperation]:
        """Return the operations that put a transaction in conflict themselves."""
        return [each for each in self.operations[group] if each["own_cause"]]

    def root(self, group: int) -> DecidedOperation | None:
        """Return the operation that put a transaction in conflict, of the nearest transaction that it depends on."""
        level, seen = [group], {group}
        while level:
            found = [each for number in sorted(level) for each in self.own(number)]
            if found:
                return found[0]
            level = [each for number in level for each in self.before.get(number, {}) if each not in seen]
            seen.update(level)
        return None


def reason_of(epoch: ConflictEpoch, group: int, words: Callable[[DecidedOperation], str]) -> str:
    """Return as a part of a sentence what put a transaction in conflict that has no operation in conflict itself."""
    root = epoch.root(group)
    if root is None:
        return ""
    whose = "its own" if root["group"] == group else f"transaction {root['transaction_id'] or root['group']}, by its"
    through = "" if root["group"] == group else "it depends on "
    return f": {through}{whose} {words(root)}"


def trees_of(
    epoch: ConflictEpoch, group: int, words: Callable[[DecidedOperation], str]
) -> tuple[Tree, tuple[Tree, ...]]:
    """
    Return why a transaction is in conflict, and what follows from that.

    Args:
        epoch: Its epoch.
        group: Its number there.
        words: What an operation that is in conflict itself is, and why.

    Returns:
        The transaction with those that it depends on, and the transactions that depend on it.
    """
    seen = {group}

    def grown(number: int, through: Row | None, edges: Mapping[int, Mapping[int, Row]], level: int) -> Tree:
        own = tuple(map(words, epoch.own(number)))
        below = edges.get(number, {}) if level < _MOST_LEVELS else {}
        new = [(each, row) for each, row in sorted(below.items()) if each not in seen][:_MOST_BRANCHES]
        seen.update(each for each, _ in new)
        branches = tuple(grown(each, row, edges, level + 1) for each, row in new)
        first = epoch.operations[number][0]
        return Tree(first["source"], first["source_epoch"], number, first["transaction_id"], own, through, branches)

    because = grown(group, None, epoch.before, 0)
    follows = grown(group, None, epoch.after, 0).branches
    return because, follows
