"""
Rows that are older than the log: whether a History changes some, and what they were before the log starts.

Computes docs/run-file.md, "A log that starts in the middle".
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from conflict.engine.columnar.bucket import Bucket
from conflict.engine.columnar.setups import ClusterSetup, rules_of, transactional_tables
from conflict.engine.kernels.apply_order import start_arrivals
from conflict.engine.kernels.arrays import Bool, EpochApplies, Int64, RowMoments
from conflict.engine.kernels.first_events import (
    NEVER_MET,
    OPEN,
    FirstEvents,
    Limits,
    ShownEffects,
    find_first_states,
)
from conflict.engine.kernels.records import ROW_STATE, Work, packed_changes, packed_schedule
from conflict.history.grid.columns import GridColumns, columns_of_bucket
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.rules.decision import extreme_values, stored_precision
from ndb_formats.columnar.kernel import each_read_only
from ndb_formats.events.rows_event import Operation


def changes_older_rows(history: Folder, manifest: Manifest) -> bool:
    """Whether a cluster's first change of a row in its log is an update or a delete: the row was there before."""
    return any(
        _changes_older_rows(history, manifest, cluster, bucket)
        for cluster in manifest.clusters
        for bucket in range(manifest.buckets)
    )


def _changes_older_rows(history: Folder, manifest: Manifest, cluster: str, bucket: int) -> bool:
    own, shown = (columns_of_bucket(history, manifest, kind, cluster, bucket) for kind in ("changes", "consequences"))
    keys = 1 + max(int(each.array("key").max(initial=-1)) for each in (own, shown))
    first, other = _first_rows(own, keys), _first_rows(shown, keys)
    older = np.flatnonzero(first >= 0)
    older = older[own.array("operation")[first[older]] != Operation.WRITE_ROW]
    mine, theirs = first[older], other[older]
    epoch, group = own.array("epoch")[mine], own.array("group")[mine]
    seen = theirs >= 0
    applied = np.zeros(len(older), np.bool_)
    shown_epoch, shown_group = shown.array("epoch")[theirs[seen]], shown.array("group")[theirs[seen]]
    applied[seen] = (shown_epoch < epoch[seen]) | ((shown_epoch == epoch[seen]) & (shown_group < group[seen]))
    return bool((~applied).any())


def _first_rows(rows: GridColumns, keys: int) -> Int64:
    """Return the first row of each key; -1 for none. Shape (keys,)."""
    key = rows.array("key")
    first = np.full(keys, -1, np.int64)
    first[key[::-1]] = np.arange(len(key) - 1, -1, -1)
    return first


@attrs.frozen(eq=False)
class OlderRows:
    """
    What the rows of a bucket were before the log starts.

    Attributes:
        first: What the first events tell.
        never_met: Rows that nothing in the log names. Shape (clusters, keys).
        left_open: Rows that are left to the reference engine. Shape (keys,).
    """

    first: FirstEvents
    never_met: Bool
    left_open: Bool

    @property
    def were_there(self) -> Bool:
        """Which rows are taken to have been there. Shape (keys, clusters)."""
        return np.asarray(self.first.states["exists"] & ~self.left_open[:, None])

    def leave_open(self, keys: Int64) -> OlderRows:
        """Leave more rows to the reference engine."""
        left_open = self.left_open.copy()
        left_open[keys] = True
        return attrs.evolve(self, left_open=left_open)


def older_applies(applies: EpochApplies, starts: Sequence[int]) -> Bool:
    """Return which epoch applies take epochs from before the log starts; `starts` as in `find_older_rows`."""
    return np.asarray(applies.foreign_epoch < np.array(starts, np.uint64)[1 - applies.applier])


def find_older_rows(
    bucket: Bucket,
    clusters: Sequence[ClusterSetup],
    applies: EpochApplies,
    starts: Sequence[int],
    any_shown: tuple[bool, bool],
) -> OlderRows:
    """
    Find what rows were before the log starts, as far as the first event of each tells.

    Args:
        bucket: The bucket.
        clusters: Both clusters.
        applies: All epoch applies.
        starts: Per cluster, the first own epoch of its log.
        any_shown: Whether the binlog of each cluster shows anything of its applier's work, in any bucket.
    """
    keys = len(bucket.key_table)
    schedule, changes = packed_schedule(applies), packed_changes(bucket.rows)
    work = Work.of(bucket.key_table, changes, applies, RowMoments.none(), 1, keeping=False)
    start_arrivals(schedule, changes, work)
    states = np.zeros((keys, 2), ROW_STATE)
    states["table"] = bucket.key_table[:, None]
    found = FirstEvents(
        states, np.zeros((keys, 2), np.int8), np.full((keys, 2), -1, np.int32), np.full((keys, 2), -1, np.int32)
    )
    shown = _shown(bucket.consequences, any_shown)
    find_first_states(schedule, changes, work, rules_of(clusters), _limits(clusters, starts), shown, found)
    left_open = (found.knowledge == OPEN).any(axis=1)
    for side in (0, 1):
        left_open[_of_older_epochs(bucket.consequences[side], applies, side, starts[1 - side])] = True
    return OlderRows(found, (found.knowledge == NEVER_MET).T, left_open)


def _shown(consequences: Sequence[GridColumns], any_shown: tuple[bool, bool]) -> ShownEffects:
    columns = []
    for side in consequences:
        side.read(["epoch", "group", "key", "effect"])
        arrays = [side.array(name) for name in ("epoch", "group", "key", "effect")]
        order = np.lexsort((arrays[1], arrays[0]))
        columns.append([array[order] for array in arrays])
    first, total = len(columns[0][0]), sum(len(side[0]) for side in columns)
    joined = each_read_only(*(np.concatenate(pair) for pair in zip(*columns, strict=True)))
    return ShownEffects._make([*joined, (0, first), (first, total), any_shown])


def _limits(clusters: Sequence[ClusterSetup], starts: Sequence[int]) -> Limits:
    shape = len(clusters), len(clusters[0].setups)
    newest, least, greatest = (np.zeros(shape, np.uint64) for _ in range(3))
    limits = Limits(newest, least, greatest, *(np.zeros(shape, np.bool_) for _ in range(6)))
    limits.with_transactions[:] = np.any(transactional_tables(clusters), axis=1, keepdims=True)
    for side, cluster in enumerate(clusters):
        for table, setup in enumerate(cluster.setups):
            deployed = setup.deployed(cluster.role)
            limits.reflects[side, table], limits.role_matters[side, table] = deployed.reflects, deployed.as_secondary
            limits.unique[side, table] = bool(setup.table.unique_keys)
            function = deployed.judge
            if function is None:
                continue
            limits.newest[side, table] = stored_precision(starts[side] - 1, function.gci_bits) if starts[side] else 0
            limits.judged_by_epoch[side, table] = function.spec.refreshes
            limits.compares[:, table] |= bool(function.spec.needs)
            if function.column is not None:
                column = setup.table.columns[setup.table.ordinal(function.column)]
                limits.least[:, table], limits.greatest[:, table] = extreme_values(column)
    return Limits(*each_read_only(*limits))


def _of_older_epochs(consequences: GridColumns, applies: EpochApplies, side: int, start: int) -> Int64:
    """Return the keys of rows that epochs changed which the other cluster made before its log starts."""
    mine = (applies.applier == side) & (applies.foreign_epoch < start) & applies.traced
    places = set(zip(applies.epoch[mine].tolist(), applies.group[mine].tolist(), strict=True))
    if not places or not len(consequences):
        return np.zeros(0, np.int64)
    rows = np.flatnonzero(np.isin(consequences.array("epoch"), np.array([epoch for epoch, _ in places], np.uint64)))
    pairs = zip(*(consequences.of_rows(name, rows).tolist() for name in ("epoch", "group")), strict=True)
    chosen = [pair in places for pair in pairs]
    return np.unique(consequences.of_rows("key", rows)[np.array(chosen, np.bool_)])
