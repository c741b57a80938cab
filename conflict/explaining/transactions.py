"""
Transactions in conflict as trees: what each depends on, and what depends on it.

Computes docs/conflicts.md, "Transactions", for one transaction: `conflict.results.conflicts` finds the root of each
in compiled loops over a whole result; here the branches are wanted too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs
import pyarrow.dataset as pads

from conflict.engine.reference.decide import DependencyTracker
from conflict.explaining.decisions import Decided, decided, outcomes_where
from conflict.explaining.story import Tree
from conflict.result import Result
from conflict.rules.decision import Cause

__all__ = ["ConflictEpoch", "reason_of", "trees_of"]

_MOST_BRANCHES = 8  # of one transaction
_MOST_LEVELS = 12

Row = tuple[str, str]


@attrs.frozen
class ConflictEpoch:
    """
    The transactions in conflict of one foreign epoch on one applier.

    Attributes:
        operations: By number of the transaction, its operations, in order.
        before: By number, the transactions that it depends on, each with the row that they share.
        after: By number, those that depend on it.
    """

    operations: Mapping[int, Sequence[Decided]]
    before: Mapping[int, Mapping[int, Row]]
    after: Mapping[int, Mapping[int, Row]]

    @classmethod
    def read(cls, result: Result, outcome: Decided) -> ConflictEpoch:
        """Read the epoch of an outcome."""
        chosen = (
            (pads.field("cause") == Cause.TRANS_IN_CONFLICT.name)
            & (pads.field("source") == outcome["source"])
            & (pads.field("source_epoch") == outcome["source_epoch"])
            & (pads.field("epoch") == outcome["epoch"])
        )
        return cls.of(decided(outcomes_where(result, chosen, [outcome.applier])))

    @classmethod
    def of(cls, outcomes: Iterable[Decided]) -> ConflictEpoch:
        """Return the epoch of some outcomes: transactions that touch a row one right after the other depend."""
        operations: dict[int, list[Decided]] = {}
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

    def own(self, group: int) -> list[Decided]:
        """Return the operations that put a transaction in conflict themselves."""
        return [each for each in self.operations[group] if each["own_cause"]]

    def root(self, group: int) -> Decided | None:
        """Return the operation that put a transaction in conflict, of the nearest transaction that it depends on."""
        level, seen = [group], {group}
        while level:
            found = [each for number in sorted(level) for each in self.own(number)]
            if found:
                return found[0]
            level = [each for number in level for each in self.before.get(number, {}) if each not in seen]
            seen.update(level)
        return None


def reason_of(epoch: ConflictEpoch, group: int, words: Callable[[Decided], str]) -> str:
    """Return as a part of a sentence what put a transaction in conflict that has no operation in conflict itself."""
    root = epoch.root(group)
    if root is None:
        return ""
    whose = "its own" if root["group"] == group else f"transaction {root['transaction_id'] or root['group']}, by its"
    through = "" if root["group"] == group else "it depends on "
    return f": {through}{whose} {words(root)}"


def trees_of(epoch: ConflictEpoch, group: int, words: Callable[[Decided], str]) -> tuple[Tree, tuple[Tree, ...]]:
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
