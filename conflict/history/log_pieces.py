"""
Which pieces of its SQL nodes' logs are read as the log of a cluster.

Each SQL node of a cluster that logs has every epoch of the cluster. So one log is read, and where it lacks epochs that
another SQL node logged, that one's log is read instead.

Computes docs/run-file.md, "Several SQL nodes".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import attrs
import numpy as np

from conflict.config.configuration import ClusterConfiguration, LogPiece
from conflict.errors import ConfigurationError
from conflict.history.ingestion.logged_epochs import LoggedEpochs, scan_epochs
from ndb_formats.columnar.log_scan import LoggedIncident
from ndb_formats.findings import LogRemark

__all__ = ["ClusterPieces", "pieces_of"]


@attrs.frozen
class ClusterPieces:
    """
    What is read as the log of a cluster.

    Attributes:
        pieces: In order.
        remarks: What makes the logs doubtful that were compared.
        notes: What one log lacks and another one has, without a full stop.
        logs: What was compared; empty where there is one log.
    """

    pieces: tuple[LogPiece, ...]
    remarks: tuple[LogRemark, ...] = ()
    notes: tuple[str, ...] = ()
    logs: tuple[LoggedEpochs, ...] = attrs.field(default=(), repr=False)

    def filled_by(self, incident: LoggedIncident) -> int | None:
        """Return the server whose log goes on without a break where another one has an incident; None for none."""
        here = next((each for each in self.logs if incident.file in map(str, each.files)), None)
        if here is None:
            return None
        place = [str(file) for file in here.files].index(incident.file)
        places = here.file.astype(np.int64) * _FILE + here.start
        after = int(np.searchsorted(places, place * _FILE + incident.position))
        around = here.number[max(after - 1, 0) : after + 1]
        if len(around) < 2:
            return None
        first, last = around.tolist()
        others = (each for each in self.logs if each is not here and not each.broken(first, last))
        return next((each.server_id for each in others), None)


_FILE = 1 << 48  # greater than any position


def pieces_of(cluster: ClusterConfiguration) -> ClusterPieces:
    """
    Return what is read as the log of a cluster: the files of its SQL node, or the best of several.

    Raises:
        ConfigurationError: The logs are not those of one cluster.
    """
    if len(cluster.servers) == 1:
        return ClusterPieces(tuple(LogPiece(cluster.server_id, file) for file in cluster.log.files))
    logs = [scan_epochs(server.server_id, server.files) for server in cluster.servers if server.files]
    for log in logs[1:]:
        if log.has_epochs_of(logs[0]) and not log.shares_changes(logs[0]):
            message = (
                f"cluster {cluster.name}: the logs of servers {logs[0].server_id} and {log.server_id} hold other "
                "changes in the same epochs, so they are not of one cluster; give them to two clusters"
            )
            raise ConfigurationError(message)
    name = cluster.name
    return ClusterPieces(tuple(_joined(logs)), tuple(_remarks(name, logs)), tuple(_notes(name, logs)), tuple(logs))


def _joined(logs: Sequence[LoggedEpochs]) -> Iterator[LogPiece]:
    """Yield the pieces that together hold every epoch once; the first log is read wherever it can be."""
    base, *others = logs
    missing = _missing(base, others)
    place, here = 0, 0
    for log, epochs in missing:
        before = int(np.searchsorted(base.number, log.number[epochs[0]]))
        cut = (int(base.file[before - 1]), int(base.stop[before - 1])) if before else (0, 0)
        yield from _stretch(base, (place, here), cut)
        place, here = cut
        yield from _stretch(log, _place(log, epochs[0]), (int(log.file[epochs[-1]]), int(log.stop[epochs[-1]])))
    yield from _stretch(base, (place, here), None if base.whole else _end(base))


def _missing(base: LoggedEpochs, others: Sequence[LoggedEpochs]) -> Iterator[tuple[LoggedEpochs, list[int]]]:
    """Yield the epochs that a log lacks and others have: stretches of one of these between two epochs of the log."""
    held = set(base.number.tolist())
    lacking: dict[int, tuple[int, int]] = {}
    for number, log in enumerate(others):
        for place, epoch in enumerate(log.number.tolist()):
            if epoch not in held:
                lacking.setdefault(epoch, (number, place))
    found = [(int(np.searchsorted(base.number, epoch)), *lacking[epoch]) for epoch in sorted(lacking)]
    for (_, number), group in groupby(found, key=lambda each: (each[0], each[1])):
        yield others[number], [place for _, _, place in group]


def _place(log: LoggedEpochs, epoch: int) -> tuple[int, int]:
    """Return where to begin, so that statements before an epoch are read with it."""
    file, start = int(log.file[epoch]), int(log.start[epoch])
    if epoch and int(log.file[epoch - 1]) == file:
        return file, int(log.stop[epoch - 1])
    return file, start


def _end(log: LoggedEpochs) -> tuple[int, int]:
    return (int(log.file[-1]), int(log.stop[-1])) if len(log) else (0, 0)


def _stretch(log: LoggedEpochs, start: tuple[int, int], stop: tuple[int, int] | None) -> Iterator[LogPiece]:
    """Yield the pieces of a log between two places, each a number of a file and a position in it."""
    last = len(log.files) - 1 if stop is None else stop[0]
    for number in range(start[0], last + 1):
        first = start[1] if number == start[0] else 0
        end = stop[1] if stop is not None and number == last else None
        if end is None or end > first:
            yield LogPiece(log.server_id, log.files[number], first, end)


def _remarks(cluster: str, logs: Sequence[LoggedEpochs]) -> Iterator[LogRemark]:
    """Yield which epochs differ between the logs."""
    base, *others = logs
    for log in others:
        differing = base.differing(log)
        if len(differing):
            yield LogRemark(
                f"cluster {cluster}: {len(differing):,} epochs hold other changes in the log of server {log.server_id} "
                f"than in that of server {base.server_id}, which is read; the first is {differing[0]}",
                contradicts=True,
            )


def _notes(cluster: str, logs: Sequence[LoggedEpochs]) -> Iterator[str]:
    """Yield, without a full stop, which epochs the first log lacks and which other one has them."""
    base, *others = logs
    for log, epochs in _missing(base, others):
        numbers = log.number[epochs]
        many = f"{len(numbers):,} epochs from {numbers[0]} to {numbers[-1]}"
        span = many if len(numbers) > 1 else f"epoch {numbers[0]}"
        yield (
            f"cluster {cluster}: the log of server {base.server_id} lacks {span}, which are read from that of server "
            f"{log.server_id}"
        )
