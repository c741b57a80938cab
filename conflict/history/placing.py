"""
Where epochs without a trace were applied, on both clusters together.

Each untraced epoch apply has *choices*: stretches of its cluster's timeline where nothing that it does shows. What one
cluster chooses bounds the other. An epoch is applied only when it is complete. So an applier that applied an epoch of
the other cluster before its own epoch *e* was complete did so before *e* can have reached the other cluster:

    A applies f before its epoch e is complete  =>  B applies e after its epoch f is complete

Two timelines that keep this for every pair of epochs can be brought into one order of causes. So the latest place of
every epoch apply bounds the places of the other cluster's; each place that these bounds leave is possible together with
some place of every other one.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import attrs

from conflict.history.model import END, START, Position

__all__ = ["Choice", "Place", "Slot", "choose_places"]


@attrs.frozen
class Choice:
    """A stretch of a timeline: after the position `start`, before the group at `stop`."""

    start: Position
    stop: Position


@attrs.frozen
class Slot:
    """
    An epoch apply that is to be placed.

    Attributes:
        foreign_epoch: The foreign epoch.
        choices: Where it can be, in order; empty if its trace tells.
        trace: Its place in the binlog; None if it left no trace.
        period: How often the replica had been set back before.
        certain: Whether it was applied at all.
        applied: Whether it counts as applied, if a choice is left.
    """

    foreign_epoch: int
    choices: tuple[Choice, ...] = ()
    trace: Position | None = None
    period: int = 0
    certain: bool = True
    applied: bool = True


@attrs.frozen
class Place:
    """
    What was found of a slot.

    Attributes:
        possible: Numbers of the choices that go with some choice of every other slot.
        chosen: One of them; None if the epoch counts as not applied, or has a trace.
        position: The own position after which it stands; None if it counts as not applied.
    """

    possible: tuple[int, ...] = ()
    chosen: int | None = None
    position: Position | None = None


Slots = Mapping[str, Sequence[Slot]]
Ends = Mapping[str, Sequence[Position]]


def choose_places(slots: Slots, ends: Ends) -> dict[str, list[Place]]:
    """
    Choose a place for every slot, so that both timelines together have an order of causes; early ones first.

    A slot that is certain and has no possible choice keeps the first place that its neighbours leave, and `possible`
    is empty: the binlogs contradict what was expected of it.

    Args:
        slots: Per cluster, the epoch applies of its applier in order.
        ends: Per cluster, the last group of each own epoch.
    """
    first, second = slots
    latest = {name: _latest(each) for name, each in slots.items()}
    bounds = {
        here: _bounds(slots[here], _required(slots[there], latest[there]), ends[here], ends[there])
        for here, there in ((first, second), (second, first))
    }
    places = {first: _forward(slots[first], latest[first], bounds[first], bounds[first])}
    required = [
        (slot.foreign_epoch, slot.trace or (place.position[0], place.position[1] + 1))
        for slot, place in zip(slots[first], places[first], strict=True)
        if place.position is not None
    ]
    narrowed = _bounds(slots[second], required, ends[second], ends[first])
    places[second] = _forward(slots[second], latest[second], bounds[second], narrowed)
    return places


def _latest(slots: Sequence[Slot]) -> list[Position]:
    """Return, per slot, the position before which it must be, so that the certain ones after it have a place."""
    found, bound = [END] * len(slots), END
    for number in range(len(slots) - 1, -1, -1):
        slot = slots[number]
        if slot.trace is not None:
            bound = min(bound, slot.trace)
        elif slot.certain:
            fitting = [choice.stop for choice in slot.choices if choice.start < bound]
            bound = min(bound, max(fitting, default=bound))
        found[number] = bound
    return found


def _required(slots: Sequence[Slot], latest: Sequence[Position]) -> list[tuple[int, Position]]:
    """Return the foreign epochs that were surely applied, each with the position before which it was."""
    return [
        (slot.foreign_epoch, slot.trace or bound)
        for slot, bound in zip(slots, latest, strict=True)
        if slot.certain or slot.trace is not None
    ]


def _bounds(
    slots: Sequence[Slot],
    required: Sequence[tuple[int, Position]],
    ends: Sequence[Position],
    others: Sequence[Position],
) -> list[Position]:
    """
    Return, per slot, the position after which it is, because of what the other cluster applied.

    Args:
        slots: The epoch applies of one applier.
        required: Own epochs that the other cluster applied, each with the position there before which it did.
        ends: The last group of each own epoch.
        others: The last group of each epoch of the other cluster.
    """
    required = sorted(required, key=lambda item: item[1])
    deadlines = [deadline for _, deadline in required]
    newest = list(accumulate((epoch for epoch, _ in required), max))
    epochs, numbers = [epoch for epoch, _ in others], [epoch for epoch, _ in ends]
    found = []
    for slot in slots:
        at = bisect.bisect_left(epochs, slot.foreign_epoch)
        end = others[at] if at < len(others) and epochs[at] == slot.foreign_epoch else (slot.foreign_epoch, 0)
        count = bisect.bisect_right(deadlines, end)
        known = bisect.bisect_right(numbers, newest[count - 1]) if count else 0
        found.append(ends[known - 1] if known else START)
    return found


def _forward(
    slots: Sequence[Slot], latest: Sequence[Position], bounds: Sequence[Position], narrowed: Sequence[Position]
) -> list[Place]:
    """
    Choose the first possible place of each slot, in order.

    Args:
        slots: The epoch applies of one applier.
        latest: Per slot, the position before which it must be.
        bounds: Per slot, the position after which it is.
        narrowed: The same, with the choices that were made on the other cluster.
    """
    places: list[Place] = []
    earliest = chosen_after = START  # after all slots before, whatever is chosen; and as it is chosen
    run = _Run()
    for slot, before, bound, narrow in zip(slots, latest, bounds, narrowed, strict=True):
        run.come_to(slot)
        if slot.trace is not None:
            earliest = chosen_after = slot.trace
            places.append(Place(position=slot.trace))
            continue
        possible = () if run.broken else tuple(_fitting(slot, max(bound, earliest), before))
        mine = [number for number in _fitting(slot, max(narrow, chosen_after), before) if number in possible]
        chosen = mine[0] if mine else None
        if slot.certain or (slot.applied and chosen is not None and not run.ended):
            start = START if chosen is None else slot.choices[chosen].start
            chosen_after = max(chosen_after, min(max(narrow, start), _just_before(before)))
            if possible and slot.certain:
                earliest = max(earliest, bound, slot.choices[possible[0]].start)
            places.append(Place(possible, chosen, chosen_after))
        else:
            run.leave_out(possible=bool(possible))
            places.append(Place(possible))
    return places


@attrs.define
class _Run:
    """
    Whether the applier goes on, from trace to trace: after an epoch that it did not apply, it applied no other.

    Attributes:
        period: How often the replica had been set back.
        begun: Whether it surely applied the epochs before; else it may begin with any epoch.
        ended: Whether an epoch counted as not applied.
        broken: Whether an epoch cannot have been applied.
    """

    period: int = 0
    begun: bool = True
    ended: bool = False
    broken: bool = False

    def come_to(self, slot: Slot) -> None:
        """Note a slot; one that was surely applied begins anew."""
        if slot.period != self.period:
            self.period, self.begun, self.ended, self.broken = slot.period, False, False, False
        if slot.certain or slot.trace is not None:
            self.begun, self.ended, self.broken = True, False, False

    def leave_out(self, *, possible: bool) -> None:
        """Note that an epoch counts as not applied."""
        self.ended = self.ended or self.begun
        self.broken = self.broken or (self.begun and not possible)


def _fitting(slot: Slot, after: Position, before: Position) -> Iterator[int]:
    """Yield the numbers of the choices that leave room after a position and before another one."""
    for number, choice in enumerate(slot.choices):
        if max(choice.start, after) < min(choice.stop, before):
            yield number


def _just_before(position: Position) -> Position:
    epoch, group = position
    return (epoch, group - 1)
