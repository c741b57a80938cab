"""
The stages that look in a History for rows that the kernels cannot decide: a task for each bucket.

These are rows whose keys are spelled in several ways, and rows which clusters changed without a log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import attrs
import numpy as np
import pyarrow as pa

from conflict.config.arguments import StageProgress
from conflict.engine.columnar.bucket import CarefulRows, load_bucket
from conflict.engine.columnar.keys.respelled_keys import can_be_respelled, respelled_keys
from conflict.engine.columnar.unlogged_rows import UnloggedRows, find_unlogged_rows
from conflict.engine.kernels.arrays import Bool, Int64
from conflict.engine.ledger.careful import CareKind
from conflict.history.grid.epoch_files import read_summaries
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.reading.crashes import crashes_of
from conflict.history.run import Run, TableNumbers
from conflict.history.scheduling.start import Bounds
from conflict.history.tasks import Runner
from conflict.history.timeline import Position
from conflict.history.unlogged import Crash
from conflict.runs.rows.task_inputs import LogPart, TaskInputs
from ndb_formats.events.rows_event import Operation

ReadPart = tuple[LogPart, pa.Table, Manifest]


def find_unlogged(runner: Runner, run: Run, history: Folder, part: ReadPart, progress: StageProgress) -> UnloggedRows:
    """
    Return the rows that are not what the logs say: changed without one, or set back by a crash.

    `part`: what is read of the History.
    """
    log_part, _, manifest = part
    crashes, needed = _crashes(run, history, part), manifest.for_tasks()
    tasks = [
        _UnloggedTask(history, bucket, needed, run.numbers, log_part.bounds, crashes)
        for bucket in range(manifest.buckets)
    ]
    found = UnloggedRows.joined(runner(_UnloggedTask.find, tasks, partial(progress, "comparing images")))
    return found.with_crashes(crashes) if crashes else found


def follows_from(runner: Runner, run: TaskInputs, progress: StageProgress) -> bool:
    """Whether all that logs say after an earlier result follows from what they said before."""
    tasks = [_FollowingTask(run, bucket) for bucket in range(run.manifest.buckets)]
    return all(runner(_FollowingTask.follows, tasks, partial(progress, "comparing images")))


@attrs.frozen
class _FollowingTask:
    """A bucket in which changes without a log are looked for, after what was looked at before."""

    run: TaskInputs
    bucket: int

    def follows(self) -> bool:
        """Whether there are none."""
        window = self.run.window
        assert window is not None
        bucket = self.run.load_unseen(self.bucket)
        return window.shown(bucket).are_followed(bucket, updated_tables(self.run))


def updated_tables(run: TaskInputs) -> tuple[Bool, Bool]:
    """Return, per cluster, the tables whose updates its log holds as updates. Shape of each (tables,)."""
    first, second = (_updated(run.manifest, run.numbers, name) for name in run.manifest.clusters)
    return first, second


def _updated(manifest: Manifest, numbers: TableNumbers, name: str) -> Bool:
    update = Operation.UPDATE_ROW.name
    found = {
        table
        for segment in manifest.segments[name]
        for table, texts in segment.images.items()
        if any(text.startswith(update) for text in texts)
    }
    return np.array([table.full_name in found for table in numbers.tables], np.bool_)


def _crashes(run: Run, history: Folder, part: ReadPart) -> dict[str, list[Crash]]:
    """Return, by cluster, where its data nodes went down in what is read of the History, as far as clocks tell."""
    (log_part, _, manifest), found = part, dict[str, list[Crash]]()
    for name in dict.fromkeys(each.cluster for each in run.disconnects):
        bounds = Bounds() if log_part.bounds is None else log_part.bounds[name]
        epochs = [
            (each.number, each.committed or 0)
            for each in read_summaries(history, name, manifest.batches)
            if each.number in bounds
        ]
        if mine := crashes_of(run.disconnects_of(name), epochs):
            found[name] = mine
    return found


# Of so many row changes, the reference engine resolves all for the sake of a few rows: a minute or two.
MOST_CHANGES = 200_000


def followed(found: UnloggedRows, run: Run, part: ReadPart) -> UnloggedRows | CareKind:
    """
    Return these rows, in logs that are too large for the reference engine; not to be followed where that is needed.

    It is needed where the logs start in the middle, or transactions are judged. If there are such rows and the logs
    are small enough for the reference engine, return why they are left to it.
    """
    functions = [setup.function for setups in run.setups.at_start.values() for setup in setups.values()]
    judges_transactions = any(each is not None and each.spec.transactional for each in functions)
    if not found.are_followed:
        return found
    if part[2].changes <= MOST_CHANGES:
        return CareKind.CRASH_DOUBTS if found.crashes else CareKind.UNLOGGED_DOUBTS
    return attrs.evolve(found, follow=not part[0].starts_in_the_middle and not judges_transactions)


@attrs.frozen
class _UnloggedTask:
    """A bucket in which changes without a log are looked for: see `conflict.engine.columnar.unlogged_rows`."""

    history: Folder
    bucket: int
    manifest: Manifest
    numbers: TableNumbers
    bounds: Mapping[str, Bounds] | None
    crashes: Mapping[str, Sequence[Crash]]

    def find(self) -> UnloggedRows:
        """Return them."""
        layouts = self.manifest.layouts(self.numbers)
        bucket = load_bucket(
            self.history, self.bucket, self.manifest, self.numbers, layouts, images=False, bounds=self.bounds
        )
        first, second = (_updated(self.manifest, self.numbers, name) for name in self.manifest.clusters)
        return find_unlogged_rows(bucket, (first, second), self._foreign_epochs, self.manifest.files, self.crashes)

    def _foreign_epochs(self, side: int) -> dict[Position, list[int]]:
        """Return the foreign epochs of each epoch apply of a cluster, by own position."""
        name = list(self.manifest.clusters)[side]
        found: dict[Position, list[int]] = {}
        for summary in read_summaries(self.history, name, self.manifest.batches):
            for each in summary.applied:
                found.setdefault((summary.number, each.group), []).append(each.epoch)
        return found


def with_respelled(runner: Runner, run: TaskInputs, progress: StageProgress) -> TaskInputs:
    """
    Make the rows whose keys are spelled in several ways careful ones.

    Raises:
        FormatError: An image is cut off.
    """
    if not any(map(can_be_respelled, run.numbers.tables)):
        return run
    tasks = [_RespelledTask(run, bucket) for bucket in range(run.manifest.buckets)]
    found = enumerate(runner(_RespelledTask.find, tasks, partial(progress, "comparing keys")))
    keys = {bucket: own for bucket, own in found if len(own)}
    if not keys:
        return run
    respelled = CarefulRows(np.zeros(len(run.numbers.tables), np.bool_), keys)
    return attrs.evolve(run.with_careful(respelled), respelled=respelled)


@attrs.frozen
class _RespelledTask:
    """A bucket in which keys are looked for that are spelled in several ways."""

    run: TaskInputs
    bucket: int

    def find(self) -> Int64:
        """Return their numbers."""
        return respelled_keys(self.run.load_bucket(self.bucket))
