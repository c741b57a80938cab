"""Incidents, and epochs that a log lacks, with and without the log of another SQL node."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from conflict.config.configuration import Configuration
from ndb_formats.constants import EventType
from ndb_formats.events.control_events import IncidentEvent, encode_incident
from ndb_formats.events.header import EventHeader
from tests.faults.edited_logs import EditedLog, EditedPair, LoggedEpoch, LoggedRow, Raw
from tests.faults.planting import Planted, decide_the_same, is_simple, of_groups, shuffled

RESTART, DISCONNECT = IncidentEvent(1, "mysqld startup"), IncidentEvent(1, "cluster disconnect")
_TWIN = 77  # server id of a second SQL node


def incident_event(log: EditedLog, incident: IncidentEvent, time: int) -> Raw:
    """Return an incident in a log."""
    return EventHeader(time, EventType.INCIDENT_EVENT, log.server_id, 0, 0, 0), encode_incident(incident)


def incident(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """A restart of a server at which nothing was lost: an incident at the start of the next file."""
    for side, place in shuffled(_bounds(pair), chance):
        log = pair.logs[side]
        first = {1: incident_event(log, RESTART, _time(log, place))}
        servers = [[each.written(folder)] for each in pair.logs]
        servers[side] = [log.written(folder, [place], first)]
        yield Planted(
            "incident, nothing lost",
            pair.configured(*servers),
            ("incident",),
            truth=pair.logs,
            place=f"{log.cluster} before {place}",
        )


def _bounds(pair: EditedPair) -> list[tuple[int, int]]:
    """Return sides and places between two epochs of their logs."""
    return [(side, log.place(epoch.number)) for side, log in enumerate(pair.logs) for epoch in log.epochs[1:]]


def _time(log: EditedLog, place: int) -> int:
    item = log.items[place]
    return (item.head[0] if isinstance(item, LoggedEpoch) else item)[0].timestamp


def lost_events(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """Epochs that the one SQL node of a cluster did not log while it was away: the other cluster never got them."""
    for side, first, last in shuffled(_ranges(pair), chance):
        log, other = pair.logs[side], pair.logs[1 - side]
        gone = [each for each in log.epochs if first <= each.number <= last]
        applied = [
            (own, group, number)
            for own in other.epochs
            for (server, number), group in own.applied().items()
            if server == log.server_id and first <= number <= last
        ]
        if not all(is_simple(pair, 1 - side, *_turned(each)) or not _sent(pair, side, each[2]) for each in applied):
            continue
        if any(not _is_sent_and_traced(each, applied) for each in gone):
            continue
        edited = pair.without_rows(1 - side, of_groups([each[1:] for each in applied]))
        truth = edited.logs
        edited = edited.with_log(side, edited.logs[side].without({each.number for each in gone}))
        skipped = {(1 - side, each.number) for each in gone}
        if not decide_the_same(pair, edited, skipped) or not _has_both_sides(edited.logs[side], first, last):
            continue
        log, place = edited.logs[side], _place_after(edited.logs[side], last)
        servers = [[each.written(folder)] for each in edited.logs]
        servers[side] = [log.written(folder, [place], {1: incident_event(log, RESTART, _time(log, place))})]
        lost = frozenset(each.number for each in gone)
        yield Planted(
            "incident, epochs lost",
            pair.configured(*servers),
            ("incident",),
            other.cluster,
            lost,
            truth=truth,
            given=edited.logs,
            place=f"{len(gone)} epochs of {log.cluster} from {first}",
        )


def _turned(applied: tuple[LoggedEpoch, int | None, int]) -> tuple[LoggedEpoch, int, int | None]:
    own, group, number = applied
    return own, number, group


def _sent(pair: EditedPair, side: int, number: int) -> list[LoggedRow]:
    return next(each for each in pair.logs[side].epochs if each.number == number).own()


def _is_sent_and_traced(epoch: LoggedEpoch, applied: Sequence[tuple[LoggedEpoch, int | None, int]]) -> bool:
    """Whether what an epoch sent left a trace, or it sent nothing of its own."""
    return not any(row.key for row in epoch.own()) or any(number == epoch.number for *_, number in applied)


def _has_both_sides(log: EditedLog, first: int, last: int) -> bool:
    numbers = [each.number for each in log.epochs]
    return bool(numbers) and numbers[0] < first and numbers[-1] > last


def _place_after(log: EditedLog, epoch: int) -> int:
    return log.place(next(each.number for each in log.epochs if each.number > epoch))


def _ranges(pair: EditedPair) -> list[tuple[int, int, int]]:
    """Return sides, and the first and the last of one to three consecutive epochs within a log."""
    return [
        (side, numbers[place], numbers[place + length - 1])
        for side, log in enumerate(pair.logs)
        for numbers in [[each.number for each in log.epochs]]
        for length in (1, 2, 3)
        for place in range(1, len(numbers) - length)
        if any(row.key for each in log.epochs[place : place + length] for row in each.own())
    ]


def hole(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """A file that is missing from a log after the other cluster applied its epochs; its number tells."""
    for side, first, last in shuffled(_ranges(pair), chance):
        log = pair.logs[side]
        cuts = [log.place(first), _place_after(log, last)]
        servers = [[each.written(folder)] for each in pair.logs]
        servers[side] = [log.written(folder, cuts, skip=[1])]
        yield _holed("missing file", pair, side, first, last, pair.configured(*servers))


def hidden_hole(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """
    Epochs that are missing from a log after the other cluster applied them, in one file: no number tells.

    Nothing can tell of epochs that left no trace there, and in which none of the other cluster was applied.
    """
    for side, first, last in shuffled(_ranges(pair), chance):
        log, other = pair.logs[side], pair.logs[1 - side]
        gone = [each for each in log.epochs if first <= each.number <= last]
        shown = {number for each in other.epochs for server, number in each.applied() if server == log.server_id}
        if not any(each.number in shown or each.applied() for each in gone):
            continue
        left = log.without({each.number for each in gone})
        yield _holed("missing epochs", pair, side, first, last, pair.with_log(side, left).written(folder))


def disconnect(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """Epochs that an SQL node did not log, with an incident; the other cluster read them from a log not given."""
    for side, first, last in shuffled(_ranges(pair), chance):
        left = _disconnected(pair.logs[side], first, last)
        found = _holed("incident, epochs elsewhere", pair, side, first, last, pair.with_log(side, left).written(folder))
        yield attrs.evolve(found, names=("incident",))


def filled_file(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """A file that is missing from the log of an SQL node, while the log of another one is whole."""
    for side, first, last in shuffled(_ranges(pair), chance):
        log = pair.logs[side]
        cuts = [log.place(first), _place_after(log, last)]
        servers = [[each.written(folder)] for each in pair.logs]
        servers[side] = [log.written(folder, cuts, skip=[1]), log.twin(_TWIN).written(folder)]
        found = _holed("missing file, other log", pair, side, first, last, pair.configured(*servers))
        yield attrs.evolve(found, source_epochs=frozenset())


def filled_incident(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """Epochs that an SQL node did not log, with an incident, while the log of another one is whole."""
    for side, first, last in shuffled(_ranges(pair), chance):
        log = pair.logs[side]
        servers = [[each.written(folder)] for each in pair.logs]
        servers[side] = [_disconnected(log, first, last).written(folder), log.twin(_TWIN).written(folder)]
        found = _holed("incident, other log", pair, side, first, last, pair.configured(*servers))
        yield attrs.evolve(found, source_epochs=frozenset())


def _disconnected(log: EditedLog, first: int, last: int) -> EditedLog:
    """Return a log without some epochs, and with an incident in their place."""
    place = log.place(first)
    event = incident_event(log, DISCONNECT, _time(log, place))
    left = log.without({each.number for each in log.epochs if first <= each.number <= last})
    return attrs.evolve(left, items=(*left.items[:place], event, *left.items[place:]))


def _holed(kind: str, pair: EditedPair, side: int, first: int, last: int, configuration: Configuration) -> Planted:
    log, other = pair.logs[side], pair.logs[1 - side]
    gone = frozenset(each.number for each in log.epochs if first <= each.number <= last)
    place = f"{len(gone)} epochs of {log.cluster} from {first}"
    return Planted(kind, configuration, ("hole", log.cluster), other.cluster, gone, truth=pair.logs, place=place)
