"""
Replays all clusters of a History together, in an order that keeps each one's own and every cause before its effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from conflict.history.causal_order import Judging, interleave
from conflict.history.model import History, Transaction
from conflict.reference.applier import ReplayedCluster
from conflict.reference.row_store import RowKey
from conflict.results.model import Resolution
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.default_values import default_value
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
        skip_missing: Leave out operations that lack a value to compare, instead of stopping their applier.

    Raises:
        HistoryError: The schedule is circular.
    """
    relays = len(history.clusters) > 2
    replayed = {
        cluster.name: ReplayedCluster(cluster, setups[cluster.name], history.layouts, relays, skip_missing)
        for cluster in history.clusters
    }
    for done, (cluster, item) in enumerate(interleave(history), start=1):
        own = replayed[cluster.name]
        if isinstance(item, Transaction):
            own.commit(item)
        elif isinstance(item, Judging):
            own.judge(item.apply, replayed[item.source])
        else:
            own.apply_epoch(item, replayed[item.source])
        progress(done)
    rows = {name: _rows_by_key(own) for name, own in replayed.items()}
    for name, own in replayed.items():
        _collect(own, rows[name])
    first, second = (rows[cluster.name] for cluster in history.clusters[:2])
    return Resolution(
        {name: own.result for name, own in replayed.items()},
        [outcome for own in replayed.values() for outcome in own.outcomes],
        dict(Counter(key[0] for key in first.keys() | second.keys() if first.get(key) != second.get(key))),
    )


def _rows_by_key(own: ReplayedCluster) -> dict[RowKey, tuple[Value, ...]]:
    """Return the final rows of a site, in order of their keys."""
    rows = {}
    for key, row in sorted(own.store.rows.items()):
        table, layout = own.setups[key[0]].table, own.layouts[key[0]]
        rows[key] = tuple(_value(row.payloads, layout, place, column) for place, column in enumerate(table.columns))
    return rows


def _collect(own: ReplayedCluster, rows: Mapping[RowKey, tuple[Value, ...]]) -> None:
    """Fill in the final rows of a site's tables, and its empty tables."""
    result = own.result
    result.versions = {key: (row.epoch, row.local) for key, row in own.store.rows.items()}
    for name, setup in own.setups.items():
        if setup.exceptions is not None:
            result.exceptions.setdefault(setup.exceptions.table.full_name, [])
        if setup.refusal is None:
            result.rows[name] = []
    for (name, _), values in rows.items():
        if name in result.rows:
            result.rows[name].append(values)


def _value(payloads: Mapping[int, bytes | None], layout: RowLayout, place: int, column: Column) -> Value:
    if place in payloads:
        payload = payloads[place]
        return None if payload is None else layout.codecs[place].decode(payload)
    return default_value(column)
