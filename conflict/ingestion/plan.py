"""
What one ingest is going to read: planned before the first row is read, and kept on disk until the last is written.

An ingest that was cut off goes on with its plan, whatever has become of the binlogs since. One into a History that is
there already plans what has been added to the binlogs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import attrs

from conflict.config.configuration import ClusterConfiguration, Configuration
from conflict.errors import HistoryError
from conflict.grid.folder import Folder
from conflict.grid.manifest import Manifest, RunFacts, Subject, table_definitions, table_numbers
from conflict.ingestion.segments import Run, plan_runs

__all__ = ["PLAN", "Plan", "default_buckets", "digest_of", "load_plan", "plan_ingest", "refuse_differences"]

PLAN = "ingest.json"
BUCKET_BYTES = 128 * 1024 * 1024
MIN_BUCKETS, MAX_BUCKETS = 4, 256
_DIGEST_BYTES = 4096
# The byte of the first event that says whether the server still writes the file.
_IN_USE_AT = 4 + 17


@attrs.frozen(kw_only=True)
class Plan(Subject):
    """
    What one ingest reads.

    Attributes:
        batch: How many times binlogs were ingested before.
        files: Binlog files per cluster, by number, those that were read before among them.
        runs: Runs to read, per cluster; numbered after those that were read before.
    """

    batch: int
    files: dict[str, tuple[str, ...]]
    runs: dict[str, tuple[Run, ...]]

    def to_json(self) -> dict[str, Any]:
        """Return the document."""
        document = attrs.asdict(self, recurse=True)
        for runs in document["runs"].values():
            for run in runs:
                run["file"] = str(run["file"])
        return document

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Read the document."""
        for name in ("files", "tables"):
            document[name] = {key: tuple(values) for key, values in document[name].items()}
        document["runs"] = {
            name: tuple(Run(run["number"], Path(run["file"]), run["start"], run["stop"]) for run in runs)
            for name, runs in document["runs"].items()
        }
        return cls(**document)


def load_plan(history: Folder) -> Plan | None:
    """Return the plan of an ingest that was cut off; None if none was."""
    return Plan.from_json(history.read_json(PLAN)) if history.exists(PLAN) else None


def refuse_differences(subject: Subject, configuration: Configuration, history: Folder, *, writing: bool) -> None:
    """
    Make sure that a History is of what a run is about; see `Subject.differences`.

    Raises:
        HistoryError: It is of something else.
    """
    differences = subject.differences(configuration, writing=writing)
    if differences:
        message = (
            f"the History in {history.uri} was made for another run: {'; '.join(differences)}. "
            "Use the run file that it was made with, or ingest into another folder"
        )
        raise HistoryError(message)


def plan_ingest(configuration: Configuration, held: Manifest | None, buckets: int | None, run_bytes: int) -> Plan:
    """
    Plan what is to be read.

    Args:
        configuration: The run.
        held: What the History holds already; None for a new one.
        buckets: Into how many buckets keys are divided; None leaves it to the size of the binlogs.
        run_bytes: About how many bytes of binlog a run has.

    Raises:
        HistoryError: The files are not those that were read before, with more behind them, or the number of buckets is
            another one.
    """
    numbers = table_numbers(configuration)
    if held is not None and buckets not in {None, held.buckets}:
        message = f"the History has {held.buckets} buckets, and cannot go on with {buckets}; leave the number out"
        raise HistoryError(message)
    files, runs = {}, {}
    for cluster in configuration.clusters:
        files[cluster.name], runs[cluster.name] = _plan_cluster(cluster, held, run_bytes)
    return Plan(
        buckets=(buckets or default_buckets(configuration)) if held is None else held.buckets,
        clusters=configuration.server_ids,
        tables=table_definitions(numbers),
        resolve_columns=dict(numbers.resolve_columns),
        batch=0 if held is None else held.batches,
        files=files,
        runs=runs,
    )


def default_buckets(configuration: Configuration) -> int:
    """Return one bucket per 128 MiB of binlog, which are two to four million row changes; at least 4, at most 256."""
    size = sum(os.path.getsize(file) for cluster in configuration.clusters for file in cluster.files)
    return min(max(-(-size // BUCKET_BYTES), MIN_BUCKETS), MAX_BUCKETS)


def _plan_cluster(
    cluster: ClusterConfiguration, held: Manifest | None, run_bytes: int
) -> tuple[tuple[str, ...], tuple[Run, ...]]:
    """Return the files of a cluster by number, and the runs to read."""
    given = [str(file) for file in cluster.files]
    runs: Sequence[RunFacts] = () if held is None else held.runs[cluster.name]
    if held is None or not runs:
        return tuple(given), plan_runs(cluster.files, run_bytes).runs
    known = held.files[cluster.name]
    known = known[: known.index(runs[-1].file) + 1]
    place = _continuation(cluster.name, known, given)
    for facts in {run.file: run for run in runs}.values():  # the last run of each file
        if facts.file in given and Path(facts.file).exists():
            _refuse_changed(facts)
    last, more = runs[-1], list(cluster.files[place + 1 :])
    grown = Path(last.file).exists() and os.path.getsize(last.file) > last.stop
    planned = plan_runs(
        [Path(last.file), *more] if grown else more,
        run_bytes,
        start=last.stop if grown else 0,
        first_number=len(runs),
    )
    return (*known, *(str(file) for file in more)), planned.runs


def _continuation(cluster: str, known: Sequence[str], given: Sequence[str]) -> int:
    """Return where the last file that was read stands among those given."""
    last = known[-1]
    place = given.index(last) if last in given else -1
    if place < 0 or list(known[-place - 1 :]) != given[: place + 1]:
        message = (
            f"the files of cluster {cluster} do not go on where the History ends: it holds {', '.join(known)}; "
            f"given are {', '.join(given)}. Give the last file of the History and those written after it; "
            "files before it may be left out from the first one on"
        )
        raise HistoryError(message)
    return place


def _refuse_changed(facts: RunFacts) -> None:
    file, size = Path(facts.file), os.path.getsize(facts.file)
    if size < facts.stop:
        problem = f"has {size} bytes, but {facts.stop} of it were read before"
    elif digest_of(file, facts.stop) != facts.digest:
        problem = "does not begin with what was read of it before"
    else:
        return
    message = (
        f"{file} {problem}: it is not the file that the History was made of. "
        "Give that file, or ingest all files into a new folder"
    )
    raise HistoryError(message)


def digest_of(file: Path, stop: int) -> str:
    """Return what the first and the last bytes before a position of a file add up to."""
    with open(file, "rb") as stream:
        head = bytearray(stream.read(min(stop, _DIGEST_BYTES)))
        if len(head) > _IN_USE_AT:
            head[_IN_USE_AT] &= ~1  # the server takes this flag away when it closes the file
        stream.seek(max(stop - _DIGEST_BYTES, len(head)))
        tail = stream.read(stop - stream.tell())
    return hashlib.sha256(bytes(head) + tail).hexdigest()
