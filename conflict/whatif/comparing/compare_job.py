"""
One History under many pairs of a conflict function and a format: the driver of a comparison. Computes docs/compare.md.

The History was resolved with the functions of the run, which settled when each epoch was applied and each row judged.

1. Where a pair rejects transactions, find in rounds which ones are in conflict under it; where the logs start in the
   middle, also which ones may be, and where the moments of judging are known.
2. Run one task per bucket, which loads it once and decides it under every pair. Where an operation stops an applier,
   leave out all that this applier would have applied from there on, and decide the buckets again under that pair.
3. Count the changes of all transactions with a rejected change, to tell which ones were rejected in part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import attrs
import numpy as np

from conflict.config.arguments import StageProgress
from conflict.engine.columnar.applier_stops import hangs_on_rows, stop_of
from conflict.engine.columnar.bucket import CarefulRows
from conflict.engine.columnar.bucket_view import BucketView, CommitTimes
from conflict.engine.columnar.fixed_point import FixedPoint, without_rounds
from conflict.engine.columnar.order import ApplierEpochs
from conflict.engine.columnar.setups import transactional_tables
from conflict.engine.kernels.arrays import Int64
from conflict.history.grid.epoch_files import read_commit_times
from conflict.history.model import History
from conflict.history.run import Run
from conflict.history.tasks import Runner, Shared
from conflict.results.run_document import RunDocument
from conflict.runs.resolving.resolve_job import count_transactions
from conflict.runs.resolving.resolve_stages import LINK_ACTS, ResolveJob, earliest_stops
from conflict.runs.rows.task_inputs import LogPart, TaskInputs
from conflict.telling.shown_text import counted, listed
from conflict.whatif.comparing.bucket_figures import BucketFigures
from conflict.whatif.comparing.by_reference import figures_by_reference, why_not_by_reference
from conflict.whatif.comparing.compare_tasks import (
    CountTask,
    DecidedTrial,
    DecideTask,
    count_changes,
    decide_bucket,
    find_unsure_in_bucket,
)
from conflict.whatif.comparing.figures import Figures, add_figures
from conflict.whatif.comparing.known_part import judging
from conflict.whatif.comparing.pairs import Pair
from conflict.whatif.comparing.rejected_transactions import Rejected, Transactions, partly_rejected
from conflict.whatif.comparing.trials import Trial, TrialSubject
from conflict.whatif.comparing.unsure_transactions import SettledRows, Unsure, UnsureFindings

STOP_NOT_KNOWN = "whether an operation stops an applier depends on rows older than the logs, which are unknown"
_STOPS_EARLIER = "an applier stops, and rows that are not compared may stop it earlier"


def compare_settled(
    runner: Runner,
    run: TaskInputs,
    applied: Sequence[ApplierEpochs],
    pairs: Sequence[Pair],
    progress: StageProgress = lambda stage, done, total: None,
    history: History | None = None,
) -> list[Figures | str]:
    """
    Return the figures of each pair, or why it cannot be tried.

    Args:
        runner: Runs the tasks.
        run: The run as it is configured; its folder takes what tasks leave for one another.
        applied: Per cluster, the epochs that its applier applies, as they were settled with the functions of the run.
        pairs: The pairs.
        progress: Called with the name of the stage, tasks done, and their number.
        history: The run as it is configured, for rules in Python; needed if a pair has one.
    """
    if run.filtered.any():
        run = run.with_careful(CarefulRows(run.filtered))
    subject = TrialSubject(run.manifest, run.numbers, run.clusters, _commit_times(run))
    trials = [subject.trial(pair) for pair in pairs]
    by_reference = {each.pair: _by_reference(run, each, history, progress) for each in trials if each.in_python}
    trials = [each for each in trials if not each.in_python]
    left_out = run.respelled if run.part.starts_in_the_middle else run.careful
    if left_out is not None or not run.part.starts_in_the_middle:
        trials = [attrs.evolve(each, fault=each.fault or _fault_of_left_out(run, each)) for each in trials]
    run = attrs.evolve(run, careful=None, respelled=None, left_out=left_out, unlogged={})
    job = _Job(runner, run, applied, progress)
    found = by_reference | {each.pair: own for each, own in zip(trials, job.figures(trials), strict=True)}
    return [found[pair] for pair in pairs]


def _by_reference(run: TaskInputs, trial: Trial, history: History | None, progress: StageProgress) -> Figures | str:
    """Return the figures of a pair with a rule in Python, or why it cannot be tried."""
    if fault := why_not_by_reference(run, trial):
        return fault
    assert history is not None
    progress(f"{trial.pair.policy.name}, by the reference engine", 0, 1)
    return figures_by_reference(history, trial)


def why_not_compared(run: Run, resolved: RunDocument, common: TaskInputs) -> str | None:
    """
    Return why rows that cannot be compared leave nothing to compare; None if the others can be. Arguments as below.

    A foreign key acts, or can act on such rows; the logs start in the middle, or such rows are too many to follow.
    """
    rows = "; ".join(_rows_left_out(run, resolved, common))
    if rows and resolved.starts:
        return f"the logs start in the middle, and rows cannot be compared: {rows}"
    if resolved.unlogged and not resolved.unlogged_followed:
        return f"too many rows were changed without a log to follow them: {rows}"
    left_out = common.careful is not None or common.filtered.any()
    acts = left_out and common.linked.tables.any() and not common.part.starts_in_the_middle
    return LINK_ACTS if acts else None


def left_out_of(run: Run, resolved: RunDocument, common: TaskInputs) -> tuple[str, ...]:
    """
    Return which rows are not compared and why, as sentences without a full stop.

    Args:
        run: The run.
        resolved: Its result as it is configured.
        common: What its tasks have in common.
    """
    found = _rows_left_out(run, resolved, common)
    if common.respelled is not None:
        rows = counted(sum(map(len, common.respelled.keys.values())), "row")
        found.append(f"{rows} with a key in several spellings: its changes can be applied as a delete and a write")
    return tuple(found)


def _rows_left_out(run: Run, resolved: RunDocument, common: TaskInputs) -> list[str]:
    """Return which rows are not compared because they are not known, or not applied."""
    names = run.databases.own_name
    found = [
        f"{names(cluster.name, table)} of {source}: a filter of {cluster.name} drops its changes (replicate_*)"
        for cluster in run.clusters
        for source, tables in run.filtered(cluster).items()
        for table in sorted(tables & {each.full_name for each in run.data_schema.tables})
        if table in common.manifest.types
    ]
    for name, changes in resolved.unlogged.items():
        for by_crash, why in ((False, "changed them without a log"), (True, "lost changes of them in a crash")):
            mine = [each for each in changes if each.kind.by_crash is by_crash]
            if mine:
                tables = listed(sorted({names(name, each.table) for each in mine}))
                rows = counted(len({(each.table, each.key) for each in mine}), "row")
                found.append(f"{rows} of {tables}: {name} {why}")
    return found


def _fault_of_left_out(run: TaskInputs, trial: Trial) -> str | None:
    """Return why a trial cannot be tried: what it judges together holds rows that are left out."""
    for number, cluster in enumerate(trial.clusters):
        judges = transactional_tables(trial.clusters)[number].any()
        here = np.array([each.full_name in cluster.filtered for each in run.numbers.tables], np.bool_)
        if judges and (run.has_careful_keys or (run.filtered & ~here).any()):
            return f"{cluster.name} judges transactions, and rows that are not compared can be among theirs"
    return None


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
    run: TaskInputs
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
        plain, points = without_rounds(self.applied, self._names, {}), dict[int, FixedPoint]()
        for number, job in jobs.items():
            points[number] = plain if not self._in_rounds(job) else self._found(job)
            if self._from_the_middle and hangs_on_rows(points[number].stopping):
                found[number] = STOP_NOT_KNOWN
                del points[number]
        tried = {n: self._trial(trials[n], jobs[n], point) for n, point in points.items()}
        tried = with_unsure(self.runner, self.run, tried, self.progress) if self._from_the_middle else tried
        parts = self._decide(tried, "comparing")
        stopped = {
            number: without_rounds(self.applied, self._names, stops)
            for number, own in parts.items()
            if (stops := earliest_stops([each.stopping for each in own]))
        }
        if stopped:
            points, again = (
                points | stopped,
                {n: self._trial(trials[n], jobs[n], point) for n, point in stopped.items()},
            )
            # From the middle, what counts is the same under all that do not stop.
            parts |= self._decide(tried | again if self._from_the_middle else again, "comparing up to stops")
            tried |= again
        rejected = self._rejected(points, parts)
        for number, own in parts.items():
            unsure, point = tried[number].unsure, points[number]
            certain = point.conflicts if unsure is None else unsure.leave_out(point.conflicts)
            point = attrs.evolve(point, conflicts=certain)
            found[number] = self._figures_of(jobs[number], point, own, rejected[number])
            if self.run.left_out is not None and points[number].stopping:
                found[number] = _STOPS_EARLIER
        return found

    def _trial(self, trial: Trial, job: ResolveJob, point: FixedPoint) -> DecidedTrial:
        """Return a trial with what the rounds found."""
        stops, unsure = bool(point.stopping), Unsure.none(len(point.applies)) if self._from_the_middle else None
        return DecidedTrial(
            job.run.clusters,
            job.run.view or BucketView(),
            point.applies,
            point.conflicts,
            finds_stops=not self._in_rounds(job) and not stops,
            stops=stops,
            unsure=unsure,
            configured=trial.pair.as_it_is,
        )

    @property
    def _from_the_middle(self) -> bool:
        return self.run.part.starts_in_the_middle

    def _in_rounds(self, job: ResolveJob) -> bool:
        """Whether transactions are found in rounds; from the middle, stops that hang on rows are not looked for."""
        if self._from_the_middle:
            return bool(transactional_tables(job.run.clusters).any())
        return job.run.needs_rounds

    def _found(self, job: ResolveJob) -> FixedPoint:
        return job.find_conflicts(self.applied) if self._from_the_middle else job.find(self.applied)

    def _rejected(
        self, points: Mapping[int, FixedPoint], parts: Mapping[int, Sequence[BucketFigures]]
    ) -> dict[int, tuple[int, int]]:
        """Return, per trial, how many transactions had a change rejected, and how many of these only a part."""
        added = {number: Rejected.added([each.rejected for each in own]) for number, own in parts.items()}
        found = dict.fromkeys(added, 0)
        for source in (0, 1) if added else ():
            mine = {number: each.of(1 - source, points[number].applies) for number, each in added.items()}
            known = Transactions.union([transactions for transactions, _ in mine.values()])
            changes = self._changes_of(source, known, parts) if len(known.epoch) else np.zeros(0, np.int64)
            for number, each in mine.items():
                found[number] += partly_rejected(*each, known, changes)
        return {number: (len(each), found[number]) for number, each in added.items()}

    def _changes_of(
        self, source: int, transactions: Transactions, parts: Mapping[int, Sequence[BucketFigures]]
    ) -> Int64:
        """Return how many changes each of some transactions of a cluster has that count."""
        shared, counting = Shared(self.run.shared, transactions), next(iter(parts.values()))
        tasks = [
            CountTask(self.run, bucket, source, shared, None if part.counting is None else part.counting[source])
            for bucket, part in enumerate(counting)
        ]
        counted = self.runner(count_changes, tasks, partial(self.progress, "counting transactions"))
        changes: Int64 = np.sum(counted, axis=0, dtype=np.int64)
        return changes

    def _figures_of(
        self, job: ResolveJob, point: FixedPoint, parts: Sequence[BucketFigures], rejected: tuple[int, int]
    ) -> Figures | str:
        if not self._from_the_middle and job.breaks_links(point):  # from the middle, no row that is linked is compared
            return LINK_ACTS
        clusters, files = job.run.clusters, self.run.manifest.files
        stops = {
            cluster.name: stop_of(point.stopping[cluster.name], cluster, files[clusters[1 - number].name])
            for number, cluster in enumerate(clusters)
            if cluster.name in point.stopping
        }
        transactions = count_transactions(clusters, point.applies, point.conflicts)
        return add_figures(parts, transactions.counters, rejected, stops)

    def _decide(self, tried: Mapping[int, DecidedTrial], stage: str) -> dict[int, list[BucketFigures]]:
        """Decide every bucket under some trials; return their figures by bucket."""
        if not tried:
            return {}
        tasks = DecideTask.of_buckets(self.run, list(tried.values()))
        by_bucket = self.runner(decide_bucket, tasks, partial(self.progress, stage))
        return {number: [own[place] for own in by_bucket] for place, number in enumerate(tried)}

    def _run_of(self, trial: Trial, number: int) -> TaskInputs:
        """Return the run under a trial; rows from before the logs are taken not to have been there."""
        out, part = self.run.out.below(f"pair={number:03d}"), LogPart(self.run.part.bounds)
        return attrs.evolve(self.run, out=out, clusters=trial.clusters, view=trial.view, part=part, careful=None)

    def _named(self, trial: Trial) -> StageProgress:
        name = trial.pair.policy.name
        return lambda stage, done, total: self.progress(f"{name}, {stage}", done, total)

    @property
    def _names(self) -> list[str]:
        return [cluster.name for cluster in self.run.clusters]


def _commit_times(run: TaskInputs) -> tuple[CommitTimes, CommitTimes]:
    highest = max(cluster.server_id for cluster in run.clusters)
    found = []
    for cluster in run.clusters:
        epoch, committed = read_commit_times(run.history, cluster.name, run.manifest.batches)
        value = committed.astype(np.uint64) * np.uint64(2)
        found.append(CommitTimes(epoch, value + np.uint64(cluster.server_id == highest)))
    return found[0], found[1]


# From where something still changes after so many rounds, any transaction may be rejected.
_MOST_ROUNDS = 50


def with_unsure(
    runner: Runner, run: TaskInputs, trials: Mapping[int, DecidedTrial], progress: StageProgress
) -> dict[int, DecidedTrial]:
    """
    Return trials with what is not known under each, where the logs start in the middle.

    A transaction with a row that is not known may be rejected, and with it its other rows, in any bucket. So the
    buckets are looked at in rounds until nothing is added, as `conflict.engine.columnar.fixed_point` finds the
    transactions in conflict.

    Args:
        runner: Runs the tasks.
        run: The run as it is configured.
        trials: The trials by number.
        progress: Called with the name of the stage, tasks done, and their number.
    """
    found, settled = dict(trials), None
    for number in sorted(trials, key=lambda each: not trials[each].configured):
        unsure = _unsure(runner, run, trials[number], settled, progress)
        found[number] = attrs.evolve(trials[number], unsure=unsure)
        settled = unsure.settled if trials[number].configured else settled
    return found


def _unsure(
    runner: Runner, run: TaskInputs, trial: DecidedTrial, settled: SettledRows | None, progress: StageProgress
) -> Unsure:
    """Return what is not known under a trial; `settled`: what is known of moments from the functions in force."""
    unsure, judges = Unsure.none(len(trial.applies), settled), judging(trial.clusters).any(axis=1)
    if not judges.any() and not trial.configured:
        return unsure
    for number in range(_MOST_ROUNDS):
        tasks = DecideTask.of_buckets(run, [attrs.evolve(trial, unsure=unsure)])
        stage = f"round {number + 1} on what is not known"
        parts = runner(find_unsure_in_bucket, tasks, partial(progress, stage))
        before, unsure = unsure, unsure.joined(UnsureFindings.transactions(parts))
        if trial.configured:
            rows = {bucket: each.settled for bucket, each in enumerate(parts)}
            contradicted = np.asarray(np.logical_or.reduce([each.contradicted for each in parts]))
            unsure = attrs.evolve(unsure, settled=SettledRows(rows, contradicted | before.settled.contradicted))
        same = before.settled.contradicted == unsure.settled.contradicted
        if len(before.pairs) == len(unsure.pairs) and same.all():
            return unsure
    return attrs.evolve(unsure, settled=SettledRows.none(0)).from_the_first_after(before, np.asarray(judges))
