"""
The binlogs that two clusters write while they take the steps of a schedule.

The reference engine replays the schedule as if there were a third cluster, because then a cluster logs what it applied
for the other one, as servers with ``log_replica_updates`` do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import attrs

from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.history.model import Transaction
from conflict.whatif.diverging.retelling import TakenStep
from conflict.whatif.diverging.scope import Scope
from conflict.whatif.diverging.state import NAME
from ndb_formats.events.extra_row_info import ExtraRowInfo
from ndb_formats.rules.images import LoggedImages, Logging, Row
from ndb_formats.schema.tables import Table
from ndb_formats.writing.binlog_writer import APPLY_STATUS_TABLE, BinlogSettings, BinlogWriter, WrittenChange

__all__ = ["write_binlogs"]

VERSION = "9.7.4-cluster"
_MOMENT = 1_700_000_000_000_000  # microseconds since 1970; the first epoch
_BETWEEN_EPOCHS = 100_000
_APPLIER = 1 << 40  # added to the number of an applied epoch, for the id of its NDB transaction


@attrs.frozen
class _LoggedGroup:
    """
    What one NDB transaction logged.

    Attributes:
        changes: Its row changes.
        transaction_id: Its id.
        applied: Server id and epoch that it applied, of an applier's transaction.
    """

    changes: tuple[LoggedChange, ...]
    transaction_id: int
    applied: tuple[int, int] | None = None

    def row_events(self, table: Table) -> Iterator[WrittenChange]:
        """Yield its row events: first that of `ndb_apply_status`, which names the epoch that it applied."""
        if self.applied is not None:
            row: Row = dict(enumerate((*self.applied, "binlog.000001", 0, 0)))
            yield WrittenChange(APPLY_STATUS_TABLE, None, row, extra=ExtraRowInfo(self.transaction_id))
        for entry in self.changes:
            change = entry.change
            logged = LoggedImages(change.operation, change.before, change.after)
            extra = ExtraRowInfo(self.transaction_id, change.flags or None)
            yield WrittenChange(table, None, None, extra=extra, server_id=entry.server_id, logged=logged)


def write_binlogs(scope: Scope, told: Sequence[TakenStep], files: Sequence[BinaryIO]) -> None:
    """Write the binlog of each cluster to its file."""
    for number, out in enumerate(files):
        _write(scope, number, _groups(scope, told, number), out)


def _groups(scope: Scope, told: Sequence[TakenStep], number: int) -> list[tuple[int, _LoggedGroup]]:
    """Return what a cluster logged, in order, with its epochs."""
    clusters = [
        ReplayedCluster(each, scope.setups[side], {NAME: scope.layout}, relays=True)
        for side, each in enumerate(scope.clusters)
    ]
    found: list[tuple[int, _LoggedGroup]] = []
    source_id = scope.clusters[1 - number].server_id
    for event in (event for each in told for event in each.events):
        here, item = clusters[event.side], event.item
        if event.stop is not None:
            continue
        before = len(here.log.get(item.epoch, ()))
        applied: tuple[int, int] | None = None
        if isinstance(item, Transaction):
            here.commit(item)
            identity = item.changes[0].transaction_id or 0
        else:
            Applier(here).apply_epoch(item, clusters[1 - event.side])
            identity, applied = _APPLIER | len(found), (source_id, item.foreign_epoch)
        if event.side == number:
            new = tuple(each for each in here.log.get(item.epoch, ())[before:] if isinstance(each, LoggedChange))
            found.append((item.epoch, _LoggedGroup(new, identity, applied)))
    return found


def _write(scope: Scope, number: int, groups: Sequence[tuple[int, _LoggedGroup]], out: BinaryIO) -> None:
    cluster, setup = scope.clusters[number], scope.setups[number][NAME]
    settings = BinlogSettings(Logging(setup.format), cluster.server_id, VERSION)
    writer = BinlogWriter(out, settings)
    writer.start(_MOMENT)
    for order, epoch in enumerate(sorted({each for each, _ in groups})):
        own = [group for each, group in groups if each == epoch]
        if any(group.changes for group in own):
            changes = (event for group in own for event in group.row_events(scope.table))
            writer.write_epoch(epoch, changes, _MOMENT + order * _BETWEEN_EPOCHS)
    writer.finish()
