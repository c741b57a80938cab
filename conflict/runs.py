"""
A cluster's binlog files to runs of epochs, by event headers alone.

A run starts where a transaction starts, so that it can be read on its own: NDB writes the Table_map
events of an epoch inside its transaction.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import attrs

from ndb_formats.binlog_reader import read_headers
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError

__all__ = ["DEFAULT_RUN_BYTES", "Run", "RunPlan", "plan_runs"]

DEFAULT_RUN_BYTES = 32 * 1024 * 1024
_TRANSACTION_STARTS = frozenset(
    {
        EventType.GTID_LOG_EVENT,
        EventType.ANONYMOUS_GTID_LOG_EVENT,
        EventType.GTID_TAGGED_LOG_EVENT,
        EventType.MARIADB_GTID_EVENT,
    }
)


@attrs.frozen
class Run:
    """
    A stretch of one file.

    Attributes:
        number: Its number among the cluster's runs, from 0.
        file: The binlog file.
        start: Position of its first event.
        stop: Position after its last event.
    """

    number: int
    file: Path
    start: int
    stop: int


@attrs.frozen
class RunPlan:
    """
    The runs of one cluster.

    Attributes:
        runs: In order.
        error: Why the headers could not be followed to the end; None if they could.
    """

    runs: tuple[Run, ...]
    error: FormatError | None


def plan_runs(files: Sequence[Path], run_bytes: int = DEFAULT_RUN_BYTES) -> RunPlan:
    """
    Split a cluster's files into runs of about `run_bytes` bytes.

    A file that cannot be followed to its end is split up to the fault, and no later file is read.
    """
    runs: list[Run] = []
    for file in files:
        starts: list[int] = []
        error = None
        end = 0
        try:
            for position, header in read_headers(file):
                if header.type_code in _TRANSACTION_STARTS and (not starts or position - starts[-1] >= run_bytes):
                    starts.append(position)
                end = position + header.size
        except FormatError as fault:
            error = fault
        # Without GTID events there is no safe place to split, so the file is one run.
        starts = starts or [0]
        stops = [*starts[1:], max(end, starts[-1])]
        if error is not None:
            stops[-1] = os.path.getsize(file)  # the task that reads the last run meets the fault itself
        for start, stop in zip(starts, stops, strict=True):
            runs.append(Run(len(runs), file, start, stop))
        if error is not None:
            return RunPlan(tuple(runs), error)
    return RunPlan(tuple(runs), None)
