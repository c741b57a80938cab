"""
Restarts of servers, found by the incident that each writes into the server's own log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from conflict.config.configuration import ClusterConfiguration
from conflict.history.ingestion.logged_epochs import LoggedEpochs, scan_epochs
from conflict.history.restarts import Restart
from ndb_formats.binlog_reader import event_at
from ndb_formats.columnar.log_scan import LoggedIncident, LogItem, scan_log
from ndb_formats.errors import FormatError

__all__ = ["find_restarts"]

# The message of the incident that a server writes as it starts.
_STARTUP = "mysqld startup"


def find_restarts(
    cluster: ClusterConfiguration, scanned: Iterable[LogItem], logs: Sequence[LoggedEpochs]
) -> Iterator[Restart]:
    """
    Yield the restarts of the servers of a cluster within their logs.

    Args:
        cluster: The cluster.
        scanned: What its log holds besides rows, where it has one SQL node.
        logs: The epochs of the logs of its SQL nodes, where it has several.
    """
    incidents = [each for each in scanned if isinstance(each, LoggedIncident)]
    if len(cluster.servers) == 1:
        if any(each.incident.message == _STARTUP for each in incidents):
            logs = [scan_epochs(cluster.server_id, cluster.log.files)]
        yield from _restarts(cluster.name, logs, incidents)
        return
    for log in logs:
        if log.incidents:
            yield from _restarts(cluster.name, [log], _incidents(log.files))


def _restarts(cluster: str, logs: Sequence[LoggedEpochs], incidents: Sequence[LoggedIncident]) -> Iterator[Restart]:
    """Yield the restarts that the incidents of a log, in order, tell of."""
    for log in logs:
        for before, each in zip(log.incidents, incidents, strict=False):  # what cannot be read may hold more of them
            if each.incident.message == _STARTUP:
                second = event_at(each.file, each.position, None, verify=False).header.timestamp
                epoch = int(log.number[before]) if before < len(log) else None
                yield Restart(cluster, log.server_id, each.file, each.position, second, epoch)


def _incidents(files: Sequence[Path]) -> list[LoggedIncident]:
    """Return the incidents of a log, up to what cannot be read."""
    found = list[LoggedIncident]()
    with suppress(FormatError):
        found += (each for each in scan_log(files, verify=False) if isinstance(each, LoggedIncident))
    return found
