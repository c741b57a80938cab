"""
Keeps of a result what a later run goes on from: `conflict.runs.rows.window` has the files.

What cannot be carried over is said in words, and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from conflict.engine.columnar.boundary import Boundary, conflicts_before
from conflict.engine.columnar.folded_bucket import FoldedBucket, count_bucket
from conflict.engine.columnar.shown_rows import ShownRows, write_shown
from conflict.engine.columnar.standing_rows import digest_of_keys, write_standing
from conflict.engine.columnar.writing.standing import Place, stood_before
from conflict.engine.kernels.arrays import Bool, EpochApplies, RowMoments
from conflict.engine.ledger.summary import RunSummary
from conflict.history.scheduling.schedule_columns import PLACES, ScheduleColumns, among
from conflict.history.scheduling.start import LAST
from conflict.history.timeline import START, Position
from conflict.program import program
from conflict.rules.counters import add_counters, transaction_counters
from conflict.runs.resolving.bucket_tasks import BucketTask, decided
from conflict.runs.resolving.deciding_applies import Schedule
from conflict.runs.resolving.finding_careful import updated_tables
from conflict.runs.resolving.resolve_stages import ResolveJob, WrittenBuckets
from conflict.runs.resolving.windows import not_for_windows
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.runs.rows.window import STATE, BucketState, ClusterState, State, digest_of_schedule, write_state


def not_kept(run: TaskInputs, schedule: Schedule, resolved: WrittenBuckets, summary: RunSummary) -> str | None:
    """Return why no state can be kept of a result, as the end of a sentence; None if it can."""
    found = {
        not_for_windows(run, schedule) or "": True,
        "an applier stops": bool(resolved.found.stopping),
        "the binlogs contradict it": bool(summary.contradicted),
        "changes found no row": any(summary.unexplained.values()),
    }
    return next((what for what, holds in found.items() if what and holds), None)


def sure_applies(schedule: Schedule, applies: EpochApplies, unsure: Collection[tuple[str, int]]) -> int:
    """
    Return how many epoch applies in order come before the first one whose place later logs may show otherwise.

    An epoch without a trace has its place for good if a later trace stands after it, and no other place is possible.

    Args:
        schedule: Per cluster, the epoch applies of its applier, at their places.
        applies: All in order.
        unsure: Applier and number of epochs whose place is open, or that were never applied.
    """
    most = len(applies)
    for side, (name, own) in enumerate(schedule.items()):
        open_ones = np.array(sorted(epoch for applier, epoch in unsure if applier == name), np.uint64)
        moving = among(own["foreign_epoch"], open_ones)
        moving[own.windowed] |= own["before_epoch"][own.windowed] == LAST
        if moving.any():
            # Those that count as applied are numbered without the others.
            count = int(own["applied"][: int(np.argmax(moving))].sum())
            later = np.flatnonzero((applies.applier == side) & (applies.number >= count))
            most = min(most, int(later[0])) if len(later) else most
    return most


@attrs.frozen
class _Kept:
    """What the driver receives of a bucket; the counters are those of each cluster until then."""

    state: BucketState
    counters: list[dict[str, int]]
    moments: RowMoments


@attrs.frozen
class _KeepTask:
    """
    One bucket whose rows are kept.

    Attributes:
        task: Its task.
        latest: The place at which they are kept, or before.
    """

    task: BucketTask
    latest: Place

    def keep(self) -> _Kept:
        """Write its rows."""
        run, applies = self.task.run, self.task.applies.load()
        bucket = self.task.load(images=True)
        result = decided(self.task, bucket, candidates=False)
        stood = stood_before(result, self.latest)
        write_standing(run.out.below(STATE), bucket.number, stood.rows)
        self._keep_shown()
        identities = bucket.keys.column("identity")
        last = [run.manifest.last_epochs[name] for name in bucket.clusters]
        following = [end + 1 if each is None else each for each, end in zip(stood.following, last, strict=True)]
        before = frozenset() if run.window is None else run.window.showing(bucket.number)
        state = BucketState(
            keys=len(identities),
            digest=digest_of_keys(identities, len(identities)),
            following=following,
            showing=[
                name in before or len(each) > 0 for name, each in zip(bucket.clusters, bucket.consequences, strict=True)
            ],
        )
        told = np.arange(len(applies)) < self.latest.before
        result = _telling(result, told if result.told is None else told & result.told)
        return _Kept(state, [each.counters for each in count_bucket(result)], stood.moments)

    def _keep_shown(self) -> None:
        """Write what logs said last of its rows."""
        run = self.task.run
        bucket = run.load_unseen(self.task.bucket)
        known = ShownRows.none(len(bucket.key_table)) if run.window is None else run.window.shown(bucket)
        write_shown(run.out.below(STATE), bucket.number, known.with_later(bucket, updated_tables(run)))


def _telling(result: FoldedBucket, told: Bool) -> FoldedBucket:
    """Return a decided bucket that tells of some epoch applies."""
    return FoldedBucket(result.bucket, result.clusters, result.applies, result.conflicts, result.folded, told=told)


def keep_state(
    job: ResolveJob,
    schedule: Schedule,
    resolved: WrittenBuckets,
    configuration: str,
    unsure: Collection[tuple[str, int]],
    at: int | None = None,
) -> State:
    """
    Write, and return, the state of a result at the last epoch apply whose place is given.

    Args:
        job: The stages.
        schedule: Per cluster, the epoch applies of its applier.
        resolved: The result.
        configuration: See `State`.
        unsure: See `sure_applies`.
        at: Number of the epoch apply before which it is, if its place is given; None for the last place that is.
    """
    run, found = job.run, resolved.found
    sure = sure_applies(schedule, found.applies, unsure)
    before = sure if at is None else min(at, sure)
    latest = Place(before, _begun(schedule, found.applies, before))
    tasks = [_KeepTask(task, latest) for task in job.tasks_at_end(found)]
    kept = job.stage("keeping rows", _KeepTask.keep, tasks)
    clusters = {
        cluster.name: _cluster_state(
            job, resolved, schedule[cluster.name], side, before, [each.counters[side] for each in kept]
        )
        for side, cluster in enumerate(run.clusters)
    }
    first, second = (own.applied for own in clusters.values())
    boundary = Boundary((first, second), conflicts_before(found.applies, found.conflicts, before), {})
    state = State(
        program=program(), configuration=configuration, clusters=clusters, buckets=[each.state for each in kept]
    )
    places = {name: _places(own, clusters[name].applied) for name, own in schedule.items()}
    moments = RowMoments.joined(each.moments for each in kept)
    applier, number = found.applies.applier[moments.apply], found.applies.number[moments.apply]
    early = tuple(attrs.evolve(moments, apply=number).chosen(applier == side) for side in (0, 1))
    write_state(run.out.below(STATE), state, boundary, places, early)
    return state


def _places(own: ScheduleColumns, applied: int) -> dict[str, npt.NDArray[Any]]:
    """Return `PLACES` of the epochs without a trace among the first ones of an applier; `applied`: of these."""
    last = np.flatnonzero(own["applied"])[applied - 1] if applied else -1
    numbers = np.flatnonzero(~own["traced"][: last + 1])
    numbers = numbers[np.argsort(own["foreign_epoch"][numbers], kind="stable")]
    return {name: own[name][numbers] for name in PLACES}


def _begun(schedule: Schedule, applies: EpochApplies, before: int) -> tuple[Position, Position]:
    """
    Return, per cluster, the own position after which its applier began with the epochs that it had not applied yet.

    The other cluster logged the next of these after it had news of that position. What no log has yet is not known.

    Args:
        schedule: Per cluster, the epoch applies of its applier.
        applies: All in order.
        before: Number of the first one that had not come.
    """
    found = list[Position]()
    for side, own in enumerate(schedule.values()):
        mine = np.flatnonzero(applies.applier[:before] == side)
        last = applies.foreign_epoch[mine[-1]] if len(mine) else np.uint64(0)
        later = np.flatnonzero(own["foreign_epoch"] > last)
        epochs, groups = own["arrived_epoch"][later], own["arrived_group"][later]
        first = np.lexsort((groups, epochs))[:1]
        found.append((int(epochs[first[0]]), int(groups[first[0]])) if len(first) else START)
    return found[0], found[1]


def _cluster_state(
    job: ResolveJob,
    resolved: WrittenBuckets,
    own: ScheduleColumns,
    side: int,
    before: int,
    counters: Sequence[Mapping[str, int]],
) -> ClusterState:
    """Return how far a cluster had come; `counters`: by bucket, what it counted since the window began."""
    run, applies, conflicts = job.run, resolved.found.applies, resolved.found.conflicts
    name = run.clusters[side].name
    mine = np.flatnonzero(applies.applier[:before] == side)
    last = mine[-1:]
    source, epoch, group = (int(each[last].sum()) for each in (applies.foreign_epoch, applies.epoch, applies.group))
    told = np.arange(len(applies)) < before
    known = list[Mapping[str, int]]()
    if run.window is not None:
        told &= run.window.boundary.later(applies)
        known.append(run.window.state.clusters[name].counters)
    in_conflict = conflicts.applies[told[conflicts.applies] & (applies.applier[conflicts.applies] == side)]
    rejected = int((conflicts.offsets[in_conflict + 1] - conflicts.offsets[in_conflict]).sum())
    total = add_counters([*known, *counters, transaction_counters(len(in_conflict), rejected)])
    exceptions = {
        table: [[*series, number] for series, number in used.last(before).items()]
        for (cluster, table), used in job.numbered.used.items()
        if cluster == name
    }
    return ClusterState(
        applied=len(mine),
        schedule=digest_of_schedule(own, len(mine)),
        source_epoch=source,
        epoch=epoch,
        group=group,
        seen=run.manifest.last_epochs[name],
        files=[str(each) for each in run.manifest.files[name]],
        counters=total,
        exceptions=exceptions,
    )
