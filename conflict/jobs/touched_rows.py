"""
The rows of a History on disk on which the places of wanted epochs depend (see `conflict.reference.placement`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Self

import attrs
import numpy as np
import pyarrow as pa

from conflict.columnar.bucket import Bucket, load_bucket
from conflict.columnar.kernels.arrays import Bool, Int32, Int64, Presence, UInt64
from conflict.grid.columns import GridColumns
from conflict.grid.schemas import IMAGES, RowStep
from conflict.history.effects import Effect
from conflict.history.model import EpochApply, Origin, Position, RowChange, Transaction
from conflict.jobs.bucket_tasks import ResolveRun
from ndb_formats.cursor import Cursor
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage, RowLayout, take_image
from ndb_formats.events.rows_event import Operation
from ndb_formats.events.table_map import bits

__all__ = ["TouchedRows", "TouchedTask", "Wanted", "read_touched", "touched_history"]

_IDENTITY_PREFIX = 2  # bytes of the table's number before the key
NEVER = np.uint64(2**64 - 1)


@attrs.frozen
class Wanted:
    """
    What one applier applied, as far as it decides which rows are read.

    Attributes:
        epochs: Foreign epochs whose rows are wanted, sorted. uint64, shape (wanted,).
        arrived: Own epoch before which each cannot have been applied. uint64, shape (wanted,).
        traced_in: Own epochs of the traced epoch applies, in order. uint64, shape (traced,).
        first_later: The least foreign epoch of that epoch apply and all later ones. uint64, shape (traced,).
    """

    epochs: UInt64
    arrived: UInt64
    traced_in: UInt64
    first_later: UInt64

    @classmethod
    def of_applies(cls, applies: Sequence[EpochApply], wanted: Callable[[EpochApply], bool]) -> Self:
        """Return it for the epoch applies of one applier, in order, and those of them whose rows are wanted."""
        earliest: dict[int, int] = {}
        for apply in applies:
            if wanted(apply):
                known = earliest.get(apply.foreign_epoch, apply.arrived[0])
                earliest[apply.foreign_epoch] = min(known, apply.arrived[0])
        traced = [(apply.epoch, apply.foreign_epoch) for apply in applies if apply.traced]
        own, foreign = (np.array([pair[place] for pair in traced], np.uint64) for place in (0, 1))
        return cls(
            np.array(sorted(earliest), np.uint64),
            np.array([earliest[epoch] for epoch in sorted(earliest)], np.uint64),
            own,
            np.minimum.accumulate(foreign[::-1])[::-1],
        )


@attrs.frozen
class TouchedTask:
    """
    One bucket of which the rows that some epochs touch are wanted.

    Attributes:
        run: The run.
        bucket: Number of the bucket.
        wanted: Per applying cluster.
    """

    run: ResolveRun
    bucket: int
    wanted: Mapping[str, Wanted]


@attrs.frozen
class TouchedRows:
    """
    What a bucket holds of these rows.

    Attributes:
        changes: Per cluster, its own changes: a row of `CHANGES` with the key's bytes and both images added.
        effects: Per cluster, what its binlog shows of its applier's work: epoch, group, table, key, effect.
        located: Bucket and number in it of each row, by table and key.
    """

    changes: dict[str, list[dict[str, Any]]]
    effects: dict[str, list[tuple[int, int, str, bytes, Effect]]]
    located: dict[tuple[str, bytes], tuple[int, int]]


def read_touched(task: TouchedTask) -> TouchedRows:
    """
    Read the rows of a bucket that the epochs touch, as far back as their state at the epochs' places hangs on.

    Of tables with unique keys, or that take part in foreign keys, all rows are read from the start.
    """
    run = task.run
    layouts = run.manifest.layouts(run.numbers)
    bucket = load_bucket(run.history, task.bucket, run.manifest, run.numbers, layouts)
    needed = _needed_from(bucket, task)
    found = TouchedRows({}, {}, _located(bucket, np.minimum(*needed) != NEVER))
    for side, name in enumerate(bucket.clusters):
        changes, consequences = bucket.changes[side], bucket.consequences[side]
        found.changes[name] = _changes(bucket, side, _rows_from(changes, needed[side]))
        found.effects[name] = list(_effects(bucket, side, _rows_from(consequences, needed[side])))
    return found


def _located(bucket: Bucket, needed: Bool) -> dict[tuple[str, bytes], tuple[int, int]]:
    """Return bucket and number of the keys that are needed. Shape of `needed` (keys,)."""
    numbers = np.flatnonzero(needed)
    identities = bucket.keys.column("identity").take(pa.array(numbers)).to_pylist()
    names = [bucket.numbers.tables[table].full_name for table in bucket.key_table[numbers].tolist()]
    return {
        (name, identity[_IDENTITY_PREFIX:]): (bucket.number, number)
        for name, identity, number in zip(names, identities, numbers.tolist(), strict=True)
    }


def _rows_from(columns: GridColumns, needed: UInt64) -> Int64:
    """Return the rows of keys that are needed from an own epoch on, in order."""
    if not len(columns) or (needed == NEVER).all():
        return np.zeros(0, np.int64)
    return np.flatnonzero(columns.array("epoch") >= needed[columns.array("key")])


def _needed_from(bucket: Bucket, task: TouchedTask) -> list[UInt64]:
    """Return, per cluster and key, the own epoch from which on its changes are needed. Shape (keys,) each."""
    needed = [np.full(len(bucket.keys), NEVER, np.uint64) for _ in bucket.clusters]
    with_unique = np.array([bool(table.unique_keys) for table in task.run.numbers.tables], np.bool_)
    checked = with_unique | task.run.linked.tables
    for applier, name in enumerate(bucket.clusters):
        source, wanted = 1 - applier, task.wanted[name]
        arrived = np.full(len(bucket.keys), NEVER, np.uint64)
        first = arrived.copy()
        for columns in (bucket.changes[source], bucket.consequences[source]):
            rows, place = _rows_of_epochs(columns, wanted.epochs)
            np.minimum.at(arrived, columns.of_rows("key", rows), wanted.arrived[place])
            np.minimum.at(first, columns.of_rows("key", rows), wanted.epochs[place])
        touched = arrived != NEVER
        start = np.where(touched, _last_anchor(bucket, applier, arrived), NEVER)
        place = np.searchsorted(wanted.traced_in, start)
        before = np.append(wanted.first_later, NEVER)[place]
        needed[applier] = np.minimum(needed[applier], start)
        needed[source] = np.minimum(needed[source], np.minimum(first, np.where(touched, before, NEVER)))
    tables = bucket.key_table
    whole = checked[tables] & (len(bucket.keys) > 0)
    return [np.where(whole, np.uint64(0), each) for each in needed]


def _rows_of_epochs(columns: GridColumns, epochs: UInt64) -> tuple[Int64, Int64]:
    """Return the rows of some epochs, and which of the epochs each is of."""
    if not len(columns) or not len(epochs):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    here = columns.array("epoch")
    place = np.minimum(np.searchsorted(epochs, here), len(epochs) - 1)
    rows = np.flatnonzero(epochs[place] == here)
    return rows, place[rows]


def _last_anchor(bucket: Bucket, side: int, before: UInt64) -> UInt64:
    """
    Return, per key, the last own epoch before a given one whose change or effect tells the state of the row alone.

    A delete does; so does any change, if no function compares a column of the table; else a change that carries the
    column. Shape (keys,); 0 if there is none.
    """
    found = np.zeros(len(bucket.keys), np.uint64)
    compared = np.array(
        [bucket.numbers.resolve_ordinal(table.full_name) is not None for table in bucket.numbers.tables], np.bool_
    )
    if len(bucket.changes[side]):
        rows = bucket.rows[side]
        carried = rows.after_presence == Presence.PRESENT
        tells = (rows.operation == Operation.DELETE_ROW) | ~compared[bucket.key_table[rows.key]] | carried
        tells = np.where(rows.operation > max(Operation), rows.operation == RowStep.EMPTIED, tells)
        _raise_to(found, rows.key, rows.epoch, before, tells)
    columns = bucket.consequences[side]
    if len(columns):
        key, effect = columns.array("key"), columns.array("effect")
        tells = ~compared[bucket.key_table[key]] | np.isin(effect, (Effect.DELETED, Effect.REFRESHED_ABSENT))
        _raise_to(found, key, columns.array("epoch"), before, tells)
    return found


def _raise_to(found: UInt64, key: Int32, epoch: UInt64, before: UInt64, tells: Bool) -> None:
    """Raise the epoch of each key to the last one before `before` that tells its state."""
    chosen = np.flatnonzero(tells & (before[key] != NEVER) & (epoch < before[key]))
    np.maximum.at(found, key[chosen], epoch[chosen])


def _changes(bucket: Bucket, side: int, rows: Int64) -> list[dict[str, Any]]:
    columns = bucket.changes[side]
    if len(rows):
        rows = rows[columns.of_rows("operation", rows) <= max(Operation)]  # not the effects of statements
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


def _effects(bucket: Bucket, side: int, rows: Int64) -> Iterator[tuple[int, int, str, bytes, Effect]]:
    columns = bucket.consequences[side]
    if not len(rows):
        return
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
