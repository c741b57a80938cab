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
from ndb_formats.collation import key_text
from ndb_formats.events.rows_event import Operation

__all__ = ["OUTCOMES", "UNDECIDED", "exceptions_path", "key_texts", "outcome_arrays", "staged_exceptions_path"]

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


def key_texts(bucket: Bucket) -> list[str]:
    """Return each key of a bucket for people to read."""
    texts = []
    for table, identity in zip(bucket.key_table.tolist(), bucket.keys.column("identity").to_pylist(), strict=True):
        definition, layout = bucket.numbers.tables[table], bucket.layouts[table]
        assert layout is not None
        ordinals = definition.key_ordinals
        columns = [definition.columns[ordinal] for ordinal in ordinals]
        texts.append(key_text(columns, [layout.codecs[ordinal] for ordinal in ordinals], identity[2:]))
    return texts


def outcome_arrays(
    bucket: Bucket,
    applier: int,
    takes: TakeArrays,
    folded: Folded,
    source: str,
    texts: Sequence[str],
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
        texts: Each key for people to read.
        files: Binlog files of the other cluster by number.
    """
    decisions, refreshes = folded.decisions, folded.refreshes
    mine = np.flatnonzero(takes.applier[decisions.take] == applier)
    take, from_source = decisions.take[mine], decisions.source[mine]
    refresh = from_source < 0
    made = np.where(refresh, -1 - from_source, 0)
    row = np.where(refresh, 0, from_source)
    changes = bucket.changes[1 - applier]
    rows = bucket.rows[1 - applier]

    def pick(own: np.ndarray, sent: np.ndarray) -> np.ndarray:
        """Choose per decision between a row's and a refresh's value; either side may be empty."""
        chosen = np.zeros(len(mine), np.result_type(own, sent))
        chosen[~refresh] = own[row[~refresh]]
        chosen[refresh] = sent[made[refresh]]
        return chosen

    nothing = np.zeros(len(refreshes), np.int64)
    key = pick(rows.key, refreshes.key)
    operation = pick(rows.operation, np.where(refreshes.exists, int(Operation.WRITE_ROW), int(Operation.DELETE_ROW)))
    file = pick(changes.column("file").to_numpy(), nothing - 1)
    cause = decisions.cause[mine]
    compared = cause == Cause.ROW_IN_CONFLICT
    without_origin = file < 0
    names = [table.full_name for table in bucket.numbers.tables]
    return pa.table(
        [
            pa.array([source] * len(mine), pa.string()),
            takes.foreign_epoch[take],
            pick(rows.group, takes.group[refreshes.take]).astype(np.int32),
            pick(rows.ordinal, nothing - 1).astype(np.int32),
            takes.epoch[take],
            _labels(bucket.key_table[key], names),
            _labels(key, texts),
            _labels(operation - 1, [each.name for each in Operation]),
            refresh,
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
