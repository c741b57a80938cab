"""
What the binlogs of a configuration show besides changes: how large epochs are, and how long they were on their way.

Times are those of Gtid events, by the clocks of the servers that wrote them. An epoch is logged where it is made before
another cluster can apply it, so its way takes less than nothing only where clocks differ.
`conflict.whatif.simulating.clocks` estimates the true times; here they are bounds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import numpy as np
import numpy.typing as npt

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.configuration import Configuration, Links

if TYPE_CHECKING:
    from conflict.history.ingestion.logged_epochs import ScannedFile


Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


@attrs.frozen(eq=False)
class ReadLog:
    """
    The epochs of one SQL node's log, and the foreign ones that were applied in them.

    Attributes:
        cluster: Its cluster.
        server_id: Its server id.
        number: The epochs. Shape (epochs,).
        committed: Microsecond since 1970 at which each was logged; 0 if not known. Shape (epochs,).
        size: Bytes of each that the server kept before it logged them, or somewhat less. Shape (epochs,).
        applied_from: Server that logged each foreign epoch. Shape (applied,).
        applied: The foreign epochs, in order. Shape (applied,).
        applied_at: When the epoch was logged in which it was applied, as `committed`. Shape (applied,).
    """

    cluster: str
    server_id: int
    number: UInt64
    committed: Int64
    size: Int64
    applied_from: UInt64
    applied: UInt64
    applied_at: Int64


@attrs.frozen(eq=False)
class Travel:
    """
    How long epochs took from one log to another.

    Attributes:
        source: The log of those that made them.
        applier: The log of those that applied them.
        took: By the clocks of both, microseconds from when each was logged until it was applied for the first time, and
            logged there. Shape (epochs that arrived,).
    """

    source: ReadLog
    applier: ReadLog
    took: Int64


def read_logs(configuration: Configuration, progress: StageProgress = no_progress) -> tuple[ReadLog, ...]:
    """
    Return what the binlogs show that are there, each SQL node's up to what cannot be read.

    Args:
        configuration: The run.
        progress: Called with the name of a stage, the bytes that are read, and those that there are.
    """
    servers = [(cluster.name, server) for cluster in configuration.clusters for server in cluster.servers]
    files = [[file for file in server.files if file.is_file() and os.access(file, os.R_OK)] for _, server in servers]
    done, total = 0, sum(file.stat().st_size for own in files for file in own)
    found = []
    for (cluster, server), own in zip(servers, files, strict=True):
        if own:
            progress("reading binlogs", done, total)
            found.append(_read_log(cluster, server.server_id, own))
            done += sum(file.stat().st_size for file in own)
    return tuple(found)


def travels_of(logs: Sequence[ReadLog], links: Links) -> Iterator[Travel]:
    """Yield the way of epochs along each channel whose ends both have a log with times."""
    for applier, source in links.channels():
        for made in (each for each in logs if each.cluster == source.name):
            for there in (each for each in logs if each.cluster == applier.name):
                took = _took(made, there)
                if len(took):
                    yield Travel(made, there, took)


def _took(source: ReadLog, applier: ReadLog) -> Int64:
    """Return how long epochs took; none where their numbers begin anew, because these do not tell them apart."""
    if not len(source.number) or not (source.number[1:] > source.number[:-1]).all():
        return np.zeros(0, np.int64)
    mine = np.flatnonzero(applier.applied_from == source.server_id)
    epochs, first = np.unique(applier.applied[mine], return_index=True)
    place = np.minimum(np.searchsorted(source.number, epochs), len(source.number) - 1)
    left, arrived = source.committed[place], applier.applied_at[mine[first]]
    known = (source.number[place] == epochs) & (left > 0) & (arrived > 0)
    took: Int64 = (arrived - left)[known]
    return took


def _read_log(cluster: str, server_id: int, files: Sequence[Path]) -> ReadLog:
    from conflict.history.ingestion.logged_epochs import scan_files  # most checks have no binlogs  # noqa: PLC0415

    parts, _ = scan_files(server_id, files, _columns)
    columns = (np.concatenate(column) for column in zip(_NONE, *parts, strict=True))
    return ReadLog(cluster, server_id, *columns)


_NONE = [np.zeros(0, kind) for kind in (np.uint64, np.int64, np.int64, np.uint64, np.uint64, np.int64)]


def _columns(file: ScannedFile) -> tuple[UInt64 | Int64, ...]:
    """Return the columns of a `ReadLog` that a file has."""
    grouped, committed = file.grouped, file.events.committed[file.first]
    return (
        grouped.epochs.number,
        committed,
        file.size,
        grouped.applied.server_id,
        grouped.applied.epoch,
        np.repeat(committed, grouped.epochs.applied),
    )
