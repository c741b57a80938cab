"""
A typed History carried out: which row events its clusters log, and with that the History that the engines take.

Which images a change is logged with depends on the row that it meets, and so on what appliers did before. So the
reference engine carries out the steps one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from conflict.engine.reference.applier import Applier
from conflict.engine.reference.cluster import ReplayedCluster
from conflict.history import model, timeline
from conflict.typed.notation import change_text
from conflict.typed.rules import Rules, server_ids
from conflict.typed.schedule import Schedule
from conflict.typed.steps import FIRST_EPOCH, Apply, Change, Restart, Transaction
from conflict.typed.tables import Payloads, Tables
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.rules.images import Logging, image_of, images
from ndb_formats.rules.update_format import ndb_event
from ndb_formats.schema.row_keys import key_of

if TYPE_CHECKING:
    from conflict.typed.order import PlacedStep

Item = timeline.Transaction | timeline.EpochApply

# Rows at first are inserted on the primary in the last epoch before all others, and arrive in it on the other cluster.
# Every function takes such a row for one that has come back, however few extra GCI bits it stores.
LOAD_EPOCH = FIRST_EPOCH - 1
LOADED = 0  # number of the step that inserts them
_FIRST_MOMENT = 1_700_000_000_000_000  # microseconds since 1970
_BETWEEN_STEPS = 100_000
_GROUPS = 32  # bits of a transaction id for its number


class StatementRefused(Exception):  # noqa: N818  # a signal inside this module, not an error
    """A server refuses a statement; the message says why."""


@attrs.frozen
class StepTaken:
    """
    What a step came to.

    Attributes:
        placed: The step; None for the rows at first.
        cluster: Its cluster.
        items: What the engines get of it.
        notes: What it did not do, and why.
        stopped: Whether its last item stopped the applier.
    """

    placed: PlacedStep | None
    cluster: str
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()
    stopped: bool = False


@attrs.frozen
class Played:
    """
    A History that was carried out.

    Attributes:
        history: What the engines take.
        taken: What each step came to, in order.
        moments: By cluster and own epoch, the microsecond since 1970 at which it committed.
        unsettled: By cluster, how many row operations that it logged the other one has still to apply.
    """

    history: model.History
    taken: Sequence[StepTaken] = attrs.field(repr=False)
    moments: Mapping[str, Mapping[int, int]] = attrs.field(repr=False)
    unsettled: Mapping[str, int]


def play(history: Schedule, rules: Rules) -> Played:
    """Carry out a History."""
    moments = _moments(history)
    sides = {name: _Side.of(history, rules, name, moments) for name in history.names}
    taken = list(_load(history, rules, sides))
    for placed in history.placed:
        side, source = sides[placed.cluster], sides[history.other(placed.cluster)]
        if isinstance(placed.step, Transaction):
            items, notes = side.commit(placed.step)
        elif isinstance(placed.step, Apply):
            items, notes = side.apply(placed.step, source)
        else:
            side.restart(placed.step)
            items, notes = [], []
        stopped = bool(items) and items[-1] is side.stopped_at
        taken.append(StepTaken(placed, placed.cluster, tuple(items), tuple(notes), stopped))
    taken = [attrs.evolve(each, items=tuple(map(sides[each.cluster].placed, each.items))) for each in taken]
    clusters = tuple(
        attrs.evolve(
            side.here.cluster, timeline=tuple(item for each in taken if each.cluster == name for item in each.items)
        )
        for name, side in sides.items()
    )
    unsettled = {name: side.left_for(sides[history.other(name)]) for name, side in sides.items()}
    return Played(model.History(clusters, history.tables.layouts), taken, moments, unsettled)


def _moments(history: Schedule) -> dict[str, dict[int, int]]:
    """Return when each epoch commits: with the last of its steps; each step takes a moment."""
    found: dict[str, dict[int, int]] = {name: {LOAD_EPOCH: _FIRST_MOMENT} for name in history.names}
    for number, placed in enumerate(history.placed, start=1):
        if not isinstance(placed.step, Restart):
            found[placed.cluster][placed.step.epoch or 0] = _FIRST_MOMENT + number * _BETWEEN_STEPS
    return found


def _load(history: Schedule, rules: Rules, sides: Mapping[str, _Side]) -> Iterator[StepTaken]:
    """Insert the rows at first on the primary; the other cluster applies them, and the primary hears of it."""
    if not history.start:
        return
    primary = rules.primary or history.names[0]
    here, there = sides[primary], sides[history.other(primary)]
    items, _ = here.commit(Transaction(history.start, LOAD_EPOCH))
    yield StepTaken(None, primary, tuple(items))
    for side, source, epoch in ((there, here, LOAD_EPOCH), (here, there, FIRST_EPOCH)):
        items, _ = side.apply(Apply(LOAD_EPOCH, epoch), source)
        yield StepTaken(None, side.here.name, tuple(items))


@attrs.define
class _Side:
    """
    A cluster while its steps are taken.

    Attributes:
        tables: The tables.
        here: The cluster.
        applier: Its applier.
        moments: By cluster and epoch, when the epoch commits.
        logged: Own epochs that its binlog holds.
        groups: How many groups each own epoch has.
        taken: The last epoch of the other cluster that it applied.
        period: How often its applier was set back.
        restarted: Whether its applier was restarted since the last epoch that it applied.
        transactions: How many transactions its users committed.
        stopped_at: The epoch apply that stopped its applier.
    """

    tables: Tables
    here: ReplayedCluster
    applier: Applier
    moments: Mapping[str, Mapping[int, int]]
    logged: set[int] = attrs.field(factory=set)
    groups: Counter[int] = attrs.field(factory=Counter)
    taken: int = 0
    period: int = 0
    restarted: bool = False
    transactions: int = 0
    stopped_at: timeline.EpochApply | None = None

    @classmethod
    def of(cls, history: Schedule, rules: Rules, name: str, moments: Mapping[str, Mapping[int, int]]) -> _Side:
        """Return a cluster before its first step."""
        cluster = model.Cluster(name, server_ids(history)[name], (), rules.roles[name])
        here = ReplayedCluster(cluster, rules.setups[name], history.tables.layouts)
        return cls(history.tables, here, Applier(here), moments)

    def commit(self, step: Transaction) -> tuple[list[Item], list[str]]:
        """Commit a transaction of its users; one with a statement that the server refuses is rolled back."""
        epoch = step.epoch or 0
        if epoch != LOAD_EPOCH:
            self.transactions += 1
        identity = step.id
        if identity is None:
            identity = self.here.server_id << _GROUPS | self.transactions
        try:
            rows, notes = self._statements(step.changes)
        except StatementRefused as refused:
            return [], [str(refused)]
        changes = tuple(change for row, each in rows.items() for change in self._events(row, each, identity))
        if not changes:
            return [], notes
        committed = self.moments[self.here.name][epoch]
        item = timeline.Transaction(epoch, self.groups[epoch], changes, committed=committed)
        self.here.commit(item)
        self.logged.add(epoch)
        self.groups[epoch] += 1
        return [item], notes

    def _statements(self, changes: Sequence[Change]) -> tuple[dict[tuple[str, bytes], _RowInTransaction], list[str]]:
        """
        Carry out the statements of a transaction on copies of its rows.

        Raises:
            StatementRefused: A row that is inserted is there.
        """
        rows: dict[tuple[str, bytes], _RowInTransaction] = {}
        notes = list[str]()
        for change in changes:
            table = self.tables.named(change.table)
            row = self._row(rows, (change.table, table.identity(change.key)))
            text = change_text(change, self.tables.first.name)
            if change.operation is Operation.WRITE_ROW:
                if row.now is not None:
                    message = (
                        f"the row of {text} is there: the server refuses the insert, and the transaction is undone"
                    )
                    raise StatementRefused(message)
                row.write(table.new_row(change))
            elif row.now is None:
                notes.append(f"{text} finds no row")
            elif change.operation is Operation.DELETE_ROW:
                row.now = None
            elif change.reads:
                row.read = True
            else:
                self._update(rows, change, row, text)
        return rows, notes

    def _update(
        self, rows: dict[tuple[str, bytes], _RowInTransaction], change: Change, row: _RowInTransaction, text: str
    ) -> None:
        """Update a row; one whose key changes is another row."""
        table = self.tables.named(change.table)
        assert row.now is not None
        written = table.written(change)
        after = {**row.now, **written}
        columns = table.table.key_columns
        identity = key_of(columns, [after[ordinal] for ordinal in table.table.key_ordinals])
        moved = self._row(rows, (change.table, identity))
        if moved is row:
            row.now, row.written = after, row.written | written.keys()
            return
        if moved.now is not None:
            message = f"a row with the new key of {text} is there: the server refuses it, and the transaction is undone"
            raise StatementRefused(message)
        row.now = None
        moved.write(after)

    def _row(self, rows: dict[tuple[str, bytes], _RowInTransaction], key: tuple[str, bytes]) -> _RowInTransaction:
        """Return a row as the transaction has left it so far."""
        if key not in rows:
            stored = self.here.store.get(key)
            before = None
            if stored is not None:
                before = stored.stored(self.here.setups[key[0]], self.here.layouts[key[0]])
            rows[key] = _RowInTransaction(before, before)
        return rows[key]

    def _events(self, row: tuple[str, bytes], found: _RowInTransaction, identity: int) -> Iterator[timeline.RowChange]:
        """Yield what a transaction logs of a row: nothing of one that came and went."""
        setup, layout = self.here.setups[row[0]], self.here.layouts[row[0]]
        before, after = (_image(layout, each) for each in (found.before, found.now))
        if before is not None and after is not None and not found.written:
            yield from self._read(row, found, identity)
        elif before is not None or after is not None:
            for event in images(setup.table, layout, before, after, found.written, Logging(setup.format)):
                yield timeline.RowChange(row[0], row[1], event.operation, event.before, event.after, identity)

    def _read(self, row: tuple[str, bytes], found: _RowInTransaction, identity: int) -> Iterator[timeline.RowChange]:
        """Yield what is logged of a row that was read, but not changed: an update that sets nothing."""
        setup, layout = self.here.setups[row[0]], self.here.layouts[row[0]]
        event = ndb_event(setup.format, setup.table, Operation.UPDATE_ROW, ())
        if found.read and event is not None:
            before, after = (image_of(layout, found.before, columns) for columns in (event.before, event.after))
            yield timeline.RowChange(row[0], row[1], event.operation, before, after, identity, ConflictFlag.READ)

    def apply(self, step: Apply, source: _Side) -> tuple[list[Item], list[str]]:
        """Apply the epochs that the other cluster logged, up to one; a stopped applier applies nothing more."""
        own, items = step.epoch or 0, list[Item]()
        result = self.here.result
        for epoch in sorted(each for each in source.logged if self.taken < each <= (step.foreign_epoch or 0)):
            if result.stop is not None:
                break
            committed = self.moments[source.here.name][epoch]
            item = timeline.EpochApply(
                own,
                self.groups[own],
                source.here.name,
                epoch,
                step.logged is not False,
                restarted=self.restarted,
                period=self.period,
                committed=committed,
            )
            self.applier.apply_epoch(item, source.here)
            items.append(item)
            if result.stop is not None:
                self.stopped_at = item
                break
            if item.traced:
                self.groups[own] += 1
                if result.effects.get((own, item.group)) or step.logged:
                    self.logged.add(own)
            self.restarted = False
        self.taken = step.foreign_epoch or 0
        notes = ["the applier has stopped"] if result.stop is not None and not items else []
        return items, notes

    def restart(self, step: Restart) -> None:
        """Restart the applier."""
        self.restarted = True
        if step.rewound:
            self.taken, self.period = 0, self.period + 1

    def left_for(self, other: _Side) -> int:
        """Return how many row operations of its log the other cluster has still to apply."""
        after = other.stopped_at.foreign_epoch - 1 if other.stopped_at is not None else other.taken
        return sum(len(self.here.log.get(epoch, ())) for epoch in self.logged if epoch > after)

    def placed(self, item: Item) -> Item:
        """Return an epoch apply with or without a trace: an own epoch that changed nothing is not logged."""
        if isinstance(item, timeline.Transaction):
            return item
        if item.epoch in self.logged and item.traced and item != self.stopped_at:
            return item
        return attrs.evolve(item, traced=False, group=item.group - 1)


@attrs.define
class _RowInTransaction:
    """
    A row that a transaction touches.

    Attributes:
        before: The row before the transaction; None for none.
        now: The row as the transaction left it so far.
        written: Ordinals of the columns that it wrote.
        read: Whether it read it under an exclusive lock.
    """

    before: Payloads | None
    now: Payloads | None
    written: frozenset[int] = frozenset()
    read: bool = False

    def write(self, row: Payloads) -> None:
        """Make the row anew."""
        self.now, self.written = row, frozenset(row)


def _image(layout: RowLayout, payloads: Payloads | None) -> RowImage | None:
    """Return a whole row as an image; None for none."""
    if payloads is None:
        return None
    present = tuple(sorted(payloads))
    return RowImage(layout, present, tuple(payloads[ordinal] for ordinal in present))
