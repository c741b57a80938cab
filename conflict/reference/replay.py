"""
Replays all clusters of a History together, in an order that keeps every cause before its effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from conflict.history.causal_order import interleave
from conflict.history.model import History, Transaction
from conflict.reference.applier import Applier
from conflict.reference.cluster import Effects, ReplayedCluster
from conflict.reference.row_store import NOT_KNOWN, Row, RowKey
from conflict.results.model import Resolution
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.default_values import implied_value
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.values import Value

__all__ = ["resolve"]

FinalRows = dict[RowKey, tuple[Value, ...]]


def resolve(
    history: History,
    setups: Mapping[str, dict[str, TableSetup]],
    progress: Callable[[int], None] = lambda done: None,
    *,
    skip_missing: bool = False,
    shown: Mapping[str, Effects] | None = None,
) -> Resolution:
    """
    Resolve a History change by change.

    Args:
        history: What happened.
        setups: Per cluster, how its server set up each table.
        progress: Called with the number of timeline items done so far.
        skip_missing: Skip operations that lack a value to compare, instead of stopping their applier.
        shown: Per cluster, what its binlog shows of its applier's work; only for a log that starts in the middle.

    Raises:
        HistoryError: The schedule is circular.
    """
    relays = len(history.clusters) > 2
    clusters = {
        cluster.name: ReplayedCluster(
            cluster, setups[cluster.name], history.layouts, relays, skip_missing, (shown or {}).get(cluster.name, {})
        )
        for cluster in history.clusters
    }
    appliers = {name: Applier(cluster) for name, cluster in clusters.items()}
    for done, (cluster, item) in enumerate(interleave(history), start=1):
        if isinstance(item, Transaction):
            clusters[cluster.name].commit(item)
        else:
            appliers[cluster.name].apply_epoch(item, clusters[item.source])
        progress(done)
    rows = {name: _rows_by_key(cluster) for name, cluster in clusters.items()}
    for name, replayed in clusters.items():
        _complete_result(replayed, rows[name])
    first, second = (cluster.name for cluster in history.clusters[:2])
    keys = rows[first].keys() | rows[second].keys()
    return Resolution(
        {name: cluster.result for name, cluster in clusters.items()},
        [outcome for cluster in clusters.values() for outcome in cluster.outcomes],
        dict(Counter(key[0] for key in keys if _differs(key, clusters, rows, first, second))),
    )


def _differs(
    key: RowKey, clusters: Mapping[str, ReplayedCluster], rows: Mapping[str, FinalRows], first: str, second: str
) -> bool:
    """Whether a row is known to be different on two clusters."""
    states = [clusters[name].store.get(key) for name in (first, second)]
    if NOT_KNOWN in states:
        return False
    if None in states:
        return True
    known = key in rows[first] and key in rows[second]
    return known and rows[first][key] != rows[second][key]


def _rows_by_key(cluster: ReplayedCluster) -> FinalRows:
    """Return the final rows of a cluster of which every column is known, in order of their keys."""
    rows = {}
    for key, row in sorted(cluster.store.rows.items()):
        table, layout = cluster.setups[key[0]].table, cluster.layouts[key[0]]
        if columns_not_known(row, table):
            continue
        columns = enumerate(table.columns)
        rows[key] = tuple(_value(row.payloads, layout, ordinal, column) for ordinal, column in columns)
    return rows


def _complete_result(cluster: ReplayedCluster, rows: Mapping[RowKey, tuple[Value, ...]]) -> None:
    """Add the final rows of a cluster to its result, and the tables that are empty."""
    result = cluster.result
    result.versions = {key: (row.epoch, row.local) for key, row in cluster.store.rows.items() if row.dated}
    _count_not_known(cluster)
    for name, setup in cluster.setups.items():
        if setup.exceptions is not None:
            result.exceptions.setdefault(setup.exceptions.table.full_name, [])
        if setup.refusal is None:
            result.rows[name] = []
    for (name, _), values in rows.items():
        if name in result.rows:
            result.rows[name].append(values)


def columns_not_known(row: Row, table: Table) -> int:
    """Return how many stored columns of a row are not known."""
    if not row.partial:
        return 0
    stored = (place for place, column in enumerate(table.columns) if column.generated != "virtual")
    return sum(place not in row.payloads for place in stored)


def _count_not_known(cluster: ReplayedCluster) -> None:
    """Count the rows that nothing told of, those that are known in part, and the columns that they lack."""
    for key in cluster.met:
        if cluster.store.get(key) is NOT_KNOWN:
            cluster.result.unknown_of(key[0]).rows += 1
    for key, row in cluster.store.rows.items():
        columns = columns_not_known(row, cluster.setups[key[0]].table)
        if columns:
            cluster.result.unknown_of(key[0]).rows_in_part += 1
            cluster.result.unknown_of(key[0]).columns += columns


def _value(payloads: Mapping[int, bytes | None], layout: RowLayout, ordinal: int, column: Column) -> Value:
    if ordinal in payloads:
        payload = payloads[ordinal]
        return None if payload is None else layout.codecs[ordinal].decode(payload)
    return implied_value(column)
