"""
What becomes of a typed History under a conflict function: verdicts, rows, counters, exceptions, stops, what is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from conflict.engine.ledger.resolution import ClusterResult, Outcome, OverwrittenChange, Resolution
from conflict.engine.reference.replay import resolve
from conflict.history.timeline import EpochApply
from conflict.rules.decision import Cause, Compared, Decision, Verdict, explain, operation_word
from conflict.rules.lost_updates import loses
from conflict.telling.terminal import telling_text
from conflict.typed.decided import Decided, DifferingRow, JudgedChange, LostChange, Row, row_words
from conflict.typed.playing import LOAD_EPOCH, LOADED, Played, StepTaken, play
from conflict.typed.rules import Rules
from conflict.typed.schedule import Schedule
from conflict.typed.steps import Change, Transaction
from conflict.typed.telling import tell_verdicts, verdicts_html
from ndb_formats.types.values import Value

_LOW_BITS, _LOW = 32, (1 << 32) - 1


@attrs.frozen(repr=False)
class Verdicts(Decided):
    """What became of a History. Printed, it is the schedule with the decisions; a notebook draws it."""

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return telling_text(tell_verdicts(self))

    def _repr_html_(self) -> str:
        return verdicts_html(self)


def verdicts_of(history: Schedule, rules: Rules) -> Verdicts:
    """Return what becomes of a History under some rules."""
    played = play(history, rules)
    return told(history, rules, played, resolve(played.history, rules.setups))


def told(history: Schedule, rules: Rules, played: Played, resolution: Resolution) -> Verdicts:
    """Return what was decided, in the terms of the steps."""
    steps = _Steps.of(history, rules, played)
    results = resolution.clusters
    outcomes = [each for each in resolution.outcomes if each.epoch != LOAD_EPOCH]
    judged = tuple(steps.judged(outcomes))
    rows = {name: _rows(history, results[name].rows) for name in history.names}
    return Verdicts(
        history,
        rules,
        judged,
        {name: {counter: value for counter, value in each.counters.items() if value} for name, each in results.items()},
        {name: _exceptions(history, each.exceptions) for name, each in results.items()},
        {name: each.stop for name, each in results.items() if each.stop is not None},
        tuple(_differing(history, rows)),
        tuple(_lost(judged, list(steps.overwritten(results)))),
        played.unsettled,
        {(each.cluster, each.placed.number): each.notes for each in played.taken if each.notes and each.placed},
        rows,
        steps.refreshed({name: each.effects for name, each in results.items()}),
        {each.cluster: _number(each) for each in played.taken if each.stopped},
    )


@attrs.frozen
class _Steps:
    """
    The steps by what the engines made of them.

    Attributes:
        history: The History.
        rules: What decided.
        applies: By cluster, own and foreign epoch, the number of the step that applied it.
        groups: By cluster, own epoch and group, the number of the step.
        keys: By table and identity of a row, its key as it was typed.
    """

    history: Schedule
    rules: Rules
    applies: Mapping[tuple[str, int, int], int]
    groups: Mapping[tuple[str, int, int], int]
    keys: Mapping[tuple[str, bytes], tuple[Value, ...]]

    @classmethod
    def of(cls, history: Schedule, rules: Rules, played: Played) -> _Steps:
        """Return the steps of a History that was carried out."""
        applies, groups = dict[tuple[str, int, int], int](), dict[tuple[str, int, int], int]()
        for taken in played.taken:
            for item in taken.items:
                if isinstance(item, EpochApply):
                    applies.setdefault((taken.cluster, item.epoch, item.foreign_epoch), _number(taken))
                if not isinstance(item, EpochApply) or item.traced:
                    groups[taken.cluster, item.epoch, item.group] = _number(taken)
        steps = [step for lane in history.lanes.values() for step in lane if isinstance(step, Transaction)]
        keys = dict[tuple[str, bytes], tuple[Value, ...]]()
        for change in (*history.start, *(change for step in steps for change in step.changes)):
            keys.setdefault(_row_of(history, change), change.key)
        return cls(history, rules, applies, groups, keys)

    def judged(self, outcomes: Sequence[Outcome]) -> Iterator[JudgedChange]:
        """Yield decisions; what an epoch loses that is applied again was lost, or had its effect, the first time."""
        seen = set[tuple[str, int, int]]()
        for each in outcomes:
            place = each.source, each.source_epoch, each.ordinal
            lost = each.ordinal >= 0 and loses(each.verdict, each.operation, each.cause, each.own_cause)
            yield JudgedChange(
                each.applier,
                self.applies[each.applier, each.epoch, each.source_epoch],
                each.source,
                self.groups[each.source, each.source_epoch, each.group],
                each.table,
                self.key(each.table, each.key),
                operation_word(each.operation),
                each.refresh,
                each.verdict,
                each.cause,
                self._words(each),
                lost and place not in seen,
            )
            seen.add(place)

    def key(self, table: str, identity: bytes) -> tuple[Value, ...]:
        """Return the key of a row."""
        known = self.keys.get((table, identity))
        return known if known is not None else tuple(self.history.tables.by_name[table].key.values(identity))

    def row(self, table: str, identity: bytes) -> str:
        """Return the name of a row."""
        return row_words(self.history, table, self.key(table, identity))

    def _words(self, outcome: Outcome) -> str:
        setup = self.rules.setups[outcome.applier][outcome.table]
        by_epoch = setup.function is not None and setup.function.spec.by_epoch
        incoming, stored = outcome.incoming, outcome.stored
        if by_epoch:
            incoming, stored = (None if value is None else shown_epoch(value) for value in (incoming, stored))
        refreshed = outcome.winner is not None and outcome.winner.refresh
        column = None if setup.function is None else setup.function.column
        word = "refresh" if outcome.refresh else operation_word(outcome.operation)
        what = f"{word} of {self.row(outcome.table, outcome.key)}"
        decision = Decision(outcome.verdict, outcome.cause, incoming, stored, outcome.merged_columns(setup.table))
        words = explain(decision, what, Compared(by_epoch, column, refreshed))
        if outcome.own_cause is not Cause.NONE:
            own = Decision(Verdict.REJECTED, outcome.own_cause, incoming, stored)
            words += f" ({explain(own, what, Compared(by_epoch, column, refreshed)).partition(': ')[2]})"
        return words

    def overwritten(self, results: Mapping[str, ClusterResult]) -> Iterator[LostChange]:
        """Yield the changes that the appliers of their own clusters overwrote."""
        for name, own in results.items():
            yield from (self._overwritten(name, each) for each in own.overwritten)

    def _overwritten(self, name: str, found: OverwrittenChange) -> LostChange:
        change, winner = found.change, found.winner
        word = "a refresh" if winner.refresh else with_article(operation_word(winner.operation))
        return LostChange(
            name,
            self.groups[name, found.epoch, found.group],
            change.table,
            self.key(change.table, change.key),
            operation_word(change.operation),
            f"overwritten by {word} of {winner.cluster} that had not seen it",
        )

    def refreshed(self, effects: Mapping[str, Any]) -> dict[tuple[str, int], list[str]]:
        """Return, by cluster and step, the rows that it refreshed on the other cluster."""
        found: dict[tuple[str, int], list[str]] = {}
        for name, own in effects.items():
            for (epoch, group), rows in own.items():
                names = [self.row(*row) for row, effect in rows.items() if effect.name.startswith("REFRESHED")]
                if names and (name, epoch, group) in self.groups:
                    found.setdefault((name, self.groups[name, epoch, group]), []).extend(names)
        return found


def _number(taken: StepTaken) -> int:
    return LOADED if taken.placed is None else taken.placed.number


def _row_of(history: Schedule, change: Change) -> tuple[str, bytes]:
    return change.table, history.tables.by_name[change.table].identity(change.key)


def with_article(word: str) -> str:
    """Return a word with "a" or "an" before it."""
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def shown_epoch(epoch: int) -> int:
    """Return an epoch as steps number it, as far as it is one; no epoch is that of the rows at first."""
    if epoch == LOAD_EPOCH:
        return 0
    return epoch >> _LOW_BITS if epoch & _LOW in (0, _LOW) else epoch


def _rows(history: Schedule, found: Mapping[str, Sequence[Sequence[Value]]]) -> dict[str, list[Row]]:
    """Return the rows of all tables, by column."""
    named: dict[str, list[Row]] = {}
    for name, table in history.tables.by_name.items():
        columns = [column.name for column in table.table.columns if column.generated != "virtual"]
        named[name] = [dict(zip(columns, row, strict=True)) for row in found.get(name, ())]
    return named


def _exceptions(history: Schedule, found: Mapping[str, Sequence[Sequence[Value]]]) -> dict[str, list[Row]]:
    """Return the rows of all exceptions tables that have any, by column."""
    columns = {table.full_name: [column.name for column in table.columns] for table in history.tables.schema.tables}
    return {name: [dict(zip(columns[name], row, strict=True)) for row in rows] for name, rows in found.items() if rows}


def _differing(history: Schedule, rows: Mapping[str, Mapping[str, Sequence[Row]]]) -> Iterator[DifferingRow]:
    for name, table in history.tables.by_name.items():
        keys = table.table.primary_key
        by_key = {
            cluster: {table.identity(tuple(row[each] for each in keys)): row for row in own[name]}
            for cluster, own in rows.items()
        }
        for identity in sorted({each for own in by_key.values() for each in own}):
            found = {cluster: own.get(identity) for cluster, own in by_key.items()}
            first, second = found.values()
            if first != second:
                key = tuple((first or second or {})[each] for each in keys)
                yield DifferingRow(name, key, found)


def _lost(judged: Sequence[JudgedChange], overwritten: Sequence[LostChange]) -> Iterator[LostChange]:
    """Yield each lost change once: what the other cluster rejected, and what was overwritten besides."""
    found = set[tuple[object, ...]]()
    for each in judged:
        if each.lost:
            why = f"{each.applier} rejected it: {each.words.partition(': ')[2]}"
            change = LostChange(each.source, each.source_step, each.table, each.key, each.operation, why)
            found.add(attrs.astuple(change)[:-1])
            yield change
    yield from (change for change in overwritten if attrs.astuple(change)[:-1] not in found)
