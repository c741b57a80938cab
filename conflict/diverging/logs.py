"""
The binlogs that two clusters write while they take the steps of a schedule.

The reference engine replays the schedule as if there were a third cluster, because then a cluster logs what it applied
for the other one, as servers with ``log_replica_updates`` do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import attrs

from conflict.diverging.retelling import Told
from conflict.diverging.scope import Scope
from conflict.diverging.state import NAME
from conflict.history.model import Transaction
from conflict.reference.applier import Applier
from conflict.reference.cluster import ReplayedCluster
from conflict.reference.epoch_log import LoggedChange
from ndb_formats.events.extra_row_info import ExtraRowInfo
from ndb_formats.rules.images import LoggedImages, Logging, Row
from ndb_formats.writing.binlog_writer import APPLY_STATUS_TABLE, BinlogSettings, BinlogWriter, RowChange

__all__ = ["write_binlogs"]

VERSION = "9.7.4-cluster"
_MOMENT = 1_700_000_000_000_000  # microseconds since 1970; the first epoch
_BETWEEN_EPOCHS = 100_000
_APPLIER = 1 << 40  # added to the number of an applied epoch, for the id of its NDB transaction


@attrs.frozen
class _Group:
    """What one NDB transaction logged, and the foreign epoch that it applied; None for a transaction of users."""

    epoch: int
    changes: tuple[LoggedChange, ...]
    transaction_id: int
    foreign_epoch: int | None = None


def write_binlogs(scope: Scope, told: Sequence[Told], files: Sequence[BinaryIO]) -> None:
    """Write the binlog of each cluster to its file."""
    for number, out in enumerate(files):
        _write(scope, number, _groups(scope, told, number), out)


def _groups(scope: Scope, told: Sequence[Told], number: int) -> list[_Group]:
    """Return what a cluster logged, in order."""
    clusters = [
        ReplayedCluster(each, scope.setups[side], {NAME: scope.layout}, relays=True)
        for side, each in enumerate(scope.clusters)
    ]
    found: list[_Group] = []
    for event in (event for each in told for event in each.events):
        here, item = clusters[event.side], event.item
        if event.stop is not None:
            continue
        before = len(here.log.get(item.epoch, ()))
        if isinstance(item, Transaction):
            here.commit(item)
            identity, foreign = item.changes[0].transaction_id or 0, None
        else:
            Applier(here).apply_epoch(item, clusters[1 - event.side])
            identity, foreign = _APPLIER | len(found), item.foreign_epoch
        if event.side == number:
            new = tuple(each for each in here.log.get(item.epoch, ())[before:] if isinstance(each, LoggedChange))
            found.append(_Group(item.epoch, new, identity, foreign))
    return found


def _write(scope: Scope, number: int, groups: Sequence[_Group], out: BinaryIO) -> None:
    cluster, setup = scope.clusters[number], scope.setups[number][NAME]
    settings = BinlogSettings(Logging(setup.format), cluster.server_id, VERSION)
    writer = BinlogWriter(out, settings)
    writer.start(_MOMENT)
    source = scope.clusters[1 - number]
    for order, epoch in enumerate(sorted({group.epoch for group in groups})):
        own = [group for group in groups if group.epoch == epoch]
        if any(group.changes for group in own):
            changes = (change for group in own for change in _changes(scope, group, source.server_id))
            writer.write_epoch(epoch, changes, _MOMENT + order * _BETWEEN_EPOCHS)
    writer.finish()


def _changes(scope: Scope, group: _Group, source_id: int) -> Iterator[RowChange]:
    """Yield the row events of a group: first that of `ndb_apply_status`, which names the epoch that it applied."""
    if group.foreign_epoch is not None:
        row: Row = dict(enumerate((source_id, group.foreign_epoch, "binlog.000001", 0, 0)))
        yield RowChange(APPLY_STATUS_TABLE, None, row, extra=ExtraRowInfo(group.transaction_id))
    for entry in group.changes:
        change = entry.change
        logged = LoggedImages(change.operation, change.before, change.after)
        extra = ExtraRowInfo(group.transaction_id, change.flags or None)
        yield RowChange(scope.table, None, None, extra=extra, server_id=entry.server_id, logged=logged)
