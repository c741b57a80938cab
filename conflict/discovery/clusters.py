"""
Which of the logs that were found are of one cluster: those that hold the same changes in the same epochs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import attrs

from conflict.discovery.logs import FoundLog
from conflict.history.ingestion.logged_epochs import LoggedEpochs, scan_epochs

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BYTES = 1 << 24  # of each of two logs that are looked at: more than two are compared as wholes


@attrs.frozen
class FoundCluster:
    """
    The logs of a cluster.

    Attributes:
        name: Its name.
        logs: The logs of its SQL nodes.
    """

    name: str
    logs: tuple[FoundLog, ...]

    @property
    def server_id(self) -> int:
        """Server id of its first SQL node."""
        return self.logs[0].server_id

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of all its SQL nodes."""
        return tuple(file for log in self.logs for file in log.files)


def clusters_of(logs: Sequence[FoundLog]) -> list[FoundCluster]:
    """
    Return the clusters of some logs, in the order in which they are met.

    Logs that have no epoch in common are taken to be of different clusters.
    """
    most = _BYTES if len(logs) == 2 else None
    scanned = [scan_epochs(log.server_id, log.files, most) for log in logs]
    together: list[list[int]] = []
    for number, log in enumerate(scanned):
        mine = [group for group in together if any(_alike(log, scanned[each]) for each in group)]
        for group in mine[1:]:
            together.remove(group)
            mine[0].extend(group)
        if mine:
            mine[0].append(number)
        else:
            together.append([number])
    found = [tuple(logs[number] for number in sorted(group)) for group in together]
    names = [_name(each) for each in found]
    named = None not in names and len(set(names)) == len(names)
    return [FoundCluster(str(name) if named else each[0].name, each) for name, each in zip(names, found, strict=True)]


def _alike(first: LoggedEpochs, second: LoggedEpochs) -> bool:
    return first.has_epochs_of(second) and first.shares_changes(second)


def _name(logs: tuple[FoundLog, ...]) -> str | None:
    """Return the name of the log of a cluster with one, or of the folder that holds those of several."""
    if len(logs) == 1:
        return logs[0].name
    folders = {file.resolve().parent.parent.name for log in logs for file in log.files}
    name = folders.pop()
    return name if not folders and _NAME.fullmatch(name) else None
