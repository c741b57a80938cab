"""What the binlogs hold that a History was made of; see `conflict.results.likely_causes`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.configuration import ClusterConfiguration
from conflict.engine.kernels.arrays import Bool, Int64, UInt64
from conflict.history.grid.epoch_files import read_epochs_of, read_schedule
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest
from conflict.history.grid.schemas import CHANGES, CONSEQUENCES, KEYLESS, log_part, part
from conflict.history.roles import FittingMarks, Mark, mark_of
from conflict.history.run import Run
from conflict.history.scheduling.schedule_columns import role_of
from conflict.history.shown_effects import Effect
from conflict.results.cause_kinds import LikelyCause, LogFacts
from conflict.results.table_causes import of_mark
from conflict.rules.replication_table import Role
from ndb_formats.events.rows_event import ConflictFlag, Operation


def images_of_history(manifest: Manifest) -> dict[str, dict[str, set[str]]]:
    """Return which columns the images of each cluster's own changes carry, by table."""
    found: dict[str, dict[str, set[str]]] = {name: {} for name in manifest.clusters}
    for name, segments in manifest.segments.items():
        for segment in segments:
            for table, texts in segment.images.items():
                found[name].setdefault(table, set()).update(texts)
    return {name: dict(sorted(tables.items())) for name, tables in found.items()}


def marked_otherwise(run: Run, history: Folder, manifest: Manifest) -> Iterator[LikelyCause]:
    """Yield what the marks of rows point to that no setup of their table allows in the role that their cluster had."""
    fitting, last = FittingMarks.of(run.setups.over_time.values()), run.setups.at_end
    for cluster in run.clusters:
        name, known = cluster.name, run.definitions.get(cluster.name)
        moments = [last[name]] if known is None else [each.setups for each in known.moments]
        wrong = {
            (table, mark)
            for role, table, mark in _marks(cluster, history, manifest)
            if not any(mark in fitting.marks(setups, table, role) for setups in moments if table in setups)
        }
        for table, mark in sorted(wrong):
            yield of_mark(name, last[name][table], mark)


def _marks(cluster: ClusterConfiguration, history: Folder, manifest: Manifest) -> set[tuple[Role, str, Mark]]:
    """Return the marks of the rows that an applier changed, with their tables and its role then."""
    name = cluster.name
    schedule = read_schedule(history, [name])[name]
    if not schedule.roles:
        segments = manifest.segments[name]
        found = {(table, mark) for each in segments for table, marks in each.marks.items() for mark in marks}
        return {(cluster.role, table, Mark(mark)) for table, mark in found}
    rows = _column(history, manifest, "consequences", name, CONSEQUENCES, ["epoch", "group", "table", "flags"])
    epoch, group, table, flags = (column.to_numpy() for column in rows.columns)
    traced = schedule.chosen(schedule["traced"])
    number = np.zeros(len(rows), np.int64)  # of the last change of the role before each row
    changes = np.append(-1, np.flatnonzero(np.diff(traced["role"]))) + 1
    for place in changes[1:].tolist():
        at, own = traced["epoch"][place], traced["group"][place]
        number += (epoch > at) | ((epoch == at) & (group >= own))
    kinds = np.unique(np.stack([number, table.astype(np.int64), flags.astype(np.int64)]), axis=1)
    return {
        (role_of(int(traced["role"][changes[place]])) or cluster.role, list(manifest.tables)[of], mark)
        for place, of, bits in kinds.T.tolist()
        if (mark := mark_of(ConflictFlag(bits))) is not None
    }


def lacks_something(history: Folder, manifest: Manifest) -> bool:
    """Whether a binlog shows no epoch or no change of the other cluster, or row changes without a transaction id."""
    if traced_clusters(history, manifest) != set(manifest.clusters):
        return True
    if not all(any(map(history.exists, _paths(manifest, "consequences", name))) for name in manifest.clusters):
        return True
    return any(
        history.may_be_null(path, "transaction_id")
        for name in manifest.clusters
        for path in _paths(manifest, "changes", name)
    )


def traced_clusters(history: Folder, manifest: Manifest) -> set[str]:
    """Return the clusters whose binlogs show epochs that their appliers took."""
    schedule = read_schedule(history, list(manifest.clusters))
    return {name for name, own in schedule.items() if own["traced"].any()}


def roles_change(history: Folder, manifest: Manifest) -> bool:
    """Whether the role of a cluster is known to change."""
    return any(own.roles for own in read_schedule(history, list(manifest.clusters)).values())


def facts_of_history(history: Folder, manifest: Manifest) -> dict[str, LogFacts]:
    """Return what the binlog of each cluster holds."""
    return {name: _facts(history, manifest, name) for name in manifest.clusters}


def _facts(history: Folder, manifest: Manifest, name: str) -> LogFacts:
    rows = _column(history, manifest, "changes", name, CHANGES, ["operation", "transaction_id", "table"])
    effects = _column(history, manifest, "consequences", name, CONSEQUENCES, ["epoch", "group", "table", "effect"])
    keyless = _keyless(history, manifest, name)
    rows, effects = (
        pa.concat_tables(
            [each, keyless.filter(own).select(set(each.column_names) - {"effect"})], promote_options="default"
        )
        for each, own in ((rows, pc.field("own")), (effects, ~pc.field("own")))
    )
    rows = rows.filter(pc.less_equal(rows.column("operation"), max(Operation)))
    identities = rows.column("transaction_id")
    places, counts = np.unique(
        np.stack([effects.column(each).to_numpy().astype(np.uint64) for each in ("epoch", "group")], axis=1),
        axis=0,
        return_counts=True,
    )
    applied, known = applied_at(read_epochs_of(history, name, manifest.batches, ["number", "applied_group"]), places)
    return LogFacts(
        len(identities),
        identities.null_count,
        applied,
        len(effects),
        int(counts[~known].sum()),
        refreshed=pc.any(pc.is_in(effects.column("effect"), value_set=_REFRESHES)).as_py() or False,
        changed_tables=_tables(manifest, rows),
        applied_tables=_tables(manifest, effects),
    )


def applied_at(epochs: Iterable[pa.Table], places: UInt64) -> tuple[int, Bool]:
    """
    Return how many epochs a cluster's binlog shows as applied, and at which own positions one of them was.

    Args:
        epochs: Its epochs part by part, as there can be very many: columns `number` and `applied_group` of `EPOCHS`.
        places: Own positions (epoch, group), sorted. Shape (positions, 2).
    """
    applied, known = 0, np.zeros(len(places), np.bool_)
    for table in epochs:
        number, lists = table.column("number").to_numpy(), table.column("applied_group")
        counts, groups = pc.list_value_length(lists).to_numpy(), pc.list_flatten(lists).to_numpy()
        applied += len(groups)
        first, stop = np.searchsorted(places[:, 0], number[0]), np.searchsorted(places[:, 0], number[-1], "right")
        epoch, group = places[first:stop].T
        place = np.searchsorted(number, epoch)
        there = np.stack([place, group.astype(np.int64)], axis=1)
        shown = np.stack([np.repeat(np.arange(len(number)), counts), groups.astype(np.int64)], axis=1)
        known[first:stop] |= (number[place] == epoch) & np.isin(_numbered(there), _numbered(shown))
    return applied, known


def _numbered(places: Int64) -> Int64:
    """Return one number for each (place, group)."""
    return (places[:, 0] << 32) + places[:, 1]


_REFRESHES = pa.array([Effect.REFRESHED, Effect.REFRESHED_ABSENT], pa.int8())


def _tables(manifest: Manifest, rows: pa.Table) -> frozenset[str]:
    """Return the names of the tables of some rows."""
    names = list(manifest.tables)
    return frozenset(names[number] for number in pc.unique(rows.column("table")).to_pylist())


def _keyless(history: Folder, manifest: Manifest, name: str) -> pa.Table:
    """Return what a cluster's log has of rows of tables without a primary key."""
    paths = [log_part("keyless", name, batch) for batch in manifest.batches]
    columns = ("own", "operation", "transaction_id", "table", "epoch", "group")
    return history.read_tables(paths, pa.schema([KEYLESS.field(column) for column in columns]))


def _column(
    history: Folder, manifest: Manifest, kind: str, name: str, schema: pa.Schema, columns: Sequence[str]
) -> pa.Table:
    schema = pa.schema([schema.field(column) for column in columns])
    return history.read_tables(_paths(manifest, kind, name), schema)


def _paths(manifest: Manifest, kind: str, name: str) -> list[str]:
    return [part(kind, name, bucket, batch) for bucket in range(manifest.buckets) for batch in manifest.batches]
