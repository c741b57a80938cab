"""
How results look on disk.

    applied/applier=A/...parquet              changes of the other cluster that an applier simply applied, in stretches
    outcomes/applier=A/...parquet             one row per other operation that it took
    exceptions/<cluster>/<table>.parquet      rows of exceptions tables
    rows/<cluster>/<table>/...parquet         rows of the tables at the end
    counters.json                             status counters per cluster
    run.json                                  configuration, versions, summary
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from conflict.bucket_result import BucketResult
from conflict.decision import Cause, Verdict
from conflict.grid_columns import GridColumns
from conflict.kernels.arrays import Int32, Kind, each_read_only, read_only
from conflict.kernels.outcomes import applied_stretches
from ndb_formats.events.rows_event import Operation

__all__ = [
    "APPLIED",
    "OUTCOMES",
    "UNDECIDED",
    "applied_path",
    "applied_table",
    "exceptions_path",
    "labelled",
    "outcome_table",
    "staged_exceptions_path",
]

# Changes that were applied as they stood, one after the other in one take: nearly all are, and the History has all else
# of them. Those of the bucket from ordinal `first` to `last`.
APPLIED = pa.schema(
    [
        ("source_epoch", pa.uint64()),
        ("first", pa.int32()),
        ("last", pa.int32()),
        ("changes", pa.int32()),
        ("epoch", pa.uint64()),
    ]
)
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


_ORIGIN = ("ordinal", "file", "position", "row")

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


def applied_path(applier: str, bucket: int) -> str:
    """Return where it stands what an applier simply applied of a bucket."""
    return f"applied/applier={applier}/bucket={bucket:05d}.parquet"


def staged_exceptions_path(cluster: str, table: str, bucket: int) -> str:
    """Return where a bucket's rows of an exceptions table wait for their numbers."""
    return f"staged_exceptions/{cluster}/{table}/bucket={bucket:05d}.parquet"


def applied_table(result: BucketResult, applier: int) -> tuple[pa.Table, Int32]:
    """
    Return which of the other cluster's changes one applier simply applied, of this bucket.

    Args:
        result: A bucket, decided.
        applier: Number of the applying cluster.

    Returns:
        `APPLIED`, and the numbers of the applier's other decisions.
    """
    takes, decisions, rows = result.takes, result.folded.decisions, result.bucket.rows[1 - applier]
    take, first, last, others = applied_stretches(
        read_only(takes.applier), applier, *each_read_only(*result.taken, decisions.source, decisions.verdict)
    )
    epochs, ordinal = (takes.foreign_epoch[take], takes.epoch[take]), rows.ordinal
    columns = [epochs[0], ordinal[first], ordinal[last], last - first + 1, epochs[1]]
    # Columns that cannot be NULL cost less to write.
    schema = pa.schema([field.with_nullable(False) for field in APPLIED])
    return pa.table([pa.array(column) for column in columns], schema=schema), others


def outcome_table(result: BucketResult, applier: int, others: Int32, source: str, files: Sequence[str]) -> pa.Table:
    """
    Return what became of operations that an applier took and did not simply apply.

    Args:
        result: A bucket, decided.
        applier: Number of the applying cluster.
        others: Numbers of those decisions.
        source: Name of the other cluster.
        files: Binlog files of the other cluster by number.

    Returns:
        `OUTCOMES`, with dictionaries in place of strings.
    """
    bucket, takes, decisions = result.bucket, result.takes, result.folded.decisions
    take, row, key = (column[others] for column in (decisions.take, decisions.source, decisions.key))
    cause = decisions.cause[others]
    compared, count = cause == Cause.ROW_IN_CONFLICT, len(others)
    origin = _origins(bucket.changes[1 - applier], row)
    unknown = origin["file"] < 0
    values = decisions.compared[others]
    arrays = {
        "source": labelled(np.zeros(count, np.int8), [source]),
        "source_epoch": pa.array(takes.foreign_epoch[take]),
        "group": pa.array(decisions.group[others]),
        "ordinal": pa.array(origin["ordinal"]),
        "epoch": pa.array(takes.epoch[take]),
        "table": labelled(bucket.key_table[key], [table.full_name for table in bucket.numbers.tables]),
        "key": bucket.key_texts.take(pa.array(key)),
        "operation": labelled(decisions.operation[others] - 1, [each.name for each in Operation]),
        "refresh": pa.array(decisions.kind[others] == Kind.REFRESH),
        "verdict": labelled(decisions.verdict[others], [each.name for each in Verdict]),
        "cause": labelled(cause - 1, [each.name for each in Cause if each]),
        "incoming": pa.array(values["incoming"].copy(), mask=~compared),
        "stored": pa.array(values["stored"].copy(), mask=~compared),
        "file": labelled(origin["file"], files),
        "position": pa.array(origin["position"], mask=unknown),
        "row": pa.array(origin["row"], mask=unknown),
    }
    fields = [pa.field(name, arrays[name].type, nullable=arrays[name].null_count > 0) for name in OUTCOMES.names]
    return pa.table([arrays[name] for name in OUTCOMES.names], schema=pa.schema(fields))


def _origins(changes: GridColumns, row: Int32) -> dict[str, np.ndarray]:
    """
    Return where operations stand among a cluster's own changes and in its binlogs.

    What its applier logged has the ordinal and the file -1.
    """
    changes.read(_ORIGIN)
    own = row >= 0
    found = {name: changes.of_rows(name, np.where(own, row, 0)) for name in _ORIGIN}
    for name in ("ordinal", "file"):
        found[name][~own] = -1
    return found


def labelled(numbers: np.ndarray, labels: Sequence[str]) -> pa.DictionaryArray:
    """Return the label of each number; none for a negative one."""
    missing = numbers < 0
    indices = pa.array(numbers, mask=missing if missing.any() else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array(labels, pa.string()))


def exceptions_path(cluster: str, table: str) -> str:
    """Return where the rows of an exceptions table stand."""
    return f"exceptions/{cluster}/{table}.parquet"
