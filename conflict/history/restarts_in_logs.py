"""
Restarts of servers, found by the incident that each writes into the server's own log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from conflict.config.configuration import ClusterConfiguration
from conflict.history.ingestion.logged_epochs import LoggedEpochs, scan_epochs
from conflict.history.restarts import Restart
from ndb_formats.columnar.log_scan import LoggedIncident, LogItem

__all__ = ["find_restarts"]

# The message of the incident that a server writes as it starts.
_STARTUP = "mysqld startup"


def find_restarts(
    cluster: ClusterConfiguration,
    logs: Sequence[LoggedEpochs],
    items_of: Callable[[Sequence[Path]], Iterable[LogItem]],
) -> Iterator[Restart]:
    """
    Yield the restarts of the servers of a cluster within their logs.

    Args:
        cluster: The cluster.
        logs: The epochs of the logs of its SQL nodes, where it has several.
        items_of: Returns what files hold besides rows, up to what cannot be read.
    """
    if len(cluster.servers) == 1:
        starts = any(each.incident.message == _STARTUP for each in _incidents(items_of(cluster.log.files)))
        logs = [scan_epochs(cluster.server_id, cluster.log.files)] if starts else []
    for log in logs:
        # What cannot be read may hold more incidents.
        for before, each in zip(log.incidents, _incidents(items_of(log.files)), strict=False):
            if each.incident.message == _STARTUP:
                epoch = int(log.number[before]) if before < len(log) else None
                yield Restart(cluster.name, log.server_id, each.file, each.position, each.second, epoch)


def _incidents(items: Iterable[LogItem]) -> Iterator[LoggedIncident]:
    return (each for each in items if isinstance(each, LoggedIncident))
