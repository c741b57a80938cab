"""
Restarts of servers and losses of their cluster, found by the incident that each writes into the server's own log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from conflict.config.configuration import ClusterConfiguration
from conflict.history.ingestion.logged_epochs import LoggedEpochs, scan_epochs
from conflict.history.restarts import Disconnect, Restart
from ndb_formats.binlog_reader import FIRST_POSITION, read_events
from ndb_formats.columnar.log_scan import LoggedIncident, LogItem
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.gtid_event import decode_gtid

ItemsOf = Callable[[Sequence[Path]], Iterable[LogItem]]
# The messages of the incidents that a server writes as it starts, and as it loses its cluster.
_STARTUP, _DISCONNECT = "mysqld startup", "cluster disconnect"


def find_restarts(cluster: ClusterConfiguration, logs: Sequence[LoggedEpochs], items_of: ItemsOf) -> Iterator[Restart]:
    """
    Yield the restarts of the servers of a cluster within their logs.

    Args:
        cluster: The cluster.
        logs: The epochs of the logs of its SQL nodes, where it has several.
        items_of: Returns what files hold besides rows, up to what cannot be read.
    """
    for log, before, each in _incidents(_STARTUP, cluster, logs, items_of):
        epoch = int(log.number[before]) if before < len(log) else None
        yield Restart(cluster.name, log.server_id, each.file, each.position, each.second, epoch)


def find_disconnects(
    cluster: ClusterConfiguration, logs: Sequence[LoggedEpochs], items_of: ItemsOf
) -> Iterator[Disconnect]:
    """Yield where servers of a cluster lost it; arguments as for `find_restarts`."""
    for log, before, each in _incidents(_DISCONNECT, cluster, logs, items_of):
        epoch = int(log.number[before - 1]) if before else 0
        committed = _committed(log, before, each)
        earliest, latest = (each.second, each.second + 1) if committed is None else [committed / 1_000_000] * 2
        yield Disconnect(cluster.name, log.server_id, each.file, each.position, earliest, latest, epoch)


def _committed(log: LoggedEpochs, before: int, incident: LoggedIncident) -> int | None:
    """Return the microsecond since 1970 in the Gtid event of an incident; None if it has none."""
    number, committed = [str(each) for each in log.files].index(incident.file), None
    here = before > 0 and int(log.file[before - 1]) == number
    with suppress(FormatError):
        for event in read_events(log.files[number], start=int(log.stop[before - 1]) if here else FIRST_POSITION):
            if event.position >= incident.position:
                return committed
            gtid = event.type in {EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT}
            committed = decode_gtid(event.body).committed if gtid else None
    return None


def _incidents(
    message: str, cluster: ClusterConfiguration, logs: Sequence[LoggedEpochs], items_of: ItemsOf
) -> Iterator[tuple[LoggedEpochs, int, LoggedIncident]]:
    """Yield the incidents with a message, each with its log and how many epochs of it come before."""
    if len(cluster.servers) == 1:
        there = any(each.incident.message == message for each in _of_files(items_of(cluster.log.files)))
        logs = [scan_epochs(cluster.server_id, cluster.log.files)] if there else []
    for log in logs:
        # What cannot be read may hold more incidents.
        for before, each in zip(log.incidents, _of_files(items_of(log.files)), strict=False):
            if each.incident.message == message:
                yield log, before, each


def _of_files(items: Iterable[LogItem]) -> Iterator[LoggedIncident]:
    return (each for each in items if isinstance(each, LoggedIncident))
