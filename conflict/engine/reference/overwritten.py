"""
Changes of users that an applier overwrote with changes that had not seen them, change by change.

Computes docs/compare.md, "Lost updates"; `conflict.engine.columnar.writing.overwritten` finds the same with arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from conflict.engine.ledger.resolution import LastWrite, Outcome, OverwrittenChange
from conflict.history.model import Cluster, History
from conflict.history.timeline import DefinitionChange, EpochApply, RowChange, Transaction
from conflict.rules.decision import Verdict
from conflict.rules.lost_updates import RowWrite, overwrite, write
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table


@attrs.frozen
class _Made:
    """A change that a cluster made itself, its transaction's epoch and group, and its place in the timeline."""

    change: RowChange
    epoch: int
    group: int
    place: int


# The two operations as which an applier takes an update that spells its key anew.
_RESPELLED = Operation.DELETE_ROW, Operation.WRITE_ROW
# Changes by cluster, own epoch, and number among the own changes of that epoch.
_Changes = Mapping[tuple[str, int, int], _Made]
_Received = Mapping[tuple[str, int, int], tuple[int, int | None]]


def overwritten_changes(
    history: History, tables: Mapping[str, Mapping[str, Table]], outcomes: Sequence[Outcome]
) -> dict[str, list[OverwrittenChange]]:
    """
    Return, per cluster, its changes that its applier overwrote, each with the first change that did.

    Nothing is found where clusters log for a third one what they applied: there a change arrives by several ways. Rows
    without a primary key are left out; they cannot be told apart.

    Args:
        history: What happened.
        tables: Per cluster, all tables that it ever had.
        outcomes: What became of every operation.
    """
    if history.relays:
        return {cluster.name: [] for cluster in history.clusters}
    changes = {place: made for cluster in history.clusters for place, made in _made(cluster).items()}
    applied = {cluster.name: _applied(cluster, outcomes) for cluster in history.clusters}
    received = _received(applied)
    return {
        cluster.name: _of_cluster(cluster, tables[cluster.name], (changes, received), applied[cluster.name])
        for cluster in history.clusters
    }


def _made(cluster: Cluster) -> dict[tuple[str, int, int], _Made]:
    """Return the changes that a cluster made itself."""
    found: dict[tuple[str, int, int], _Made] = {}
    numbers: dict[int, int] = {}
    for place, item in enumerate(cluster.timeline):
        if isinstance(item, Transaction):
            for change in item.changes:
                number = numbers.get(item.epoch, 0)
                numbers[item.epoch] = number + 1
                found[cluster.name, item.epoch, number] = _Made(change, item.epoch, item.group, place)
    return found


def _applied(cluster: Cluster, outcomes: Sequence[Outcome]) -> dict[int, list[Outcome]]:
    """Return the outcomes of users' changes at a cluster's applier, by the places of its epoch applies."""
    by_epoch: dict[tuple[str, int, int], list[dict[int, Outcome]]] = {}
    for each in outcomes:
        if each.applier == cluster.name and each.ordinal >= 0:
            found = by_epoch.setdefault((each.source, each.source_epoch, each.epoch), [{}])
            earlier = found[-1].get(each.ordinal)
            if earlier is not None and (earlier.operation, each.operation) == _RESPELLED:
                verdict = min(earlier.verdict, each.verdict)  # applied, if one of the two was
                found[-1][each.ordinal] = attrs.evolve(each, operation=Operation.UPDATE_ROW, verdict=verdict)
                continue
            if earlier is not None:  # applied again in the same own epoch
                found.append({})
            found[-1][each.ordinal] = each
    applied: dict[int, list[Outcome]] = {}
    for place, item in enumerate(cluster.timeline):
        if isinstance(item, EpochApply) and item.applied:
            parts = by_epoch.get((item.source, item.foreign_epoch, item.epoch))
            applied[place] = list(parts.pop(0).values()) if parts else []
    return applied


def _received(applied: Mapping[str, Mapping[int, Sequence[Outcome]]]) -> _Received:
    """Return, for each change that the other cluster received, the place there, and when its epoch committed."""
    found: dict[tuple[str, int, int], tuple[int, int | None]] = {}
    for own in applied.values():
        for place, outcomes in own.items():
            for each in outcomes:
                found.setdefault((each.source, each.source_epoch, each.ordinal), (place, each.committed))
    return found


def _of_cluster(
    cluster: Cluster,
    tables: Mapping[str, Table],
    known: tuple[_Changes, _Received],
    applied: Mapping[int, Sequence[Outcome]],
) -> list[OverwrittenChange]:
    """Return the changes of one cluster that were overwritten, in the order of its log."""
    changes, received = known
    authors: dict[tuple[str, bytes], dict[int, tuple[str, int, int]]] = {}
    own: dict[int, list[tuple[str, int, int]]] = {}
    for key, made in changes.items():
        if key[0] == cluster.name:
            own.setdefault(made.place, []).append(key)
    found: dict[tuple[str, int, int], OverwrittenChange] = {}
    for place, item in enumerate(cluster.timeline):
        if isinstance(item, DefinitionChange):
            authors = {row: each for row, each in authors.items() if row[0] not in item.step.emptied}
        for key in own.get(place, ()):
            change = changes[key].change
            if not change.keyless and change.table in tables:
                row = change.table, change.key
                authors[row] = write(authors.get(row, {}), key, _row_write(change, tables))
        for outcome in applied.get(place, ()):
            key = outcome.source, outcome.source_epoch, outcome.ordinal
            if outcome.verdict is not Verdict.APPLIED or key not in changes or outcome.table not in tables:
                continue
            other = changes[key]
            if other.change.keyless:
                continue
            row = other.change.table, other.change.key
            authors[row], over = overwrite(authors.get(row, {}), key, _row_write(other.change, tables))
            for author in over:
                seen = received.get(author, (other.place, None))[0] < other.place
                if author[0] == cluster.name and not seen and author not in found:
                    found[author] = _overwritten(changes[author], outcome, received.get(author))
    return [found[key] for key in changes if key in found]


def _row_write(change: RowChange, tables: Mapping[str, Table]) -> RowWrite:
    table = tables[change.table]
    columns = frozenset(range(len(table.columns))).difference(table.key_ordinals)
    updated = frozenset(change.after.present if change.after is not None else ()) & columns
    return RowWrite(change.operation, updated, columns)


def _overwritten(made: _Made, by: Outcome, received: tuple[int, int | None] | None) -> OverwrittenChange:
    winner = LastWrite(by.source, by.source_epoch, by.operation, by.refresh, by.origin)
    committed = None if received is None else received[1]
    return OverwrittenChange(made.change, made.epoch, made.group, committed, by.epoch, winner)
