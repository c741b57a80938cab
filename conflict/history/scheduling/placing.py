"""
Where epochs without a trace were applied, on all clusters together, in the order of causes.

That order has the items of all timelines: each cluster's own order is kept, and every cause comes before its effect.

Each untraced epoch apply has *choices*: stretches of its cluster's timeline where nothing that it does shows. What one
cluster chooses bounds the others. An epoch is applied only when it is complete. So an applier that applied an epoch of
another cluster before its own epoch *e* was complete did so before *e* can have reached that cluster:

    A applies f before its epoch e is complete  =>  B applies e after its epoch f is complete

In a chain or a ring *e* reaches B by way of the clusters between them. Timelines that keep this for every pair of
epochs can be brought into one order of causes. So the latest place of every epoch apply bounds the places of the
others; each place that these bounds leave is possible together with some place of every other one.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter

import attrs

from conflict.errors import HistoryError
from conflict.history.model import Cluster, History, Link
from conflict.history.timeline import END, START, DefinitionChange, EpochApply, Position, Transaction

Item = Transaction | EpochApply | DefinitionChange


def interleave(history: History) -> Iterator[tuple[Cluster, Item]]:
    """
    Yield each item with its cluster, in an order that respects cause and effect.

    An epoch can be applied once everything that its cluster logged in it has happened.

    Raises:
        HistoryError: No such order exists.
    """
    places = dict.fromkeys((cluster.name for cluster in history.clusters), 0)
    timelines = {cluster.name: cluster.timeline for cluster in history.clusters}
    while True:
        moved = False
        for cluster in history.clusters:
            timeline = timelines[cluster.name]
            while places[cluster.name] < len(timeline):
                item = timeline[places[cluster.name]]
                if isinstance(item, EpochApply) and not _logged(
                    timelines[item.source], places[item.source], item.foreign_epoch
                ):
                    break
                places[cluster.name] += 1
                moved = True
                yield cluster, item
        if not moved:
            break
    for cluster in history.clusters:
        if places[cluster.name] < len(timelines[cluster.name]):
            item = timelines[cluster.name][places[cluster.name]]
            raise circular_schedule(cluster.name, getattr(item, "foreign_epoch", "?"))


def circular_schedule(cluster: str, epoch: int | str) -> HistoryError:
    """Return the error of a cluster that applies an epoch before the other one can have made it."""
    return HistoryError(
        f"the schedule is circular: cluster {cluster} applies epoch {epoch} before the other cluster can have made it; "
        "a file may be missing, or be of another time: give all binlog files of both clusters"
    )


def _logged(timeline: Sequence[Item], place: int, epoch: int) -> bool:
    """Whether everything that a cluster did in `epoch` lies before `place`."""
    return place == len(timeline) or timeline[place].epoch > epoch


# More contradictions than this do not come from an order; another function was in force.
MAX_CONTRADICTIONS = 200


@attrs.frozen
class Inference:
    """
    Rows of an epoch that were judged before changes that the binlog lists in front of it.

    Attributes:
        cluster: The cluster whose applier it is about.
        foreign_epoch: Epoch of the other cluster.
        judged_earlier: How many rows were judged earlier; so few explain what the binlog shows.
        candidates: From how many possible answers it was chosen.
        rows: How many rows contradicted the order of the binlog.
    """

    cluster: str
    foreign_epoch: int
    judged_earlier: int
    candidates: int
    rows: int


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


Slots = Mapping[Link, Sequence[Slot]]
Ends = Mapping[str, Sequence[Position]]
# Own epochs of a cluster, or foreign epochs that it applied, each with the own position before which it did.
Deadlines = list[tuple[int, Position]]


def choose_places(slots: Slots, ends: Ends) -> dict[Link, list[Place]]:
    """
    Choose a place for every slot, so that all timelines together have an order of causes; early ones first.

    A slot that is certain and has no possible choice keeps the first place that its neighbours leave, and `possible`
    is empty: the binlogs contradict what was expected of it.

    Args:
        slots: Per link, the epoch applies in order.
        ends: Per cluster, the last group of each own epoch.
    """
    latest = {link: _latest(each) for link, each in slots.items()}
    required = {link: _required(each, latest[link]) for link, each in slots.items()}
    bounds = {link: _bounds(link, each, required, ends) for link, each in slots.items()}
    places: dict[Link, list[Place]] = {}
    for link, each in slots.items():
        narrowed = _bounds(link, each, required, ends) if places else bounds[link]
        places[link] = _forward(each, latest[link], bounds[link], narrowed)
        required[link] = [
            (slot.foreign_epoch, slot.trace or (place.position[0], place.position[1] + 1))
            for slot, place in zip(each, places[link], strict=True)
            if place.position is not None
        ]
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


def _required(slots: Sequence[Slot], latest: Sequence[Position]) -> Deadlines:
    """Return the foreign epochs that were surely applied, each with the position before which it was."""
    return [
        (slot.foreign_epoch, slot.trace or bound)
        for slot, bound in zip(slots, latest, strict=True)
        if slot.certain or slot.trace is not None
    ]


def _bounds(link: Link, slots: Sequence[Slot], required: Mapping[Link, Deadlines], ends: Ends) -> list[Position]:
    """
    Return, per slot, the position after which it is, because of what the other clusters applied; START for a trace.

    Args:
        link: The link of the slots.
        slots: Its epoch applies.
        required: Per link, the foreign epochs that were applied, each with the own position before which that was.
        ends: Per cluster, the last group of each own epoch.
    """
    applier, source = link
    news = _news(applier, required, ends).get(source, _News())
    own, found = ends[applier], []
    for slot in slots:
        if slot.trace is not None:  # which tells
            found.append(START)
            continue
        known = bisect.bisect_right(own, news.newest(_end(ends[source], slot.foreign_epoch)), key=itemgetter(0))
        found.append(own[known - 1] if known else START)
    return found


def _end(ends: Sequence[Position], epoch: int) -> Position:
    """Return the last group of an epoch."""
    at = bisect.bisect_left(ends, epoch, key=itemgetter(0))
    return ends[at] if at < len(ends) and ends[at][0] == epoch else (epoch, 0)


class _News:
    """From which own position on a cluster surely knew which epoch of another one."""

    def __init__(self, deadlines: Deadlines = []) -> None:  # noqa: B006  # never changed
        ordered = sorted(deadlines, key=lambda item: item[1])
        self._positions = [position for _, position in ordered]
        self._newest = list(accumulate((epoch for epoch, _ in ordered), max))

    def newest(self, position: Position) -> int:
        """Return the newest epoch that was known after the group at a position; -1 for none."""
        count = bisect.bisect_right(self._positions, position)
        return self._newest[count - 1] if count else -1


def _news(origin: str, required: Mapping[Link, Deadlines], ends: Ends) -> dict[str, _News]:
    """Return, per cluster, what it surely knew of the epochs of one cluster, also by way of others."""
    deadlines_of: dict[str, Deadlines] = {}
    for (applier, source), deadlines in required.items():
        if source == origin:
            deadlines_of.setdefault(applier, []).extend(deadlines)
    known = {name: _News(each) for name, each in deadlines_of.items()}
    for _ in range(len(ends) - 2):  # a way has no more clusters between its two ends
        further = {name: list(each) for name, each in deadlines_of.items()}
        for (applier, source), deadlines in required.items():
            if origin not in (applier, source) and source in known:
                passed = ((known[source].newest(_end(ends[source], epoch)), position) for epoch, position in deadlines)
                further.setdefault(applier, []).extend(passed)
        known = {name: _News(each) for name, each in further.items()}
    return known


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
    progress = _Progress()
    for slot, before, bound, narrow in zip(slots, latest, bounds, narrowed, strict=True):
        progress.come_to(slot)
        if slot.trace is not None:
            earliest = chosen_after = slot.trace
            places.append(Place(position=slot.trace))
            continue
        possible = () if progress.broken else tuple(_fitting(slot, max(bound, earliest), before))
        mine = [number for number in _fitting(slot, max(narrow, chosen_after), before) if number in possible]
        chosen = mine[0] if mine else None
        if slot.certain or (slot.applied and chosen is not None and not progress.ended):
            start = START if chosen is None else slot.choices[chosen].start
            chosen_after = max(chosen_after, min(max(narrow, start), _just_before(before)))
            if possible and slot.certain:
                earliest = max(earliest, bound, slot.choices[possible[0]].start)
            places.append(Place(possible, chosen, chosen_after))
        else:
            progress.leave_out(possible=bool(possible))
            places.append(Place(possible))
    return places


@attrs.define
class _Progress:
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
