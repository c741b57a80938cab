"""Values that a cluster changed under sql_log_bin=0."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from conflict.config.configuration import Configuration
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from tests.faults.edited_logs import EditedPair, LoggedEpoch, LoggedRow, Row
from tests.faults.planting import Planted, shuffled, values_of


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
        log, after = pair.logs[side], values_of(row.after)
        stays = column in after and after[column] == values_of(row.before)[column]
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
    before, after, names = values_of(row.before), values_of(row.after), row.before.layout.names
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
