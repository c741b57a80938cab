"""
Operations that are put into quiet recordings: what a server or an operator would have left in the binlogs.

A place is taken only where what follows is known without an engine: the rows concerned are not changed again by
anyone, and the max replicated epochs that come out otherwise meet no change of a row that they could decide.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import attrs

from conflict.config.configuration import Configuration
from ndb_formats.constants import EventType
from ndb_formats.events.control_events import IncidentEvent, encode_incident
from ndb_formats.events.header import EventHeader
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.types.values import Value
from tests.faults.edited_logs import EditedLog, EditedPair, LoggedEpoch, LoggedRow, Raw, Row

T = TypeVar("T")
Values = dict[int, bytes | None]


@attrs.frozen(eq=False)
class Planted:
    """
    A fault in a recording.

    Attributes:
        kind: What it is.
        configuration: The run on the edited logs.
        names: What a result must name: an epoch, a table, or a row.
        applier: Cluster whose applier it concerns; empty for none.
        source_epochs: Epochs of the other cluster whose decisions it concerns.
        truth: Logs that hold all that happened on each cluster.
        given: The edited logs, where they do not hold all that happened.
        changed: Whether any byte of the given logs differs from those of the recording.
        place: For people.
    """

    kind: str
    configuration: Configuration = attrs.field(repr=False)
    names: tuple[object, ...]
    applier: str = ""
    source_epochs: frozenset[int] = frozenset()
    truth: tuple[EditedLog, EditedLog] = attrs.field(kw_only=True, repr=False)
    given: tuple[EditedLog, EditedLog] | None = attrs.field(default=None, repr=False)
    changed: bool = True
    place: str = ""

    @property
    def loses(self) -> bool:
        """Whether epochs are in no log."""
        return self.kind.startswith(("incident, epochs", "missing")) and not self.kind.endswith("other log")


Plant = Callable[[EditedPair, Path, random.Random], Iterator[Planted]]  # its places, in seeded order


def shuffled(items: Sequence[T], chance: random.Random) -> list[T]:
    """Return items in another order."""
    return chance.sample(items, len(items))


def final_rows(log: EditedLog) -> dict[Row, dict[str, Value]]:
    """Return the rows at the end of a log, as it shows them: what its cluster changed, and what its applier did."""
    found = dict[Row, dict[str, Value]]()
    for row in (row for each in log.epochs for row in each.rows() if row.key):
        if row.after is None:
            found.pop(row.row, None)
        else:
            found[row.row] = {**found.get(row.row, {}), **_shown(row.before), **_shown(row.after)}
    return found


def _shown(image: RowImage | None) -> dict[str, Value]:
    return {} if image is None else image.by_name()


def _values(image: RowImage | None) -> Values:
    return {} if image is None else dict(zip(image.present, image.payloads, strict=True))


# -----------------------------------------------------------------------------------------------------------
# Skips
# -----------------------------------------------------------------------------------------------------------


def skipped_epoch(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """An epoch that an applier passed over, and its rows with it."""
    places = [
        (side, epoch, group)
        for side in (0, 1)
        for own in pair.logs[side].epochs
        for (server, epoch), group in own.applied().items()
        if server == pair.logs[1 - side].server_id and _is_simple(pair, side, own, epoch, group)
    ]
    for side, epoch, group in shuffled(places, chance):
        log, source = pair.logs[side], pair.logs[1 - side]
        skipped = pair.without_rows(side, _of_groups([(group, epoch)]))
        if not _decide_the_same(pair, skipped, {(side, epoch)}) or not _applied_later(
            skipped.logs[side], source, epoch
        ):
            continue
        yield Planted(
            "skipped epoch",
            skipped.written(folder),
            (log.cluster, epoch),
            log.cluster,
            frozenset({epoch}),
            truth=skipped.logs,
            place=f"epoch {epoch} on {log.cluster}",
        )


def skipped_conflict(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """An epoch that an applier passed over and would have rejected: no row was refreshed, and nothing sent back."""
    places = [
        (side, own, epoch, group)
        for side in (0, 1)
        for own in pair.logs[side].epochs
        for (server, epoch), group in own.applied().items()
        if server == pair.logs[1 - side].server_id and _is_refreshed(pair, side, own, epoch, group)
    ]
    for side, own, epoch, group in shuffled(places, chance):
        log, back = pair.logs[side], (pair.logs[side].server_id, own.number)
        rows = {row.row for row in own.group(group)}
        unsent = pair.without_rows(1 - side, _sent_back(back, rows))
        skipped = unsent.without_rows(side, _of_groups([(group, epoch)]))
        source = pair.logs[1 - side]
        if _decide_the_same(pair, skipped, {(side, epoch)}) and _applied_later(skipped.logs[side], source, epoch):
            yield Planted(
                "skipped epoch of conflicts",
                skipped.written(folder),
                (log.cluster, epoch),
                log.cluster,
                frozenset({epoch}),
                truth=skipped.logs,
                place=f"epoch {epoch} on {log.cluster}",
            )


def _is_refreshed(pair: EditedPair, side: int, own: LoggedEpoch, epoch: int, group: int | None) -> bool:
    """Whether an applier refreshed all rows of an epoch, and nobody changed these later but who applied that."""
    made = next((each for each in pair.logs[1 - side].epochs if each.number == epoch), None)
    if made is None or group is None:
        return False
    sent, refreshed = {row.row for row in made.own() if row.key}, own.group(group)
    back = pair.logs[side].server_id, own.number
    if not sent or {row.row for row in refreshed} != sent or len(refreshed) != len(sent):
        return False
    if not all(row.flags & ConflictFlag.REFRESH for row in refreshed):
        return False
    others = (
        *(row for row in own.rows() if row.transaction_id != group),
        *(row for row in made.rows() if not row.own),
        *(row for each in pair.logs[side].epochs if each.number > own.number for row in each.rows()),
        *(
            row
            for each in pair.logs[1 - side].epochs
            if each.number > epoch
            for row in each.rows()
            if row.transaction_id != each.applied().get(back, group)
        ),
    )
    return not any(row.row in sent for row in others)


def _sent_back(back: tuple[int, int], rows: Collection[Row]) -> Callable[[LoggedEpoch, LoggedRow], bool]:
    """Return what tells rows that were applied from an epoch, given by server and number."""
    return lambda each, row: row.row in rows and row.transaction_id == each.applied().get(back, -1)


def _of_group(own: LoggedEpoch, row: LoggedRow, group: int | None, epoch: int) -> bool:
    """Whether a row belongs to a group of an applied epoch."""
    if row.status is not None:
        return row.status[1] == epoch and row.transaction_id == group
    return row.transaction_id == group and any(
        number == epoch and each == group for (_, number), each in own.applied().items()
    )


def _of_groups(groups: Sequence[tuple[int | None, int]]) -> Callable[[LoggedEpoch, LoggedRow], bool]:
    """Return what tells the rows of some groups, each given with the epoch that was applied."""
    return lambda own, row: any(_of_group(own, row, *each) for each in groups)


def _applied_later(log: EditedLog, source: EditedLog, epoch: int) -> bool:
    """Whether an applier left the trace of a later epoch."""
    return any(
        server == source.server_id and number > epoch for each in log.epochs for server, number in each.applied()
    )


def _is_simple(pair: EditedPair, side: int, own: LoggedEpoch, epoch: int, group: int | None) -> bool:
    """Whether all changes of an epoch were applied as they were, and none of their rows was changed afterwards."""
    log, source = pair.logs[side], pair.logs[1 - side]
    made = next((each for each in source.epochs if each.number == epoch), None)
    if made is None or group is None:
        return False
    sent, arrived = [row.row for row in made.own() if row.key], [row.row for row in own.group(group)]
    if not sent or sorted(sent) != sorted(arrived) or len(set(sent)) < len(sent):
        return False
    rows = set(sent)
    if any(row.row in rows for row in own.rows() if row.transaction_id != group):
        return False
    if any(row.row in rows for row in made.rows() if not row.own):
        return False
    return not any(
        row.row in rows
        for each, after in ((log, own.number), (source, epoch))
        for later in each.epochs
        if later.number > after
        for row in later.rows()
    )


def _decide_the_same(pair: EditedPair, edited: EditedPair, without: Collection[tuple[int, int]] = ()) -> bool:
    """
    Whether other max replicated epochs change no decision.

    Args:
        pair: The recording.
        edited: What became of it.
        without: Sides, and epochs of the other one that these did not apply, whose own changes do not count.
    """
    for side in (0, 1):
        before, after = pair.highest(side), _highest_without(edited, side, {each for at, each in without if at == side})
        own = pair.logs[side].epochs
        for epoch in edited.logs[1 - side].epochs:
            first, last = sorted((before[epoch.number], after[epoch.number]))
            changed = {row.row for each in own if first < each.number <= last for row in each.rows() if row.key}
            if (side, epoch.number) not in without and any(row.row in changed for row in epoch.rows()):
                return False
    return True


def _highest_without(pair: EditedPair, side: int, skipped: set[int]) -> dict[int, int]:
    """Return the max replicated epochs of a side that never applied some epochs."""
    own, found, highest = pair.logs[side].server_id, dict[int, int](), 0
    for epoch in pair.logs[1 - side].epochs:
        found[epoch.number] = highest
        if epoch.number not in skipped:
            highest = max([highest, *(number for server, number in epoch.applied() if server == own)])
    return found


# -----------------------------------------------------------------------------------------------------------
# Incidents and holes
# -----------------------------------------------------------------------------------------------------------

RESTART, DISCONNECT = IncidentEvent(1, "mysqld startup"), IncidentEvent(1, "cluster disconnect")


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
        if not all(_is_simple(pair, 1 - side, *_turned(each)) or not _sent(pair, side, each[2]) for each in applied):
            continue
        if any(not _is_sent_and_traced(each, applied) for each in gone):
            continue
        edited = pair.without_rows(1 - side, _of_groups([each[1:] for each in applied]))
        truth = edited.logs
        edited = edited.with_log(side, edited.logs[side].without({each.number for each in gone}))
        skipped = {(1 - side, each.number) for each in gone}
        if not _decide_the_same(pair, edited, skipped) or not _has_both_sides(edited.logs[side], first, last):
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
    """Epochs that are missing from a log after the other cluster applied them, in one file: no number tells."""
    for side, first, last in shuffled(_ranges(pair), chance):
        log = pair.logs[side]
        left = log.without({each.number for each in log.epochs if first <= each.number <= last})
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


_TWIN = 77  # server id of a second SQL node


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


# -----------------------------------------------------------------------------------------------------------
# Filters and changes without a log
# -----------------------------------------------------------------------------------------------------------


def filtered_table(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """A table whose changes an applier drops."""
    tables = sorted({row.table for log in pair.logs for each in log.epochs for row in each.own() if row.key})
    for side, table in shuffled([(side, table) for side in (0, 1) for table in tables], chance):
        log, other = pair.logs[side], pair.logs[1 - side]
        mine, theirs = (
            [row for each in one.epochs for row in each.own() if row.table == table] for one in (log, other)
        )
        if not theirs or {row.key for row in mine} & {row.key for row in theirs}:
            continue
        arrived = [row for each in log.epochs for row in each.rows() if row.table == table and not row.own]
        if not arrived:
            continue
        edited = pair.without_rows(side, _arrived_of(table))
        if any(row.table == table and not row.own for row in _echoes(pair, 1 - side, table)):
            continue
        if not _decide_the_same(pair, edited):
            continue
        epochs = frozenset(each.number for each in other.epochs if any(row.table == table for row in each.own()))
        yield Planted(
            "filtered table",
            edited.written(folder),
            (table,),
            log.cluster,
            epochs,
            truth=edited.logs,
            place=f"{table} on {log.cluster}",
        )


def _arrived_of(table: str) -> Callable[[LoggedEpoch, LoggedRow], bool]:
    return lambda _, row: row.table == table and not row.own


def _echoes(pair: EditedPair, side: int, table: str) -> Iterator[LoggedRow]:
    """Yield what came back to a cluster of rows that it changed itself."""
    mine = {row.row for each in pair.logs[side].epochs for row in each.own() if row.table == table}
    return (row for each in pair.logs[side].epochs for row in each.rows() if not row.own and row.row in mine)


def hidden_before_update(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """A value that a cluster changed under sql_log_bin=0, before its own last update of the row."""
    return _hidden(pair, folder, chance, Operation.UPDATE_ROW)


def hidden_before_delete(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """A value that a cluster changed under sql_log_bin=0, before it deleted the row."""
    return _hidden(pair, folder, chance, Operation.DELETE_ROW)


def _hidden(pair: EditedPair, folder: Path, chance: random.Random, operation: Operation) -> Iterator[Planted]:
    for side, epoch, row in shuffled(_last_changes(pair), chance):
        column = _shown_column(row, _kept_as_they_are(pair.configuration, row.table))
        if row.operation is not operation or column is None:
            continue
        log, after = pair.logs[side], _values(row.after)
        stays = column in after and after[column] == _values(row.before)[column]
        edited = pair.with_log(side, log.mapped(_other_value(row.row, column, epoch.number, after=stays)))
        if stays:  # it arrives with the row
            server, other = (log.server_id, epoch.number), pair.logs[1 - side]
            arrived = next(own.number for own in other.epochs if server in own.applied())
            edited = edited.with_log(1 - side, other.mapped(_other_value(row.row, column, arrived, before=False)))
        yield Planted(
            f"hidden change before {'an update' if row.after is not None else 'a delete'}",
            edited.written(folder),
            (log.cluster, row.row),
            truth=edited.logs,
            place=f"{row.table} on {log.cluster} before {epoch.number}",
        )


def hidden_for_ever(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """A value that a cluster changed under sql_log_bin=0, where later images of the row hold its key alone."""
    del folder
    for side, epoch, row in shuffled(_last_changes(pair), chance):
        if row.before is not None and _shown_column(row, _kept_as_they_are(pair.configuration, row.table)) is None:
            place = f"{row.table} on {pair.logs[side].cluster} before {epoch.number}"
            kind = "hidden change, no byte differs"
            yield Planted(kind, pair.configuration, (), truth=pair.logs, changed=False, place=place)


def _last_changes(pair: EditedPair) -> list[tuple[int, LoggedEpoch, LoggedRow]]:
    """Return own updates and deletes after which nobody changes the row, but for their arrival at the other side."""
    found = []
    for side, log in enumerate(pair.logs):
        other = pair.logs[1 - side]
        last: dict[Row, tuple[LoggedEpoch, LoggedRow]] = {}
        known = set[Row]()
        for each in log.epochs:
            rows = [row for row in each.rows() if row.key]
            for row in rows:
                alone = sum(row.row == one.row for one in rows) == 1
                if row.own and alone and row.row in known and row.operation is not Operation.WRITE_ROW:
                    last[row.row] = each, row
                else:
                    last.pop(row.row, None)
                known.add(row.row)
        for place, (epoch, row) in last.items():
            arrived = [one for own in other.epochs for one in own.rows() if one.row == place and not one.own]
            groups = [
                own.group(group)
                for own in other.epochs
                for (_, number), group in own.applied().items()
                if number == epoch.number
            ]
            applied = [one for group in groups for one in group if one.row == place]
            if len(applied) == 1 and arrived and arrived[-1] is applied[0] and applied[0].operation is row.operation:
                theirs = [one for own in other.epochs for one in own.own() if one.row == place]
                if not theirs:
                    found.append((side, epoch, row))
    return found


def _kept_as_they_are(configuration: Configuration, table: str) -> set[str]:
    """Return the names of columns that functions compare, and of the key of a table."""
    texts = (each.conflict_fn or "" for each in configuration.replication)
    keys = next(each.primary_key for each in configuration.schema.tables if each.full_name == table)
    return {*keys, *(name for text in texts for name in re.findall(r"\((\w+)\)", text))}


def _shown_column(row: LoggedRow, kept: set[str]) -> int | None:
    """Return a column outside `kept` that a change shows as it was, one that it leaves so before others."""
    assert row.before is not None
    before, after, names = _values(row.before), _values(row.after), row.before.layout.names
    shown = [column for column in reversed(before) if before[column] and names[column] not in kept]
    return next((column for column in shown if after.get(column) == before[column]), next(iter(shown), None))


def _other_value(
    place: Row, column: int, number: int, *, before: bool = True, after: bool = True
) -> Callable[[LoggedEpoch], LoggedEpoch]:
    """Return what gives a column another value in the images of a row in an epoch."""

    def changed(row: LoggedRow) -> LoggedRow:
        if row.row != place:
            return row
        first, second = (
            _with_other(image, column) if here else image for image, here in ((row.before, before), (row.after, after))
        )
        return attrs.evolve(row, before=first, after=second)

    def change(epoch: LoggedEpoch) -> LoggedEpoch:
        if epoch.number != number:
            return epoch
        events = (attrs.evolve(each, rows=tuple(map(changed, each.rows))) for each in epoch.events)
        return attrs.evolve(epoch, events=tuple(events))

    return change


def _with_other(image: RowImage | None, column: int) -> RowImage | None:
    """Return an image with another value of a column: its last byte has another lowest bit."""
    if image is None or column not in image.present or not image.raw(column):
        return image
    payloads = [
        bytes([*payload[:-1], payload[-1] ^ 1]) if ordinal == column and payload else payload
        for ordinal, payload in zip(image.present, image.payloads, strict=True)
    ]
    return attrs.evolve(image, payloads=tuple(payloads))


PLANTS: dict[str, Plant] = {
    "incident, nothing lost": incident,
    "incident, epochs lost": lost_events,
    "incident, epochs elsewhere": disconnect,
    "incident, other log": filled_incident,
    "missing file, other log": filled_file,
    "missing file": hole,
    "missing epochs": hidden_hole,
    "skipped epoch": skipped_epoch,
    "skipped epoch of conflicts": skipped_conflict,
    "filtered table": filtered_table,
    "hidden change before an update": hidden_before_update,
    "hidden change before a delete": hidden_before_delete,
    "hidden change, no byte differs": hidden_for_ever,
}
