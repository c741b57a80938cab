"""
What an epoch apply would have done, had its rows been judged at other moments.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import attrs

from conflict.engine.inference.background import Background
from conflict.engine.inference.hypotheses import scratch, tried_in_turn
from conflict.engine.inference.observed import ObservedCluster, ObservedPass
from conflict.engine.inference.rows import OlderRow
from conflict.engine.ledger.open_places import JudgedOperation, RowAnswer
from conflict.engine.reference.applier import effects_of
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.decide import DependencyTracker, compared_value, stored_value
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.shown_effects import Effect
from conflict.history.timeline import EpochApply, Position
from conflict.rules.decision import Cause, Verdict, in_node_order
from conflict.rules.functions import ConflictFunction
from ndb_formats.schema.tables import Table

NOTHING: frozenset[int] = frozenset()


@attrs.frozen
class TriedRow:
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
class RowsJudged:
    """
    An epoch apply with some rows judged earlier than at its commit.

    Judging a row at another moment costs as much as what follows from it: that row, and the rows of transactions that
    are, or no longer are, in conflict for it.

    Attributes:
        trial: Tries the rows.
        moments: The own position after which each of these rows was judged.
        rejected: The transactions in conflict.
        differing: Rows with another effect than the binlog shows, or that cannot have been judged then.
        impossible: Rows that cannot have been judged then. They were applied, and so locked: a later change of them by
            their own cluster would have come after the epoch.
    """

    trial: TrialApply
    moments: dict[RowKey, Position] = attrs.field(factory=dict)
    rejected: frozenset[int] = NOTHING
    differing: set[RowKey] = attrs.field(factory=set)
    impossible: set[RowKey] = attrs.field(factory=set)
    _conflicting: Counter[int] = attrs.field(factory=Counter)  # how many rows put each transaction in conflict

    def start(self, rows: Iterable[RowKey]) -> None:
        """Judge all rows at the commit."""
        rows = set(rows)
        for key in rows:
            self._conflicting.update(self.trial.tried(key, None, NOTHING).conflicting)
        self.rejected = self.trial.depending_on(set(self._conflicting))
        self._try(rows)

    def copy(self) -> RowsJudged:
        """Return another one that judges the same rows alike."""
        return RowsJudged(
            self.trial,
            dict(self.moments),
            self.rejected,
            set(self.differing),
            set(self.impossible),
            self._conflicting.copy(),
        )

    def judge(self, moments: Mapping[RowKey, Position | None]) -> None:
        """Judge some rows at other moments; None for the commit."""
        affected, turned = set(moments), False
        for key, moment in moments.items():
            before = self.trial.tried(key, self.moments.get(key), NOTHING).conflicting
            now = self.trial.tried(key, moment, NOTHING).conflicting
            if moment is None:
                self.moments.pop(key, None)
            else:
                self.moments[key] = moment
            turned = (before != now and self._count(before - now, now - before)) or turned
        if turned:
            rejected = self.trial.depending_on({group for group, count in self._conflicting.items() if count})
            affected.update(self.trial.touched_by(rejected ^ self.rejected))
            self.rejected = rejected
        self._try(affected)

    def _count(self, less: Iterable[int], more: Iterable[int]) -> bool:
        """Count rows that put transactions in conflict; return whether one is, or is not any more, for it."""
        counts, turned = self._conflicting, False
        for group in less:
            counts[group] -= 1
            turned = turned or not counts[group]
        for group in more:
            turned = turned or not counts[group]
            counts[group] += 1
        return turned

    def _try(self, rows: Iterable[RowKey]) -> None:
        for key in rows:
            tried = self.trial.tried(key, self.moments.get(key), self.rejected)
            (self.impossible.add if tried.locked else self.impossible.discard)(key)
            (self.differing.add if self.trial.differs(key, tried) else self.differing.discard)(key)


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
    # By row, number of its state, and those of its transactions that are rejected.
    _rows: dict[tuple[RowKey, int | None, frozenset[int]], TriedRow] = attrs.field(init=False, factory=dict)
    _values: dict[RowKey, list[int]] = attrs.field(init=False, factory=dict)  # that the operations on a row bring

    def __attrs_post_init__(self) -> None:
        cluster = self.here.cluster
        self._numbers = {}
        for number, entry in enumerate(self.entries):
            self._numbers.setdefault(entry.row, []).append(number)
        rows = {key: cluster.store.get(key) for key in self._numbers}
        known = cluster.max_replicated_epoch
        self._scratch = scratch(cluster, self.apply, cluster.setups, rows, known, skip_missing=self.skip_missing)

    # What only transactions in conflict ask for is made when there are some.

    @cached_property
    def _groups(self) -> dict[RowKey, frozenset[int]]:
        """The transactions that touch each row."""
        return {key: frozenset(self.entries[number].group for number in own) for key, own in self._numbers.items()}

    @cached_property
    def _rows_of(self) -> dict[int, list[RowKey]]:
        """The rows that each transaction touches."""
        found: dict[int, list[RowKey]] = {}
        for key, groups in self._groups.items():
            for group in groups:
                found.setdefault(group, []).append(key)
        return found

    @cached_property
    def _dependencies(self) -> DependencyTracker:
        tracker = self._handled({}, self.entries).tracker
        self._scratch.store.roll_back()
        return tracker

    @cached_property
    def at_commit(self) -> RowsJudged:
        """What the epoch does if all rows were judged at the commit; not to be changed."""
        found = RowsJudged(self)
        found.start(self._numbers.keys() | self.shown.keys())
        return found

    def judged(self, moments: Mapping[RowKey, Position]) -> RowsJudged:
        """Return what the epoch does if some rows were judged after own positions, all others at the commit."""
        found = self.at_commit.copy()
        found.judge(moments)
        return found

    def differs(self, key: RowKey, tried: TriedRow) -> bool:
        """Whether a row has another effect than the binlog shows, or cannot have been judged so."""
        return tried.locked or tried.effect is not self.shown.get(key)

    def touched_by(self, groups: Iterable[int]) -> Iterator[RowKey]:
        """Yield the rows that transactions touch."""
        for group in groups:
            yield from self._rows_of.get(group, ())

    def depending_on(self, conflicting: set[int]) -> frozenset[int]:
        """Return transactions with an operation in conflict, and all that depend on them."""
        if not conflicting:
            return NOTHING
        self._dependencies.conflicting = conflicting
        return self._dependencies.in_conflict()

    def tried(self, key: RowKey, moment: Position | None, rejected: frozenset[int]) -> TriedRow:
        """
        Return what the operations on one row do.

        A pass decides on each row by itself, but for the transactions that it rejects. So rows are tried one by one,
        and each but once for the same state and transactions.
        """
        state = None if moment is None else self.here.version_at(key, moment)
        mine = rejected and rejected & self._groups.get(key, NOTHING)
        place = key, state, mine
        found = self._rows.get(place)
        if found is None:
            moments = {} if moment is None else {key: moment}
            current = self._handled(moments, [self.entries[number] for number in self._numbers.get(key, ())], mine)
            effect = effects_of(current).get(key)
            self._scratch.store.roll_back()
            found = TriedRow(effect, bool(current.locked), frozenset(current.tracker.conflicting))
            self._rows[place] = found
        return found

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

    def judges_alone(self, key: RowKey) -> bool:
        """Whether a function judges a row, and judges row by row."""
        deployed = self._scratch.setups[key[0]].deployed(self._scratch.role)
        if deployed.function is None or not deployed.function.spec.transactional:
            return deployed.function is not None
        return self.singly and deployed.as_secondary

    def answer(self, key: RowKey, moment: Position | None) -> tuple[RowAnswer, Effect | None] | None:
        """
        Return the decisions on the operations on one row, and their effect.

        None if no function judges it row by row; if an operation stops the applier; and if one was applied although the
        row was changed after its moment, which its lock would not have allowed.

        Args:
            key: The row.
            moment: The own position after which it was judged; None for the commit.
        """
        return self._answer(key, moment, self._numbers[key]) if self.judges_alone(key) else None

    def _answer(
        self, key: RowKey, moment: Position | None, numbers: Sequence[int]
    ) -> tuple[RowAnswer, Effect | None] | None:
        """Return what becomes of some operations on a row, as `answer` does for all."""
        moments = {} if moment is None else {key: moment}
        current = self._pass(moments, [self.entries[number] for number in numbers])
        effect = effects_of(current).get(key)
        self._scratch.store.roll_back()
        operations = tuple(self._judged(current, numbers))
        if len(operations) < len(numbers) or current.locked:
            return None
        counters = tuple(sorted((name, count) for name, count in current.counters.items() if count))
        return RowAnswer(operations, counters), effect

    @property
    def singly(self) -> bool:
        """Whether the operations on a row can have been judged at moments of their own."""
        return self.here.cluster.cluster.applies_singly

    def answers_singly(self, key: RowKey, moments: Sequence[Position]) -> Iterator[tuple[RowAnswer, Effect | None]]:
        """
        Yield the decisions on the operations on one row, each judged at a moment of its own, and their effect.

        The first one that is applied or makes a refresh locks the row, so that no moment before the commit matters to
        it and to those after it.

        Args:
            key: The row.
            moments: Own positions after which it was judged, in order.
        """
        numbers = self._numbers[key]

        def unapplied(place: int, moment: Position) -> RowAnswer | None:
            found = self._answer(key, moment, numbers[place : place + 1])
            return None if found is None or found[1] is not None else found[0]

        ways = tried_in_turn(len(numbers), self._changing(key, moments), unapplied)
        for place, earlier in enumerate(ways):
            last = self._answer(key, None, numbers[place:])
            if last is None:
                continue
            for each in earlier:
                parts, effect = (*each, last[0]), last[1]
                counters = sum((Counter(dict(part.counters)) for part in parts), Counter[str]())
                operations = tuple(judged for part in parts for judged in part.operations)
                yield RowAnswer(operations, tuple(sorted(counters.items()))), effect

    def _changing(self, key: RowKey, moments: Sequence[Position]) -> list[Position]:
        """Return the moments at which a row was not, for its function, what it was at the one before."""
        states = [self._judged_by(key, self.here.row_at(key, moment)) for moment in moments]
        return [each for place, each in enumerate(moments) if not place or states[place] != states[place - 1]]

    def different(self, key: RowKey, moments: Iterable[Position]) -> Iterator[Position]:
        """Yield the moments at which a row was not, for its function, what it was at one before or at the commit."""
        seen = {self._judged_by(key, self._scratch.store.get(key))}
        for moment in moments:
            state = self._judged_by(key, self.here.row_at(key, moment))
            if state not in seen:
                seen.add(state)
                yield moment

    def _judged_by(self, key: RowKey, row: Row | None) -> Hashable:
        """Return all of a row that the decisions on its operations depend on."""
        setup = self._scratch.setups[key[0]]
        function = setup.function
        if row is None or function is None or function.column is None:
            return row and (row.local, row.epoch)
        if isinstance(row, OlderRow) or not function.spec.compares_alone:
            return row.local, row.epoch, row.payloads.get(setup.table.ordinal(function.column))
        stored = stored_value(row, function, setup.table)
        assert stored is not None
        compared, stored = self._compared(key, function, setup.table), in_node_order(stored)
        place = bisect.bisect_left(compared, stored)
        return place, place < len(compared) and compared[place] == stored

    def _compared(self, key: RowKey, function: ConflictFunction, table: Table) -> list[int]:
        """
        Return the values that the operations on a row bring, as `in_node_order`, sorted.

        A decision depends on which are greater.
        """
        found = self._values.get(key)
        if found is None:
            changes = [self.entries[number].change for number in self._numbers[key]]
            images = [image for change in changes for image in (change.before, change.after)]
            values = {compared_value(image, function, table) for image in images}
            found = self._values[key] = sorted(in_node_order(value) for value in values if value is not None)
        return found

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
