"""
One History under many pairs of a conflict function and a format: the driver of a comparison. Computes docs/compare.md.

The History was resolved with the functions of the run, which settled when each epoch was applied and each row judged.

1. Where a pair rejects transactions, find in rounds which ones are in conflict under it.
2. Run one task per bucket, which loads it once and decides it under every pair. Where an operation stops an applier,
   leave out all that this applier would have applied from there on, and decide the buckets again under that pair.
3. Count the changes of all transactions with a rejected change, to tell which ones were rejected in part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Self

import attrs
import numpy as np

from conflict.config.arguments import StageProgress
from conflict.engine.columnar.applier_stops import first_stopping, stop_of
from conflict.engine.columnar.bucket import Bucket, load_bucket
from conflict.engine.columnar.bucket_result import BucketResult
from conflict.engine.columnar.bucket_view import BucketView, CommitTimes
from conflict.engine.columnar.fixed_point import FixedPoint, without_rounds
from conflict.engine.columnar.order import ApplierEpochs
from conflict.engine.columnar.setups import ClusterSetup, rules_of
from conflict.engine.kernels.arrays import Conflicts, EpochApplies, Int64
from conflict.engine.kernels.fold import fold
from conflict.engine.kernels.lost_changes import Written
from conflict.engine.kernels.records import Changes, packed_changes
from conflict.errors import NotBuiltError
from conflict.history.grid.epoch_files import EPOCHS, epochs_part
from conflict.runs.resolve_job import SettledHistory, count_transactions
from conflict.runs.resolve_run import ResolveRun
from conflict.runs.resolve_stages import LINK_ACTS, ResolveJob, earliest_stops
from conflict.runs.runner import Runner, Shared, share
from conflict.whatif.comparing.bucket_figures import (
    BucketFigures,
    Rejected,
    Transactions,
    bucket_figures,
    partly_rejected,
    written_in,
)
from conflict.whatif.comparing.figures import Figures, add_figures
from conflict.whatif.comparing.pairs import Pair
from conflict.whatif.comparing.trials import Trial, TrialSubject

__all__ = ["compare_settled"]


@attrs.frozen(eq=False)
class _Decided:
    """
    A trial whose transactions in conflict are known.

    Attributes:
        view: What the trial makes of the logged changes.
        applies: The epoch applies, up to the stops.
        conflicts: The transactions in conflict.
        finds_stops: Whether the tasks look for operations that stop an applier; rounds have found them.
    """

    view: BucketView
    applies: EpochApplies
    conflicts: Conflicts
    finds_stops: bool

    @classmethod
    def of(cls, run: ResolveRun, point: FixedPoint) -> Self:
        """Return a trial with what the rounds found."""
        finds_stops = not run.needs_rounds and not point.stopping
        return cls(run.view or BucketView(), point.applies, point.conflicts, finds_stops)


@attrs.frozen
class _Task:
    """A bucket, and the trials that are decided on it; `clusters` has both clusters under each."""

    run: ResolveRun
    bucket: int
    clusters: tuple[tuple[ClusterSetup, ...], ...]
    trials: Shared[list[_Decided]]


@attrs.frozen
class _CountTask:
    """A bucket, a cluster, and those of its transactions whose changes in the bucket are counted."""

    run: ResolveRun
    bucket: int
    source: int
    transactions: Shared[Transactions]


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


def compare_settled(
    runner: Runner,
    settled: SettledHistory,
    pairs: Sequence[Pair],
    progress: StageProgress = lambda stage, done, total: None,
) -> list[Figures | str]:
    """
    Return the figures of each pair, or why it cannot be tried.

    Args:
        runner: Runs the tasks.
        settled: The History, resolved with the functions of the run; its folder takes what tasks leave for one another,
            and the parts of the result that are in it are removed.
        pairs: The pairs.
        progress: Called with the name of the stage, tasks done, and their number.

    Raises:
        NotBuiltError: The logs start in the middle, an applier filters tables, or a foreign key acts.
    """
    if settled.part.starts_in_the_middle:
        message = "the logs start in the middle"
        raise NotBuiltError(message)
    if settled.job.run.filtered.any():
        message = "an applier drops the changes of a table (replicate_* filters)"
        raise NotBuiltError(message)
    if settled.job.run.careful is not None:
        raise NotBuiltError(LINK_ACTS)
    settled.job.clear()
    run = settled.job.run
    subject = TrialSubject(run.manifest, run.numbers, run.clusters, _commit_times(run))
    trials = [subject.trial(pair) for pair in pairs]
    job = _Job(runner, run, settled.applied, progress)
    return job.figures(trials)


@attrs.frozen
class _Job:
    """
    The stages of a comparison.

    Attributes:
        runner: Runs the tasks.
        run: The run as it is configured.
        applied: Per cluster, the epochs that its applier applies.
        progress: Called with the name of the stage, tasks done, and their number.
    """

    runner: Runner
    run: ResolveRun
    applied: Sequence[ApplierEpochs]
    progress: StageProgress

    def figures(self, trials: Sequence[Trial]) -> list[Figures | str]:
        """Return the figures of each trial, or why it cannot be tried."""
        found: list[Figures | str] = [each.fault or "" for each in trials]
        jobs = {
            number: ResolveJob(self.runner, self._run_of(trial, number), self._named(trial))
            for number, trial in enumerate(trials)
            if trial.fault is None
        }
        plain = without_rounds(self.applied, self._names, {})
        points = {n: job.find(self.applied) if job.run.needs_rounds else plain for n, job in jobs.items()}
        parts = self._decide(jobs, points, "comparing")
        stopped = {
            number: without_rounds(self.applied, self._names, stops)
            for number, own in parts.items()
            if (stops := earliest_stops([each.stopping for each in own]))
        }
        points |= stopped
        parts |= self._decide(jobs, stopped, "comparing up to stops") if stopped else {}
        rejected = self._rejected(points, parts)
        for number, own in parts.items():
            found[number] = self._figures_of(jobs[number], points[number], own, rejected[number])
        return found

    def _rejected(
        self, points: Mapping[int, FixedPoint], parts: Mapping[int, Sequence[BucketFigures]]
    ) -> dict[int, tuple[int, int]]:
        """Return, per trial, how many transactions had a change rejected, and how many of these only a part."""
        added = {number: Rejected.added([each.rejected for each in own]) for number, own in parts.items()}
        found = dict.fromkeys(added, 0)
        for source in (0, 1):
            mine = {number: each.of(1 - source, points[number].applies) for number, each in added.items()}
            known = Transactions.union([transactions for transactions, _ in mine.values()])
            changes = self._changes_of(source, known) if len(known.epoch) else np.zeros(0, np.int64)
            for number, each in mine.items():
                found[number] += partly_rejected(*each, known, changes)
        return {number: (len(each), found[number]) for number, each in added.items()}

    def _changes_of(self, source: int, transactions: Transactions) -> Int64:
        """Return how many changes each of some transactions of a cluster has."""
        shared = share(self.run.shared, transactions)
        tasks = [_CountTask(self.run, bucket, source, shared) for bucket in range(self.run.manifest.buckets)]
        counted = self.runner(_count_changes, tasks, partial(self.progress, "counting transactions"))
        changes: Int64 = np.sum(counted, axis=0, dtype=np.int64)
        return changes

    def _figures_of(
        self, job: ResolveJob, point: FixedPoint, parts: Sequence[BucketFigures], rejected: tuple[int, int]
    ) -> Figures | str:
        try:
            job.refuse_broken_links(point)
        except NotBuiltError as error:
            return str(error)
        clusters, files = job.run.clusters, self.run.manifest.files
        stops = {
            cluster.name: stop_of(point.stopping[cluster.name], cluster, files[clusters[1 - number].name])
            for number, cluster in enumerate(clusters)
            if cluster.name in point.stopping
        }
        transactions = count_transactions(clusters, point.applies, point.conflicts)
        return add_figures(parts, transactions.counters, rejected, stops)

    def _decide(
        self, jobs: Mapping[int, ResolveJob], points: Mapping[int, FixedPoint], stage: str
    ) -> dict[int, list[BucketFigures]]:
        """Decide every bucket under some trials; return their figures by bucket."""
        decided = [_Decided.of(jobs[number].run, point) for number, point in points.items()]
        if not decided:
            return {}
        shared = share(self.run.shared, decided)
        clusters = tuple(jobs[number].run.clusters for number in points)
        tasks = [_Task(self.run, bucket, clusters, shared) for bucket in range(self.run.manifest.buckets)]
        by_bucket = self.runner(_decide_bucket, tasks, partial(self.progress, stage))
        return {number: [own[place] for own in by_bucket] for place, number in enumerate(points)}

    def _run_of(self, trial: Trial, number: int) -> ResolveRun:
        out = self.run.out.below(f"pair={number:03d}")
        return attrs.evolve(self.run, out=out, clusters=trial.clusters, view=trial.view)

    def _named(self, trial: Trial) -> StageProgress:
        name = trial.pair.policy.name
        return lambda stage, done, total: self.progress(f"{name}, {stage}", done, total)

    @property
    def _names(self) -> list[str]:
        return [cluster.name for cluster in self.run.clusters]


def _load(run: ResolveRun, number: int) -> Bucket:
    layouts = run.manifest.layouts(run.numbers)
    return load_bucket(run.history, number, run.manifest, run.numbers, layouts, bounds=run.part.bounds)


def _count_changes(task: _CountTask) -> Int64:
    """Return how many changes of each transaction are in a bucket. Shape (transactions,)."""
    return task.transactions.load().changes_among(_load(task.run, task.bucket).rows[task.source])


def _decide_bucket(task: _Task) -> list[BucketFigures]:
    """Load a bucket once, and decide it under every trial."""
    bucket = _load(task.run, task.bucket)
    bucket.kept = bucket.rows
    loaded = _Loaded(bucket, packed_changes(bucket.rows), written_in(bucket))
    trials = zip(task.clusters, task.trials.load(), strict=True)
    return [_figures(loaded.seen_by(decided.view), clusters, decided) for clusters, decided in trials]


def _figures(loaded: _Loaded, clusters: tuple[ClusterSetup, ...], decided: _Decided) -> BucketFigures:
    bucket, applies, conflicts = loaded.bucket, decided.applies, decided.conflicts
    moments = applies.moments.of_bucket(bucket.number)
    folded = fold(
        applies, loaded.changes, rules_of(clusters), conflicts, bucket.key_table, candidates=False, moments=moments
    )
    stopping = first_stopping(bucket, clusters, applies) if decided.finds_stops else {}
    tracked = folded.tracking_conflicts_alone(conflicts)
    return bucket_figures(BucketResult(bucket, clusters, applies, conflicts, tracked), stopping, loaded.written)


def _commit_times(run: ResolveRun) -> tuple[CommitTimes, CommitTimes]:
    highest = max(cluster.server_id for cluster in run.clusters)
    found = []
    for cluster in run.clusters:
        segments = range(len(run.manifest.segments[cluster.name]))
        table = run.history.read_tables((epochs_part(cluster.name, each) for each in segments), EPOCHS)
        value = table["committed"].to_numpy().astype(np.uint64) * np.uint64(2)
        epoch = table["number"].to_numpy()
        found.append(CommitTimes(epoch, value + np.uint64(cluster.server_id == highest)))
    return found[0], found[1]
