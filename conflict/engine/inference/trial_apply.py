"""
What an epoch apply would have done, had its rows been judged at other moments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from conflict.engine.inference.background import Background
from conflict.engine.inference.hypotheses import scratch
from conflict.engine.inference.observed import ObservedCluster, ObservedPass
from conflict.engine.reference.applier import effects_of
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.decide import DependencyTracker
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.model import EpochApply, Position
from conflict.history.shown_effects import Effect
from conflict.results.open_places import JudgedOperation, RowAnswer
from conflict.rules.decision import Cause, Verdict

__all__ = ["TrialApply"]

NOTHING: frozenset[int] = frozenset()


@attrs.frozen
class _TriedRow:
    """
    What the operations on a row do.

    Attributes:
        effect: The effect on it.
        locked: Whether an operation was applied although the row changed after the moment at which it was judged.
        conflicting: The transactions that it puts in conflict.
    """

    effect: Effect | None
    locked: bool
    conflicting: frozenset[int]


@attrs.define
class TrialApply:
    """
    Tries an epoch apply again and again, and changes nothing.

    Attributes:
        here: The applying cluster, before the epoch is applied.
        source: The other cluster.
        apply: The epoch apply.
        entries: Its operations.
        shown: Its effects in the binlog.
        skip_missing: Skip operations that lack a value to compare, instead of stopping the applier.
    """

    here: Background
    source: Background
    apply: EpochApply
    entries: Sequence[LoggedChange]
    shown: Mapping[RowKey, Effect]
    skip_missing: bool = False
    _scratch: ObservedCluster = attrs.field(init=False)
    _numbers: dict[RowKey, list[int]] = attrs.field(init=False)  # of the entries of each row
    _dependencies: DependencyTracker = attrs.field(init=False)
    # The transactions that each row puts in conflict if it is judged at the commit, and how many rows do so.
    _at_commit: dict[RowKey, frozenset[int]] = attrs.field(init=False)
    _conflicting: Counter[int] = attrs.field(init=False)
    # Rows that differ, all judged at the commit, by the transactions that are rejected.
    _differing: dict[frozenset[int], set[RowKey]] = attrs.field(init=False, factory=dict)
    # By row, number of its state, and those of its transactions that are rejected.
    _rows: dict[tuple[RowKey, int | None, frozenset[int]], _TriedRow] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        cluster = self.here.cluster
        self._numbers = {}
        for number, entry in enumerate(self.entries):
            self._numbers.setdefault(entry.row, []).append(number)
        rows = {key: cluster.store.get(key) for key in self._numbers}
        known = cluster.max_replicated_epoch
        self._scratch = scratch(cluster, self.apply, cluster.setups, rows, known, skip_missing=self.skip_missing)
        self._dependencies = self._handled({}, self.entries).tracker
        self._scratch.store.roll_back()
        self._at_commit = {key: self._tried(key, None, NOTHING).conflicting for key in self._numbers}
        self._conflicting = Counter(group for each in self._at_commit.values() for group in each)

    def differing(self, moments: Mapping[RowKey, Position]) -> set[RowKey]:
        """
        Return the rows on which the epoch has another effect than the binlog shows, or that cannot have been judged so.

        Args:
            moments: The own positions after which some rows were judged; all others were at the commit.
        """
        rejected = self._in_conflict(moments)
        if rejected not in self._differing:
            rows = self._numbers.keys() | self.shown.keys()
            self._differing[rejected] = {key for key in rows if self._differs(key, None, rejected)}
        found = {key for key, moment in moments.items() if self._differs(key, moment, rejected)}
        return self._differing[rejected].difference(moments) | found

    def impossible(self, moments: Mapping[RowKey, Position]) -> set[RowKey]:
        """
        Return the rows of `moments` that cannot have been judged then.

        They were applied, and so locked: a later change of them by their own cluster would have come after the epoch.
        """
        rejected = self._in_conflict(moments)
        return {key for key, moment in moments.items() if self._tried(key, moment, rejected).locked}

    def _differs(self, key: RowKey, moment: Position | None, rejected: frozenset[int]) -> bool:
        tried = self._tried(key, moment, rejected)
        return tried.locked or tried.effect is not self.shown.get(key)

    def _in_conflict(self, moments: Mapping[RowKey, Position]) -> frozenset[int]:
        """Return the transactions in conflict."""
        counts = self._conflicting
        for key, moment in moments.items():
            now, then = self._tried(key, moment, NOTHING).conflicting, self._at_commit[key]
            if now != then:
                counts = counts.copy() if counts is self._conflicting else counts
                counts.update(now)
                counts.subtract(then)
        tracker = self._dependencies
        tracker.conflicting = {group for group, count in counts.items() if count > 0}
        return tracker.in_conflict()

    def _tried(self, key: RowKey, moment: Position | None, rejected: frozenset[int]) -> _TriedRow:
        """
        Return what the operations on one row do.

        A pass decides on each row by itself, but for the transactions that it rejects. So rows are tried one by one,
        and each but once for the same state and transactions.
        """
        numbers, state = self._numbers.get(key, ()), None if moment is None else self.here.version_at(key, moment)
        mine = rejected and rejected.intersection(self.entries[number].group for number in numbers)
        place = key, state, mine
        if place not in self._rows:
            moments = {} if moment is None else {key: moment}
            current = self._handled(moments, [self.entries[number] for number in numbers], mine)
            effect = effects_of(current).get(key)
            self._scratch.store.roll_back()
            self._rows[place] = _TriedRow(effect, bool(current.locked), frozenset(current.tracker.conflicting))
        return self._rows[place]

    def rejected(self, moments: Mapping[RowKey, Position]) -> list[tuple[RowKey, JudgedOperation]]:
        """Return the operations that are rejected, each with its row, in the order of their exceptions rows."""
        final = self._final_pass(moments)
        self._scratch.store.roll_back()
        judged = zip((entry.row for entry in self.entries), self._judged(final, range(len(self.entries))), strict=False)
        found = [each for each in judged if each[1].decision.verdict is Verdict.REJECTED]
        return sorted(found, key=lambda each: not each[1].with_transaction)

    def _final_pass(self, moments: Mapping[RowKey, Position]) -> ObservedPass:
        """Make the pass that is committed, after the one that finds transactions in conflict."""
        current = self._pass(moments, self.entries)
        conflicting = current.tracker.in_conflict()
        if conflicting:
            self._scratch.store.roll_back()
            current = self._pass(moments, self.entries, conflicting)
        return current

    def answer(self, key: RowKey, moment: Position | None) -> tuple[RowAnswer, Effect | None] | None:
        """
        Return the decisions on the operations on one row, and their effect.

        None if no function judges it row by row; if an operation stops the applier; and if one was applied although the
        row was changed after its moment, which its lock would not have allowed.

        Args:
            key: The row.
            moment: The own position after which it was judged; None for the commit.
        """
        function = self._scratch.setups[key[0]].function
        if function is None or function.spec.transactional:
            return None
        numbers = self._numbers[key]
        moments = {} if moment is None else {key: moment}
        current = self._pass(moments, [self.entries[number] for number in numbers])
        effect = effects_of(current).get(key)
        self._scratch.store.roll_back()
        operations = tuple(self._judged(current, numbers))
        if len(operations) < len(numbers) or current.locked:
            return None
        counters = tuple(sorted((name, count) for name, count in current.counters.items() if count))
        return RowAnswer(operations, counters), effect

    def different(self, key: RowKey, moments: Iterable[Position]) -> Iterator[Position]:
        """Yield the moments at which a row was not, for its function, what it was at one before or at the commit."""
        seen = {self._judged_by(key, self._scratch.store.get(key))}
        for moment in moments:
            state = self._judged_by(key, self.here.row_at(key, moment))
            if state not in seen:
                seen.add(state)
                yield moment

    def _judged_by(self, key: RowKey, row: Row | None) -> object:
        """Return all of a row that a decision on it depends on."""
        function = self._scratch.setups[key[0]].function
        column = None if function is None else function.column
        if row is None or column is None:
            return row and (row.local, row.epoch)
        value = row.payloads.get(self._scratch.setups[key[0]].table.ordinal(column))
        return row.local, row.epoch, value

    def _judged(self, current: ObservedPass, numbers: Sequence[int]) -> Iterator[JudgedOperation]:
        """Yield the operations of a pass; `numbers` are those of its entries."""
        rejected = [each for each in current.decided if each.decision.verdict is Verdict.REJECTED]
        rejected.sort(key=lambda each: each.decision.cause is not Cause.TRANS_IN_CONFLICT)
        setups = self._scratch.setups
        listed = [id(each) for each in rejected if setups[each.entry.change.table].exceptions is not None]
        rows = {at: (table.table.full_name, row) for at, (table, row) in zip(listed, current.exceptions, strict=True)}
        for number, each in zip(numbers, current.decided, strict=False):
            change = each.entry.change
            yield JudgedOperation(number, change.operation, each.decision, rows.get(id(each)), change.origin)

    def _pass(
        self,
        moments: Mapping[RowKey, Position],
        entries: Sequence[LoggedChange],
        rejected: frozenset[int] = NOTHING,
    ) -> ObservedPass:
        current = self._handled(moments, entries, rejected)
        current.make_exceptions_rows()
        return current

    def _handled(
        self,
        moments: Mapping[RowKey, Position],
        entries: Sequence[LoggedChange],
        rejected: frozenset[int] = NOTHING,
    ) -> ObservedPass:
        early = {key: self.here.row_at(key, after) for key, after in moments.items()}
        current = ObservedPass(self._scratch, self.source.cluster.cluster, self.apply, rejected, early=early)
        current.handle_all(entries, went_on=True)  # the effects decide
        return current
