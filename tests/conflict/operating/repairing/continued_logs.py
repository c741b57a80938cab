"""
The binlogs of a recording, continued with what clusters log while a repair runs and is replicated.

The reference engine carries the plan out as if there were a third cluster, because then a cluster logs what it applied
for the other one, as servers with `log_replica_updates` do; the writer of binlogs writes that.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration
from conflict.engine.reference.cluster import LoggedChange, ReplayedCluster
from conflict.operating.repairing.ended_run import EndedRun
from conflict.operating.repairing.planning import Planned
from conflict.operating.repairing.proof import Trial
from conflict.operating.repairing.script import Numbered
from conflict.operating.repairing.statements import RepairedRow
from ndb_formats.events.rows_event import ExtraRowInfo
from ndb_formats.rules.images import LoggedImages, Row
from ndb_formats.writing.binlog_writer import APPLY_STATUS_TABLE, BinlogSettings, BinlogWriter, WrittenChange

MOMENT, BETWEEN = 1_900_000_000_000_000, 100_000  # microseconds; later than any recording
APPLIER = 1 << 40  # added to an epoch, for the id of the transaction that applied it


def continued(ended: EndedRun, plan: Planned, folder: Path) -> Configuration:
    """Copy the binlogs of a run into a folder, with one more file each, and return the run of these."""
    trial = Trial.of(ended)
    last = trial.epoch
    for cluster in trial.clusters.values():
        cluster.relays = True
    trial.carry_out([(cluster, list(_transactions(found))) for cluster, found in plan.files])
    configuration = ended.replayed.run.configuration
    clusters = tuple(
        _continued(each, trial.clusters[each.name], trial.clusters[ended.other(each.name)].server_id, last, folder)
        for each in configuration.clusters
    )
    return attrs.evolve(configuration, clusters=clusters)


def _transactions(statements: Sequence[Numbered]) -> Iterator[list[RepairedRow]]:
    for number in range(1, statements[-1].transaction + 1):
        yield [each.repaired for each in statements if each.transaction == number]


def _continued(
    configured: ClusterConfiguration, here: ReplayedCluster, source_id: int, last: int, folder: Path
) -> ClusterConfiguration:
    (server,) = configured.servers
    own = folder / configured.name
    own.mkdir()
    copies = [own / file.name for file in server.files]
    for file, copy in zip(server.files, copies, strict=True):
        shutil.copy(file, copy)
    stem, _, number = copies[-1].name.rpartition(".")
    further = own / f"{stem}.{int(number) + 1:06d}"
    applied = {apply.epoch: apply.foreign_epoch for apply in here.result.applies}
    with further.open("wb") as out:
        writer = BinlogWriter(out, BinlogSettings(server_id=here.server_id, server_version="9.7.4-cluster"))
        writer.start(MOMENT)
        for order, epoch in enumerate(sorted(each for each in here.log if each > last)):
            entries = [each for each in here.log[epoch] if isinstance(each, LoggedChange)]
            writer.write_epoch(epoch, _events(entries, applied.get(epoch), source_id), MOMENT + order * BETWEEN)
        writer.finish()
    return attrs.evolve(configured, servers=(attrs.evolve(server, files=(*copies, further)),))


def _events(entries: Sequence[LoggedChange], applied: int | None, source_id: int) -> Iterator[WrittenChange]:
    identity = None if applied is None else APPLIER | applied & (APPLIER - 1)
    if applied is not None and entries:
        row: Row = dict(enumerate((source_id, applied, "binlog.000001", 0, 0)))
        yield WrittenChange(APPLY_STATUS_TABLE, None, row, extra=ExtraRowInfo(identity))
    for each in entries:
        change, setup = each.change, each.setup
        assert setup is not None
        logged = LoggedImages(change.operation, change.before, change.after)
        extra = ExtraRowInfo(identity if applied is not None else change.transaction_id, change.flags or None)
        yield WrittenChange(setup.table, None, None, extra=extra, server_id=each.server_id, logged=logged)
