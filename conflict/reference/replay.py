"""
Replays all clusters of a History together, in an order that keeps every cause before its effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from conflict.history.causal_order import Judging, interleave
from conflict.history.model import History, Transaction
from conflict.reference.applier import Applier
from conflict.reference.cluster import ReplayedCluster
from conflict.reference.row_store import RowKey
from conflict.results.model import Resolution
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.default_values import implied_value
from ndb_formats.schema.tables import Column
from ndb_formats.types.values import Value

__all__ = ["resolve"]


def resolve(
    history: History,
    setups: Mapping[str, dict[str, TableSetup]],
    progress: Callable[[int], None] = lambda done: None,
    *,
    skip_missing: bool = False,
) -> Resolution:
    """
    Resolve a History change by change.

    Args:
        history: What happened.
        setups: Per cluster, how its server set up each table.
        progress: Called with the number of timeline items done so far.
        skip_missing: Skip operations that lack a value to compare, instead of stopping their applier.

    Raises:
        HistoryError: The schedule is circular.
    """
    relays = len(history.clusters) > 2
    clusters = {
        cluster.name: ReplayedCluster(cluster, setups[cluster.name], history.layouts, relays, skip_missing)
        for cluster in history.clusters
    }
    appliers = {name: Applier(cluster) for name, cluster in clusters.items()}
    for done, (cluster, item) in enumerate(interleave(history), start=1):
        if isinstance(item, Transaction):
            clusters[cluster.name].commit(item)
        elif isinstance(item, Judging):
            appliers[cluster.name].judge(item.apply, clusters[item.source])
        else:
            appliers[cluster.name].apply_epoch(item, clusters[item.source])
        progress(done)
    rows = {name: _rows_by_key(cluster) for name, cluster in clusters.items()}
    for name, replayed in clusters.items():
        _complete_result(replayed, rows[name])
    first, second = (rows[cluster.name] for cluster in history.clusters[:2])
    return Resolution(
        {name: cluster.result for name, cluster in clusters.items()},
        [outcome for cluster in clusters.values() for outcome in cluster.outcomes],
        dict(Counter(key[0] for key in first.keys() | second.keys() if first.get(key) != second.get(key))),
    )


def _rows_by_key(cluster: ReplayedCluster) -> dict[RowKey, tuple[Value, ...]]:
    """Return the final rows of a cluster, in order of their keys."""
    rows = {}
    for key, row in sorted(cluster.store.rows.items()):
        table, layout = cluster.setups[key[0]].table, cluster.layouts[key[0]]
        columns = enumerate(table.columns)
        rows[key] = tuple(_value(row.payloads, layout, ordinal, column) for ordinal, column in columns)
    return rows


def _complete_result(cluster: ReplayedCluster, rows: Mapping[RowKey, tuple[Value, ...]]) -> None:
    """Add the final rows of a cluster to its result, and the tables that are empty."""
    result = cluster.result
    result.versions = {key: (row.epoch, row.local) for key, row in cluster.store.rows.items()}
    for name, setup in cluster.setups.items():
        if setup.exceptions is not None:
            result.exceptions.setdefault(setup.exceptions.table.full_name, [])
        if setup.refusal is None:
            result.rows[name] = []
    for (name, _), values in rows.items():
        if name in result.rows:
            result.rows[name].append(values)


def _value(payloads: Mapping[int, bytes | None], layout: RowLayout, ordinal: int, column: Column) -> Value:
    if ordinal in payloads:
        payload = payloads[ordinal]
        return None if payload is None else layout.codecs[ordinal].decode(payload)
    return implied_value(column)
