"""
The short form of a story: the events that answer what was asked, and which decision parted a row that ends different.

Columns that differ were last written by different operations. Where the other cluster rejected, ignored or never came
to one of them, that decision parted the row; where both were applied, they crossed, and the later one did. Of a row
that is on one cluster alone, the operations that last made it and removed it take the place of those.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import attrs

from conflict.explaining.events import EventKind, StoryEvent, rejections_of, verb
from conflict.explaining.row_changes import WantedRow
from conflict.explaining.story import StoryEnd
from conflict.explaining.story_so_far import Seat, StorySoFar
from conflict.rules.decision import Verdict

_WRITES = {each.name for each in Verdict if each.writes_row}


@attrs.frozen
class Parting:
    """
    Why a row ends different.

    Attributes:
        sentence: It in words.
        number: Number of the event whose decision parted the clusters; None if the binlogs do not show it.
        events: Numbers of the events that decide how the row ends, in order; between those that are shown of a cluster,
            the row is not made or removed.
    """

    sentence: str
    number: int | None
    events: tuple[int, ...]


def parting_of(told: StorySoFar, row: WantedRow, ends: Mapping[str, StoryEnd]) -> Parting:
    """
    Return why a row ends different.

    Args:
        told: Its story.
        row: The row.
        ends: How it ends on each cluster; it ends different on two of them.
    """
    names = [name for name, end in ends.items() if end.known]
    pair = names[0], next(name for name in names[1:] if ends[name].differs_from(ends[names[0]]))
    columns = ends[pair[0]].differing_columns(ends[pair[1]])
    wrote = {name: _writers(told, (name, row), columns) for name in pair}
    last = {name: max(numbers, default=None) for name, numbers in wrote.items()}
    decided = [event for name in pair for event in _decisions(told, pair, name, last[name])]
    parted, sentence = _parted(told, last, decided)
    if columns:
        where = f"{_list(columns)} {'differs' if len(columns) == 1 else 'differ'}"
        for name, numbers in _different_origins(told, pair, row).items():
            wrote[name] |= numbers
    else:
        changed = {name: told.changed.get((name, row)) for name in pair}
        there = next(name for name in pair if ends[name].row is not None)
        where = f"It is on {there} alone"
        if parted is not None and told.events[parted - 1].cluster == there and parted > (last[there] or 0):
            last[there] = changed[there]  # what made it does not matter: it was not removed
        wrote = {name: {each for each in (last[name], changed[name]) if each is not None} for name in pair}
    did = "; ".join(_did(told, name, number, made=not columns) for name, number in last.items())
    seeds = set[int]().union(*wrote.values(), [parted] if parted else [])
    seeds |= {told.origin(number).cause_number or number for number in seeds}  # of a refresh, what it answers
    seeds |= {event.number for name in pair for number in wrote[name] for event in _decisions(told, pair, name, number)}
    events = tuple(sorted(_without_jumps(told, seeds, {name: ends[name] for name in pair})))
    return Parting(f"{where}. {did[0].upper()}{did[1:]}. {sentence}", parted, events)


def _writers(told: StorySoFar, seat: Seat, columns: Sequence[str]) -> set[int]:
    """Return the events that last wrote columns of a row on a cluster; without columns, that made or removed it."""
    if columns:
        writers = told.writers.get(seat, {})
        return {writers[each] for each in columns if each in writers}
    return {told.made[seat]} if seat in told.made else set()


def _different_origins(told: StorySoFar, pair: Sequence[str], row: WantedRow) -> dict[str, set[int]]:
    """
    Return the events that made a row on each cluster, if they go back to different operations that never met.

    Where one cluster had removed the row that the other one still had, its removal takes the place of the older one.
    """
    made = {number: name for name in pair for number in [told.made.get((name, row))] if number is not None}
    if len({told.origin(number).number for number in made}) < len(pair):
        return {}
    early, late = sorted(made)
    if any(event.verdict in _WRITES for event in _decisions(told, pair, made[late], late)):
        return {}
    here = [event for event in told.events[early : late - 1] if event.cluster == made[late]]
    removed = [each.number for before, each in pairwise(here) if before.row is not None and each.row is None]
    if removed:
        return {made[late]: {removed[-1], late}}
    return {made[early]: {early}, made[late]: {late}}


def _parted(told: StorySoFar, last: Mapping[str, int | None], decided: Sequence[StoryEvent]) -> tuple[int | None, str]:
    """Return the number of the event that parted a row, and what it decided in words."""
    refused = [event.number for event in decided if event.verdict not in _WRITES]
    written = [number for number in last.values() if number is not None]
    crossed = [*written, *(event.number for event in decided)]
    parted = max(refused or crossed, default=None)
    if parted is None:
        return None, "The binlogs do not show what parted them."
    event = told.events[parted - 1]
    said = f"Event {parted} parted them: on {event.cluster}, {event.sentence}."
    if not refused:
        said = f"Both were applied, each after the other cluster's own change: they crossed. {said}"
    return parted, said


def answer_of(told: StorySoFar, asked: Iterable[int]) -> tuple[int, ...]:
    """
    Return the numbers of the events that say what became of some operations, in order.

    They are what was decided on them, against what they lost, the refreshes that followed, what these carry, and what
    became of them.

    Args:
        told: The story.
        asked: Numbers of the operations' events.
    """
    found = set(asked)
    for kinds in (
        (EventKind.JUDGED, EventKind.NOT_APPLIED),
        (EventKind.REFRESHED,),
        (EventKind.JUDGED, EventKind.NOT_APPLIED),
    ):
        found |= {
            event.number
            for event in told.events
            if event.kind in kinds
            and (
                not found.isdisjoint(rejections_of(event, told.events))
                if event.kind is EventKind.REFRESHED
                else event.cause_number in found
            )
        }
    return tuple(sorted(_with_what_they_cite(told, found)))


def _decisions(told: StorySoFar, pair: Sequence[str], cluster: str, number: int | None) -> list[StoryEvent]:
    """Return what the other cluster last decided on the operation that an event of a cluster goes back to."""
    if number is None:
        return []
    origin = told.origin(number).number
    kinds = (EventKind.JUDGED, EventKind.NOT_APPLIED)
    found = [each for each in told.events if each.cause_number == origin and each.kind in kinds]
    return [each for each in found if each.cluster in pair and each.cluster != cluster][-1:]


def _with_what_they_cite(told: StorySoFar, numbers: Iterable[int]) -> set[int]:
    """Return events with those that their sentences name, and those that they follow from."""
    left, found = set(numbers), set[int]()
    while left:
        number = left.pop()
        found.add(number)
        event = told.events[number - 1]
        left |= {*event.cites} - found
        if event.cause_number is not None and event.kind is not EventKind.REFRESHED:
            left |= {event.cause_number} - found
    return found


def _without_jumps(told: StorySoFar, numbers: Collection[int], ends: Mapping[str, StoryEnd]) -> set[int]:
    """Return events with all that they cite, and with what made or removed the row between them or after them."""
    found = _with_what_they_cite(told, numbers)
    while True:
        missing = {number for name, end in ends.items() for number in _jumps(told, name, found, end)}
        if missing <= found:
            return found
        found = _with_what_they_cite(told, found | missing)


def _jumps(told: StorySoFar, cluster: str, chosen: Collection[int], end: StoryEnd) -> Iterator[int]:
    """Yield the events that made or removed the row where those that are chosen do not show it."""
    shown: bool | None = None  # whether the row exists, as far as the chosen events show
    there, changed = False, 0
    for event in (each for each in told.events if each.cluster == cluster):
        if event.number in chosen and shown is not None and shown != there:
            yield changed
        if there != (event.row is not None):
            there, changed = not there, event.number
        if event.number in chosen:
            shown = there
    if shown is not None and there != shown and there == (end.row is not None):
        yield changed


def _did(told: StorySoFar, cluster: str, number: int | None, *, made: bool) -> str:
    """Return in words which operation last wrote a row, or made or removed it."""
    if number is None:
        return f"on {cluster} nothing in its log {'made or removed it' if made else 'wrote that'}"
    event, origin = told.events[number - 1], told.origin(number)
    author = "its own" if origin.cluster == cluster else f"{origin.cluster}'s"
    what = "refresh" if origin.refresh else verb(origin.operation)
    if origin.refresh and origin.cites:
        carried = told.origin(origin.cites[0])
        what += f", which carries the {verb(carried.operation)} of event {carried.number},"
    at = f"event {number}" if origin.number == number else f"event {origin.number}, applied in event {number}"
    if event.kind is EventKind.DEFINED:
        author, what = "a", "statement"
    did = "removed it" if made and event.row is None else "came last"
    if made and event.row is not None and told.made.get((cluster, (event.table, event.identity))) == number:
        did = "made it"
    return f"on {cluster} {author} {what} {did} ({at})"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
