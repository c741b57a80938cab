"""
Replays all clusters of a History together, in an order that keeps every cause before its effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from conflict.engine.ledger.resolution import Resolution
from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import ReplayedCluster
from conflict.engine.reference.overwritten import overwritten_changes
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.model import History
from conflict.history.scheduling.placing import interleave
from conflict.history.timeline import DefinitionChange, EpochApply, Transaction
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.default_values import implied_value
from ndb_formats.schema.tables import Column, Table
from ndb_formats.schema.value_conversions import NOT_KNOWN, KnownValue
from ndb_formats.types.values import Value

FinalRows = dict[RowKey, tuple[Value, ...]]


def resolve(
    history: History,
    setups: Mapping[str, dict[str, TableSetup]],
    progress: Callable[[int], None] = lambda done: None,
    *,
    skip_missing: bool = False,
) -> Resolution:
    """
    Resolve a History that begins with no rows, every row judged at the commit of its epoch.

    Args:
        history: What happened; `conflict.engine.inference.replay` resolves one with more that binlogs do not show.
        setups: Per cluster, how its server set up each table.
        progress: Called with the number of timeline items done so far.
        skip_missing: Skip operations that lack a value to compare, instead of stopping their applier.

    Raises:
        HistoryError: The schedule is circular.
    """
    for each in history.clusters:
        moments = any(isinstance(item, EpochApply) and item.moments for item in each.timeline)
        assert each.start is None, "its log starts in the middle"
        assert not moments, "rows were judged before the commit"
    clusters = (
        ReplayedCluster(each, setups[each.name], history.layouts, history.relays, skip_missing)
        for each in history.clusters
    )
    return replay(history, {cluster.name: Applier(cluster) for cluster in clusters}, progress)


def play(
    history: History, appliers: Mapping[str, Applier], progress: Callable[[int], None] = lambda done: None
) -> dict[str, dict[str, Table]]:
    """
    Let clusters, which have done nothing yet, do what a History says.

    Args:
        history: What happened.
        appliers: The applier of each cluster.
        progress: Called with the number of timeline items done so far.

    Returns:
        Per cluster, all tables that it ever had.

    Raises:
        HistoryError: The schedule is circular.
    """
    clusters = {name: applier.cluster for name, applier in appliers.items()}
    tables = {name: _tables(each) for name, each in clusters.items()}
    for done, (cluster, item) in enumerate(interleave(history), start=1):
        if isinstance(item, Transaction):
            clusters[cluster.name].commit(item)
        elif isinstance(item, DefinitionChange):
            clusters[cluster.name].define(item)
            tables[cluster.name].update(_tables(clusters[cluster.name]))
        else:
            appliers[cluster.name].apply_epoch(item, clusters[item.source])
        progress(done)
    return tables


def replay(
    history: History, appliers: Mapping[str, Applier], progress: Callable[[int], None] = lambda done: None
) -> Resolution:
    """Do as `play`, and return what came out."""
    tables = play(history, appliers, progress)
    clusters = {name: applier.cluster for name, applier in appliers.items()}
    rows = {name: _rows_by_key(cluster) for name, cluster in clusters.items()}
    for name, replayed in clusters.items():
        _complete_result(replayed, rows[name])
    first, *others = clusters.values()
    differing = {key for each in others for key in _differing(first, each, rows)}
    outcomes = [outcome for cluster in clusters.values() for outcome in cluster.outcomes]
    for name, found in overwritten_changes(history, tables, outcomes).items():
        clusters[name].result.overwritten = found
    return Resolution(
        {name: cluster.result for name, cluster in clusters.items()},
        outcomes,
        dict(Counter(table for table, _ in differing)),
    )


def _tables(cluster: ReplayedCluster) -> dict[str, Table]:
    return {name: setup.table for name, setup in cluster.setups.items()}


def _rows_by_key(cluster: ReplayedCluster) -> FinalRows:
    """Return the final rows of a cluster whose columns are all known, in order of their keys."""
    rows = {}
    for key, row in sorted(cluster.store.rows.items()):
        if key[0] not in cluster.setups:
            continue  # the table was dropped
        (table, places), layout = cluster.setups[key[0]].stored, cluster.layouts[key[0]]
        if columns_not_known(row, cluster.setups[key[0]]):
            continue
        columns = zip(places, table.columns, strict=True)
        values = tuple(_value(row.payloads, layout, place, column) for place, column in columns)
        rows.update({(key[0], key[1] + bytes(copy)): values for copy in range(row.copies)})
    return rows


def differing_rows(first: ReplayedCluster, second: ReplayedCluster) -> set[RowKey]:
    """
    Return the rows that are known to differ between two clusters, in the columns that both have.

    A row of a table without a primary key has an identity of its own here.
    """
    return set(_differing(first, second, {each.name: _rows_by_key(each) for each in (first, second)}))


def _differing(first: ReplayedCluster, second: ReplayedCluster, rows: Mapping[str, FinalRows]) -> Iterator[RowKey]:
    """Yield the rows that are known to differ between two clusters, in the columns that both have."""
    common: dict[str, tuple[list[int], list[int]]] = {}
    mine, theirs = rows[first.name], rows[second.name]
    keys = mine.keys() | theirs.keys()
    apart = {name for name in {name for name, _ in keys} if _have_other_identities(first, second, name)}
    for name in apart:
        yield from _differing_copies(name, (first, second), (mine, theirs))
    in_part = _rows_in_part(first, second)
    # Without a primary key, rows of which not all is known cannot be told from each other.
    apart |= {name for name, _ in in_part if not _has_key(name, first, second)}
    for key in keys:
        if key[0] in apart:
            continue
        if key[0] not in common:
            common[key[0]] = common_columns(first.setups.get(key[0]), second.setups.get(key[0]))
        states = [each.store.get(key) if key[0] in each.setups else None for each in (first, second)]
        if key in mine and key in theirs:
            pairs = zip(*common[key[0]], strict=True)
            if any(mine[key][place] != theirs[key][other] for place, other in pairs):
                yield key
        elif None in states:
            yield key
    yield from (key for key in in_part if key[0] not in apart and _differs_in_part(key, first, second))


def _has_key(name: str, *clusters: ReplayedCluster) -> bool:
    return any(each.setups[name].table.primary_key for each in clusters if name in each.setups)


def _rows_in_part(*clusters: ReplayedCluster) -> set[RowKey]:
    """Return the rows with values of a statement that nobody knows; all else is known of them."""
    return {
        key
        for cluster in clusters
        for key, row in cluster.store.rows.items()
        if key[0] in cluster.setups and _is_in_part(cluster, key, row)
    }


def _is_in_part(cluster: ReplayedCluster, key: RowKey, row: Row) -> bool:
    setup = cluster.setups[key[0]]
    return row.lacking(_stored(setup.table)) <= row.unknown and columns_not_known(row, setup) > 0


def _differs_in_part(key: RowKey, *clusters: ReplayedCluster) -> bool:
    """Whether such a row differs in what is known of it on both clusters, or exists on one alone."""
    values = []
    for cluster in clusters:
        row = cluster.store.get(key) if key[0] in cluster.setups else None
        if row is None:
            return True
        if not _is_in_part(cluster, key, row) and columns_not_known(row, cluster.setups[key[0]]):
            return False  # it is older than the log
        values.append(dict(zip(cluster.setups[key[0]].stored[1], _values_in_part(cluster, key), strict=True)))
    first, second = values
    both = ((first[place], second[place]) for place in first.keys() & second.keys())
    return any(NOT_KNOWN not in pair and pair[0] != pair[1] for pair in both)


def _values_in_part(cluster: ReplayedCluster, key: RowKey) -> tuple[KnownValue, ...]:
    """Return the stored values of a row, as far as they are known."""
    (table, places), layout, row = cluster.setups[key[0]].stored, cluster.layouts[key[0]], cluster.store.rows[key]
    return tuple(
        NOT_KNOWN
        if place not in row.payloads and (place in row.unknown or cluster.setups[key[0]].is_open(column))
        else _value(row.payloads, layout, place, column)
        for place, column in zip(places, table.columns, strict=True)
    )


def _have_other_identities(first: ReplayedCluster, second: ReplayedCluster, name: str) -> bool:
    """Whether a table without a primary key has other columns on the one cluster, and so its rows other identities."""
    found = [each.setups[name] for each in (first, second) if name in each.setups]
    return len(found) > 1 and not found[0].table.primary_key and found[0].shown[1] != found[1].shown[1]


def _differing_copies(
    name: str, clusters: tuple[ReplayedCluster, ReplayedCluster], rows: tuple[FinalRows, FinalRows]
) -> Iterator[RowKey]:
    """Yield the rows of such a table that one cluster has more often than the other, by the columns that both have."""
    if not all(each.store.holds_all(name) for each in clusters) or any(_lacks_values(name, each) for each in clusters):
        return
    counts = []
    for own, places in zip(rows, common_columns(*(each.setups[name] for each in clusters)), strict=True):
        counts.append(Counter(tuple(own[key][place] for place in places) for key in own if key[0] == name))
    more, less = counts[0] - counts[1], counts[1] - counts[0]
    for values, count in (more + less).items():
        yield from ((name, repr(values).encode() + bytes(copy)) for copy in range(count))


def _lacks_values(name: str, cluster: ReplayedCluster) -> bool:
    """Whether some columns of rows of a table are not known."""
    setup = cluster.setups[name]
    return any(columns_not_known(row, setup) for key, row in cluster.store.rows.items() if key[0] == name)


def common_columns(first: TableSetup | None, second: TableSetup | None) -> tuple[list[int], list[int]]:
    """Return the ordinals on both clusters of the columns that both have."""
    if first is None or second is None:
        return [], []
    (_, places), (_, others) = first.stored, second.stored
    shared = [place for place in places if place in others]
    return [places.index(place) for place in shared], [others.index(place) for place in shared]


def _complete_result(cluster: ReplayedCluster, rows: Mapping[RowKey, tuple[Value, ...]]) -> None:
    """Add the final rows of a cluster to its result, and the tables that are empty."""
    result = cluster.result
    result.versions = {key: (row.epoch, row.local) for key, row in cluster.store.rows.items()}
    for name, setup in cluster.setups.items():
        if setup.exceptions is not None:
            result.exceptions.setdefault(setup.exceptions.table.full_name, [])
        if setup.refusal is None:
            result.rows[name] = []
    for key in sorted(_rows_in_part(cluster)):
        if key[0] in result.rows:
            found = result.rows_in_part.setdefault(key[0], [])
            found += [_values_in_part(cluster, key)] * cluster.store.rows[key].copies
    for (name, _), values in rows.items():
        if name in result.rows:
            result.rows[name].append(values)


def columns_not_known(row: Row, setup: TableSetup) -> int:
    """Return how many stored columns of a row are not known: nothing showed them, or the server computed them."""
    stored = _stored(setup.table)
    computed = {place for place, column in stored.items() if setup.is_open(column) and place not in row.payloads}
    return len(row.lacking(stored) | computed)


def _stored(table: Table) -> dict[int, Column]:
    return {place: column for place, column in enumerate(table.columns) if column.generated != "virtual"}


def _value(payloads: Mapping[int, bytes | None], layout: RowLayout, ordinal: int, column: Column) -> Value:
    if ordinal in payloads:
        payload = payloads[ordinal]
        return None if payload is None else layout.codecs[ordinal].decode(payload)
    return implied_value(column)
