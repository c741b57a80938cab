"""
The ingest job: from binlogs to a History on disk. Outlines of the binlogs are made before, by tasks of their own.

1. The driver divides what is new of every file into segments, by the outlines in the run, and writes the plan down.
2. One task per segment reads its epochs and writes their rows by key bucket, keys still as bytes.
3. One task per bucket gives new keys dense numbers, in the order in which they appear.
4. The driver derives the schedule from the summaries of all epochs, and writes `schedule.parquet` and `history.json`.

Row files are never written again, so a History can grow: a new batch takes over the rows of the last ones if they are
small, and the files of those are deleted by the next ingest. Each task writes last that it is done, and the plan is
deleted last of all, so an interrupted ingest can continue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs

from conflict.config.arguments import StageProgress
from conflict.config.configuration import ClusterConfiguration
from conflict.errors import ConflictError
from conflict.history.grid.attempts import ATTEMPTS, publish_finished
from conflict.history.grid.catalogue import FileFacts, refusing_contradictions
from conflict.history.grid.epoch_files import read_all_summaries, write_schedule
from conflict.history.grid.folder import Folder
from conflict.history.grid.kept_outlines import outlines_to_keep
from conflict.history.grid.key_numbering import KINDS, KeyRun, KeyTask, number_keys
from conflict.history.grid.manifest import (
    AGAIN,
    Manifest,
    load_manifest,
    refuse_damage,
    with_files,
    with_schedule,
    write_manifest,
)
from conflict.history.grid.merging import MergedRows, batches_to_merge
from conflict.history.grid.schemas import batch_of
from conflict.history.grid.writer import join_logs
from conflict.history.ingestion.extension import (
    KeptSegments,
    definition_changes,
    extended,
    kept_segments,
    refuse_early_statements,
    refuse_moved_steps,
    refuse_other_statements,
    row_steps,
)
from conflict.history.ingestion.plan import PLAN, Plan, load_plan, plan_ingest, refuse_differences, write_plan
from conflict.history.ingestion.segment_task import SegmentTask, read_segment
from conflict.history.ingestion.segments import STAGED, load_records, record_path
from conflict.history.run import Run
from conflict.history.scheduling.cluster_schedule import schedule_of
from conflict.history.scheduling.schedule_columns import ScheduleColumns
from conflict.history.scheduling.start import consistent_cut
from conflict.history.tasks import Runner, cores_of
from ndb_formats.columnar.file_outline import FileOutline, items_of_log, outline_of
from ndb_formats.columnar.log_remarks import remarks_on
from ndb_formats.errors import FormatError
from ndb_formats.findings import LogRemark
from ndb_formats.stored import reading


@attrs.frozen
class Ingested:
    """
    What an ingest did.

    Attributes:
        manifest: What the History holds now.
        read: How many segments it read.
        there: How many segments had been read before.
        remarks: What the binlogs hold besides rows.
        engine: Who read them: ``local`` or ``spark``; empty where the caller chose the runner.
        engine_reason: Why, if the user left it open.
    """

    manifest: Manifest
    read: int
    there: int
    remarks: tuple[LogRemark, ...] = ()
    engine: str = ""
    engine_reason: str = ""


def ingest(
    runner: Runner,
    run: Run,
    history: Folder,
    *,
    buckets: int | None = None,
    segment_bytes: int | None = None,
    progress: StageProgress = lambda stage, done, total: None,
    with_holes: bool = False,
) -> Ingested:
    """
    Read a run's binlogs into a History; into an existing one, only what it does not hold yet.

    Args:
        runner: Runs the tasks.
        run: The run.
        history: Where the History goes.
        buckets: Into how many buckets keys are divided; by default the size of the binlogs decides.
        segment_bytes: About how many bytes of binlog one task reads; by default the size of the binlogs decides.
        progress: Called with the name of the stage, tasks done, and their number.
        with_holes: Whether epochs may be missing, because only a part of the logs is resolved, and nothing is kept.

    Returns:
        What the History holds. An error in a binlog is in it and not raised; what comes before the error is kept.

    Raises:
        HistoryError: The History belongs to another run or to other files, or is damaged; it has not changed.
        FormatError: The binlogs contradict each other, or the primary key of a table.
    """
    publish_finished(history, [PLAN])  # that of a killed driver on object storage
    held, pending = load_manifest(history), load_plan(history)
    for subject in (held, pending):
        if subject is not None:
            refuse_differences(subject, run, history, writing=True)
            run = run.numbered_as(subject.tables)
    if held is not None:
        refuse_damage(history, held, growing=pending is not None)
        refuse_other_statements(run, held)
    there = 0 if held is None else sum(map(len, held.segments.values()))
    job = _Job(runner, run, history, progress, there=there, with_holes=with_holes)
    if pending is not None:
        held = job.carry_out(pending, held)
    plan = plan_ingest(run, held, buckets, segment_bytes, cores_of(runner))
    if held is None or any(plan.segments.values()):
        history.delete(STAGED)
        write_plan(history, plan)
        held = job.carry_out(plan, held)
    remarks = (each for cluster in run.clusters for each in remarks_on(items_of_log(run.outlines, cluster.files)))
    return Ingested(held, job.read, job.there, tuple(remarks))


@attrs.define
class _Job:
    """
    The stages of the job.

    Attributes:
        runner: Runs the tasks.
        run: The run.
        history: Where the History goes.
        progress: See `ingest`.
        read: How many segments were read.
        there: How many segments had been read before.
        with_holes: See `ingest`.
    """

    runner: Runner
    run: Run
    history: Folder
    progress: StageProgress
    read: int = 0
    there: int = 0
    with_holes: bool = False

    def carry_out(self, plan: Plan, held: Manifest | None) -> Manifest:
        """Do what is planned and not yet done, and return what the History holds then."""
        done = held
        if held is None or plan.batch >= held.next_batch:  # else only the cleaning up is left
            try:
                with refusing_contradictions(None if held is None else self.history, AGAIN):
                    done = self._carry_out(plan, held)
            except (ConflictError, FormatError):
                self._clean_up(held)
                raise
        self._clean_up(done)
        assert done is not None
        return done

    def _carry_out(self, plan: Plan, held: Manifest | None) -> Manifest:
        kept = self._read_segments(plan)
        added = sum(record.facts.changes for each in kept.values() for record in each.records)
        merged = () if held is None else batches_to_merge(self.history, held, added, plan.buckets)
        manifest = extended(held, plan, kept, merged)
        if held is not None:
            refuse_moved_steps(self.run, held, manifest)
            refuse_early_statements(self.run, held, manifest)
        steps = {name: len(own) for name, own in definition_changes(self.run, manifest).items()}
        manifest = attrs.evolve(manifest, steps=steps)
        if plan.batch in manifest.batches:
            files = self._number_keys(plan, kept, manifest, plan.buckets if held is None else held.buckets)
            manifest = with_files(self.history, manifest, plan.batch, files)
        # Whether a log is whole says what was certainly applied, also where it brings no epoch.
        if plan.batch in manifest.batches or held is None or manifest.errors.keys() != held.errors.keys():
            manifest = derive_schedule(self.run, self.history, manifest, with_holes=self.with_holes)
        stops = {each.file: each.stop for own in manifest.segments.values() for each in own}
        manifest = attrs.evolve(manifest, outlines=tuple(outlines_to_keep(self.run.outlines, stops)))
        write_manifest(self.history, manifest)
        return manifest

    def _read_segments(self, plan: Plan) -> dict[str, KeptSegments]:
        """Read the planned segments that have not been read yet."""
        history, numbers, schema = self.history, self.run.numbers, self.run.data_schema
        tasks = [
            SegmentTask(
                name,
                segment.server_id or plan.clusters[name],
                plan.files[name],
                segment,
                schema,
                numbers,
                plan.buckets,
                history,
                self.run.definitions.get(name),
                self.run.databases.of(name),
                self.run.statements,
            )
            for name, segments in plan.segments.items()
            for segment in segments
        ]
        paths = {record_path(task.cluster, task.segment.number): task for task in tasks}
        publish_finished(history, paths.keys() - history.sizes(paths).keys())
        there = list(history.sizes(paths))
        missing = {path: task for path, task in paths.items() if path not in there}
        read = self.runner(read_segment, list(missing.values()), partial(self.progress, "reading binlogs"))
        self.read += len(missing)
        self.there += len(there)
        records = dict(zip(missing, read, strict=True)) | load_records(history, there)
        return {
            name: kept_segments([records[record_path(name, segment.number)] for segment in segments])
            for name, segments in plan.segments.items()
        }

    def _number_keys(
        self, plan: Plan, kept: Mapping[str, KeptSegments], manifest: Manifest, divided: int
    ) -> list[FileFacts]:
        """
        Number the keys of the new segments, write their final files, and return what all new files are.

        Args:
            plan: What was read.
            kept: What is kept of it, per cluster.
            manifest: What the History holds then.
            divided: How many buckets it had before.
        """
        new = {
            name: [segment.number for segment in segments[: len(kept[name].records)]]
            for name, segments in plan.segments.items()
        }
        history, merged, numbers = self.history, manifest.merged, self.run.numbers
        run = KeyRun(
            history=history,
            batches=manifest.batches[:-1],
            batch=plan.batch,
            segments=new,
            numbers=numbers,
            types=manifest.types,
            steps=row_steps(self.run, manifest, numbers),
            merged=MergedRows(history, merged, 0, plan.buckets, divided),
        )
        places = {
            (kind, name): [record.places[kind] for record in each.records]
            for kind in KINDS
            for name, each in kept.items()
        }
        tasks = KeyTask.of_buckets(run, plan.buckets, places)
        numbered = self.runner(number_keys, tasks, partial(self.progress, "numbering keys"))
        logs = [join_logs(history, name, each, plan.batch, merged) for name, each in new.items()]
        return [each for files in (*numbered, *logs) for each in files]

    def _clean_up(self, manifest: Manifest | None) -> None:
        """Delete what the History does not need, the plan last of all."""
        kept = {None} if manifest is None else {None, *manifest.batches, *manifest.merged}
        others = [path for path in self.history.sizes() if batch_of(path) not in kept]
        for path in (*others, ATTEMPTS, STAGED, PLAN):
            self.history.delete(path)


def derive_schedule(run: Run, history: Folder, manifest: Manifest, *, with_holes: bool = False) -> Manifest:
    """
    Derive when each cluster applied which epoch of the other, write that, and return the manifest with it.

    Args:
        run: The run.
        history: Its History.
        manifest: What that holds.
        with_holes: See `ingest`.
    """
    read = read_all_summaries(history, run.links, manifest.batches)
    summaries = consistent_cut(read, run.links.server_ids, with_holes=with_holes)
    hints = run.hints(summaries)
    changes, assumed = definition_changes(run, manifest), dict[str, int]()

    def placed(cluster: ClusterConfiguration) -> ScheduleColumns:
        name, restarts = cluster.name, run.restarts_of(cluster)
        cut = name in manifest.errors or len(summaries[name]) < len(read[name])
        (own,), assumed[name] = schedule_of(
            run.links, cluster, summaries, hints, cut=cut, changes=changes, restarts=restarts
        )
        return own

    # One after the other: there can be very many.
    write_schedule(history, ((cluster.name, placed(cluster)) for cluster in run.clusters))
    return attrs.evolve(
        with_schedule(history, manifest),
        assumed=assumed,
        last_epochs={name: own[-1].number if len(own) else 0 for name, own in summaries.items()},
        epochs_left_out={name: len(read[name]) - len(own) for name, own in summaries.items()},
        changes=sum(int(own.changes.sum()) for own in summaries.values()),
    )


def outlines_by_tasks(runner: Runner, progress: StageProgress, files: Sequence[Path]) -> list[FileOutline]:
    """Return the outline of each file; of one on object storage up to the size that it has for this process."""
    tasks = [(file, file.stat().st_size) for file in files]
    return runner(_read_outline, tasks, partial(progress, "reading headers"))


def _read_outline(task: tuple[Path, int]) -> FileOutline:
    file, size = task
    with reading(file, 0, size):
        return outline_of(file)
