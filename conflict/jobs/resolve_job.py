"""
A History on disk to a result on disk: the bucket-partitioned resolve job.

1. One task per bucket looks for operations that stop an applier; nothing after the first of them is taken.
2. The driver orders all takes once (see `conflict.plan`).
3. One task per bucket folds it in one pass and writes its part of the result.
4. The driver numbers the rows of the exceptions tables and adds up the summaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import attrs
import numpy as np

from conflict.bucket import load_bucket
from conflict.bucket_task import BucketSummary, Site, Unusable, first_unusable, resolve_bucket
from conflict.bucketing import TableNumbers
from conflict.configuration import Configuration
from conflict.exceptions_numbering import number_exceptions
from conflict.grid import TAKES, Folder
from conflict.history import Cluster, Take
from conflict.jobs.runner import Runner, StageProgress
from conflict.kernels.arrays import TakeArrays
from conflict.manifest import Manifest, table_numbers
from conflict.plan import plan_takes, without_takes_after
from conflict.resolution import Stop
from conflict.stops import stop_of
from conflict.summary import RunSummary, add_summaries

__all__ = ["resolve_history"]


@attrs.frozen
class _BucketTask:
    """One bucket to look at or to resolve."""

    history: Folder
    out: Folder
    bucket: int
    manifest: Manifest
    numbers: TableNumbers
    sites: tuple[Site, ...]
    takes: TakeArrays | None = None
    taken: tuple[np.ndarray, ...] = ()


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
    setups = configuration.setups()
    sites = tuple(
        Site(cluster.name, cluster.server_id, tuple(setups[cluster.name][table.full_name] for table in numbers.tables))
        for cluster in configuration.clusters
    )
    clusters = _clusters(history, manifest)
    base = _BucketTask(history, out, 0, manifest, numbers, sites, taken=_taken(clusters))
    tasks = [attrs.evolve(base, bucket=bucket) for bucket in range(manifest.buckets)]
    unusable = run(_look, tasks, partial(progress, "checking images"))
    stops = _stops(unusable, base)
    kept = [
        without_takes_after(cluster, stops[cluster.name].foreign_epoch if cluster.name in stops else None)
        for cluster in clusters
    ]
    takes = plan_takes(kept)
    tasks = [attrs.evolve(task, takes=takes) for task in tasks]
    summaries = run(_resolve, tasks, partial(progress, "resolving"))
    number_exceptions(out, sites, takes, manifest.buckets)
    return add_summaries(summaries, stops)


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
    layouts = task.manifest.layouts(task.numbers)
    bucket = load_bucket(task.history, task.bucket, task.manifest, task.numbers, layouts, images=False)
    return first_unusable(bucket, task.sites, task.taken)


def _resolve(task: _BucketTask) -> BucketSummary:
    assert task.takes is not None
    layouts = task.manifest.layouts(task.numbers)
    bucket = load_bucket(task.history, task.bucket, task.manifest, task.numbers, layouts)
    return resolve_bucket(bucket, task.sites, task.takes, task.manifest.files, task.out)


def _stops(found: Sequence[Mapping[str, Unusable]], base: _BucketTask) -> dict[str, Stop]:
    stops = {}
    for number, site in enumerate(base.sites):
        candidates = [part[site.name] for part in found if site.name in part]
        if candidates:
            source = base.sites[1 - number].name
            stops[site.name] = stop_of(min(candidates), site, base.manifest.files[source])
    return stops
