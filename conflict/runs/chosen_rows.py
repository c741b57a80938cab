"""
Some rows of a run, replayed by the reference engine, while the kernels decide the run: those that end different.

It knows of all other rows what they did to transactions. A repair of a large run looks at its rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.arguments import StageProgress
from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.keys.unique_keys import has_unique_keys
from conflict.engine.columnar.writing.final_rows import rows_that_may_differ
from conflict.engine.inference.observed import ObservedCluster, OtherConflictsError
from conflict.engine.inference.replay import ObservedApplier, observed_appliers
from conflict.engine.kernels.arrays import Bool
from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.layout import ResultOptions
from conflict.engine.reference.replay import play
from conflict.history.grid.epoch_files import read_commit_times
from conflict.history.grid.folder import Folder
from conflict.history.grid.memory_folder import MemoryFolder
from conflict.history.grid.stored_folder import folder_of
from conflict.history.grid.writer import identity_of
from conflict.history.run import Run
from conflict.history.tasks import in_threads
from conflict.results.run_document import RunDocument
from conflict.runs.reference_run import Replayed
from conflict.runs.resolving.bucket_tasks import BucketTask, decided
from conflict.runs.resolving.careful_rows import read_careful
from conflict.runs.resolving.resolve_job import SettledHistory
from conflict.runs.resolving.rows_by_reference import PosedRows, posed_rows
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.runs.rows.touched_rows import TouchedRows, rows_of_keys
from conflict.runs.settled import SettleOptions, settled

_READING = "reading rows that differ"


@attrs.frozen
class Choice:
    """
    Which rows are replayed.

    Attributes:
        tables: Tables with rows that end different, or of which not all is known: these rows are replayed, and all of a
            table that has unique keys, or takes part in foreign keys.
        keys: By table, the identities of further rows.
    """

    tables: frozenset[str]
    keys: Mapping[str, frozenset[bytes]] = attrs.field(factory=dict)

    @property
    def touched(self) -> frozenset[str]:
        """The tables with rows that are replayed."""
        return self.tables | self.keys.keys()


def replay_chosen(
    run: Run,
    choice: Choice,
    progress: StageProgress,
    made_of: Callable[..., ObservedCluster] = ObservedCluster,
    kept: Folder | None = None,
) -> Replayed | None:
    """
    Replay some rows.

    Args:
        run: The run.
        choice: Which rows.
        progress: Called with the name of the stage, what is done, and what there is to do.
        made_of: What makes a cluster.
        kept: A History of the run, which is read in place of the binlogs; None for none.

    Returns:
        The clusters, which have these rows; None if the kernels cannot resolve the run.

    Raises:
        MissingEpochsError: An epoch is missing from a log.
        HistoryError: The History is not one of the run.
    """
    if run.definitions:
        return None
    with TemporaryDirectory() as place:
        made = MemoryFolder.at(str(Path(place, "history")))
        options = SettleOptions(
            out=folder_of(Path(place, "result")),
            history=kept or made,
            is_finished=kept is not None,
            with_holes=run.span.cuts,
            result=ResultOptions(final_rows=False),
            progress=progress,
        )
        try:
            found = settled(run, in_threads, options)
            if isinstance(found, CareKind) or found.by_kernels is None:
                return None
            return _replayed(found.by_kernels, found.resolved, choice, made_of)
        finally:
            made.delete()


def _replayed(
    history: SettledHistory, resolved: RunDocument, choice: Choice, made_of: Callable[..., ObservedCluster]
) -> Replayed | None:
    """Replay rows of a History that the kernels resolved; None if these rows bring other transactions in conflict."""
    posed, appliers = _posed(history, choice, made_of)
    items, progress = sum(len(cluster.timeline) for cluster in posed.history.clusters), history.job.progress
    try:
        play(posed.history, appliers, lambda done: progress("replaying", done, items))
    except OtherConflictsError:
        return None
    for name, stop in resolved.summary.stops.items():  # what it would have applied since is not in the History
        appliers[name].here.result.stop = stop
    grid, batches = history.job.run.history, history.manifest.batches
    read = {name: read_commit_times(grid, name, batches) for name in history.manifest.clusters}
    times = {name: dict(zip(*(each.tolist() for each in own), strict=True)) for name, own in read.items()}
    told = attrs.evolve(posed.history, unlogged={name: tuple(own) for name, own in resolved.unlogged.items()})
    return Replayed(resolved.run, told, appliers, times, resolved.summary.counters)


def _posed(
    history: SettledHistory, choice: Choice, made_of: Callable[..., ObservedCluster]
) -> tuple[PosedRows, dict[str, ObservedApplier]]:
    """Return the chosen rows of a run, and its appliers before anything happened."""
    job, found = history.job, history.resolved.found
    run, tasks = job.run, job.tasks_at_end(found)
    whole = _whole_tables(run, choice)
    parts = job.stage(_READING, _read, [_Reading(each, choice, whole) for each in tasks[: run.manifest.buckets]])
    rows, transactions = read_careful(run, parts), tasks[0].shown_transactions
    posed = posed_rows(run, rows, found.applies, found.conflicts, transactions)
    skip, shown, given = run.clusters[0].skip_missing, posed.shown, posed.given
    return posed, observed_appliers(
        posed.history, posed.setups, skip_missing=skip, shown=shown, given=given, made_of=made_of
    )


def _whole_tables(run: TaskInputs, choice: Choice) -> Bool:
    """Return of which tables all rows are replayed: a key can bind the chosen ones to any other. Shape (tables,)."""
    touched = np.array([table.full_name in choice.touched for table in run.numbers.tables], np.bool_)
    linked = run.linked.tables
    return (has_unique_keys(run.clusters) & touched) | (linked if (linked & touched).any() else linked & touched)


@attrs.frozen
class _Reading:
    """A bucket whose chosen rows are read; `whole`: the tables whose rows are all read, shape (tables,)."""

    task: BucketTask
    choice: Choice
    whole: Bool


def _read(reading: _Reading) -> TouchedRows:
    """Return all that a bucket holds of the chosen rows."""
    run = reading.task.run
    bucket = run.load_bucket(reading.task.bucket)
    chosen = reading.whole[bucket.key_table] | run.careful_keys(bucket) | _of_keys(bucket, reading.choice)
    named = np.array([table.full_name in reading.choice.tables for table in run.numbers.tables], np.bool_)
    if named[bucket.key_table].any():
        chosen |= rows_that_may_differ(decided(reading.task, bucket, candidates=False)) & named[bucket.key_table]
    return rows_of_keys(bucket, chosen)


def _of_keys(bucket: Bucket, choice: Choice) -> Bool:
    """Return which rows of a bucket have the keys that are asked for. Shape (keys,)."""
    asked = [
        identity_of(number, key)
        for number, table in enumerate(bucket.numbers.tables)
        for key in choice.keys.get(table.full_name, ())
    ]
    found: Bool = pc.is_in(bucket.keys.column("identity"), value_set=pa.array(asked, pa.binary())).to_numpy()
    return found
