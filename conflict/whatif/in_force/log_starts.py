"""
The beginning of some logs, from the first moment on that all of them hold: enough to try functions on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import numpy as np

from conflict.config.configuration import Configuration, LoggingServer
from ndb_formats.columnar.event_index import EventIndex, recent_index
from ndb_formats.constants import TRANSACTION_STARTS


def with_log_starts(configuration: Configuration, size: int, folder: Path) -> Configuration:
    """
    Return a configuration whose logs are the first bytes of those of another one.

    Args:
        configuration: The other one.
        size: Bytes of each log. The last transaction may be cut off, as in a log that is still being written.
        folder: Where files are made of them.

    Raises:
        FormatError: A file is not a binlog that can be read.
    """
    servers = [server for each in configuration.clusters for server in each.servers]
    begin = max((_begin(server) for server in servers if server.files), default=0)
    clusters = tuple(
        attrs.evolve(each, servers=tuple(_start_of(server, begin, size, folder) for server in each.servers))
        for each in configuration.clusters
    )
    return attrs.evolve(configuration, clusters=clusters)


def _transactions(index: EventIndex) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and seconds of the transactions of a file."""
    starts = np.isin(index.types, TRANSACTION_STARTS)
    return index.positions[starts], index.timestamps[starts]


def _begin(server: LoggingServer) -> int:
    """Return the second at which the first transaction of a log starts; 0 if it has none."""
    for file in server.files:
        _, seconds = _transactions(recent_index(file))
        if len(seconds):
            return int(seconds[0])
    return 0


def _start_of(server: LoggingServer, begin: int, size: int, folder: Path) -> LoggingServer:
    """Return a server with the first bytes of its log from a second on."""
    made = []
    for number, (head, part) in enumerate(_parts(server, begin, size), 1):
        file = folder / f"{server.server_id}.{number:06d}"
        file.write_bytes(head + part)
        made.append(file)
    return attrs.evolve(server, files=tuple(made))


def _parts(server: LoggingServer, begin: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield, by file, what stands before its first transaction, and what is taken of its transactions."""
    started = False
    for file in server.files:
        positions, seconds = _transactions(recent_index(file))
        taken = positions if started else positions[seconds >= begin]
        if not len(taken) or size <= 0:
            continue
        with file.open("rb") as data:
            head = data.read(int(positions[0]))
            data.seek(int(taken[0]))
            part = data.read(size)
        yield head, part
        started, size = True, size - len(part)
