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
import pyarrow as pa
from pyspark.sql import SparkSession

from conflict.bucketing import PartBuilder, TableNumbers
from conflict.configuration import ClusterConfiguration, Configuration, Hints, takes_of
from conflict.grid import (
    CHANGES,
    CONSEQUENCES,
    KEYS,
    STAGED_CHANGES,
    STAGED_CONSEQUENCES,
    TAKES,
    Folder,
    part,
)
from conflict.history import Take
from conflict.ingest import EpochReader, read_epochs
from conflict.jobs.session import run_tasks
from conflict.manifest import Manifest, RunFacts, table_numbers
from conflict.runs import DEFAULT_RUN_BYTES, Run, plan_runs
from conflict.schedule import Summary, summarize
from ndb_formats.column_types import WireType
from ndb_formats.errors import FormatError
from ndb_formats.schema import Schema

__all__ = ["ingest"]

Progress = Callable[[str, int, int], None]
HintsOf = Callable[[Mapping[str, Sequence[Summary]]], Hints]
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
    facts: RunFacts
    summaries: tuple[Summary, ...]
    types: dict[str, tuple[WireType, ...]]
    error: FormatError | None
    left_out: int


def ingest(
    spark: SparkSession,
    configuration: Configuration,
    history: Folder,
    *,
    hints_of: HintsOf | None = None,
    buckets: int = DEFAULT_BUCKETS,
    run_bytes: int = DEFAULT_RUN_BYTES,
    progress: Progress = lambda stage, done, total: None,
) -> Manifest:
    """
    Read a run's binlogs into a History.

    Args:
        spark: The session.
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
    results = run_tasks(spark, _read_run, tasks, partial(progress, "reading binlogs"))
    kept = {cluster.name: _kept(results, cluster.name) for cluster in configuration.clusters}
    runs = {name: len(found) for name, found in kept.items()}
    numbering = [_KeyTask(history, bucket, runs) for bucket in range(buckets)]
    run_tasks(spark, _number_keys, numbering, partial(progress, "numbering keys"))
    history.delete("staged")
    summaries = {name: [summary for result in found for summary in result.summaries] for name, found in kept.items()}
    hints = hints_of(summaries) if hints_of is not None else None
    takes, assumed = [], {}
    for cluster in configuration.clusters:
        placed, assumed[cluster.name] = takes_of(configuration, cluster, summaries, hints)
        takes += [(cluster.name, take) for take in placed]
    history.write_table("takes.parquet", _takes_table(takes))
    manifest = Manifest(
        buckets=buckets,
        clusters={cluster.name: cluster.server_id for cluster in configuration.clusters},
        files={cluster.name: tuple(str(file) for file in cluster.files) for cluster in configuration.clusters},
        runs={name: tuple(result.facts for result in found) for name, found in kept.items()},
        types={name: types for found in kept.values() for result in found for name, types in result.types.items()},
        resolve_columns=dict(numbers.resolve_columns),
        errors={name: str(found[-1].error) for name, found in kept.items() if found and found[-1].error},
        left_out={name: found[-1].left_out for name, found in kept.items() if found and found[-1].left_out},
        assumed=assumed,
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
    summaries, error, changes = [], None, 0
    try:
        ranges = {str(task.run.file): (task.run.start, task.run.stop)}
        for epoch in read_epochs([task.run.file], reader, ranges):
            builder.add(epoch)
            summaries.append(summarize(epoch))
            changes += sum(len(transaction.changes) for transaction in epoch.transactions)
    except FormatError as fault:
        error = fault
    for bucket, staged, images, consequences in builder.tables():
        place = (task.cluster.name, task.run.number, bucket)
        task.history.write_table(part("staged/changes", *place), staged)
        task.history.write_table(part("staged/consequences", *place), consequences)
        task.history.write_table(part("images", *place), images)
    facts = RunFacts(
        file=str(task.run.file),
        start=task.run.start,
        stop=task.run.stop,
        first_epoch=summaries[0].number if summaries else 0,
        last_epoch=summaries[-1].number if summaries else 0,
        changes=changes,
    )
    types = {name: layout.types for name, layout in reader.layouts.items()}
    left_out = reader.rows_pending if error is not None else 0
    return _RunResult(task.cluster.name, facts, tuple(summaries), types, error, left_out)


@attrs.frozen
class _KeyTask:
    """One bucket whose keys get numbers."""

    history: Folder
    bucket: int
    runs: dict[str, int]


def _number_keys(task: _KeyTask) -> None:
    history, bucket = task.history, task.bucket
    places = [(cluster, run, bucket) for cluster, runs in task.runs.items() for run in range(runs)]
    kinds = (("changes", STAGED_CHANGES, CHANGES), ("consequences", STAGED_CONSEQUENCES, CONSEQUENCES))
    parts = [
        (part(kind, *place), history.read_table(part(f"staged/{kind}", *place), staged), final)
        for kind, staged, final in kinds
        for place in places
    ]
    identities = pa.chunked_array(
        [chunk for _, table, _ in parts for chunk in table.column("identity").chunks], pa.binary()
    ).combine_chunks()
    encoded = identities.dictionary_encode()
    keys, start = encoded.indices, 0
    for path, table, final in parts:
        if len(table):
            columns = [keys.slice(start, len(table)), *table.drop_columns(["identity"]).columns]
            history.write_table(path, pa.table(columns, schema=final))
        start += len(table)
    values = encoded.dictionary
    tables = pa.array([int.from_bytes(value.as_py()[:2], "little") for value in values], pa.int16())
    numbers = pa.array(range(len(values)), pa.int32())
    history.write_table(f"keys/bucket={bucket:05d}.parquet", pa.table([numbers, tables, values], schema=KEYS))


def _takes_table(takes: Sequence[tuple[str, Take]]) -> pa.Table:
    rows = [(applier, take.source, take.foreign_epoch, take.epoch, take.group, take.traced) for applier, take in takes]
    columns = list(zip(*rows, strict=True)) or [()] * len(TAKES)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, TAKES, strict=True)], schema=TAKES)
