"""
A History on disk to a result on disk: the bucket-partitioned resolve job.

1. One task per bucket looks for operations that stop an applier; nothing after the first of them is taken.
2. The driver orders all takes once (see `conflict.plan`).
3. Where transactions can be in conflict, or what an applier logs can stop the other one, buckets are
   folded in rounds until both are known (see `conflict.jobs.rounds`).
4. One task per bucket folds it in one pass and writes its part of the result.
5. The driver numbers the rows of the exceptions tables and adds up the summaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import attrs
import numpy as np

from conflict.bucket import Bucket, load_bucket
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
    progress: StageProgress = lambda stage, done, total: None,
) -> RunSummary:
    """
    Resolve a History and write outcomes, exceptions and rows.

    Args:
        run: Runs the tasks.
        configuration: The run.
        history: A History that `ingest` made for that run.
        out: Where the result goes.
        progress: Called with the name of the stage, tasks done, and their number.

    Raises:
        HistoryError: The schedule is circular.
    """
    manifest = Manifest.from_json(history.read_json("history.json"))
    numbers = table_numbers(configuration)
    sites = _sites(configuration, numbers)
    clusters = _clusters(history, manifest)
    base = _BucketTask(history, out, 0, manifest, numbers, sites, taken=_taken(clusters))
    tasks = [attrs.evolve(base, bucket=bucket) for bucket in range(manifest.buckets)]
    unusable = _first_of_each(run(_look, tasks, partial(progress, "checking images")))
    unique = bool(has_unique_keys(sites).any())
    if unique or transactional_tables(sites).any() or can_log_unusable(sites):

        def run_round(number: int, takes: TakeArrays, conflicts: Conflicts, wanted: Bool) -> Sequence[Findings]:
            changed = [attrs.evolve(task, takes=takes, conflicts=conflicts, wanted=wanted) for task in tasks]
            return run(_fold, changed, partial(progress, f"round {number}"))

        def check(takes: TakeArrays, conflicts: Conflicts) -> Mapping[int, Unusable]:
            changed = [attrs.evolve(task, takes=takes, conflicts=conflicts) for task in tasks]
            parts = run(_unique_states, changed, partial(progress, "checking unique keys"))
            return find_duplicates(state for part in parts for state in part)

        settled = settle(clusters, unusable, run_round, check if unique else None)
    else:
        kept = [
            without_takes_after(cluster, unusable[cluster.name].take if cluster.name in unusable else None)
            for cluster in clusters
        ]
        takes = plan_takes(kept)
        settled = Settled(takes, conflicts_of(takes, frozenset()), unusable)
    takes, conflicts = settled.takes, settled.conflicts
    tasks = [attrs.evolve(task, takes=takes, conflicts=conflicts) for task in tasks]
    results = run(_resolve, tasks, partial(progress, "resolving"))
    number_exceptions(out, sites, takes, conflicts, manifest.buckets, [tracked for _, tracked in results])
    stops = {
        site.name: stop_of(settled.unusable[site.name], site, manifest.files[sites[1 - number].name])
        for number, site in enumerate(sites)
        if site.name in settled.unusable
    }
    return add_summaries([*(summary for summary, _ in results), _transactions(sites, takes, conflicts)], stops)


def _sites(configuration: Configuration, numbers: TableNumbers) -> tuple[Site, ...]:
    setups = configuration.setups()
    return tuple(
        Site(
            cluster.name,
            cluster.server_id,
            tuple(setups[cluster.name][table.full_name] for table in numbers.tables),
            cluster.role,
        )
        for cluster in configuration.clusters
    )


def _clusters(history: Folder, manifest: Manifest) -> list[Cluster]:
    """Return the clusters with their takes alone; transactions stay in the grid."""
    takes: dict[str, list[Take]] = {name: [] for name in manifest.clusters}
    for row in history.read_table("takes.parquet", TAKES).to_pylist():
        takes[row.pop("applier")].append(Take(**row))
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
