"""
A History on disk: the paths of its Parquet files and their columns.

    history.json                                             clusters, tables, segments, errors of the binlogs
    catalogue/batch=00000.parquet                            what each file of a batch is
    schedule.parquet                                         when each cluster applied which foreign epoch
    keys/bucket=00000/batch=00000.parquet                    dense key number -> table, identity, text
    changes/cluster=A/bucket=00000/batch=00000.parquet       narrow columns that decide, rows in order
    images/cluster=A/bucket=00000/batch=00000.parquet        before and after image of the same rows
    consequences/cluster=A/bucket=00000/batch=00000.parquet  what the binlog shows of the work of A's applier
    keyless/cluster=A/batch=00000.parquet                    rows of tables without a primary key, as they are logged
    epochs/cluster=A/batch=00000.parquet                     what the schedule is derived from

A batch is what one ingest added, with the batches that it merged; what has no rows has no file. Row n of a file of
`images` belongs to row n of the same file of `changes`. Unsigned 64-bit numbers are Parquet's UINT_64, which Spark
reads as DECIMAL(20, 0).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import pyarrow as pa

from conflict.history.scheduling.schedule_columns import COLUMNS


class RowStep(IntEnum):
    """
    What a statement that changes definitions does to a row: numbers of the column `operation`, besides `Operation`.

    Such a row of `CHANGES` has no images. It is no change of the cluster, and the other one does not receive it.
    """

    CHANGED = 4
    EMPTIED = 5


# The columns that an image carries, as a bitmap: a bit per column, the lowest of the first byte for the first one.
# There are few different bitmaps. No bytes represent no image, because reading NULLs of a dictionary takes twice as
# long; an image without columns has a bitmap of zeros.
_CARRIED = pa.dictionary(pa.int32(), pa.binary())


def _schema(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    """Return a schema whose columns, except transaction ids, are never NULL: they are read in half the time."""
    return pa.schema([pa.field(name, kind, nullable=name == "transaction_id") for name, kind in columns])


_DECISION: list[tuple[str, pa.DataType]] = [
    ("table", pa.int16()),
    ("operation", pa.int8()),
    ("flags", pa.int16()),
    ("epoch", pa.uint64()),
    ("group", pa.int32()),
    ("ordinal", pa.int32()),
    ("before_columns", _CARRIED),
    ("before_value", pa.uint64()),
    ("before_digest", pa.uint64()),
    ("after_columns", _CARRIED),
    ("after_value", pa.uint64()),
    ("after_digest", pa.uint64()),
    ("transaction_id", pa.uint64()),
    ("file", pa.int32()),
    ("position", pa.uint64()),
    ("payload_position", pa.uint32()),
    ("row", pa.int32()),
]
_EFFECT: list[tuple[str, pa.DataType]] = [
    ("table", pa.int16()),
    ("epoch", pa.uint64()),
    ("group", pa.int32()),
    ("effect", pa.int8()),
    ("flags", pa.int16()),
    ("after_digest", pa.uint64()),
]

CHANGES = _schema(("key", pa.int32()), *_DECISION)
STAGED_CONSEQUENCES = _schema(("identity", pa.binary()), *_EFFECT)
CONSEQUENCES = _schema(("key", pa.int32()), *_EFFECT)
# The columns that say where a row change is logged (see `conflict.history.timeline.Origin`).
PLACE = ("file", "position", "payload_position", "row")
IMAGES = pa.schema([("before", pa.binary()), ("after", pa.binary())])
# The images stand beside what they belong to until keys have numbers.
STAGED_CHANGES = pa.schema([*_schema(("identity", pa.binary()), *_DECISION), *IMAGES])
_NOT_KEYLESS = ("before_value", "before_digest", "after_value", "after_digest")
# Rows of tables without a primary key: of the cluster itself, and what its applier logged (`own` is false).
KEYLESS = pa.schema(
    [
        pa.field("own", pa.bool_()),
        *(field for field in CHANGES if field.name not in ("key", *_NOT_KEYLESS)),
        *IMAGES,
    ]
)
KEYS = _schema(("key", pa.int32()), ("table", pa.int16()), ("identity", pa.binary()), ("text", pa.string()))
SCHEDULE_PART = "schedule.parquet"
SCHEDULE = pa.schema(
    [
        ("applier", pa.string()),
        ("source", pa.string()),
        *((each.name, pa.string() if each.labels else pa.from_numpy_dtype(each.kind)) for each in COLUMNS.values()),
    ]
)


def part(kind: str, cluster: str, bucket: int, batch: int) -> str:
    """Return the path of one file of `changes`, `images` or `consequences` below the History."""
    return f"{kind}/cluster={cluster}/bucket={bucket:05d}/batch={batch:05d}.parquet"


def log_part(kind: str, cluster: str, batch: int) -> str:
    """Return the path of one file of `epochs` or `keyless` below the History."""
    return f"{kind}/cluster={cluster}/batch={batch:05d}.parquet"


def staged_part(kind: str, cluster: str, segment: int) -> str:
    """
    Return the path of what was read of a segment, and is not in its place yet, below the History.

    Rows of `changes` and `consequences`, whose keys have no numbers yet, are divided by bucket (`Folder.write_parts`).
    A segment is a piece of one cluster's binlog, a number of consecutive epochs.
    """
    return f"staged/{kind}/cluster={cluster}/segment={segment:05d}.arrow"


def keys_part(bucket: int, batch: int) -> str:
    """Return the path of the keys that one batch added to a bucket, below the History."""
    return f"keys/bucket={bucket:05d}/batch={batch:05d}.parquet"


_IN_BATCH = re.compile(r"/batch=(\d+)\.parquet$")


def batch_of(path: str) -> int | None:
    """Return the batch that a file below the History belongs to; None for one that belongs to none."""
    found = _IN_BATCH.search(path)
    return int(found.group(1)) if found else None


def table_of_rows(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    """Return rows of Python values as a table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def epoch_order(changes: pa.Table) -> pa.Array | None:
    """
    Return the numbers of rows of `CHANGES` in the order of epochs; None if they are in order.

    They are not where keys were met after a statement: its steps on them were written then (`RowStep`).
    """
    epoch, own = changes.column("epoch").to_numpy(), changes.column("group").to_numpy() >= 0
    rises = (epoch[1:] > epoch[:-1]) | ((epoch[1:] == epoch[:-1]) & (own[1:] >= own[:-1]))
    return None if rises.all() else pa.array(np.lexsort((own, epoch)))


def never_null(table: pa.Table) -> pa.Table:
    """Return a table in whose schema exactly the columns without NULLs are not nullable."""
    pairs = zip(table.schema, table.columns, strict=True)
    schema = pa.schema([field.with_nullable(column.null_count > 0) for field, column in pairs])
    return pa.Table.from_arrays(table.columns, schema=schema)
