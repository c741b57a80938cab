"""
Binlogs to a History on disk: the epoch-partitioned ingest job.

1. The driver follows event headers, splits what is new of every file into runs of epochs, and writes the plan down.
2. One task per run reads its epochs and writes them by key bucket, keys still as bytes.
3. One task per bucket gives new keys dense numbers, in the order in which they appear.
4. The driver derives the schedule from the summaries of all epochs, and writes `schedule.parquet` and `history.json`.

What was written before is never written again, so a History can be added to. A task says last that it is done, and the
plan is deleted last of all, so an ingest that was killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import attrs

from conflict.config.configuration import Configuration
from conflict.errors import ConflictError, HistoryError
from conflict.grid.epoch_files import epochs_part, read_summaries
from conflict.grid.folder import Folder
from conflict.grid.manifest import MANIFEST, Manifest, SegmentFacts, load_manifest, table_numbers
from conflict.grid.schemas import keys_part
from conflict.grid.writer import KeyTask, number_keys, schedule_table
from conflict.history.reading import ClusterHints, schedule_of
from conflict.history.schedule import Summary, consistent_cut
from conflict.ingestion.plan import PLAN, Plan, load_plan, plan_ingest, refuse_differences
from conflict.ingestion.segment_task import STAGED, SegmentRecord, SegmentTask, load_record, read_segment, record_path
from conflict.ingestion.segments import DEFAULT_SEGMENT_BYTES
from conflict.jobs.runner import Runner, StageProgress
from ndb_formats.errors import FormatError, SchemaError
from ndb_formats.types.column_types import WireType

__all__ = ["Ingested", "ingest"]

ClusterHintsOf = Callable[[Mapping[str, Sequence[Summary]]], ClusterHints]
_PER_SEGMENT = ("changes", "images", "consequences")


@attrs.frozen
class Ingested:
    """
    What an ingest did.

    Attributes:
        manifest: What the History holds now.
        read: How many runs were read now.
        there: How many runs were there already.
    """

    manifest: Manifest
    read: int
    there: int


def ingest(
    runner: Runner,
    configuration: Configuration,
    history: Folder,
    *,
    hints_of: ClusterHintsOf | None = None,
    buckets: int | None = None,
    segment_bytes: int = DEFAULT_SEGMENT_BYTES,
    progress: StageProgress = lambda stage, done, total: None,
) -> Ingested:
    """
    Read a run's binlogs into a History; into one that is there already, what it does not hold.

    Args:
        runner: Runs the tasks.
        configuration: The run.
        history: Where the History goes.
        hints_of: From the epochs' summaries, what is known of the schedule from elsewhere.
        buckets: Into how many buckets keys are divided; None leaves it to the size of the binlogs.
        segment_bytes: About how many bytes of binlog one task reads.
        progress: Called with the name of the stage, tasks done, and their number.

    Returns:
        What the History holds. Faults in binlogs are in it, not raised: what came before is there.

    Raises:
        HistoryError: The History is one of something else, or of other files; nothing of it has changed.
        FormatError: The binlogs contradict each other.
    """
    held, pending = load_manifest(history), load_plan(history)
    for subject in (held, pending):
        if subject is not None:
            refuse_differences(subject, configuration, history, writing=True)
    there = 0 if held is None else sum(map(len, held.segments.values()))
    job = _Job(runner, configuration, history, hints_of, progress, there=there)
    if pending is not None:
        held = job.carry_out(pending, held)
    plan = plan_ingest(configuration, held, buckets, segment_bytes)
    if held is None or any(plan.segments.values()):
        history.delete(STAGED)
        history.write_json(PLAN, plan.to_json())
        held = job.carry_out(plan, held)
    return Ingested(held, job.read, job.there)


@attrs.define
class _Job:
    """
    The stages of the job.

    Attributes:
        runner: Runs the tasks.
        configuration: The run.
        history: Where the History goes.
        hints_of: See `ingest`.
        progress: Called with the name of the stage, tasks done, and their number.
        read: How many runs were read.
        there: How many runs were there already.
    """

    runner: Runner
    configuration: Configuration
    history: Folder
    hints_of: ClusterHintsOf | None
    progress: StageProgress
    read: int = 0
    there: int = 0

    def carry_out(self, plan: Plan, held: Manifest | None) -> Manifest:
        """Do what is planned and not yet done, and return what the History holds then."""
        if held is None or plan.batch >= held.batches:
            try:
                held = self._carry_out(plan, held)
            except (ConflictError, FormatError):
                self._abandon(plan, held)
                raise
        self._clean_up(plan, {name: len(segments) for name, segments in held.segments.items()})
        return held

    def _carry_out(self, plan: Plan, held: Manifest | None) -> Manifest:
        found = self._read(plan)
        manifest = _manifest(plan, held, found)
        if manifest.batches > plan.batch:
            new = {
                name: [each.number for each in segments[: len(found[name].kept)]]
                for name, segments in plan.segments.items()
            }
            numbering = [
                KeyTask(self.history, bucket, plan.batch, new, table_numbers(self.configuration), manifest.types)
                for bucket in range(plan.buckets)
            ]
            self.runner(number_keys, numbering, partial(self.progress, "numbering keys"))
            manifest = self._schedule(manifest)
        self.history.write_json(MANIFEST, manifest.to_json())
        return manifest

    def _read(self, plan: Plan) -> dict[str, _KeptSegments]:
        """Read the planned runs that have not been read."""
        numbers = table_numbers(self.configuration)
        schema = self.configuration.data_schema
        tasks = [
            SegmentTask(
                name, plan.clusters[name], plan.files[name], segment, schema, numbers, plan.buckets, self.history
            )
            for name, segments in plan.segments.items()
            for segment in segments
        ]
        missing = [task for task in tasks if not self.history.exists(record_path(task.cluster, task.segment.number))]
        self.runner(read_segment, missing, partial(self.progress, "reading binlogs"))
        self.read += len(missing)
        self.there += len(tasks) - len(missing)
        return {
            name: _kept_segments([load_record(self.history, name, segment.number) for segment in segments])
            for name, segments in plan.segments.items()
        }

    def _schedule(self, manifest: Manifest) -> Manifest:
        """Work out when each cluster took which epoch of the other, and write that."""
        configuration, history = self.configuration, self.history
        read = {name: read_summaries(history, name, len(segments)) for name, segments in manifest.segments.items()}
        summaries = consistent_cut(read, configuration.server_ids)
        hints = self.hints_of(summaries) if self.hints_of is not None else None
        applies, assumed = [], {}
        for cluster in configuration.clusters:
            name = cluster.name
            cut = name in manifest.errors or len(summaries[name]) < len(read[name])
            placed, assumed[name] = schedule_of(configuration, cluster, summaries, hints, cut=cut)
            applies += [(name, apply) for apply in placed]
        history.write_table("schedule.parquet", schedule_table(applies))
        return attrs.evolve(
            manifest,
            assumed=assumed,
            last_epochs={name: own[-1].number if own else 0 for name, own in summaries.items()},
            epochs_left_out={name: len(read[name]) - len(own) for name, own in summaries.items()},
            changes=sum(summary.changes for own in summaries.values() for summary in own),
        )

    def _clean_up(self, plan: Plan, kept: Mapping[str, int]) -> None:
        """Delete the plan, and what was read behind a fault and is not kept."""
        self.history.delete(STAGED)
        for name, segments in plan.segments.items():
            for segment in segments:
                if segment.number >= kept[name]:
                    for kind in _PER_SEGMENT:
                        self.history.delete(f"{kind}/cluster={name}/segment={segment.number:05d}")
                    self.history.delete(epochs_part(name, segment.number))
        self.history.delete(PLAN)

    def _abandon(self, plan: Plan, held: Manifest | None) -> None:
        """Leave the History as it was before the plan."""
        for bucket in range(plan.buckets):
            self.history.delete(keys_part(bucket, plan.batch))
        self._clean_up(plan, {name: 0 if held is None else len(held.segments[name]) for name in plan.segments})


@attrs.frozen
class _KeptSegments:
    """
    What was read of one cluster.

    Attributes:
        kept: Its runs, up to the first that could not be read to its end; last ones that end where they began,
            because no transaction is complete in them, are left for the next ingest.
        error: Why the binlogs could not be read to their end; None if they could.
        left_out: Row operations read of an epoch that was cut off.
    """

    kept: tuple[SegmentRecord, ...]
    error: str | None
    left_out: int


def _kept_segments(records: Sequence[SegmentRecord]) -> _KeptSegments:
    faults = [place for place, record in enumerate(records) if record.error is not None]
    kept = records[: faults[0] + 1] if faults else records
    error, left_out = (kept[-1].error, kept[-1].left_out) if kept else (None, 0)
    while kept and kept[-1].facts.stop == kept[-1].facts.start:
        kept = kept[:-1]
    return _KeptSegments(tuple(kept), error, left_out)


def _manifest(plan: Plan, held: Manifest | None, found: Mapping[str, _KeptSegments]) -> Manifest:
    """
    Return what a History holds with what was read, its schedule left open.

    Raises:
        HistoryError: Epochs do not rise.
        SchemaError: The columns of a table change.
    """
    if held is None:
        nothing = dict.fromkeys(plan.clusters, 0)
        facts = {name: getattr(plan, name) for name in ("buckets", "clusters", "tables", "resolve_columns", "files")}
        held = Manifest(
            **facts,
            batches=0,
            segments=dict.fromkeys(plan.clusters, ()),
            types={},
            errors={},
            left_out={},
            assumed=nothing,
            last_epochs=nothing,
            epochs_left_out=nothing,
            changes=0,
        )
        new = True
    else:
        new = any(each.kept for each in found.values())
    segments = {name: (*held.segments[name], *(record.facts for record in each.kept)) for name, each in found.items()}
    for facts_of_cluster in segments.values():
        _refuse_disorder(facts_of_cluster)
    errors, left_out = dict(held.errors), dict(held.left_out)
    for name, each in found.items():
        if plan.segments[name]:
            _put(errors, name, each.error)
            _put(left_out, name, each.left_out)
    return attrs.evolve(
        held,
        batches=plan.batch + new,
        files=plan.files if new else held.files,
        segments=segments,
        types=_types(held.types, [record for each in found.values() for record in each.kept]),
        errors=errors,
        left_out=left_out,
    )


def _put(where: dict[str, Any], name: str, value: object) -> None:
    where.pop(name, None)
    if value:
        where[name] = value


def _refuse_disorder(segments: Sequence[SegmentFacts]) -> None:
    with_epochs = [segment for segment in segments if segment.last_epoch]
    for before, after in pairwise(with_epochs):
        if after.first_epoch <= before.last_epoch:
            message = (
                f"{after.file}: epoch {after.first_epoch} follows {before.last_epoch} of {before.file}; "
                "give the files in the order in which they were written"
            )
            raise HistoryError(message)


def _types(
    known: Mapping[str, tuple[WireType, ...]], records: Sequence[SegmentRecord]
) -> dict[str, tuple[WireType, ...]]:
    types = dict(known)
    for record in records:
        for name, wires in record.types.items():
            if types.setdefault(name, wires) != wires:
                message = "its columns are not the same in all binlogs; give only those in which they are"
                raise SchemaError(message, file=record.facts.file, table=name)
    return types
