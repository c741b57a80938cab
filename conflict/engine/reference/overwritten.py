"""
Changes of users that an applier overwrote with changes that had not seen them, change by change.

Computes docs/compare.md, "Lost updates"; `conflict.engine.columnar.writing.overwritten` finds the same with arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from conflict.engine.ledger.resolution import LastWrite, Outcome, OverwrittenChange
from conflict.engine.reference.row_store import RowKey
from conflict.history.model import Cluster, History
from conflict.history.scheduling.placing import interleave
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
# A change: its cluster, own epoch, and number among the own changes of that epoch.
ChangePlace = tuple[str, int, int]


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
    found = OverwriteSearch(tables)
    if not history.relays:
        found.take(history, outcomes)
    return {cluster.name: found.overwritten(cluster.name) for cluster in history.clusters}


@attrs.define
class OverwriteSearch:
    """
    Who wrote what rows are, in one part of a History after the other.

    Attributes:
        tables: Per cluster, all tables that it ever has.
    """

    tables: Mapping[str, Mapping[str, Table]]
    _made: dict[tuple[str, int], list[_Made]] = attrs.field(factory=dict)  # by cluster and own epoch
    _received: dict[ChangePlace, tuple[int, int | None]] = attrs.field(factory=dict)
    _authors: dict[str, dict[RowKey, dict[int, ChangePlace]]] = attrs.field(factory=dict)
    _found: dict[ChangePlace, Outcome] = attrs.field(factory=dict)
    _places: Counter[str] = attrs.field(factory=Counter)  # how many items of each timeline were taken

    def take(self, history: History, outcomes: Sequence[Outcome]) -> None:
        """
        Take the next part of a History.

        Args:
            history: What happened in it.
            outcomes: What became of every operation in it.
        """
        first = {cluster.name: self._places[cluster.name] for cluster in history.clusters}
        applied = {cluster.name: _applied(cluster, outcomes) for cluster in history.clusters}
        for cluster, item in interleave(history):
            name = cluster.name
            place = self._places[name]
            self._places[name] += 1
            if isinstance(item, Transaction):
                self._commit(name, item, place)
            elif isinstance(item, DefinitionChange):
                authors = self._authors.get(name, {})
                self._authors[name] = {row: each for row, each in authors.items() if row[0] not in item.step.emptied}
            else:
                for outcome in applied[name].get(place - first[name], ()):
                    self._apply(name, outcome, place)

    def _commit(self, name: str, transaction: Transaction, place: int) -> None:
        """Take a transaction of a cluster's own users."""
        made, authors = self._made.setdefault((name, transaction.epoch), []), self._authors.setdefault(name, {})
        for change in transaction.changes:
            key = name, transaction.epoch, len(made)
            made.append(_Made(change, transaction.epoch, transaction.group, place))
            if not change.keyless and change.table in self.tables[name]:
                row = change.table, change.key
                authors[row] = write(authors.get(row, {}), key, _row_write(change, self.tables[name]))

    def _apply(self, name: str, outcome: Outcome, place: int) -> None:
        """Take what became of a change of a user of another cluster at an applier."""
        key = outcome.source, outcome.source_epoch, outcome.ordinal
        self._received.setdefault(key, (place, outcome.committed))
        other = self._change(key)
        if outcome.verdict is not Verdict.APPLIED or other is None or outcome.table not in self.tables[name]:
            return
        if other.change.keyless:
            return
        row, authors = (other.change.table, other.change.key), self._authors.setdefault(name, {})
        left, over = overwrite(authors.get(row, {}), key, _row_write(other.change, self.tables[name]))
        for author in over:
            seen = self._received.get(author, (other.place, None))[0] < other.place
            if author[0] == name and not seen:
                self._found.setdefault(author, outcome)
        # What another cluster wrote is not lost here, so who wrote it does not matter.
        own = {part: author for part, author in left.items() if author[0] == name}
        if own:
            authors[row] = own
        else:
            authors.pop(row, None)

    def _change(self, key: ChangePlace) -> _Made | None:
        name, epoch, number = key
        made = self._made.get((name, epoch), ())
        return made[number] if number < len(made) else None

    def overwritten(self, name: str, epoch: int | None = None) -> list[OverwrittenChange]:
        """Return the changes of a cluster that its applier overwrote, in the order of its log; of all its epochs."""
        places = sorted(key for key in self._found if key[0] == name and epoch in (None, key[1]))
        return [self._overwritten(key) for key in places]

    def _overwritten(self, key: ChangePlace) -> OverwrittenChange:
        made, by, received = self._change(key), self._found[key], self._received.get(key)
        assert made is not None
        winner = LastWrite(by.source, by.source_epoch, by.operation, by.refresh, by.origin)
        committed = None if received is None else received[1]
        return OverwrittenChange(made.change, made.epoch, made.group, committed, by.epoch, winner)

    def forget(self, name: str, epoch: int) -> None:
        """Forget an own epoch of a cluster, whose changes nothing overwrites any more that had not seen them."""
        authors = self._authors.get(name, {})
        for number, made in enumerate(self._made.pop((name, epoch), ())):
            key, row = (name, epoch, number), (made.change.table, made.change.key)
            self._received.pop(key, None)
            self._found.pop(key, None)
            left = {part: author for part, author in authors.get(row, {}).items() if author != key}
            if left:
                authors[row] = left
            else:
                authors.pop(row, None)


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


def _row_write(change: RowChange, tables: Mapping[str, Table]) -> RowWrite:
    table = tables[change.table]
    columns = frozenset(range(len(table.columns))).difference(table.key_ordinals)
    updated = frozenset(change.after.present if change.after is not None else ()) & columns
    return RowWrite(change.operation, updated, columns)
