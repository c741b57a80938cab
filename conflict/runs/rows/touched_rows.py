"""
Rows of a History on disk that the reference engine takes: the careful ones, and those that places of epochs depend on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.kernels.arrays import Bool, Int64
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.grid.schemas import IMAGES, PLACE
from conflict.history.grid.writer import IDENTITY_PREFIX
from conflict.history.row_identities import identities_without_key
from conflict.history.shown_effects import Effect
from conflict.history.tasks import Shared
from conflict.history.timeline import Origin, Position, RowChange, Transaction
from conflict.runs.rows.placing_rows import rows_that_place
from conflict.runs.rows.row_spans import Spans, WantedRows, rows_in_spans, rows_looked_at, spans_of
from conflict.runs.rows.task_inputs import TaskInputs
from ndb_formats.cursor import Cursor
from ndb_formats.events.row_image import RowImage, RowLayout, take_image
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.events.table_map import bits

# Represents the effects on other rows: a binlog that shows nothing at all says less than one that shows others.
NOWHERE: Position = (0, -1)


@attrs.frozen
class TouchedTask:
    """
    One bucket whose rows are wanted as far as some epochs touch them.

    Attributes:
        run: The run.
        bucket: Number of the bucket.
        wanted: Per applying cluster; in a file, because it has columns of all epoch applies.
        placing: Whether the epochs are to be placed. Then all that they did is wanted, and all rows of tables with
            unique keys, or that take part in foreign keys.
    """

    run: TaskInputs
    bucket: int
    wanted: Shared[Mapping[str, WantedRows]]
    placing: bool = False


@attrs.frozen
class TouchedRows:
    """
    What a bucket holds of these rows.

    Attributes:
        changes: Per cluster, its own changes: a row of `CHANGES` with the key's bytes and both images added.
        effects: Per cluster, what its binlog shows of its applier's work: epoch, group, table, key, effect, and digest
            of what the row was given, 0 where that is not known.
        located: Bucket and number in it of each row, by table and key.
        showing: Clusters whose binlogs show something of their applier's work on any row of the bucket.
        standing: Per cluster, the rows before these changes; none where a row has all of its changes.
    """

    changes: dict[str, list[dict[str, Any]]]
    effects: dict[str, list[tuple[int, int, str, bytes, Effect, int]]]
    located: dict[tuple[str, bytes], tuple[int, int]]
    showing: frozenset[str]
    standing: dict[str, dict[RowKey, Row]] = attrs.field(factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[TouchedRows]) -> TouchedRows:
        """Return the rows of several parts."""
        found = cls({}, {}, {}, frozenset())
        for part in parts:
            for name, changes in part.changes.items():
                found.changes.setdefault(name, []).extend(changes)
                found.effects.setdefault(name, []).extend(part.effects[name])
            found.located.update(part.located)
        return attrs.evolve(found, showing=frozenset[str]().union(*(part.showing for part in parts)))


def read_touched(task: TouchedTask) -> TouchedRows:
    """Read the rows of a bucket that the epochs touch, with all that their state at the epochs' places depends on."""
    whole, window = task.run.load_undecided(task.bucket), task.run.window
    looked_at = _looked_at(whole, task)
    careful = _needed_as_a_whole(whole, task)
    chosen = careful.copy()
    for key, _ in looked_at:
        chosen[key] = True
    bucket = whole.of_keys(chosen)  # most rows are left out before all is read of the others, at once
    for columns in (*bucket.changes, *bucket.consequences):
        columns.read(columns.schema.names)
    spans = _needed(bucket, task, looked_at, careful)
    chosen = np.zeros(len(bucket.key_table), np.bool_)
    for each in spans:
        chosen[each.key] = True
    sides = zip(bucket.changes, bucket.consequences, spans, strict=True)
    rows = [[rows_in_spans(columns, each) for columns in both] for *both, each in sides]
    showing = _showing(whole) if window is None else _showing(whole) | window.showing(task.bucket)
    return attrs.evolve(rows_of_bucket(bucket, chosen, rows), showing=showing, standing=_standing(bucket, chosen))


def _looked_at(bucket: Bucket, task: TouchedTask) -> list[Int64]:
    """Return, per applier, `rows_looked_at`."""
    run, wanted = task.run, task.wanted.load()
    everything = task.placing or run.part.starts_in_the_middle
    sends_all = [everything or bool(cluster.reflects.any()) for cluster in run.clusters]
    return [
        rows_looked_at(bucket, applier, wanted[name], everything=sends_all[1 - applier])
        for applier, name in enumerate(bucket.clusters)
    ]


def _needed_as_a_whole(bucket: Bucket, task: TouchedTask) -> Bool:
    """Return the rows of which all is needed, whatever is looked at. Shape (keys,)."""
    run, whole = task.run, np.zeros(len(bucket.key_table), np.bool_)
    if task.placing:
        with_unique = np.array([bool(table.unique_keys) for table in run.numbers.tables], np.bool_)
        whole |= (with_unique | run.linked.tables)[bucket.key_table]
    return np.asarray(whole | run.careful_keys(bucket))


def _needed(bucket: Bucket, task: TouchedTask, looked_at: Sequence[Int64], whole: Bool) -> list[Spans]:
    """Return, per cluster, what is needed of the rows; `whole`: those of which all is."""
    run, wanted = task.run, task.wanted.load()
    chosen = [
        rows_that_place(bucket, run.clusters, applier, wanted[name], looked_at[applier])
        for applier, name in enumerate(bucket.clusters)
    ]
    spans = spans_of(bucket, wanted, chosen)
    whole = whole.copy()
    if run.part.starts_in_the_middle:  # what tells of a row that is older than the log can be anywhere
        for each in spans:
            whole[each.key] = True
    return [each.and_whole(np.flatnonzero(whole)) for each in spans]


def rows_of_keys(bucket: Bucket, chosen: Bool) -> TouchedRows:
    """Return all that a bucket holds of some rows. Shape of `chosen` (keys,)."""
    sides = zip(bucket.changes, bucket.consequences, strict=True)
    rows = [[np.flatnonzero(chosen[columns.array("key")]) for columns in both] for both in sides]
    return rows_of_bucket(bucket, chosen, rows)


def rows_of_bucket(bucket: Bucket, chosen: Bool, rows: Sequence[Sequence[Int64]]) -> TouchedRows:
    """
    Return some changes and effects of a bucket.

    Args:
        bucket: The bucket.
        chosen: The rows whose places are wanted. Shape (keys,).
        rows: Per cluster, the rows of its changes, and of its effects.
    """
    found = TouchedRows({}, {}, _located(bucket, chosen), _showing(bucket))
    for side, name in enumerate(bucket.clusters):
        changes, effects = rows[side]
        found.changes[name] = _changes(bucket, side, changes)
        found.effects[name] = list(_effects(bucket, side, effects))
    return found


def _located(bucket: Bucket, needed: Bool) -> dict[tuple[str, bytes], tuple[int, int]]:
    """Return bucket and number of the keys that are needed. Shape of `needed` (keys,)."""
    numbers = np.flatnonzero(needed)
    identities = bucket.keys.column("identity").take(pa.array(numbers)).to_pylist()
    names = [bucket.numbers.tables[table].full_name for table in bucket.key_table[numbers].tolist()]
    return {
        (name, identity[IDENTITY_PREFIX:]): (bucket.number, number)
        for name, identity, number in zip(names, identities, numbers.tolist(), strict=True)
    }


def _showing(bucket: Bucket) -> frozenset[str]:
    return frozenset(name for name, own in zip(bucket.clusters, bucket.consequences, strict=True) if len(own))


def _standing(bucket: Bucket, chosen: Bool) -> dict[str, dict[RowKey, Row]]:
    """Return, per cluster, some rows as they stood before the bucket's changes. Shape of `chosen` (keys,)."""
    found: dict[str, dict[RowKey, Row]] = {name: {} for name in bucket.clusters}
    if bucket.standing is None:
        return found
    standing, places = bucket.standing, _located(bucket, chosen)
    for place, (_, number) in places.items():
        for side in np.flatnonzero(standing.exists[number]).tolist():
            state, image = standing.states[number, side], int(standing.image[number, side])
            layout, carried = bucket.layouts[state["table"]], standing.bitmaps[standing.carried[image]]
            assert layout is not None
            row = Row({}, local=bool(state["local"]), epoch=int(state["epoch"]))
            values = _image(standing.images[image].as_py(), carried, layout)
            written = {} if values is None else dict(zip(values.present, values.payloads, strict=True))
            found[bucket.clusters[side]][place] = attrs.evolve(row, payloads=written)
    return found


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


def _effects(bucket: Bucket, side: int, rows: Int64) -> Iterator[tuple[int, int, str, bytes, Effect, int]]:
    columns = bucket.consequences[side]
    if not len(rows):
        return
    identities = bucket.keys.column("identity").take(pa.array(columns.of_rows("key", rows))).to_pylist()
    names = ("epoch", "group", "table", "effect", "after_digest")
    arrays = [columns.of_rows(name, rows).tolist() for name in names]
    for epoch, group, table, effect, digest, identity in zip(*arrays, identities, strict=True):
        name = bucket.numbers.tables[table].full_name
        yield epoch, group, name, identity[IDENTITY_PREFIX:], Effect(effect), digest


def touched_history(
    parts: Sequence[TouchedRows], name: str, run: TaskInputs
) -> tuple[list[Transaction], dict[Position, dict[tuple[str, bytes], Effect]]]:
    """Return a cluster's own transactions, of the touched rows alone, and the effects that its binlog shows on them."""
    layouts = run.manifest.layouts(run.numbers)
    rows = sorted((row for each in parts for row in each.changes[name]), key=itemgetter("epoch", "group", "ordinal"))
    transactions = [
        Transaction(epoch, group, tuple(change_of(row, layouts, run, name) for row in items))
        for (epoch, group), items in groupby(rows, key=itemgetter("epoch", "group"))
    ]
    effects: dict[Position, dict[tuple[str, bytes], Effect]] = {}
    for each in parts:
        for epoch, group, table, key, effect, _ in each.effects[name]:
            effects.setdefault((epoch, group), {})[table, key] = effect
    return transactions, effects


def change_of(row: Mapping[str, Any], layouts: Sequence[RowLayout | None], run: TaskInputs, name: str) -> RowChange:
    """Return a row of `CHANGES` with both images, and with the key's bytes if its table has a primary key."""
    layout, files = layouts[row["table"]], run.manifest.files[name]
    assert layout is not None
    before, after = (_image(row[which], row[f"{which}_columns"], layout) for which in IMAGES.names)
    table, moved_to = run.numbers.tables[row["table"]], None
    if table.primary_key:
        key = row["identity"][IDENTITY_PREFIX:]
    else:
        key, moved_to = identities_without_key(table, before, after)
    return RowChange(
        layout.table,
        key,
        Operation(row["operation"]),
        before,
        after,
        row["transaction_id"],
        ConflictFlag(row["flags"]),
        Origin(files[row["file"]], *(row[name] for name in PLACE[1:])) if 0 <= row["file"] < len(files) else None,
        moved_to=moved_to,
        keyless=not table.primary_key,
    )


def _image(data: bytes | None, carried: bytes, layout: RowLayout) -> RowImage | None:
    if not carried:
        return None
    return take_image(Cursor(data or b""), layout, _present(carried))


@lru_cache(maxsize=1024)
def _present(carried: bytes) -> tuple[int, ...]:
    """Return the places of the columns that an image carries."""
    return tuple(place for place, here in enumerate(bits(carried, 8 * len(carried))) if here)
