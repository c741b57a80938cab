"""
The rows of tables without a primary key, read from a History.

A row of such a table is known by its values, and an update gives it others, so it has no key by which rows are divided
into buckets. The reference engine resolves all of these as one more bucket after the others. They touch the rest of the
run in two ways: an insert makes its transaction depend on an earlier one that inserted an equal row, and a row that is
not there stops the applier.

Computes docs/functions.md, "Tables without a primary key".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.engine.kernels.arrays import EpochApplies, Int32
from conflict.engine.ledger.contradictions import Images
from conflict.history.epochs import BinlogEpoch
from conflict.history.grid.schemas import KEYLESS, log_part
from conflict.history.scheduling.start import changes_older_rows
from conflict.history.shown_effects import recorded_effects, recorded_images
from conflict.history.timeline import RowChange, Transaction
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.runs.rows.touched_rows import TouchedRows, change_of
from ndb_formats.events.rows_event import Operation


def read_keyless(run: TaskInputs) -> TouchedRows:
    """Return all rows of tables without a primary key of the part of the logs that is read."""
    found = TouchedRows({}, {}, {}, frozenset())
    for name in run.manifest.clusters:
        rows = _rows(run, name)
        found.changes[name] = [row for row in rows if row["own"]]
        effects = recorded_effects(list(_epochs(run, name, rows)))
        found.effects[name] = [
            (*place, *row, effect, 0) for place, each in effects.items() for row, effect in each.items()
        ]
    showing = frozenset(name for name, effects in found.effects.items() if effects)
    return TouchedRows(found.changes, found.effects, {}, showing)


def keyless_images(run: TaskInputs) -> dict[str, Images]:
    """Return, per cluster, the images that its binlog shows its applier gave these rows."""
    return {name: recorded_images(list(keyless_epochs(run, name))) for name in run.manifest.clusters}


def _rows(run: TaskInputs, name: str) -> list[dict[str, Any]]:
    """Return the rows of a cluster's log as `KEYLESS`."""
    paths = [log_part("keyless", name, batch) for batch in run.manifest.batches]
    table = run.history.read_tables(paths, KEYLESS)
    epochs, bounds = table.column("epoch"), (run.part.bounds or {}).get(name)
    last = run.manifest.last_epochs[name] if bounds is None else bounds.last
    kept = pc.less_equal(epochs, pa.scalar(last, pa.uint64()))
    if bounds is not None:
        kept = pc.and_(kept, pc.greater_equal(epochs, pa.scalar(bounds.first, pa.uint64())))
    rows: list[dict[str, Any]] = table.filter(kept).to_pylist()
    return rows


def keyless_epochs(run: TaskInputs, name: str) -> Iterator[BinlogEpoch]:
    """Yield the epochs of a cluster's log, of rows of tables without a primary key alone."""
    yield from _epochs(run, name, _rows(run, name))


def _epochs(run: TaskInputs, name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[BinlogEpoch]:
    """Yield the epochs of a cluster's log, of these rows alone."""
    layouts = run.manifest.layouts(run.numbers)
    for epoch, items in groupby(sorted(rows, key=itemgetter("epoch")), key=itemgetter("epoch")):
        own: dict[int, list[RowChange]] = {}
        consequences = []
        for row in items:
            change = change_of(row, layouts, run, name)
            if row["own"]:
                own.setdefault(row["group"], []).append(change)
            else:
                consequences.append((row["group"], change))
        transactions = (Transaction(epoch, group, tuple(changes)) for group, changes in sorted(own.items()))
        yield BinlogEpoch(epoch, tuple(transactions), (), tuple(consequences), 0, 0)


def changes_older_keyless_rows(run: TaskInputs) -> bool:
    """Whether a cluster's first change of such a row in its log is an update or a delete: the row was there before."""
    return run.manifest.has_rows_without_key and any(
        changes_older_rows(list(keyless_epochs(run, name))) for name in run.manifest.clusters
    )


def transactions_of_equal_rows(run: TaskInputs, rows: TouchedRows, applies: EpochApplies) -> Int32:
    """
    Return the transactions of one epoch that inserted equal rows one right after the other.

    Returns:
        Number of the row, epoch apply, and both groups, as `conflict.engine.columnar.bucket_round.Findings`. int32,
        shape (pairs, 4).
    """
    layouts, names = run.manifest.layouts(run.numbers), list(run.manifest.clusters)
    numbers: dict[tuple[str, bytes], int] = {}
    found: list[tuple[int, int, int, int]] = []
    for side, name in enumerate(names):
        applied = np.flatnonzero(applies.applier != side)
        apply_of = dict(zip(applies.foreign_epoch[applied].tolist(), applied.tolist(), strict=True))
        inserts = [row for row in rows.changes[name] if row["operation"] == Operation.WRITE_ROW]
        last: dict[tuple[int, int], int] = {}
        for row in sorted(inserts, key=itemgetter("epoch", "group", "ordinal")):
            apply, change = apply_of.get(row["epoch"]), change_of(row, layouts, run, name)
            if apply is None:
                continue
            number = numbers.setdefault((change.table, change.key), len(numbers))
            before = last.get((apply, number), row["group"])
            if before != row["group"]:
                found.append((number, apply, before, row["group"]))
            last[apply, number] = row["group"]
    return np.array(found, np.int32).reshape(-1, 4)
