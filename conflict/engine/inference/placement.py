"""
The place of every epoch that left no trace: the schedule from the binlogs alone.

An epoch without a trace belongs where no operation of it changes the rows as they then were. The rows do
not depend on these places (see `conflict.engine.inference.background`). So each place can be tried by itself (see
`conflict.engine.inference.place_trials`), and then all timelines are brought into one order of causes (see
`conflict.history.scheduling.placing`).

A place is possible if no operation would have changed a row there: rejected by a function that sends nothing back, a
missing row, a discarded reflection. One where the epoch stops the applier is possible, too, if nothing was applied
after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from conflict.engine.inference.background import Background, Recorded, Setups, background_of, epochs_known
from conflict.engine.inference.hypotheses import answers
from conflict.engine.inference.place_trials import PlaceTrials
from conflict.engine.ledger.open_places import (
    Alternative,
    OpenPlace,
    OpenSchedule,
    SkippedChange,
    SkippedEpoch,
)
from conflict.engine.reference.cluster import ExceptionRow
from conflict.engine.reference.row_store import RowKey
from conflict.history.model import History, Link
from conflict.history.scheduling.placing import Choice, Place, Slot, choose_places
from conflict.history.scheduling.schedule import logged_at
from conflict.history.timeline import DefinitionChange, EpochApply, Position, Transaction, timeline_of
from conflict.rules.foreign_keys import linked_tables

NOT_APPLIED = Alternative()


@attrs.frozen
class LinkFacts:
    """
    What all epoch applies of a link tell, where a History has those of them alone that decide.

    Attributes:
        known: Max replicated epoch before each that it has.
        numbers: Number of each among all.
        count: How many there are.
    """

    known: Sequence[int]
    numbers: Sequence[int]
    count: int


Tried = list[tuple[Choice, Alternative]]


@attrs.frozen
class Placed:
    """
    The schedule, and what it leaves open.

    Attributes:
        applies: Per cluster, the epochs that its applier applied, in order.
        schedule: What it leaves open.
    """

    applies: dict[str, tuple[EpochApply, ...]]
    schedule: OpenSchedule

    def history(self, history: History) -> History:
        """Return the History with this schedule."""
        clusters = []
        for cluster in history.clusters:
            own = [item for item in cluster.timeline if isinstance(item, Transaction)]
            changes = [item for item in cluster.timeline if isinstance(item, DefinitionChange)]
            clusters.append(attrs.evolve(cluster, timeline=timeline_of(own, self.applies[cluster.name], changes)))
        return attrs.evolve(history, clusters=tuple(clusters), assumed=self.schedule.assumed)


def place_untraced(
    history: History,
    setups: Setups,
    recorded: Recorded,
    *,
    skip_missing: bool = False,
    whole: Collection[tuple[str, int]] | None = None,
    facts: Mapping[Link, LinkFacts] | None = None,
    start: Mapping[str, Background] | None = None,
) -> Placed:
    """
    Place every epoch apply that has a `Window`.

    Args:
        history: What happened, with all epoch applies that there may have been in `History.applies`. Of the changes,
            those of `touched_rows` are enough.
        setups: Per cluster, how its server set up each table.
        recorded: Per cluster, the effects of its applier that its binlog shows.
        skip_missing: Skip operations that lack a value to compare, instead of stopping their applier.
        whole: Applier and number of the epochs whose rows are all there; None if those of all are. Of others, rows
            can lack that the applying cluster had not changed where they can have been.
        facts: Of all epoch applies, if the History lacks some that do not decide on those with a `Window`.
        start: As for `background_of`.

    Raises:
        HistoryError: The traces have no order of causes.
    """
    links = history.links
    if facts is None:
        before = epochs_known(links, history.clusters)
        facts = {link: LinkFacts(before[link], range(len(own)), len(own)) for link, own in links.items()}
    known = {link: each.known for link, each in facts.items()}
    rows = background_of(history, setups, recorded, known, start=start)
    tried: dict[Link, list[Tried]] = {}
    for (name, source), applies in links.items():
        trials = PlaceTrials(rows[name], rows[source], skip_missing)
        tried[name, source] = [
            []
            if apply.window is None
            else trials.places(apply, epoch, whole=whole is None or (name, apply.foreign_epoch) in whole)
            for apply, epoch in zip(applies, known[name, source], strict=True)
        ]
    slots = {
        link: tuple(_slot(apply, each) for apply, each in zip(applies, tried[link], strict=True))
        for link, applies in links.items()
    }
    places = choose_places(slots, history.ends)
    shown = {link: applies for link, applies in links.items() if recorded[link[0]]}
    skipped = {link: _skipped(link, applies, places[link], rows, facts[link].count) for link, applies in shown.items()}
    if any(skipped.values()):
        slots = {link: _without(own, skipped.get(link, {})) for link, own in slots.items()}
        places = choose_places(slots, history.ends)
    placed = Placed(dict.fromkeys(history.applies, ()), OpenSchedule(slots=slots, ends=history.ends))
    assumed, found = placed.schedule.assumed, list[OpenPlace]()
    assumed.update(dict.fromkeys(history.applies, 0))
    statements = {
        each.name: [(item.epoch, item.group) for item in each.timeline if isinstance(item, DefinitionChange)]
        for each in history.clusters
    }
    for link, applies in links.items():
        chosen = _up_to_stop(tried[link], places[link])
        mine = _open_places(link, applies, tried[link], chosen, facts[link].numbers)
        found += mine
        name, _ = link
        placed.applies[name] += tuple(_applied(applies, chosen, history.ends[name], statements[name]))
        assumed[name] += len(mine) + sum(
            slot.trace is None and slot.certain and not place.possible
            for slot, place in zip(slots[link], chosen, strict=True)
        )
    never = tuple(each for own in skipped.values() for each in own.values())
    return attrs.evolve(placed, schedule=attrs.evolve(placed.schedule, places=tuple(found), skipped=never))


# An operator skips an epoch now and then. Where more of them cannot have been applied, something else is wrong.
_MOST_SKIPPED, _SKIPPED_SHARE = 3, 0.05


def _skipped(
    link: Link, applies: Sequence[EpochApply], places: Sequence[Place], rows: Mapping[str, Background], count: int
) -> dict[int, SkippedEpoch]:
    """
    Return the epochs that were never applied: later ones were, and at no place would they have left no trace.

    `count` is the number of all epoch applies of the link.
    """
    name, source = link
    found: dict[int, SkippedEpoch] = {}
    last = max((slot for slot, apply in enumerate(applies) if apply.traced and not apply.period), default=-1)
    for slot, (apply, place) in enumerate(zip(applies, places, strict=True)):
        if apply.window is None or place.possible or apply.period or slot > last:
            continue
        if any(isinstance(entry, ExceptionRow) for entry in rows[source].cluster.log.get(apply.foreign_epoch, ())):
            continue  # which of these arrived is not known
        entries = rows[name].cluster.arriving(rows[source].cluster, apply.foreign_epoch)
        changed = tuple(SkippedChange(each.change.table, each.change.key, each.change.operation) for each in entries)
        found[apply.foreign_epoch] = SkippedEpoch(name, source, apply.foreign_epoch, changed)
    return found if can_be_skips(len(found), count) else {}


def can_be_skips(count: int, received: int) -> bool:
    """Whether so many of the epochs that an applier received are few enough to have been skipped."""
    return count <= max(_MOST_SKIPPED, _SKIPPED_SHARE * received)


def _up_to_stop(tried: Sequence[Tried], places: Sequence[Place]) -> list[Place]:
    """Return the places with nothing applied after an epoch that stops the applier where it was placed."""
    found, stopped = [], False
    for each, place in zip(tried, places, strict=True):
        found.append(Place(place.possible) if stopped else place)
        stopped = stopped or (place.chosen is not None and each[place.chosen][1].stop is not None)
    return found


def _without(slots: Sequence[Slot], skipped: Collection[int]) -> tuple[Slot, ...]:
    """Return slots with some epochs never applied."""
    return tuple(
        attrs.evolve(slot, choices=(), certain=False, applied=False)
        if slot.trace is None and slot.foreign_epoch in skipped
        else slot
        for slot in slots
    )


def _slot(apply: EpochApply, tried: Tried) -> Slot:
    if apply.window is None:
        return Slot(apply.foreign_epoch, trace=(apply.epoch, apply.group), period=apply.period)
    choices = tuple(choice for choice, _ in tried)
    return Slot(apply.foreign_epoch, choices, None, apply.period, apply.window.certain, apply.applied)


def _applied(
    applies: Sequence[EpochApply], places: Sequence[Place], ends: Sequence[Position], statements: Sequence[Position]
) -> list[EpochApply]:
    """
    Return the epoch applies that are taken to have been, at the places that were chosen.

    Args:
        applies: Those of an applier.
        places: The place of each.
        ends: The last group of each of its own epochs.
        statements: The positions of changes of definitions there.
    """
    found = []
    for apply, place in zip(applies, places, strict=True):
        if apply.window is None:
            found.append(apply)
        elif place.position is not None:
            epoch, group = logged_at(place.position, ends, statements)
            found.append(attrs.evolve(apply, epoch=epoch, group=group, applied=True))
    return found


def _open_places(
    link: Link, applies: Sequence[EpochApply], tried: Sequence[Tried], places: Sequence[Place], numbers: Sequence[int]
) -> list[OpenPlace]:
    """Return the epoch applies of one link that do different things at their possible places; see `LinkFacts`."""
    found, passed = [], 0
    first_traces = {apply.period: slot for slot, apply in reversed(list(enumerate(applies))) if apply.traced}
    last_traces = {apply.period: slot for slot, apply in enumerate(applies) if apply.traced}
    for slot, (apply, each, place) in enumerate(zip(applies, tried, places, strict=True)):
        if apply.window is not None:
            effects = [effect for _, effect in each]
            possible = [effects[choice] for choice in place.possible] + [NOT_APPLIED] * (not apply.window.certain)
            if len({effect.signature for effect in possible}) > 1:
                chosen = NOT_APPLIED if place.chosen is None else effects[place.chosen]
                alternatives = _alternatives(each, place.possible, certain=apply.window.certain)
                at = [effect.signature for effect in alternatives].index(chosen.signature)
                begun = apply.period == 0 or slot > first_traces.get(apply.period, slot)
                led_on = slot < last_traces.get(apply.period, -1)
                epoch, period = apply.foreign_epoch, apply.period
                number = numbers[slot] - passed
                found.append(OpenPlace(*link, epoch, period, number, slot, begun, led_on, alternatives, at))
        stops = place.chosen is not None and each[place.chosen][1].stop is not None
        passed += place.position is None or stops
    return found


def _alternatives(tried: Tried, possible: Sequence[int], *, certain: bool) -> tuple[Alternative, ...]:
    """Return the different effects of an epoch at its possible places, each with those places."""
    found = answers((tried[number] for number in possible), lambda each: each[1].signature)
    effects = [attrs.evolve(same[0][1], choices=tuple(choice for choice, _ in same)) for same in found.values()]
    return (*effects, *(() if certain or NOT_APPLIED.signature in found else (NOT_APPLIED,)))


def touched_rows(history: History, setups: Setups, recorded: Recorded) -> frozenset[RowKey]:
    """
    Return the rows on which the places of untraced epochs depend.

    Those are the rows that these epochs touch, and all rows of the tables with unique keys or foreign keys, or without
    a primary key.
    """
    over_time = [*setups.values(), *(change.step.after.setups for change in _definition_changes(history))]
    whole = {
        name
        for each in over_time
        for name, setup in each.items()
        if setup.table.unique_keys or not setup.table.primary_key
    }
    whole |= {name for each in over_time for name in linked_tables(each)}
    found = set[RowKey]()
    for (_, source), applies in history.links.items():
        epochs = {apply.foreign_epoch for apply in applies if apply.window is not None}
        found |= {
            (change.table, change.key)
            for item in history.cluster(source).timeline
            if isinstance(item, Transaction)
            for change in item.changes
            if item.epoch in epochs or change.table in whole
        }
        found |= {row for (epoch, _), rows in recorded[source].items() if epoch in epochs for row in rows}
    return frozenset(found)


def _definition_changes(history: History) -> Iterator[DefinitionChange]:
    for cluster in history.clusters:
        yield from (item for item in cluster.timeline if isinstance(item, DefinitionChange))


def restricted(history: History, rows: frozenset[RowKey]) -> History:
    """Return a History with the own changes of some rows alone."""
    clusters = []
    for cluster in history.clusters:
        timeline = [_of_rows(item, rows) if isinstance(item, Transaction) else item for item in cluster.timeline]
        kept = tuple(item for item in timeline if not isinstance(item, Transaction) or item.changes)
        clusters.append(attrs.evolve(cluster, timeline=kept))
    return attrs.evolve(history, clusters=tuple(clusters))


def _of_rows(transaction: Transaction, rows: frozenset[RowKey]) -> Transaction:
    changes = tuple(change for change in transaction.changes if (change.table, change.key) in rows)
    return attrs.evolve(transaction, changes=changes)
