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
from conflict.grid.manifest import Manifest, SegmentFacts, Subject, table_definitions, table_numbers
from conflict.ingestion.segments import Segment, plan_segments

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
        segments: Runs to read, per cluster; numbered after those that were read before.
    """

    batch: int
    files: dict[str, tuple[str, ...]]
    segments: dict[str, tuple[Segment, ...]]

    def to_json(self) -> dict[str, Any]:
        """Return the document."""
        document = attrs.asdict(self, recurse=True)
        for segments in document["segments"].values():
            for segment in segments:
                segment["file"] = str(segment["file"])
        return document

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Read the document."""
        for name in ("files", "tables"):
            document[name] = {key: tuple(values) for key, values in document[name].items()}
        document["segments"] = {
            name: tuple(
                Segment(segment["number"], Path(segment["file"]), segment["start"], segment["stop"])
                for segment in segments
            )
            for name, segments in document["segments"].items()
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


def plan_ingest(configuration: Configuration, held: Manifest | None, buckets: int | None, segment_bytes: int) -> Plan:
    """
    Plan what is to be read.

    Args:
        configuration: The run.
        held: What the History holds already; None for a new one.
        buckets: Into how many buckets keys are divided; None leaves it to the size of the binlogs.
        segment_bytes: About how many bytes of binlog a run has.

    Raises:
        HistoryError: The files are not those that were read before, with more behind them, or the number of buckets is
            another one.
    """
    numbers = table_numbers(configuration)
    if held is not None and buckets not in {None, held.buckets}:
        message = f"the History has {held.buckets} buckets, and cannot go on with {buckets}; leave the number out"
        raise HistoryError(message)
    files, segments = {}, {}
    for cluster in configuration.clusters:
        files[cluster.name], segments[cluster.name] = _plan_cluster(cluster, held, segment_bytes)
    return Plan(
        buckets=(buckets or default_buckets(configuration)) if held is None else held.buckets,
        clusters=configuration.server_ids,
        tables=table_definitions(numbers),
        resolve_columns=dict(numbers.resolve_columns),
        batch=0 if held is None else held.batches,
        files=files,
        segments=segments,
    )


def default_buckets(configuration: Configuration) -> int:
    """Return one bucket per 128 MiB of binlog, which are two to four million row changes; at least 4, at most 256."""
    size = sum(os.path.getsize(file) for cluster in configuration.clusters for file in cluster.files)
    return min(max(-(-size // BUCKET_BYTES), MIN_BUCKETS), MAX_BUCKETS)


def _plan_cluster(
    cluster: ClusterConfiguration, held: Manifest | None, segment_bytes: int
) -> tuple[tuple[str, ...], tuple[Segment, ...]]:
    """Return the files of a cluster by number, and the runs to read."""
    given = [str(file) for file in cluster.files]
    segments: Sequence[SegmentFacts] = () if held is None else held.segments[cluster.name]
    if held is None or not segments:
        return tuple(given), plan_segments(cluster.files, segment_bytes).segments
    known = held.files[cluster.name]
    known = known[: known.index(segments[-1].file) + 1]
    place = _continuation(cluster.name, known, given)
    for facts in {segment.file: segment for segment in segments}.values():  # the last run of each file
        if facts.file in given and Path(facts.file).exists():
            _refuse_changed(facts)
    last, more = segments[-1], list(cluster.files[place + 1 :])
    grown = Path(last.file).exists() and os.path.getsize(last.file) > last.stop
    planned = plan_segments(
        [Path(last.file), *more] if grown else more,
        segment_bytes,
        start=last.stop if grown else 0,
        first_number=len(segments),
    )
    return (*known, *(str(file) for file in more)), planned.segments


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


def _refuse_changed(facts: SegmentFacts) -> None:
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
