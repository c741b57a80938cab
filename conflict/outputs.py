"""
How results look on disk.

    outcomes/applier=A/...parquet             one row per operation that an applier took
    exceptions/<cluster>/<table>.parquet      rows of exceptions tables
    rows/<cluster>/<table>/...parquet         rows of the tables at the end
    counters.json                             status counters per cluster
    run.json                                  configuration, versions, summary
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from conflict.bucket import Bucket
from conflict.decision import Cause, Verdict
from conflict.kernels.arrays import TakeArrays
from conflict.kernels.fold import Folded
from ndb_formats.events.rows_event import Operation

__all__ = ["OUTCOMES", "UNDECIDED", "exceptions_path", "outcome_arrays", "staged_exceptions_path"]

OUTCOMES = pa.schema(
    [
        ("source", pa.string()),
        ("source_epoch", pa.uint64()),
        ("group", pa.int32()),
        ("ordinal", pa.int32()),
        ("epoch", pa.uint64()),
        ("table", pa.string()),
        ("key", pa.string()),
        ("operation", pa.string()),
        ("refresh", pa.bool_()),
        ("verdict", pa.string()),
        ("cause", pa.string()),
        ("incoming", pa.uint64()),
        ("stored", pa.uint64()),
        ("file", pa.string()),
        ("position", pa.uint64()),
        ("row", pa.int32()),
    ]
)


# Decisions that the binlogs leave open: what was decided, and what may have been, as cause or verdict.
UNDECIDED = pa.schema(
    [
        ("source_epoch", pa.uint64()),
        ("table", pa.string()),
        ("key", pa.string()),
        ("operation", pa.string()),
        ("decided", pa.string()),
        ("candidates", pa.list_(pa.string())),
    ]
)


def staged_exceptions_path(cluster: str, table: str, bucket: int) -> str:
    """Return where a bucket's rows of an exceptions table wait for their numbers."""
    return f"staged_exceptions/{cluster}/{table}/bucket={bucket:05d}.parquet"


def outcome_arrays(
    bucket: Bucket,
    applier: int,
    takes: TakeArrays,
    folded: Folded,
    source: str,
    files: Sequence[str],
) -> pa.Table:
    """
    Return what became of every operation that one applier took from this bucket.

    Args:
        bucket: The bucket.
        applier: Number of the applying cluster.
        takes: All takes.
        folded: What the kernel returned.
        source: Name of the other cluster.
        files: Binlog files of the other cluster by number.
    """
    decisions, logged = folded.decisions, folded.logged
    mine = np.flatnonzero(takes.applier[decisions.take] == applier)
    take, from_source = decisions.take[mine], decisions.source[mine]
    from_applier = from_source < 0
    made = -1 - from_source[from_applier]
    row = from_source[~from_applier]
    changes = bucket.changes[1 - applier]
    rows = bucket.rows[1 - applier]

    def pick(own: np.ndarray, added: np.ndarray) -> np.ndarray:
        """Choose per decision between the value of a row and of what an applier logged; either may be empty."""
        chosen = np.zeros(len(mine), np.result_type(own, added))
        chosen[~from_applier] = own[row]
        chosen[from_applier] = added[made]
        return chosen

    nothing = np.zeros(len(logged), np.int64)
    key = pick(rows.key, logged.key)
    operation = pick(rows.operation, logged.operation)
    file = pick(changes.column("file").to_numpy(), nothing - 1)
    cause = decisions.cause[mine]
    compared = cause == Cause.ROW_IN_CONFLICT
    without_origin = file < 0
    names = [table.full_name for table in bucket.numbers.tables]
    return pa.table(
        [
            pa.array([source] * len(mine), pa.string()),
            takes.foreign_epoch[take],
            pick(rows.group, takes.group[logged.take]).astype(np.int32),
            pick(rows.ordinal, nothing - 1).astype(np.int32),
            takes.epoch[take],
            _labels(bucket.key_table[key], names),
            pa.DictionaryArray.from_arrays(pa.array(key), bucket.key_texts).cast(pa.string()),
            _labels(operation - 1, [each.name for each in Operation]),
            pick(np.zeros(len(rows), np.bool_), logged.refresh),
            _labels(decisions.verdict[mine], [each.name for each in Verdict]),
            _labels(cause.astype(np.int64) - 1, [each.name for each in Cause if each]),
            pa.array(decisions.incoming[mine], mask=~compared),
            pa.array(decisions.stored[mine], mask=~compared),
            _labels(file, list(files)),
            pa.array(pick(changes.column("position").to_numpy(), nothing.astype(np.uint64)), mask=without_origin),
            pa.array(pick(changes.column("row").to_numpy(), nothing).astype(np.int32), mask=without_origin),
        ],
        schema=OUTCOMES,
    )


def _labels(numbers: np.ndarray, labels: Sequence[str]) -> pa.Array:
    """Return the label of each number; none for a negative one."""
    indices = pa.array(numbers, mask=numbers < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(labels, pa.string())).cast(pa.string())


def exceptions_path(cluster: str, table: str) -> str:
    """Return where the rows of an exceptions table stand."""
    return f"exceptions/{cluster}/{table}.parquet"
