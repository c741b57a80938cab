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
from conflict.kernels.arrays import TakeArrays, each_read_only
from conflict.kernels.fold import Folded
from conflict.kernels.outcome_columns import outcome_columns
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
    bucket: Bucket, applier: int, takes: TakeArrays, folded: Folded, source: str, files: Sequence[str]
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

    Returns:
        `OUTCOMES`, with dictionaries in place of strings.
    """
    decisions, logged = folded.decisions, folded.logged
    changes, rows = bucket.changes[1 - applier], bucket.rows[1 - applier]
    arguments = [
        *(*each_read_only(takes.applier, takes.foreign_epoch, takes.epoch, takes.group), applier),
        *each_read_only(decisions.take, decisions.source, decisions.verdict),
        *each_read_only(decisions.cause, decisions.incoming, decisions.stored),
        *each_read_only(rows.key, rows.operation, rows.group, rows.ordinal),
        *each_read_only(*(changes.column(name).to_numpy() for name in ("file", "position", "row"))),
        *each_read_only(logged.key, logged.operation, logged.take, logged.refresh),
    ]
    columns = outcome_columns(*arguments)
    names = ("source_epoch", "group", "ordinal", "epoch", "key", "operation", "refresh", "verdict", "cause")
    found = dict(zip((*names, "incoming", "stored", "file", "position", "row"), columns, strict=True))
    compared, without_origin = found["cause"] == Cause.ROW_IN_CONFLICT, found["file"] < 0
    tables = [table.full_name for table in bucket.numbers.tables]
    arrays = {
        **{name: pa.array(column) for name, column in found.items()},
        "source": _labels(np.zeros(len(compared), np.int8), [source]),
        "table": _labels(bucket.key_table[found["key"]], tables),
        "key": pa.DictionaryArray.from_arrays(pa.array(found["key"]), bucket.key_texts),
        "operation": _labels(found["operation"] - 1, [each.name for each in Operation]),
        "verdict": _labels(found["verdict"], [each.name for each in Verdict]),
        "cause": _labels(found["cause"] - 1, [each.name for each in Cause if each]),
        "incoming": pa.array(found["incoming"], mask=~compared),
        "stored": pa.array(found["stored"], mask=~compared),
        "file": _labels(found["file"], files),
        "position": pa.array(found["position"], mask=without_origin),
        "row": pa.array(found["row"], mask=without_origin),
    }
    # Columns that cannot be NULL cost less to write.
    fields = [pa.field(name, arrays[name].type, nullable=arrays[name].null_count > 0) for name in OUTCOMES.names]
    return pa.table([arrays[name] for name in OUTCOMES.names], schema=pa.schema(fields))


def _labels(numbers: np.ndarray, labels: Sequence[str]) -> pa.DictionaryArray:
    """Return the label of each number; none for a negative one."""
    missing = numbers < 0
    indices = pa.array(numbers, mask=missing if missing.any() else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array(labels, pa.string()))


def exceptions_path(cluster: str, table: str) -> str:
    """Return where the rows of an exceptions table stand."""
    return f"exceptions/{cluster}/{table}.parquet"
