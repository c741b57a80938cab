"""
Binlogs to a History on disk: the epoch-partitioned ingest job.

1. The driver follows event headers and splits every file into runs of epochs.
2. One task per run reads its epochs and writes them by key bucket, keys still as bytes.
3. One task per bucket gives its keys dense numbers, in the order in which they appear.
4. The driver derives the schedule from the epochs' summaries, and writes `takes.parquet` and `history.json`.

Tasks overwrite their own parts, so that a killed task, or job, can be run again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs

from conflict.bucketing import PartBuilder, TableNumbers
from conflict.configuration import ClusterConfiguration, ClusterHints, Configuration, takes_of
from conflict.grid import Folder
from conflict.grid_writer import KeyTask, number_keys, takes_table, write_parts
from conflict.ingest import EpochReader, read_epochs
from conflict.jobs.runner import Runner, StageProgress
from conflict.manifest import Manifest, RunFacts, table_numbers
from conflict.runs import DEFAULT_RUN_BYTES, Run, plan_runs
from conflict.schedule import Summary, consistent_cut, summarize
from ndb_formats.column_types import WireType
from ndb_formats.errors import FormatError
from ndb_formats.schema import Schema

__all__ = ["ingest"]

ClusterHintsOf = Callable[[Mapping[str, Sequence[Summary]]], ClusterHints]
DEFAULT_BUCKETS = 4


@attrs.frozen
class _RunTask:
    """One run to read."""

    cluster: ClusterConfiguration
    run: Run
    schema: Schema
    numbers: TableNumbers
    buckets: int
    history: Folder


@attrs.frozen
class _RunResult:
    """What a run task found."""

    cluster: str
    run: int
    facts: RunFacts
    summaries: tuple[Summary, ...]
    types: dict[str, tuple[WireType, ...]]
    error: FormatError | None
    left_out: int


def ingest(
    run: Runner,
    configuration: Configuration,
    history: Folder,
    *,
    hints_of: ClusterHintsOf | None = None,
    buckets: int = DEFAULT_BUCKETS,
    run_bytes: int = DEFAULT_RUN_BYTES,
    progress: StageProgress = lambda stage, done, total: None,
) -> Manifest:
    """
    Read a run's binlogs into a History.

    Args:
        run: Runs the tasks.
        configuration: The run.
        history: Where the History goes.
        hints_of: From the epochs' summaries, what is known of the schedule from elsewhere.
        buckets: Into how many buckets keys are divided.
        run_bytes: About how many bytes of binlog one task reads.
        progress: Called with the name of the stage, tasks done, and their number.

    Returns:
        What the History holds. Faults in binlogs are in it, not raised: what came before is there.
    """
    numbers = table_numbers(configuration)
    tasks = [
        _RunTask(cluster, run, configuration.data_schema, numbers, buckets, history)
        for cluster in configuration.clusters
        for run in plan_runs(cluster.files, run_bytes).runs
    ]
    results = run(_read_run, tasks, partial(progress, "reading binlogs"))
    kept = {cluster.name: _kept(results, cluster.name) for cluster in configuration.clusters}
    runs = {name: len(found) for name, found in kept.items()}
    types = {name: wires for found in kept.values() for result in found for name, wires in result.types.items()}
    numbering = [KeyTask(history, bucket, runs, numbers, types) for bucket in range(buckets)]
    run(number_keys, numbering, partial(progress, "numbering keys"))
    history.delete("staged")
    for result in results:
        if result.run >= runs[result.cluster]:
            history.delete(f"images/cluster={result.cluster}/run={result.run:05d}")
    read = {name: [summary for result in found for summary in result.summaries] for name, found in kept.items()}
    summaries = consistent_cut(read, configuration.server_ids)
    hints = hints_of(summaries) if hints_of is not None else None
    takes, assumed = [], {}
    for cluster in configuration.clusters:
        found = kept[cluster.name]
        cut = any(result.error for result in found) or len(summaries[cluster.name]) < len(read[cluster.name])
        placed, assumed[cluster.name] = takes_of(configuration, cluster, summaries, hints, cut=cut)
        takes += [(cluster.name, take) for take in placed]
    history.write_table("takes.parquet", takes_table(takes))
    manifest = Manifest(
        buckets=buckets,
        batches=1,
        clusters={cluster.name: cluster.server_id for cluster in configuration.clusters},
        files={cluster.name: tuple(str(file) for file in cluster.files) for cluster in configuration.clusters},
        runs={name: tuple(result.facts for result in found) for name, found in kept.items()},
        types=types,
        resolve_columns=dict(numbers.resolve_columns),
        errors={name: str(found[-1].error) for name, found in kept.items() if found and found[-1].error},
        left_out={name: found[-1].left_out for name, found in kept.items() if found and found[-1].left_out},
        assumed=assumed,
        last_epochs={name: own[-1].number if own else 0 for name, own in summaries.items()},
        epochs_left_out={name: len(read[name]) - len(own) for name, own in summaries.items()},
        changes=sum(summary.changes for own in summaries.values() for summary in own),
    )
    history.write_json("history.json", manifest.to_json())
    return manifest


def _kept(results: Sequence[_RunResult], cluster: str) -> list[_RunResult]:
    """Return the runs of a cluster up to the first that could not be read to its end."""
    kept = []
    for result in results:
        if result.cluster == cluster:
            kept.append(result)
            if result.error is not None:
                break
    return kept


def _read_run(task: _RunTask) -> _RunResult:
    reader = EpochReader(task.cluster.server_id, task.schema)
    files = [str(file) for file in task.cluster.files]
    builder = PartBuilder(task.numbers, task.buckets, files)
    summaries, error = [], None
    try:
        ranges = {str(task.run.file): (task.run.start, task.run.stop)}
        for epoch in read_epochs([task.run.file], reader, ranges):
            builder.add(epoch)
            summaries.append(summarize(epoch))
    except FormatError as fault:
        error = fault
    write_parts(task.history, task.cluster.name, task.run.number, builder)
    facts = RunFacts(
        file=str(task.run.file),
        start=task.run.start,
        stop=task.run.stop,
        first_epoch=summaries[0].number if summaries else 0,
        last_epoch=summaries[-1].number if summaries else 0,
        changes=sum(summary.changes for summary in summaries),
    )
    types = {name: layout.types for name, layout in reader.layouts.items()}
    left_out = reader.rows_pending if error is not None else 0
    return _RunResult(task.cluster.name, task.run.number, facts, tuple(summaries), types, error, left_out)
