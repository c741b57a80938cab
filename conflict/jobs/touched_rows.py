"""
The rows of a History on disk on which the places of untraced epochs depend (see `conflict.reference.placement`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from conflict.columnar.bucket import Bucket, load_bucket
from conflict.columnar.kernels.arrays import Bool, UInt64
from conflict.grid.schemas import IMAGES
from conflict.history.effects import Effect
from conflict.history.model import Origin, Position, RowChange, Transaction
from conflict.jobs.bucket_tasks import ResolveRun
from ndb_formats.cursor import Cursor
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage, RowLayout, take_image
from ndb_formats.events.rows_event import Operation
from ndb_formats.events.table_map import bits

__all__ = ["TouchedRows", "TouchedTask", "read_touched", "touched_history"]

_IDENTITY_PREFIX = 2  # bytes of the table's number before the key


@attrs.frozen
class TouchedTask:
    """
    One bucket of which the rows that some epochs touch are wanted.

    Attributes:
        run: The run.
        bucket: Number of the bucket.
        epochs: Per cluster, those of its own epochs that the other applier applied without a trace. uint64, sorted.
    """

    run: ResolveRun
    bucket: int
    epochs: Mapping[str, UInt64]


@attrs.frozen
class TouchedRows:
    """
    What a bucket holds of these rows.

    Attributes:
        changes: Per cluster, its own changes: a row of `CHANGES` with the key's bytes and both images added.
        effects: Per cluster, what its binlog shows of its applier's work: epoch, group, table, key, effect.
    """

    changes: dict[str, list[dict[str, Any]]]
    effects: dict[str, list[tuple[int, int, str, bytes, Effect]]]


def read_touched(task: TouchedTask) -> TouchedRows:
    """Read the rows of a bucket that the epochs touch, and with a row of a table with unique keys all its rows."""
    run = task.run
    layouts = run.manifest.layouts(run.numbers)
    bucket = load_bucket(run.history, task.bucket, run.manifest, run.numbers, layouts)
    keys = _touched_keys(bucket, task)
    found = TouchedRows({}, {})
    for side, name in enumerate(bucket.clusters):
        found.changes[name] = _changes(bucket, side, keys) if keys.any() else []
        found.effects[name] = list(_effects(bucket, side, keys)) if keys.any() else []
    return found


def _touched_keys(bucket: Bucket, task: TouchedTask) -> Bool:
    """Return which keys of the bucket the epochs touch. Shape (keys,)."""
    tables = task.run.numbers.tables
    touched = np.zeros(len(bucket.keys), np.bool_)
    for side, name in enumerate(bucket.clusters):
        for columns in (bucket.changes[side], bucket.consequences[side]):
            if len(columns) and len(task.epochs[name]):
                touched[columns.array("key")[np.isin(columns.array("epoch"), task.epochs[name])]] = True
    with_unique = np.array([bool(table.unique_keys) for table in tables], np.bool_)
    return touched | with_unique[bucket.key_table] if with_unique.any() else touched


def _changes(bucket: Bucket, side: int, keys: Bool) -> list[dict[str, Any]]:
    columns = bucket.changes[side]
    rows = np.flatnonzero(keys[columns.array("key")]) if len(columns) else np.zeros(0, np.int64)
    if not len(rows):
        return []
    assert bucket.images is not None
    columns.read(columns.schema.names)
    table = pa.table({name: columns.column(name) for name in columns.schema.names}).take(pa.array(rows))
    identities = bucket.keys.column("identity").take(table.column("key"))
    table = table.append_column("identity", identities)
    for which in IMAGES.names:
        table = table.append_column(which, bucket.images.column(side, which).take(pa.array(rows)))
    return table.to_pylist()  # type: ignore[no-any-return]


def _effects(bucket: Bucket, side: int, keys: Bool) -> Iterator[tuple[int, int, str, bytes, Effect]]:
    columns = bucket.consequences[side]
    rows = np.flatnonzero(keys[columns.array("key")]) if len(columns) else np.zeros(0, np.int64)
    identities = bucket.keys.column("identity").take(pa.array(columns.of_rows("key", rows))).to_pylist()
    arrays = [columns.of_rows(name, rows).tolist() for name in ("epoch", "group", "table", "effect")]
    for epoch, group, table, effect, identity in zip(*arrays, identities, strict=True):
        name = bucket.numbers.tables[table].full_name
        yield epoch, group, name, identity[_IDENTITY_PREFIX:], Effect(effect)


def touched_history(
    parts: Sequence[TouchedRows], name: str, run: ResolveRun
) -> tuple[list[Transaction], dict[Position, dict[tuple[str, bytes], Effect]]]:
    """Return a cluster's own transactions, of the touched rows alone, and the effects that its binlog shows on them."""
    layouts = run.manifest.layouts(run.numbers)
    rows = sorted((row for each in parts for row in each.changes[name]), key=itemgetter("epoch", "group", "ordinal"))
    transactions = [
        Transaction(epoch, group, tuple(_change(row, layouts, run, name) for row in items))
        for (epoch, group), items in groupby(rows, key=itemgetter("epoch", "group"))
    ]
    effects: dict[Position, dict[tuple[str, bytes], Effect]] = {}
    for each in parts:
        for epoch, group, table, key, effect in each.effects[name]:
            effects.setdefault((epoch, group), {})[table, key] = effect
    return transactions, effects


def _change(row: dict[str, Any], layouts: Sequence[RowLayout | None], run: ResolveRun, name: str) -> RowChange:
    layout, files = layouts[row["table"]], run.manifest.files[name]
    assert layout is not None
    before, after = (_image(row[which], row[f"{which}_columns"], layout) for which in IMAGES.names)
    return RowChange(
        layout.table,
        row["identity"][_IDENTITY_PREFIX:],
        Operation(row["operation"]),
        before,
        after,
        row["transaction_id"],
        ConflictFlag(row["flags"]),
        Origin(files[row["file"]], row["position"], row["row"]) if 0 <= row["file"] < len(files) else None,
    )


def _image(data: bytes | None, carried: bytes, layout: RowLayout) -> RowImage | None:
    if not carried:
        return None
    present = tuple(place for place, here in enumerate(bits(carried, 8 * len(carried))) if here)
    return take_image(Cursor(data or b""), layout, present)
