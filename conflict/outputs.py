"""
How results look on disk.

    takes/applier=A/...parquet                one row per epoch of the other cluster that an applier took
    applied.json                              how many changes of these it simply applied, bucket by bucket
    outcomes/applier=A/...parquet             one row per operation of these that it did not apply as it stood
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
from conflict.kernels.arrays import Int32, Int64, Kind, UInt64
from ndb_formats.events.rows_event import Operation

__all__ = [
    "APPLIED",
    "OUTCOMES",
    "TAKEN",
    "UNDECIDED",
    "exceptions_path",
    "labelled",
    "other_decisions",
    "outcome_table",
    "outcomes_path",
    "staged_exceptions_path",
    "taken_path",
    "taken_table",
]

# Nearly every change of an epoch that is taken is applied as it stands, and the History has all else of it: so a result
# says which epochs were taken, and in its outcomes what became of the other operations.
TAKEN = pa.schema(
    [("source", pa.string()), ("source_epoch", pa.uint64()), ("epoch", pa.uint64()), ("group", pa.int32())]
)
# Where it stands how many changes each applier simply applied, a number for each bucket.
APPLIED = "applied.json"
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


def taken_path(applier: str) -> str:
    """Return where it stands which epochs an applier took."""
    return f"takes/applier={applier}/takes.parquet"


def outcomes_path(applier: str, bucket: int) -> str:
    """Return where it stands what became of the other operations of a bucket that an applier took."""
    return f"outcomes/applier={applier}/bucket={bucket:05d}.parquet"


def staged_exceptions_path(cluster: str, table: str, bucket: int) -> str:
    """Return where a bucket's rows of an exceptions table wait for their numbers."""
    return f"staged_exceptions/{cluster}/{table}/bucket={bucket:05d}.parquet"


def taken_table(source: str, source_epoch: UInt64, epoch: UInt64, group: Int32) -> pa.Table:
    """
    Return the epochs that an applier took, in order.

    Args:
        source: Name of the other cluster.
        source_epoch: Its epochs. Shape (takes,).
        epoch: Own epoch of each take.
        group: Group of that epoch.

    Returns:
        `TAKEN`, with a dictionary in place of strings.
    """
    sources = labelled(np.zeros(len(epoch), np.int8), [source])
    return pa.table([sources, source_epoch, epoch, group], names=TAKEN.names)


def other_decisions(result: BucketResult) -> list[Int64]:
    """Return, per applier, the numbers of its decisions but for changes that it applied as they stood."""
    decisions = result.folded.decisions
    others = np.flatnonzero((decisions.verdict != Verdict.APPLIED) | (decisions.source < 0))
    applier = result.takes.applier[decisions.take[others]]
    return [others[applier == number] for number in range(len(result.sites))]


def outcome_table(result: BucketResult, applier: int, others: Int64, source: str, files: Sequence[str]) -> pa.Table:
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
