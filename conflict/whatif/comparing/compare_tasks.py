"""
The tasks of a comparison: what one worker does with one bucket of a History, under every pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import attrs
import numpy as np

from conflict.engine.columnar.applier_stops import first_stopping
from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.bucket_view import BucketView
from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.setups import ClusterSetup, rules_of
from conflict.engine.kernels.arrays import Bool, Conflicts, EpochApplies, Int64
from conflict.engine.kernels.fold import fold
from conflict.engine.kernels.lost_changes import Written
from conflict.engine.kernels.records import Changes, packed_changes
from conflict.history.tasks import Shared
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.whatif.comparing.bucket_figures import BucketFigures, bucket_figures, written_in
from conflict.whatif.comparing.known_part import (
    DecidedBucket,
    KnownPart,
    find_known_part,
    find_unsure,
)
from conflict.whatif.comparing.rejected_transactions import Transactions
from conflict.whatif.comparing.unsure_transactions import Unsure, UnsureFindings


@attrs.frozen(eq=False)
class DecidedTrial:
    """
    A trial whose transactions in conflict are known.

    Attributes:
        clusters: Both clusters under it.
        view: What the trial makes of the logged changes.
        applies: The epoch applies, up to the stops.
        conflicts: The transactions in conflict.
        finds_stops: Whether the tasks look for operations that stop an applier; rounds have found them.
        stops: Whether an applier stops.
        unsure: What is not known, where the logs start in the middle; None where they do not.
        configured: Whether the functions are those that were in force.
    """

    clusters: tuple[ClusterSetup, ...]
    view: BucketView
    applies: EpochApplies
    conflicts: Conflicts
    finds_stops: bool
    stops: bool = False
    unsure: Unsure | None = None
    configured: bool = False


@attrs.frozen
class DecideTask:
    """A bucket, and the trials that are decided on it; `clusters` has both clusters under each."""

    run: TaskInputs
    bucket: int
    clusters: tuple[tuple[ClusterSetup, ...], ...]
    shared: Shared[list[DecidedTrial]]

    @classmethod
    def of_buckets(cls, run: TaskInputs, trials: Sequence[DecidedTrial]) -> list[Self]:
        """Return a task for each bucket."""
        shared = Shared(run.shared, [attrs.evolve(each, clusters=()) for each in trials])
        clusters = tuple(each.clusters for each in trials)
        return [cls(run, bucket, clusters, shared) for bucket in range(run.manifest.buckets)]

    @property
    def trials(self) -> list[DecidedTrial]:
        """The trials."""
        return [attrs.evolve(each, clusters=own) for own, each in zip(self.clusters, self.shared.load(), strict=True)]


@attrs.frozen
class CountTask:
    """A bucket, a cluster, and those of its transactions whose changes in the bucket are counted; all if None count."""

    run: TaskInputs
    bucket: int
    source: int
    transactions: Shared[Transactions]
    counting: Bool | None


@attrs.frozen(eq=False)
class _Loaded:
    """
    A bucket, and what is the same under all trials that take its changes as they are logged.

    Attributes:
        bucket: The bucket.
        changes: Its changes, packed for the fold.
        written: What they do to their rows.
    """

    bucket: Bucket
    changes: Changes
    written: tuple[Written, Written]

    def seen_by(self, view: BucketView) -> Self:
        """Return the bucket as a trial sees it."""
        bucket = view.of(self.bucket)
        if bucket is self.bucket:
            return self
        written = written_in(bucket) if view.relogging else self.written
        return attrs.evolve(self, bucket=bucket, changes=packed_changes(bucket.rows), written=written)


def count_changes(task: CountTask) -> Int64:
    """Return how many changes of each transaction are in a bucket. Shape (transactions,)."""
    rows = task.run.load_bucket(task.bucket).rows[task.source]
    return task.transactions.load().changes_among(rows, task.counting)


def _loaded(task: DecideTask) -> _Loaded:
    bucket = task.run.load_bucket(task.bucket)
    bucket.kept = bucket.rows
    return _Loaded(bucket, packed_changes(bucket.rows), written_in(bucket))


def decide_bucket(task: DecideTask) -> list[BucketFigures]:
    """Load a bucket once, and decide it under every trial."""
    loaded, trials = _loaded(task), task.trials
    if task.run.part.starts_in_the_middle:
        return _figures_from_the_middle(task, loaded, trials)
    found = []
    for each in trials:
        seen = loaded.seen_by(each.view)
        found.append(_figures(seen, _made(seen, each), each))
    return found


def _figures_from_the_middle(task: DecideTask, loaded: _Loaded, trials: Sequence[DecidedTrial]) -> list[BucketFigures]:
    """Return the figures of the changes and rows that are known under every trial but those that stop an applier."""
    made, known = [], []
    for each in trials:
        seen = loaded.seen_by(each.view)
        assert each.unsure is not None
        made.append((seen, _made(seen, each), each))
        known.append(find_known_part(task.run, made[-1][1], seen.written, each.unsure))
    compared = [part for part, each in zip(known, trials, strict=True) if not each.stops]
    first, second = (
        np.logical_and.reduce([np.ones(len(rows), np.bool_), *(each.own[side] for each in compared)])
        for side, rows in enumerate(loaded.bucket.rows)
    )
    rows = np.logical_and.reduce([np.ones(len(loaded.bucket.key_table), np.bool_), *(each.rows for each in compared)])
    return [
        attrs.evolve(_figures(*each, part.within((first, second), rows)), counting=(first, second), alone=part.counts)
        for each, part in zip(made, known, strict=True)
    ]


def find_unsure_in_bucket(task: DecideTask) -> UnsureFindings:
    """Return what a bucket shows of transactions that may be rejected under the one trial."""
    (decided,) = task.trials
    seen = _loaded(task).seen_by(decided.view)
    assert decided.unsure is not None
    return find_unsure(task.run, _made(seen, decided), decided.unsure)


def _made(loaded: _Loaded, decided: DecidedTrial) -> DecidedBucket:
    """Decide a bucket, as a trial sees it."""
    bucket, clusters, applies, conflicts = loaded.bucket, decided.clusters, decided.applies, decided.conflicts
    moments, rules = applies.moments.of_bucket(bucket.number), rules_of(clusters)
    folded = fold(applies, loaded.changes, rules, conflicts, bucket.key_table, candidates=False, moments=moments)
    return DecidedBucket(bucket, clusters, applies, conflicts, loaded.changes, folded, decided.configured)


def _figures(
    loaded: _Loaded, made: DecidedBucket, decided: DecidedTrial, known: KnownPart | None = None
) -> BucketFigures:
    stopping = first_stopping(made.bucket, made.clusters, made.applies) if decided.finds_stops else {}
    tracked = made.folded.tracking_conflicts_alone(made.conflicts)
    result = FoldedBucket(made.bucket, made.clusters, made.applies, made.conflicts, tracked)
    return bucket_figures(result, stopping, loaded.written, known)
