"""
A History as binlogs, as the servers of its clusters write them with ``log_replica_updates``.

For that the reference engine carries the History out as if there were a third cluster, because then a cluster logs what
it applied for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO

import attrs

from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.history.model import History
from conflict.history.scheduling.placing import interleave
from conflict.history.timeline import EpochApply, Transaction
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import ExtraRowInfo
from ndb_formats.rules.images import LoggedImages, Logging, Row
from ndb_formats.writing.binlog_writer import APPLY_STATUS_TABLE, BinlogSettings, BinlogWriter, WrittenChange

VERSION = "9.7.4-cluster"
_APPLIER = 1 << 63  # added to the number of an applied epoch, for the id of its NDB transaction

Setups = Mapping[str, Mapping[str, TableSetup]]


@attrs.frozen
class _LoggedGroup:
    """
    What one NDB transaction logged.

    Attributes:
        epoch: Its epoch.
        changes: Its row changes.
        transaction_id: Its id.
        applied: Server id and epoch that it applied, of an applier's transaction.
    """

    epoch: int
    changes: tuple[LoggedChange, ...]
    transaction_id: int
    applied: tuple[int, int] | None = None

    def row_events(self, setups: Mapping[str, TableSetup]) -> Iterator[WrittenChange]:
        """Yield its row events: first that of `ndb_apply_status`, which names the epoch that it applied."""
        if self.applied is not None:
            row: Row = dict(enumerate((*self.applied, "binlog.000001", 0, 0)))
            yield WrittenChange(APPLY_STATUS_TABLE, None, row, extra=ExtraRowInfo(self.transaction_id))
        for entry in self.changes:
            change = entry.change
            logged = LoggedImages(change.operation, change.before, change.after)
            extra = ExtraRowInfo(self.transaction_id, change.flags or None)
            table = setups[change.table].table
            yield WrittenChange(table, None, None, extra=extra, server_id=entry.server_id, logged=logged)


def write_binlogs(
    history: History, setups: Setups, moments: Mapping[str, Mapping[int, int]], files: Mapping[str, BinaryIO]
) -> None:
    """
    Write the binlog of each cluster; transactions of users need ids.

    Args:
        history: What happened, from empty tables on.
        setups: By cluster and table, how its server set up the table.
        moments: By cluster and own epoch, the microsecond since 1970 at which it committed.
        files: By cluster, where its binlog goes.
    """
    groups = _groups(history, setups)
    for cluster in history.clusters:
        logged, times = groups[cluster.name], moments[cluster.name]
        settings = BinlogSettings(Logging(), cluster.server_id, VERSION)
        writer = BinlogWriter(files[cluster.name], settings)
        writer.start(min(times.values(), default=0))
        for epoch in sorted({group.epoch for group in logged}):
            own = (group for group in logged if group.epoch == epoch)
            events = (event for group in own for event in group.row_events(setups[cluster.name]))
            writer.write_epoch(epoch, events, times[epoch])
        writer.finish()


def _groups(history: History, setups: Setups) -> dict[str, list[_LoggedGroup]]:
    """Return what each cluster logged, in order; an epoch apply without a trace logged nothing."""
    clusters = {
        each.name: ReplayedCluster(each, dict(setups[each.name]), history.layouts, relays=True)
        for each in history.clusters
    }
    appliers = {name: Applier(cluster) for name, cluster in clusters.items()}
    found: dict[str, list[_LoggedGroup]] = {name: [] for name in clusters}
    for cluster, item in interleave(history):
        here, mine = clusters[cluster.name], found[cluster.name]
        assert isinstance(item, Transaction | EpochApply), "definitions do not change"
        before = len(here.log.get(item.epoch, ()))
        if isinstance(item, Transaction):
            here.commit(item)
            identity, applied = item.changes[0].transaction_id or 0, None
        else:
            source = clusters[item.source]
            appliers[cluster.name].apply_epoch(item, source)
            identity, applied = _APPLIER | len(mine), (source.server_id, item.foreign_epoch)
            if not item.traced:
                continue
        new = tuple(each for each in here.log.get(item.epoch, ())[before:] if isinstance(each, LoggedChange))
        mine.append(_LoggedGroup(item.epoch, new, identity, applied))
    return found
