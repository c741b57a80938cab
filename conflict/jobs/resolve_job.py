"""
A History on disk to a result on disk: the bucket-partitioned resolve job.

1. One task per bucket looks for operations that stop an applier; nothing after the first of them is taken.
2. The driver orders all takes once (see `conflict.plan`).
3. Where transactions can be in conflict, or what an applier logs can stop the other one, buckets are
   folded in rounds until both are known (see `conflict.jobs.rounds`).
4. One task per bucket folds it in one pass and writes its part of the result.
5. The driver numbers the rows of the exceptions tables and adds up the summaries.
6. If the binlogs show something else of the appliers' work, an order of takes that explains it is looked for (see
   `conflict.evidence`), and the result is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import attrs
import numpy as np

from conflict import evidence
from conflict.bucket import Bucket, load_bucket
from conflict.bucket_effects import Difference, Differing, compare_effects
from conflict.bucket_fold import fold_bucket
from conflict.bucket_result import BucketResult
from conflict.bucket_task import BucketSummary, resolve_bucket
from conflict.bucketing import TableNumbers
from conflict.configuration import Configuration
from conflict.counters import TRANSACTION_COMMITS, TRANSACTION_ITERATIONS, TRANSACTION_REJECTS
from conflict.exceptions_numbering import TrackedRows, number_exceptions
from conflict.grid import TAKES, Folder
from conflict.history import Cluster, Take
from conflict.jobs.rounds import Settled, settle
from conflict.jobs.runner import Runner, StageProgress
from conflict.kernels.arrays import Bool, Conflicts, TakeArrays
from conflict.manifest import Manifest, table_numbers
from conflict.plan import plan_takes, without_takes_after
from conflict.sites import Site, transactional_tables
from conflict.stops import stop_of
from conflict.summary import RunSummary, add_summaries
from conflict.transactions import Findings, conflicts_of, fold_round
from conflict.unique_values import UniqueState, find_duplicates, has_unique_keys, unique_states
from conflict.unusable import Unusable, can_log_unusable, first_unusable

__all__ = ["resolve_history"]

Result = TypeVar("Result")


@attrs.frozen
class _BucketTask:
    """One bucket to look at, to fold or to resolve."""

    history: Folder
    out: Folder
    bucket: int
    manifest: Manifest
    numbers: TableNumbers
    sites: tuple[Site, ...]
    taken: tuple[np.ndarray, ...] = ()
    takes: TakeArrays | None = None
    conflicts: Conflicts | None = None
    wanted: Bool | None = None

    def load(self, *, images: bool) -> Bucket:
        """Read the bucket."""
        layouts = self.manifest.layouts(self.numbers)
        return load_bucket(self.history, self.bucket, self.manifest, self.numbers, layouts, images=images)


def resolve_history(
    run: Runner,
    configuration: Configuration,
    history: Folder,
    out: Folder,
    *,
    use_evidence: bool = True,
    progress: StageProgress = lambda stage, done, total: None,
) -> RunSummary:
    """
    Resolve a History and write outcomes, exceptions and rows.

    Args:
        run: Runs the tasks.
        configuration: The run.
        history: A History that `ingest` made for that run.
        out: Where the result goes.
        use_evidence: Settle what the binlogs leave open by what they show (see `conflict.evidence`).
        progress: Called with the name of the stage, tasks done, and their number.

    Raises:
        HistoryError: The schedule is circular.
    """
    manifest = Manifest.from_json(history.read_json("history.json"))
    numbers = table_numbers(configuration)
    job = _Job(run, _BucketTask(history, out, 0, manifest, numbers, _sites(configuration, numbers)), progress)
    clusters: Sequence[Cluster] = _clusters(history, manifest)
    answers: Sequence[evidence.Settled] = ()
    settled = job.settle(clusters)
    summaries = job.resolve(settled)
    if use_evidence and any(summary.contradicted for summary in summaries):
        clusters, answers = evidence.settle(clusters, job.contradictions)
        if answers:
            for part in ("outcomes", "exceptions", "rows", "undecided"):
                out.delete(part)
            settled = job.settle(clusters)
            summaries = job.resolve(settled)
    sites, takes, conflicts = job.base.sites, settled.takes, settled.conflicts
    stops = {
        site.name: stop_of(settled.unusable[site.name], site, manifest.files[sites[1 - number].name])
        for number, site in enumerate(sites)
        if site.name in settled.unusable
    }
    summary = add_summaries([*summaries, _transactions(sites, takes, conflicts)], stops)
    return attrs.evolve(summary, settled=tuple(answers))


@attrs.define
class _Job:
    """
    The stages of the job over all buckets.

    Attributes:
        run: Runs the tasks.
        base: The task of any bucket.
        progress: Called with the name of the stage, tasks done, and their number.
    """

    run: Runner
    base: _BucketTask
    progress: StageProgress
    _last: tuple[list[Cluster], Settled] | None = None

    def _stage(self, name: str, function: Callable[[_BucketTask], Result], **changes: Any) -> list[Result]:
        """Run a function on every bucket."""
        tasks = [attrs.evolve(self.base, bucket=bucket, **changes) for bucket in range(self.base.manifest.buckets)]
        return self.run(function, tasks, partial(self.progress, name))

    def settle(self, clusters: Sequence[Cluster]) -> Settled:
        """Find out which takes are made and which transactions are in conflict, unless that was asked just before."""
        if self._last is None or self._last[0] != list(clusters):
            self._last = list(clusters), self._settle(clusters)
        return self._last[1]

    def _settle(self, clusters: Sequence[Cluster]) -> Settled:
        sites = self.base.sites
        unusable = _first_of_each(self._stage("checking images", _look, taken=_taken(clusters)))
        unique = bool(has_unique_keys(sites).any())
        if unique or transactional_tables(sites).any() or can_log_unusable(sites):
            return settle(clusters, unusable, self._round, self._check if unique else None)
        kept = [
            without_takes_after(cluster, unusable[cluster.name].take if cluster.name in unusable else None)
            for cluster in clusters
        ]
        takes = plan_takes(kept)
        return Settled(takes, conflicts_of(takes, frozenset()), unusable)

    def _round(self, number: int, takes: TakeArrays, conflicts: Conflicts, wanted: Bool) -> Sequence[Findings]:
        return self._stage(f"round {number}", _fold, takes=takes, conflicts=conflicts, wanted=wanted)

    def _check(self, takes: TakeArrays, conflicts: Conflicts) -> Mapping[int, Unusable]:
        parts = self._stage("checking unique keys", _unique_states, takes=takes, conflicts=conflicts)
        return find_duplicates(state for part in parts for state in part)

    def contradictions(self, clusters: Sequence[Cluster]) -> list[evidence.Contradiction]:
        """Return where binlogs show something else than is found with these clusters, causes first."""
        settled = self.settle(clusters)
        parts = self._stage("comparing", _differing, takes=settled.takes, conflicts=settled.conflicts)
        found: dict[tuple[int, int, int], Difference] = {}
        for part in parts:
            for place, difference in part.items():
                found[place] = found.get(place, Difference()) + difference
        takes = plan_takes(clusters)
        places = zip(takes.applier.tolist(), takes.epoch.tolist(), takes.group.tolist(), strict=True)
        order = {place: number for number, place in enumerate(places)}
        ordered = sorted(found, key=lambda place: (order.get(place, len(order)), place))
        return [
            evidence.Contradiction(
                clusters[place[0]].name, *place[1:], found[place].rows, tuple(sorted(found[place].changed_at))
            )
            for place in ordered
        ]

    def resolve(self, settled: Settled) -> list[BucketSummary]:
        """Write the result; returns what each bucket adds to the whole."""
        takes, conflicts, base = settled.takes, settled.conflicts, self.base
        results = self._stage("resolving", _resolve, takes=takes, conflicts=conflicts)
        tracked = [each for _, each in results]
        number_exceptions(base.out, base.sites, takes, conflicts, base.manifest.buckets, tracked)
        return [summary for summary, _ in results]


def _sites(configuration: Configuration, numbers: TableNumbers) -> tuple[Site, ...]:
    setups = configuration.setups()
    return tuple(
        Site(
            cluster.name,
            cluster.server_id,
            tuple(setups[cluster.name][table.full_name] for table in numbers.tables),
            cluster.role,
            configuration.skip_missing,
        )
        for cluster in configuration.clusters
    )


def _clusters(history: Folder, manifest: Manifest) -> list[Cluster]:
    """Return the clusters with their takes alone; transactions stay in the grid."""
    takes: dict[str, list[Take]] = {name: [] for name in manifest.clusters}
    for row in history.read_table("takes.parquet", TAKES).to_pylist():
        arrived = (row.pop("arrived_epoch"), row.pop("arrived_group"))
        takes[row.pop("applier")].append(Take(**row, arrived=arrived))
    return [Cluster(name, server_id, tuple(takes[name])) for name, server_id in manifest.clusters.items()]


def _taken(clusters: Sequence[Cluster]) -> tuple[np.ndarray, ...]:
    return tuple(
        np.array([item.foreign_epoch for item in cluster.timeline if isinstance(item, Take)], np.uint64)
        for cluster in clusters
    )


def _look(task: _BucketTask) -> dict[str, Unusable]:
    return first_unusable(task.load(images=False), task.sites, task.taken)


def _fold(task: _BucketTask) -> Findings:
    assert task.takes is not None
    assert task.conflicts is not None
    assert task.wanted is not None
    return fold_round(task.load(images=False), task.sites, task.takes, task.conflicts, task.wanted)


def _unique_states(task: _BucketTask) -> list[UniqueState]:
    assert task.takes is not None
    assert task.conflicts is not None
    return unique_states(task.load(images=True), task.sites, task.takes, task.conflicts)


def _differing(task: _BucketTask) -> Differing:
    assert task.takes is not None
    assert task.conflicts is not None
    bucket = task.load(images=False)
    folded = fold_bucket(bucket, task.sites, task.takes, task.conflicts)
    _, differing = compare_effects(BucketResult(bucket, task.sites, task.takes, task.conflicts, folded))
    return differing


def _resolve(task: _BucketTask) -> tuple[BucketSummary, TrackedRows]:
    assert task.takes is not None
    assert task.conflicts is not None
    bucket = task.load(images=True)
    return resolve_bucket(bucket, task.sites, task.takes, task.conflicts, task.manifest.files, task.out)


def _first_of_each(found: Sequence[Mapping[str, Unusable]]) -> dict[str, Unusable]:
    first: dict[str, Unusable] = {}
    for part in found:
        for name, unusable in part.items():
            first[name] = min(first.get(name, unusable), unusable)
    return first


def _transactions(sites: Sequence[Site], takes: TakeArrays, conflicts: Conflicts) -> BucketSummary:
    """Count the transactions that were rejected, and the epochs that held some."""
    summary = BucketSummary()
    for number, site in enumerate(sites):
        mine = conflicts.takes[takes.applier[conflicts.takes] == number]
        rejected = sum(len(conflicts.of(take)) for take in mine.tolist())
        # Every such epoch is looked at once for dependencies, and committed once.
        counters = {TRANSACTION_ITERATIONS: len(mine), TRANSACTION_COMMITS: len(mine), TRANSACTION_REJECTS: rejected}
        summary.counters[site.name] = counters
    return summary
