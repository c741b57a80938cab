"""
What the binlogs leave open where it decides otherwise: the place of an epoch, and the moment at which a row was judged.

No row of a table depends on either: an epoch without a trace changed none, and all moments of a row have the effect
that the binlog shows. Counters and exceptions rows do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import attrs

from conflict.engine.ledger.resolution import Stop, Undecided
from conflict.history.model import Link
from conflict.history.scheduling.placing import Choice, Slot, choose_places
from conflict.history.timeline import Origin, Position
from conflict.rules.decision import Cause, Decision
from ndb_formats.events.rows_event import Operation
from ndb_formats.types.values import Value

Ranges = Mapping[str, Mapping[str, tuple[int, int]]]
# What the candidates add to the counters of the applier, and the number of the one that was counted.
Move = tuple[Sequence[Iterable[tuple[str, int]]], int]


@attrs.frozen
class PlaceDecision:
    """A decision on an operation of an epoch whose place is open."""

    table: str
    key: bytes
    operation: Operation
    decision: Decision


@attrs.frozen
class Alternative:
    """
    The consequences of one answer.

    Attributes:
        choices: Where the epoch may be with this effect; empty if it was not applied.
        counters: Status counters that it moves, sorted by name.
        exceptions: Rows that it adds to exceptions tables, without a number: table, and values in column order.
        decided: The decisions on its operations, in order.
        stop: The error with which it stops the applier.
    """

    choices: tuple[Choice, ...] = ()
    counters: tuple[tuple[str, int], ...] = ()
    exceptions: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    decided: tuple[PlaceDecision, ...] = ()
    stop: Stop | None = None

    @property
    def moves_nothing(self) -> bool:
        """Whether it leaves counters, exceptions tables and the applier as they are."""
        return not (self.counters or self.exceptions or self.stop)

    @property
    def signature(self) -> Hashable:
        """What tells it from other answers."""
        if self.moves_nothing:
            return None
        decisions = tuple((each.decision.verdict, each.decision.cause) for each in self.decided)
        return self.counters, self.exceptions, None if self.stop is None else self.stop.error, decisions


@attrs.frozen
class OpenPlace:
    """
    An epoch whose place is open.

    Attributes:
        applier: The applying cluster.
        source: The cluster that made the epoch.
        foreign_epoch: The epoch.
        period: How often the replica had been set back before.
        number: How many epochs of its source the applier applied before it, as the places are chosen.
        slot: Its number among the slots of its link (see `OpenSchedule`); an engine can leave some out.
        begun: Whether it comes after a trace of the same period, or nothing had been set back.
        led_on: Whether an epoch after it, in the same period, left a trace: if it was applied, all up to that were.
        alternatives: The consequences of its places.
        chosen: Number of the alternative that was chosen.
    """

    applier: str
    source: str
    foreign_epoch: int
    period: int
    number: int
    slot: int = attrs.field(eq=False)
    begun: bool
    led_on: bool
    alternatives: tuple[Alternative, ...]
    chosen: int

    @property
    def moves(self) -> Iterator[Move]:
        """What its places move in the counters."""
        yield [alternative.counters for alternative in self.alternatives], self.chosen

    @property
    def undecided(self) -> Iterator[Undecided]:
        """The operations on which its places decide otherwise; None represents no decision."""
        lists = [alternative.decided for alternative in self.alternatives]
        longest = max(lists, key=len)
        for number, operation in enumerate(longest):
            decisions = [each[number].decision if number < len(each) else None for each in lists]
            distinct = {decision for decision in decisions if decision is not None}
            if len({(None if each is None else (each.verdict, each.cause)) for each in decisions}) > 1:
                yield Undecided(
                    self.applier,
                    self.foreign_epoch,
                    operation.table,
                    operation.key,
                    operation.operation,
                    decisions[self.chosen],
                    tuple(sorted(distinct, key=lambda each: (each.verdict, each.cause, each.stored or 0))),
                )


@attrs.frozen
class PossibleRestart:
    """
    An epoch that may have used up more numbers of exceptions tables, if the applier was restarted before it.

    An applier that is restarted, or tries again after a temporary error, has forgotten that it was looking for
    transactions in conflict, and goes over the epoch once more. Nothing else shows that.

    Attributes:
        number: How many epochs the applier applied before it.
        rows: Per exceptions table, how many numbers of ``NDB$count`` the further pass uses up.
    """

    number: int
    rows: dict[str, int]


def possible_restarts(further: Mapping[str, Mapping[int, dict[str, int]]]) -> dict[str, tuple[PossibleRestart, ...]]:
    """Return them per cluster, given their attributes; clusters without any are left out."""
    return {
        name: tuple(PossibleRestart(number, rows) for number, rows in sorted(each.items()))
        for name, each in further.items()
        if each
    }


@attrs.frozen
class SkippedChange:
    """A row change that an applier never applied."""

    table: str
    key: bytes
    operation: Operation


@attrs.frozen
class SkippedEpoch:
    """
    An epoch that an applier never applied, although it applied later ones.

    It left no trace, and wherever it could have been applied it would have left one.

    Attributes:
        applier: The applying cluster.
        source: The cluster that made it.
        foreign_epoch: The epoch.
        changes: What it would have changed.
    """

    applier: str
    source: str
    foreign_epoch: int
    changes: tuple[SkippedChange, ...]


@attrs.frozen
class OpenSchedule:
    """
    What the schedule leaves open.

    Attributes:
        places: Epochs whose place is open, where another place decides otherwise; by applier, in order.
        assumed: Per applier, how many epochs stand at one of several such places, or where they should have shown.
        slots: Per link, the epochs that may have been applied, in order; those that decide on no open place can lack.
        ends: Per cluster, the last group of each own epoch.
        skipped: Epochs that were never applied, by applier, in order.
    """

    places: tuple[OpenPlace, ...] = ()
    assumed: dict[str, int] = attrs.field(factory=dict)
    slots: dict[Link, tuple[Slot, ...]] = attrs.field(factory=dict, repr=False, eq=False)
    ends: Mapping[str, Sequence[Position]] = attrs.field(factory=dict, repr=False)
    skipped: tuple[SkippedEpoch, ...] = ()

    def allows(self, selected: Mapping[OpenPlace, Alternative]) -> bool:
        """Whether some answers for open places go together, on all clusters."""
        answers = {(place.applier, place.source, place.slot): answer for place, answer in selected.items()}
        slots: dict[Link, list[Slot]] = {}
        for link, own in self.slots.items():
            slots[link] = []
            for number, slot in enumerate(own):
                answer = answers.get((*link, number))
                kept = slot
                if answer is not None:
                    kept = attrs.evolve(slot, choices=answer.choices, certain=bool(answer.choices), applied=False)
                slots[link].append(kept)
        places = choose_places(slots, self.ends)
        return all(
            place.possible or not slot.certain or slot.trace is not None or not self.slots[link][number].choices
            for link, own in slots.items()
            for number, (slot, place) in enumerate(zip(own, places[link], strict=True))
        )


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

    @property
    def moves(self) -> Iterator[Move]:
        """What the moments of its rows move in the counters."""
        for row in self.rows:
            yield [answer.counters for answer in row.answers], row.chosen

    @property
    def undecided(self) -> Iterator[Undecided]:
        """The operations on which the moments decide otherwise."""
        for row in self.rows:
            for judged in zip(*(answer.operations for answer in row.answers), strict=True):
                outcomes = {(each.decision.verdict, each.decision.cause): each.decision for each in reversed(judged)}
                if len(outcomes) > 1:
                    chosen = judged[row.chosen]
                    yield Undecided(
                        self.applier,
                        self.foreign_epoch,
                        row.table,
                        row.key,
                        chosen.operation,
                        chosen.decision,
                        tuple(outcomes[outcome] for outcome in sorted(outcomes)),
                        chosen.origin,
                    )


def undecided_by_applier(opened: Iterable[OpenPlace | OpenEpoch]) -> dict[str, list[Undecided]]:
    """Return, per applier, the operations on which what is open decides otherwise."""
    found: dict[str, list[Undecided]] = {}
    for each in opened:
        found.setdefault(each.applier, []).extend(each.undecided)
    return found


def widened_ranges(
    ranges: Ranges, counters: Mapping[str, Mapping[str, int]], opened: Iterable[OpenPlace | OpenEpoch]
) -> dict[str, dict[str, tuple[int, int]]]:
    """
    Return the ranges of counters widened by what is open.

    Args:
        ranges: Per cluster, least and greatest value of each counter that depends on other open decisions.
        counters: Per cluster, the counters as they were counted.
        opened: What is open.
    """
    widened = {name: dict(each) for name, each in ranges.items()}
    for applier, (candidates, chosen) in ((each.applier, move) for each in opened for move in each.moves):
        mine = widened.setdefault(applier, {})
        moved = [Counter(dict(each)) for each in candidates]
        for name in {name for each in moved for name in each}:
            values = [each[name] - moved[chosen][name] for each in moved]
            if min(values) < max(values):
                count = counters[applier].get(name, 0)
                least, most = mine.get(name, (count, count))
                mine[name] = (least + min(values), most + max(values))
    return {name: dict(sorted(each.items())) for name, each in widened.items()}
