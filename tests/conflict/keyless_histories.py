"""
Random Histories with changes of a table without a primary key among those of `random_histories`, and a model of it.

Inserted values are new, so that no transaction depends on another one because of them; an insert has up to three equal
rows. Updates and deletes are mostly of the cluster's own rows, and sometimes of rows of the other cluster, which it may
not have: so some appliers stop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

import attrs

from conflict.history.model import Cluster, History
from conflict.history.row_identities import identities_without_key
from conflict.history.run import Run
from conflict.history.scheduling.placing import interleave
from conflict.history.timeline import EpochApply, RowChange, Transaction
from conflict.rules.replication_table import ReplicationRow, Role
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowImage, layout_of_types
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.types.column_types import WireType
from tests.conflict.random_histories import SCHEMA

__all__ = [
    "FUNCTIONS",
    "LOOSE",
    "LooseModel",
    "Row",
    "cut_at",
    "judges_transactions",
    "reflects",
    "with_loose_rows",
    "with_loose_table",
]

LOOSE = "db.loose"
_SCHEMA = parse_schema(SCHEMA + "CREATE TABLE loose (v INT UNSIGNED, w INT);", database="db")
_TABLE = _SCHEMA.tables[-1]
_LAYOUT = layout_of_types(
    next(table for table in _SCHEMA.tables if table.full_name == LOOSE), (WireType(ColumnCode.LONG),) * 2
)
FUNCTIONS = (None, "NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", "NDB$MAX(v)")
# v and w; None is NULL.
Row = tuple[int | None, int | None]


def with_loose_table(run: Run, function: str | None = None) -> Run:
    """Return a run that has the table without a primary key too, with a conflict function on both clusters."""
    row = ReplicationRow("db", "loose", 0, 7, function)
    configuration = run.configuration
    return Run(attrs.evolve(configuration, schema=_SCHEMA, replication=(*configuration.replication, row)))


def with_loose_rows(history: History, seed: int, *, foreign: float = 0.03, values: int | None = None) -> History:
    """
    Return a History with changes of the table at the end of some transactions.

    Args:
        history: Of tables with a primary key.
        seed: Of the source of chance.
        foreign: How often an update or delete is of a row of the other cluster.
        values: How many different values inserted rows have; None for new ones each time.
    """
    maker = _Maker(Random(seed), foreign, values)
    clusters = []
    for cluster in history.clusters:
        timeline = [
            attrs.evolve(item, changes=(*item.changes, *maker.changes(cluster.name, item.changes[0].transaction_id)))
            if isinstance(item, Transaction) and item.changes and maker.chance.random() < 0.5
            else item
            for item in cluster.timeline
        ]
        clusters.append(attrs.evolve(cluster, timeline=tuple(timeline)))
    return attrs.evolve(history, clusters=tuple(clusters), layouts={**history.layouts, LOOSE: _LAYOUT})


@attrs.define
class _Maker:
    chance: Random
    foreign: float
    values: int | None = None
    number: int = 0
    rows: dict[str, list[Row]] = attrs.field(factory=lambda: {"A": [], "B": []})

    def changes(self, side: str, transaction: int | None) -> list[RowChange]:
        other = self.rows["AB".replace(side, "")]
        mine = other if other and self.chance.random() < self.foreign else self.rows[side]
        kind = self.chance.random()
        if not mine or kind < 0.4:
            new, copies = self._new(), self.chance.choice((1, 1, 2, 3))
            self.rows[side] += [new] * copies
            return [_change(None, new, transaction)] * copies
        old = mine.pop(self.chance.randrange(len(mine)))
        if kind < 0.7:
            return [_change(old, None, transaction)]
        new = self.chance.choice([old, self._new(), *mine[:1]])  # the same values, other ones, or those of another row
        mine.append(new)
        return [_change(old, new, transaction)]

    def _new(self) -> Row:
        if self.values is not None:
            return (self.chance.randrange(self.values), None)
        self.number += 1
        return (self.number, self.chance.choice((None, 7))) if self.number > 1 else (None, None)


def _change(old: Row | None, new: Row | None, transaction: int | None) -> RowChange:
    kind = Operation.UPDATE_ROW if old and new else Operation.DELETE_ROW if old else Operation.WRITE_ROW
    images = [None if row is None else _image(row) for row in (old, new)]
    key, moved_to = identities_without_key(_TABLE, *images)
    return RowChange(LOOSE, key, kind, *images, transaction, moved_to=moved_to, keyless=True)


def _image(row: Row) -> RowImage:
    return RowImage(_LAYOUT, (0, 1), tuple(None if each is None else each.to_bytes(4, "little") for each in row))


def cut_at(history: History, applies: Mapping[str, int]) -> History:
    """Return a History in which some appliers take no epoch after so many."""
    return attrs.evolve(history, clusters=tuple(_cut(each, applies.get(each.name)) for each in history.clusters))


def _cut(cluster: Cluster, count: int | None) -> Cluster:
    places = [place for place, item in enumerate(cluster.timeline) if isinstance(item, EpochApply)]
    if count is None:
        return cluster
    left_out = set(places[count:])
    kept = tuple(item for place, item in enumerate(cluster.timeline) if place not in left_out)
    return attrs.evolve(cluster, timeline=kept)


@attrs.define
class LooseModel:
    """
    The table by itself: rows with their number, one after the other, as `docs/functions.md` says it.

    Attributes:
        rejected: Per applier, foreign and own epoch, the transactions in conflict; their inserts are not applied.
        applied: Per applier, how many epochs it applies.
        reflecting: Clusters that reflect inserts.
        rows: Per cluster, its rows.
        missing: Per applier that did not find a row, how many epochs it had applied.
    """

    rejected: Mapping[tuple[str, int, int], set[int]]
    applied: Mapping[str, int]
    reflecting: set[str]
    rows: dict[str, Counter[Row]] = attrs.field(factory=lambda: {"A": Counter(), "B": Counter()})
    missing: dict[str, int] = attrs.field(factory=dict)
    _sent: dict[tuple[str, int], list[tuple[int, Row | None, Row | None]]] = attrs.field(factory=dict)
    _done: Counter[str] = attrs.field(factory=Counter)

    def run(self, history: History) -> None:
        """Take everything in the order of causes."""
        for cluster, item in interleave(history):
            if isinstance(item, Transaction):
                sent = self._sent.setdefault((cluster.name, item.epoch), [])
                for change in item.changes:
                    if change.table == LOOSE:
                        old, new = _row(change.before), _row(change.after)
                        sent.append((item.group, old, new))
                        _apply(self.rows[cluster.name], old, new)
            elif isinstance(item, EpochApply):
                self._apply_epoch(cluster, item)

    def _apply_epoch(self, cluster: Cluster, item: EpochApply) -> None:
        name = cluster.name
        if name in self.missing or self._done[name] > self.applied[name]:
            return
        rejected = self.rejected.get((name, item.foreign_epoch, item.epoch), set())
        rows, before = self.rows[name].copy(), self.rows[name]
        reflected = Counter[Row]()
        for group, old, new in self._sent.get((item.source, item.foreign_epoch), []):
            if old is None and group in rejected:
                continue
            if not _apply(rows, old, new):
                self.missing[name] = self._done[name]
                return
            if old is None and new is not None:
                reflected[new] += name in self.reflecting
            elif old is not None:
                reflected[old] = min(reflected[old], rows[old])
        self._done[name] += 1
        if self._done[name] > self.applied[name]:
            self.rows[name] = before  # it stopped for another reason
            return
        self.rows[name] = rows
        sent = self._sent.setdefault((name, item.epoch), [])
        sent += [(item.group, None, row) for row in reflected.elements()]


def _row(image: RowImage | None) -> Row | None:
    if image is None:
        return None
    v, w = (None if each is None else int.from_bytes(each, "little") for each in image.payloads)
    return v, w


def _apply(rows: Counter[Row], old: Row | None, new: Row | None) -> bool:
    if old is not None and not rows[old]:
        return False
    if old is not None:
        rows[old] -= 1
    if new is not None:
        rows[new] += 1
    return True


def judges_transactions(run: Run) -> bool:
    """Whether a function of the run judges transactions."""
    functions = [setup.function for setups in run.setups.at_end.values() for setup in setups.values()]
    return any(each is not None and each.spec.transactional for each in functions)


def reflects(run: Run) -> set[str]:
    """Return the clusters that reflect inserts into the table."""
    found = set()
    for cluster in run.clusters:
        function = run.setups.at_end[cluster.name][LOOSE].function
        if function is not None and function.spec.uses_role and cluster.role is Role.PRIMARY:
            found.add(cluster.name)
    return found
