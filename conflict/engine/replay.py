"""
Replays all clusters of a History together, in an order that keeps each one's own and every cause before its effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from conflict.engine.applier import Site
from conflict.engine.row_store import RowKey
from conflict.errors import HistoryError
from conflict.history import Cluster, History, Take, Timeline, Transaction
from conflict.resolution import Resolution
from conflict.setup import TableSetup
from ndb_formats.default_values import default_value
from ndb_formats.row_image import RowLayout
from ndb_formats.schema import Column
from ndb_formats.values import Value

__all__ = ["Item", "Judging", "interleave", "resolve"]


@attrs.frozen
class Judging:
    """The moment at which an applier looks for transactions in conflict, some time before it commits."""

    take: Take

    @property
    def source(self) -> str:
        """Name of the cluster whose epoch it is."""
        return self.take.source

    @property
    def foreign_epoch(self) -> int:
        """That cluster's epoch."""
        return self.take.foreign_epoch

    @property
    def epoch(self) -> int:
        """Own epoch in which it stands."""
        return self.take.judged[0] if self.take.judged else self.take.epoch


Item = Transaction | Take | Judging


def _with_judging(timeline: Timeline) -> list[Item]:
    """Return a timeline with the moments that its takes name put in."""
    items: list[Item] = []
    for item in timeline:
        if isinstance(item, Take) and item.judged is not None:
            place = len(items)
            while place and (items[place - 1].epoch, getattr(items[place - 1], "group", -1)) > item.judged:
                place -= 1
            items.insert(place, Judging(item))
        items.append(item)
    return items


def interleave(history: History) -> Iterator[tuple[Cluster, Item]]:
    """
    Yield the items of all timelines in one order that respects cause and effect.

    An epoch can be taken once everything that its cluster logged in it has happened.

    Raises:
        HistoryError: No such order exists.
    """
    places = dict.fromkeys((cluster.name for cluster in history.clusters), 0)
    timelines = {cluster.name: _with_judging(cluster.timeline) for cluster in history.clusters}
    while True:
        moved = False
        for cluster in history.clusters:
            timeline = timelines[cluster.name]
            while places[cluster.name] < len(timeline):
                item = timeline[places[cluster.name]]
                if isinstance(item, Take | Judging) and not _logged(
                    timelines[item.source], places[item.source], item.foreign_epoch
                ):
                    break
                places[cluster.name] += 1
                moved = True
                yield cluster, item
        if not moved:
            break
    for cluster in history.clusters:
        if places[cluster.name] < len(timelines[cluster.name]):
            item = timelines[cluster.name][places[cluster.name]]
            message = (
                f"the schedule is circular: cluster {cluster.name} takes epoch "
                f"{getattr(item, 'foreign_epoch', '?')} before it can have been made"
            )
            raise HistoryError(message)


def _logged(timeline: Sequence[Item], place: int, epoch: int) -> bool:
    """Whether all that a cluster did in `epoch` lies before `place`."""
    return place == len(timeline) or timeline[place].epoch > epoch


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
    sites = {
        cluster.name: Site(cluster, setups[cluster.name], history.layouts, relays, skip_missing)
        for cluster in history.clusters
    }
    for done, (cluster, item) in enumerate(interleave(history), start=1):
        site = sites[cluster.name]
        if isinstance(item, Transaction):
            site.commit(item)
        elif isinstance(item, Judging):
            site.judge(item.take, sites[item.source])
        else:
            site.take(item, sites[item.source])
        progress(done)
    rows = {name: _rows_by_key(site) for name, site in sites.items()}
    for name, site in sites.items():
        _collect(site, rows[name])
    first, second = (rows[cluster.name] for cluster in history.clusters[:2])
    return Resolution(
        {name: site.result for name, site in sites.items()},
        [outcome for site in sites.values() for outcome in site.outcomes],
        dict(Counter(key[0] for key in first.keys() | second.keys() if first.get(key) != second.get(key))),
    )


def _rows_by_key(site: Site) -> dict[RowKey, tuple[Value, ...]]:
    """Return the final rows of a site, in order of their keys."""
    rows = {}
    for key, row in sorted(site.store.rows.items()):
        table, layout = site.setups[key[0]].table, site.layouts[key[0]]
        rows[key] = tuple(_value(row.payloads, layout, place, column) for place, column in enumerate(table.columns))
    return rows


def _collect(site: Site, rows: Mapping[RowKey, tuple[Value, ...]]) -> None:
    """Fill in the final rows of a site's tables, and its empty tables."""
    result = site.result
    result.versions = {key: (row.epoch, row.local) for key, row in site.store.rows.items()}
    for name, setup in site.setups.items():
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
