"""
Why transactions are in conflict, and what follows from each.

Transactions in conflict are trees: what each depends on, and what depends on it. `conflict.results.conflicts` finds
the root of each in compiled loops over a whole result; here the branches are wanted too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs
import pyarrow.dataset as pads

from conflict.engine.reference.decide import DependencyTracker
from conflict.explaining.events import place_words, verb
from conflict.explaining.outcomes import RecordedOutcome, decided
from conflict.explaining.sentences import own_reason
from conflict.explaining.statements import FunctionsOverTime
from conflict.explaining.story import Tree
from conflict.results.conflicts import read_outcomes
from conflict.results.result import Result
from conflict.rules.decision import Cause

_MOST_BRANCHES = 8  # of one transaction
_MOST_LEVELS = 12

Row = tuple[str, str]  # table and key, for people


@attrs.frozen
class ConflictEpoch:
    """
    The transactions in conflict of one foreign epoch on one applier.

    Attributes:
        operations: By number of the transaction, its operations, in order.
        before: By number, the transactions that it depends on, each with the row that they share.
        after: By number, those that depend on it.
    """

    operations: Mapping[int, Sequence[RecordedOutcome]]
    before: Mapping[int, Mapping[int, Row]]
    after: Mapping[int, Mapping[int, Row]]

    @classmethod
    def read(cls, result: Result, outcome: RecordedOutcome) -> ConflictEpoch:
        """Read the epoch of an outcome."""
        chosen = (
            (pads.field("cause") == Cause.TRANS_IN_CONFLICT.name)
            & (pads.field("source") == outcome["source"])
            & (pads.field("source_epoch") == outcome["source_epoch"])
            & (pads.field("epoch") == outcome["epoch"])
        )
        return cls.of(decided(read_outcomes(result.folder, [outcome.applier], chosen)))

    @classmethod
    def of(cls, outcomes: Iterable[RecordedOutcome]) -> ConflictEpoch:
        """Return the epoch of some outcomes: transactions that touch a row one right after the other depend."""
        operations: dict[int, list[RecordedOutcome]] = {}
        tracker = DependencyTracker()
        before: dict[int, dict[int, Row]] = {}
        after: dict[int, dict[int, Row]] = {}
        for each in sorted(outcomes, key=lambda each: (each["group"], each["ordinal"])):
            group, row = each["group"], (each["table"], each["key"])
            operations.setdefault(group, []).append(each)
            previous = tracker.touch(each.row, group)
            if previous is not None:
                before.setdefault(group, {}).setdefault(previous, row)
                after.setdefault(previous, {}).setdefault(group, row)
        return cls(operations, before, after)

    def own(self, group: int) -> list[RecordedOutcome]:
        """Return the operations that put a transaction in conflict themselves."""
        return [each for each in self.operations[group] if each["own_cause"]]

    def root(self, group: int) -> RecordedOutcome | None:
        """Return the operation that put a transaction in conflict, of the nearest transaction that it depends on."""
        level, seen = [group], {group}
        while level:
            found = [each for number in sorted(level) for each in self.own(number)]
            if found:
                return found[0]
            level = [each for number in level for each in self.before.get(number, {}) if each not in seen]
            seen.update(level)
        return None


def reason_of(epoch: ConflictEpoch, group: int, words: Callable[[RecordedOutcome], str]) -> str:
    """Return as a part of a sentence what put a transaction in conflict that has no operation in conflict itself."""
    root = epoch.root(group)
    if root is None:
        return ""
    whose = "its own" if root["group"] == group else f"transaction {root['transaction_id'] or root['group']}, by its"
    through = "" if root["group"] == group else "it depends on "
    return f": {through}{whose} {words(root)}"


def trees_of(
    epoch: ConflictEpoch, group: int, words: Callable[[RecordedOutcome], str]
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


@attrs.frozen
class ConflictReasons:
    """
    Why transactions of a result are in conflict, in words.

    Attributes:
        result: The result.
        functions: The conflict functions of its tables.
        file_names: Of the binlogs, by path: what tells each from the others.
    """

    result: Result
    functions: FunctionsOverTime
    file_names: Mapping[str, str]
    _epochs: dict[tuple[object, ...], ConflictEpoch] = attrs.field(factory=dict, init=False, repr=False)

    def reason(self, outcome: RecordedOutcome) -> str:
        """Return as a part of a sentence what put the transaction of an operation in conflict; see `reason_of`."""
        return reason_of(self._epoch_of(outcome), outcome["group"], self._words)

    def trees(self, outcomes: Iterable[RecordedOutcome]) -> tuple[tuple[Tree, ...], tuple[Tree, ...]]:
        """Return the trees of the transactions in conflict that some outcomes belong to; see `trees_of`."""
        because: dict[tuple[object, ...], Tree] = {}
        follows: list[Tree] = []
        for each in outcomes:
            place = (each.applier, each["source"], each["source_epoch"], each["epoch"], each["group"])
            if each["cause"] == Cause.TRANS_IN_CONFLICT.name and place not in because:
                because[place], below = trees_of(self._epoch_of(each), each["group"], self._words)
                follows += below
        return tuple(because.values()), tuple(follows)

    def _epoch_of(self, outcome: RecordedOutcome) -> ConflictEpoch:
        """Return the transactions in conflict of the epoch of an outcome, which are read once."""
        place = (outcome.applier, outcome["source"], outcome["source_epoch"], outcome["epoch"])
        if place not in self._epochs:
            self._epochs[place] = ConflictEpoch.read(self.result, outcome)
        return self._epochs[place]

    def _words(self, outcome: RecordedOutcome) -> str:
        """Return an operation that is in conflict itself, and why, in words."""
        moment = outcome["epoch"], outcome["group"]
        function = self.functions.at(outcome.applier, outcome["table"], moment, rejected=True)
        said = own_reason(outcome, function)
        place = outcome.place
        where = "" if place is None else f" ({place_words(place, self.file_names)})"
        return f"{verb(outcome['operation'])} of {outcome['table']} {outcome['key']}{where}: {said}"
