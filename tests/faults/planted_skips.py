"""What an applier did not take: epochs that were skipped, and tables that a filter drops."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from ndb_formats.events.rows_event import ConflictFlag
from tests.faults.edited_logs import EditedLog, EditedPair, LoggedEpoch, LoggedRow, Row
from tests.faults.planting import Planted, decide_the_same, is_simple, of_groups, shuffled


def skipped_epoch(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """An epoch that an applier passed over, and its rows with it."""
    for side, own, epoch, group in shuffled(_applied(pair), chance):
        if is_simple(pair, side, own, epoch, group):
            yield from _skipped("skipped epoch", pair, pair, folder, (side, group, epoch))


def skipped_conflict(pair: EditedPair, folder: Path, chance: random.Random) -> Iterator[Planted]:
    """An epoch that an applier passed over and would have rejected: no row was refreshed, and nothing sent back."""
    for side, own, epoch, group in shuffled(_applied(pair), chance):
        if _is_refreshed(pair, side, own, epoch, group):
            back, rows = (pair.logs[side].server_id, own.number), {row.row for row in own.group(group)}
            unsent = pair.without_rows(1 - side, _sent_back(back, rows))
            yield from _skipped("skipped epoch of conflicts", pair, unsent, folder, (side, group, epoch))


def _applied(pair: EditedPair) -> list[tuple[int, LoggedEpoch, int, int | None]]:
    """Return all applied epochs: the side, its own epoch, the epoch of the other one, and its group."""
    return [
        (side, own, epoch, group)
        for side in (0, 1)
        for own in pair.logs[side].epochs
        for (server, epoch), group in own.applied().items()
        if server == pair.logs[1 - side].server_id
    ]


def _skipped(
    kind: str, pair: EditedPair, unsent: EditedPair, folder: Path, place: tuple[int, int | None, int]
) -> Iterator[Planted]:
    """Yield what is left of a recording without a group of an applied epoch: side, group and epoch."""
    side, group, epoch = place
    log, source = pair.logs[side], pair.logs[1 - side]
    skipped = unsent.without_rows(side, of_groups([(group, epoch)]))
    if decide_the_same(pair, skipped, {(side, epoch)}) and _applied_later(skipped.logs[side], source, epoch):
        yield Planted(
            kind,
            skipped.written(folder),
            (log.cluster, epoch),
            log.cluster,
            frozenset({epoch}),
            truth=skipped.logs,
            place=f"epoch {epoch} on {log.cluster}",
        )


def _applied_later(log: EditedLog, source: EditedLog, epoch: int) -> bool:
    """Whether an applier left the trace of a later epoch."""
    return any(
        server == source.server_id and number > epoch for each in log.epochs for server, number in each.applied()
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
        if not decide_the_same(pair, edited):
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
