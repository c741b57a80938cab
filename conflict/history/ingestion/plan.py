"""
What one ingest reads: planned before the first row is read, and kept on disk until the last row is written.

An interrupted ingest continues with its plan, even if the binlogs have grown since. An ingest into an existing History
plans only what was added to the binlogs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from conflict.config.configuration import ClusterConfiguration
from conflict.errors import ConfigurationError, HistoryError
from conflict.history.grid.attempts import ATTEMPTS
from conflict.history.grid.documents import read_document, write_document
from conflict.history.grid.folder import Folder, incomplete
from conflict.history.grid.manifest import MANIFEST, HistorySubject, Manifest, SegmentFacts
from conflict.history.ingestion.segments import DEFAULT_SEGMENT_BYTES, Segment, plan_segments
from conflict.history.run import Run, table_definitions
from ndb_formats.schema.row_keys import refuse_inexact_keys
from ndb_formats.stored import digest_of_ends, is_address, path_of

PLAN = "ingest.json"
BUCKET_BYTES = 128 * 1024 * 1024
MIN_BUCKETS = 4
_LEAST_BYTES = 16 * 1024 * 1024
_MOST_SEGMENTS, _MOST_SEGMENT_BYTES = 1 << 13, 1 << 30


@attrs.frozen(kw_only=True)
class Plan(HistorySubject):
    """
    What one ingest reads.

    Attributes:
        batch: Number of the batch that its rows are.
        files: Binlog files per cluster by number, including those that were read before.
        segments: Segments to read, per cluster; numbered after those that were read before.
    """

    batch: int
    files: dict[str, tuple[str, ...]]
    segments: dict[str, tuple[Segment, ...]]


def write_plan(history: Folder, plan: Plan) -> None:
    """Write `ingest.json`."""
    write_document(history, PLAN, plan)


def load_plan(history: Folder) -> Plan | None:
    """
    Return the plan of an interrupted ingest; None if there is none.

    Raises:
        HistoryError: It has another format.
    """
    return read_document(history, PLAN, Plan)


def refuse_differences(subject: HistorySubject, run: Run, history: Folder, *, writing: bool) -> None:
    """
    Make sure that a History belongs to a run; see `HistorySubject.differences`.

    Raises:
        HistoryError: It belongs to another run.
    """
    differences = subject.differences(run, writing=writing)
    if differences:
        message = (
            f"the History in {history.uri} was made for another run: {'; '.join(differences)}. "
            "Use the run file that it was made with; if the binlogs have changed its tables so that the rows that it "
            "has cannot be continued, ingest all of them into another folder"
        )
        raise HistoryError(message)


def refuse_other_folders(history: Folder) -> None:
    """
    Make sure that a folder may hold a History: one is there, or nothing.

    Raises:
        ConfigurationError: Something else is there.
    """
    if not history.exists() or any(map(history.exists, (MANIFEST, PLAN))):
        return
    local = None if is_address(history.uri) else Path(history.uri)
    left_over = {incomplete(PLAN), ATTEMPTS}  # by a run that was killed, or had no space, when it had just begun
    if local is None or not local.is_dir() or any(each.name not in left_over for each in local.iterdir()):
        message = f"{history.uri} exists already and is no History; give another folder, or remove it first"
        raise ConfigurationError(message)


def plan_ingest(
    run: Run, held: Manifest | None, buckets: int | None, segment_bytes: int | None, cores: int = 1
) -> Plan:
    """
    Plan what an ingest reads.

    Args:
        run: The run.
        held: What the History holds already; None for a new one.
        buckets: Into how many buckets keys are divided; by default the size of the binlogs decides, and buckets of a
            History that grows are divided.
        segment_bytes: About how many bytes of binlog a segment has; by default the size of the binlogs decides.
        cores: How many tasks can run at the same time.

    Raises:
        HistoryError: The files do not continue those that were read before, or the number of buckets differs.
        UnsupportedError: Equality under the collation of a key column is not known exactly.
    """
    refuse_inexact_keys(run.data_schema.tables)
    numbers = run.numbers
    if held is not None and buckets not in {None, held.buckets}:
        message = f"the History has {held.buckets} buckets and cannot be continued with {buckets}; omit the number"
        raise HistoryError(message)
    files, segments, segment_bytes = {}, {}, segment_bytes or default_segment_bytes(_size(run))
    for cluster in run.clusters:
        cuts = _cuts(run, cluster.name)
        files[cluster.name], segments[cluster.name] = (
            _plan_pieces(run, cluster, held, segment_bytes, cuts)
            if cluster.name in run.pieces
            else _plan_files(run, cluster, held, segment_bytes, cuts)
        )
        bits = cluster.server_id_bits
        segments[cluster.name] = tuple(attrs.evolve(each, server_id_bits=bits) for each in segments[cluster.name])
    return Plan(
        buckets=buckets or (default_buckets(run, cores) if held is None else _divided_buckets(held, segments)),
        clusters=run.links.server_ids,
        tables=table_definitions(numbers),
        resolve_columns=dict(numbers.resolve_columns),
        databases={cluster: dict(own) for cluster, own in run.databases.own.items()},
        batch=0 if held is None else held.next_batch,
        files=files,
        segments=segments,
    )


def default_buckets(run: Run, cores: int = 1) -> int:
    """
    Return the power of two, at least 4, that gives buckets of at most 128 MiB of binlog (up to four million changes).

    More cores have a bucket each, as long as that has about 16 MiB. Twice as many buckets divide each of them in two.
    """
    needed, most = (max(_size(run) - 1, 0) // each for each in (BUCKET_BYTES, _LEAST_BYTES))
    return max(1 << max(needed, min(cores - 1, most)).bit_length(), MIN_BUCKETS)


def default_segment_bytes(size: int) -> int:
    """
    Return how many bytes a segment of so many bytes of binlogs has: 32 MiB to 1 GiB, so that there are few segments.

    The task of a bucket reads something of each of them.
    """
    return min(max(size // _MOST_SEGMENTS, DEFAULT_SEGMENT_BYTES), _MOST_SEGMENT_BYTES)


def _size(run: Run) -> int:
    """Return the bytes of all binlogs."""
    return sum(file.stat().st_size for file in run.configuration.files)


def _divided_buckets(held: Manifest, planned: Mapping[str, Sequence[Segment]]) -> int:
    """Return the number of buckets of a History that grows: each is divided in two while it has too much binlog."""
    size = sum(each.stop - each.start for own in held.segments.values() for each in own)
    size += sum(each.stop - each.start for own in planned.values() for each in own)
    buckets = held.buckets
    while size > buckets * BUCKET_BYTES:
        buckets *= 2
    return buckets


def _cuts(run: Run, cluster: str) -> dict[str, list[int]]:
    """Return where definitions change in a cluster's files, or cannot be followed any further."""
    known = run.definitions.get(cluster)
    cuts: dict[str, list[int]] = {}
    if known is not None:
        for step in known.steps:
            cuts.setdefault(step.file, []).append(step.position)
        if known.error is not None and known.error.file is not None:
            cuts.setdefault(known.error.file, []).append(known.error.position or 0)
    return cuts


def _plan_pieces(
    run: Run,
    cluster: ClusterConfiguration,
    held: Manifest | None,
    segment_bytes: int,
    cuts: Mapping[str, Sequence[int]],
) -> tuple[tuple[str, ...], tuple[Segment, ...]]:
    """
    Return the files of a cluster with several SQL nodes by number, and the segments of the pieces to read.

    Raises:
        HistoryError: The History holds something already.
    """
    if held is not None and held.segments[cluster.name]:
        message = (
            f"the History holds binlogs of cluster {cluster.name}, which has several SQL nodes; such a History cannot "
            "be continued yet: ingest all files into another folder"
        )
        raise HistoryError(message)
    segments = list[Segment]()
    for piece in run.log_of(cluster):
        planned = plan_segments(
            [piece.file],
            segment_bytes,
            start=piece.start,
            stop=piece.stop,
            first_number=len(segments),
            cuts=cuts,
            outline=run.outline_of,
        )
        segments += [attrs.evolve(each, server_id=piece.server_id) for each in planned.segments]
        if planned.error is not None:
            break
    return tuple(dict.fromkeys(str(piece.file) for piece in run.log_of(cluster))), tuple(segments)


def _plan_files(
    run: Run,
    cluster: ClusterConfiguration,
    held: Manifest | None,
    segment_bytes: int,
    cuts: Mapping[str, Sequence[int]],
) -> tuple[tuple[str, ...], tuple[Segment, ...]]:
    """Return the files of a cluster with one SQL node by number, and the segments to read."""
    given = [str(file) for file in cluster.log.files]
    segments: Sequence[SegmentFacts] = () if held is None else held.segments[cluster.name]
    if held is None or not segments:
        files = cluster.log.files
        return tuple(given), plan_segments(files, segment_bytes, cuts=cuts, outline=run.outline_of).segments
    known = held.files[cluster.name]
    known = known[: known.index(segments[-1].file) + 1]
    place = _continuation(cluster.name, known, given)
    for facts in {segment.file: segment for segment in segments}.values():  # the last segment of each file
        if facts.file in given and path_of(facts.file).exists():
            _refuse_changed(facts)
    last, more = segments[-1], list(cluster.log.files[place + 1 :])
    grown = path_of(last.file).exists() and path_of(last.file).stat().st_size > last.stop
    planned = plan_segments(
        [path_of(last.file), *more] if grown else more,
        segment_bytes,
        start=last.stop if grown else 0,
        first_number=len(segments),
        cuts=cuts,
        outline=run.outline_of,
    )
    return (*known, *(str(file) for file in more)), planned.segments


def _continuation(cluster: str, known: Sequence[str], given: Sequence[str]) -> int:
    """Return the place of the last file that was read among those given."""
    last = known[-1]
    place = given.index(last) if last in given else -1
    if place < 0 or list(known[-place - 1 :]) != given[: place + 1]:
        message = (
            f"the files of cluster {cluster} do not continue the History: it holds {', '.join(known)}; "
            f"given are {', '.join(given)}. Give the last file of the History and those written after it; "
            "the oldest files before it may be omitted"
        )
        raise HistoryError(message)
    return place


def _refuse_changed(facts: SegmentFacts) -> None:
    """Refuse a file that is shorter than what was read of it, or whose content has changed."""
    file = path_of(facts.file)
    size = file.stat().st_size
    if size < facts.stop:
        problem = f"has {size} bytes, but {facts.stop} of it were read before"
    elif digest_of_ends(file, facts.stop) != facts.digest:
        problem = "does not begin with what was read of it before"
    else:
        return
    message = (
        f"{file} {problem}: it is not the file that the History was made from. "
        "Give that file, or ingest all files into another folder"
    )
    raise HistoryError(message)


def files_document(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Return what tells files from others: absolute paths, bytes, and digests, see `digest_of_ends`."""
    return [
        {"path": str(file.absolute()), "bytes": (size := file.stat().st_size), "digest": digest_of_ends(file, size)}
        for file in files
    ]
