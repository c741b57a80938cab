"""
How results look on disk.

    applied_epochs/applier=A/...parquet       one row per epoch of the other cluster that an applier took
    outcomes/applier=A/...parquet             one row per operation of these that was not applied as it stood; with
                                              --all-outcomes, of every operation
    exceptions/<cluster>/<table>.parquet      rows of exceptions tables
    rows/<cluster>/<table>/...parquet         rows of the tables at the end
    counters.json                             status counters per cluster
    run.json                                  configuration, versions, summary
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = [
    "APPLIED_EPOCHS",
    "OUTCOMES",
    "UNDECIDED",
    "applied_epochs_path",
    "applied_epochs_table",
    "exceptions_path",
    "labelled",
    "outcomes_note",
    "outcomes_path",
    "staged_exceptions_path",
]

APPLIED_EPOCHS = pa.schema(
    [("source", pa.string()), ("source_epoch", pa.uint64()), ("epoch", pa.uint64()), ("group", pa.int32())]
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


def outcomes_note(*, all_outcomes: bool) -> str:
    """Return what the rows of `outcomes/` are, for `run.json`."""
    if all_outcomes:
        return "outcomes/ has one row for every operation that an applier received"
    return (
        "outcomes/ has one row for every operation that was not applied as it stood; every other change of the epochs "
        "in applied_epochs/ was applied (resolve with --all-outcomes to have a row for each)"
    )


def applied_epochs_path(applier: str) -> str:
    """Return where it stands which epochs an applier took."""
    return f"applied_epochs/applier={applier}/epochs.parquet"


def outcomes_path(applier: str, bucket: int) -> str:
    """Return where it stands what became of the other operations of a bucket that an applier took."""
    return f"outcomes/applier={applier}/bucket={bucket:05d}.parquet"


def staged_exceptions_path(cluster: str, table: str, bucket: int) -> str:
    """Return where a bucket's rows of an exceptions table wait for their numbers."""
    return f"staged_exceptions/{cluster}/{table}/bucket={bucket:05d}.parquet"


def applied_epochs_table(
    source: str, source_epoch: npt.NDArray[np.uint64], epoch: npt.NDArray[np.uint64], group: npt.NDArray[np.int32]
) -> pa.Table:
    """
    Return the epochs that an applier took, in order.

    Args:
        source: Name of the other cluster.
        source_epoch: Its epochs. Shape (takes,).
        epoch: Own epoch of each take.
        group: Group of that epoch.

    Returns:
        `APPLIED_EPOCHS`, with a dictionary in place of strings.
    """
    sources = labelled(np.zeros(len(epoch), np.int8), [source])
    return pa.table([sources, source_epoch, epoch, group], names=APPLIED_EPOCHS.names)


def labelled(numbers: np.ndarray, labels: Sequence[str]) -> pa.DictionaryArray:
    """Return the label of each number; none for a negative one."""
    missing = numbers < 0
    indices = pa.array(numbers, mask=missing if missing.any() else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array(labels, pa.string()))


def exceptions_path(cluster: str, table: str) -> str:
    """Return where the rows of an exceptions table stand."""
    return f"exceptions/{cluster}/{table}.parquet"
