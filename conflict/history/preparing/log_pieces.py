"""
Which pieces of its SQL nodes' logs are read as the log of a cluster.

Each SQL node of a cluster that logs has every epoch of the cluster. So one log is read, and where it lacks epochs that
another SQL node logged, that one's log is read instead.

Computes docs/run-file.md, "Several SQL nodes".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import attrs
import numpy as np

from conflict.config.configuration import ClusterConfiguration, LogPiece
from conflict.errors import ConfigurationError
from conflict.history.ingestion.logged_epochs import LoggedEpochs, scan_epochs
from ndb_formats.findings import LogRemark


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

    def filled_at(self, file: str, position: int) -> int | None:
        """Return the server whose log goes on without a break where another one has an incident; None for none."""
        here = next((each for each in self.logs if file in map(str, each.files)), None)
        if here is None:
            return None
        place = [str(each) for each in here.files].index(file)
        places = here.file.astype(np.int64) * _FILE + here.start
        after = int(np.searchsorted(places, place * _FILE + position))
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
    given = [server for server in cluster.servers if server.files]
    if len(given) < 2:
        return ClusterPieces(tuple(LogPiece(each.server_id, file) for each in given for file in each.files))
    logs = [scan_epochs(server.server_id, server.files) for server in given]
    for log in logs[1:]:
        if log.has_epochs_of(logs[0]) and not log.shares_changes(logs[0]):
            message = (
                f"cluster {cluster.name}: the logs of servers {logs[0].server_id} and {log.server_id} hold other "
                "changes in the same epochs, so they are not of one cluster; give them to two clusters"
            )
            raise ConfigurationError(message)
    name, ranges = cluster.name, _ranges(logs)
    remarks = (*_differing(name, logs), *_gaps(name, logs, ranges))
    return ClusterPieces(tuple(_pieces(logs, ranges)), remarks, tuple(_notes(name, logs[0], ranges)), tuple(logs))


@attrs.frozen
class _EpochRange:
    """
    Consecutive epochs that are read from one log.

    Attributes:
        log: The log.
        first: Number of the first of them among its epochs.
        last: Number of the last one.
    """

    log: LoggedEpochs
    first: int
    last: int

    @property
    def epochs(self) -> tuple[int, int]:
        """The first and the last epoch."""
        return int(self.log.number[self.first]), int(self.log.number[self.last])


def _ranges(logs: Sequence[LoggedEpochs]) -> list[_EpochRange]:
    """Return which log is read for which epochs, so that each is read once: the first one that holds it."""
    every = np.unique(np.concatenate([log.number for log in logs]))
    holder = np.zeros(len(every), np.int64)
    for number in range(len(logs) - 1, -1, -1):
        holder[np.isin(every, logs[number].number)] = number
    bounds = [0, *(np.flatnonzero(np.diff(holder)) + 1).tolist(), len(every)] if len(every) else []
    found = list[_EpochRange]()
    for start, stop in pairwise(bounds):
        log = logs[int(holder[start])]
        first, last = np.searchsorted(log.number, every[[start, stop - 1]]).tolist()
        found.append(_EpochRange(log, first, last))
    return found


def _pieces(logs: Sequence[LoggedEpochs], ranges: Sequence[_EpochRange]) -> Iterator[LogPiece]:
    """
    Yield the pieces that are read.

    What stands between two epochs, such as statements that change definitions, is read from a log that holds both.
    """
    if not ranges:
        yield from _stretch(logs[0], (0, 0), None)
        return
    start: _Place = (0, 0)
    for part, following in zip(ranges, [*ranges[1:], None], strict=True):
        after = _after(part.log, part.last)
        if following is None:
            sound = part.log.whole or any(log.whole and log.ends_with(part.epochs[1]) for log in logs)
            # If no log is sound up to its end, the reader of this one says what is wrong.
            yield from _stretch(part.log, start, after if sound and not part.log.whole else None)
            return
        before, place = part.epochs[1], following.epochs[0]
        if not part.log.broken(before, place):
            yield from _stretch(part.log, start, _start(part.log, part.last + 1))
            start = _start(following.log, following.first)
        else:
            yield from _stretch(part.log, start, after)
            both = not following.log.broken(before, place)
            start = _after(following.log, following.first - 1) if both else _start(following.log, following.first)


_Place = tuple[int, int]  # number of a file, and a position in it


def _after(log: LoggedEpochs, epoch: int) -> _Place:
    """Return the place after an epoch."""
    return int(log.file[epoch]), int(log.stop[epoch])


def _start(log: LoggedEpochs, epoch: int) -> _Place:
    """Return the place where an epoch begins."""
    return int(log.file[epoch]), int(log.start[epoch])


def _gaps(cluster: str, logs: Sequence[LoggedEpochs], ranges: Sequence[_EpochRange]) -> Iterator[LogRemark]:
    """Yield where one log ends and another one goes on, and none holds both sides without a break."""
    for part, following in pairwise(ranges):
        before, after = part.epochs[1], following.epochs[0]
        if all(log.broken(before, after) for log in logs):
            yield LogRemark(
                f"cluster {cluster}: no log holds both epoch {before} of server {part.log.server_id} and epoch "
                f"{after} of server {following.log.server_id} without a break: changes may be missing between them; "
                "give all files of one server",
                lost=True,
            )


def _stretch(log: LoggedEpochs, start: tuple[int, int], stop: tuple[int, int] | None) -> Iterator[LogPiece]:
    """Yield the pieces of a log between two places, each a number of a file and a position in it."""
    last = len(log.files) - 1 if stop is None else stop[0]
    for number in range(start[0], last + 1):
        first = start[1] if number == start[0] else 0
        end = stop[1] if stop is not None and number == last else None
        if end is None or end > first:
            yield LogPiece(log.server_id, log.files[number], first, end)


def _differing(cluster: str, logs: Sequence[LoggedEpochs]) -> Iterator[LogRemark]:
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


def _notes(cluster: str, base: LoggedEpochs, ranges: Sequence[_EpochRange]) -> Iterator[str]:
    """Yield, without a full stop, which epochs the first log lacks and which other one has them."""
    for part in ranges:
        if part.log is base:
            continue
        (first, last), count = part.epochs, part.last - part.first + 1
        span = f"{count:,} epochs from {first} to {last}" if count > 1 else f"epoch {first}"
        yield (
            f"cluster {cluster}: the log of server {base.server_id} lacks {span}, which are read from that of server "
            f"{part.log.server_id}"
        )
