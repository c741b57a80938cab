"""
What lost changes leave of a row when they are applied again, one after the other, and whether each fits.

A change fits if its row is what it was before the change in all columns that it set, and nobody has set these since: no
change that its cluster had not applied by then, and no later one. What a statement does with the values that are there
is in no log: a counter that was incremented by others meanwhile does not fit. Computes docs/repair.md, "Lost changes".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from conflict.engine.inference.rows import NOT_KNOWN, is_partial
from conflict.engine.reference.row_store import RowKey
from conflict.history.timeline import EpochApply, Origin, Position, RowChange, Transaction
from conflict.operating.repairing.ended_run import EndedRun
from conflict.operating.repairing.equal import operation_in_words
from conflict.operating.repairing.newest import ChangeOrder
from conflict.operating.repairing.statements import Payloads, RepairedRow, RowTable
from conflict.operating.repairing.winners import NotDecidedError
from conflict.rules.decision import in_node_order, next_value
from conflict.rules.functions import Cell, ConflictFunction
from conflict.telling.shown_text import listed, one_line
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Column


@attrs.frozen(eq=False)
class LostChange:
    """
    A change of a user that was lost.

    Attributes:
        cluster: The cluster that made it.
        position: Its own position, epoch and group.
        change: The change.
        reason: Why it was lost, in words.
        as_transaction: Whether it was rejected with its transaction.
    """

    cluster: str
    position: Position
    change: RowChange
    reason: str
    as_transaction: bool = False

    @property
    def row(self) -> RowKey:
        """Table and identity of its row."""
        return self.change.table, self.change.key

    @property
    def transaction(self) -> tuple[str, Position]:
        """Its transaction."""
        return self.cluster, self.position

    @property
    def origin(self) -> Origin:
        """Where it is logged."""
        assert self.change.origin is not None
        return self.change.origin

    def __str__(self) -> str:
        where = f"{self.origin.file.rpartition('/')[2]}, position {self.origin.position}"
        return f"{operation_in_words(self.change.operation)} of {self.cluster}, {where}, {self.reason}"


@attrs.frozen(eq=False)
class Reapplied:
    """
    Lost changes of one row that are applied again by one statement.

    Attributes:
        repaired: The row.
        changes: The changes, in order.
    """

    repaired: RepairedRow
    changes: tuple[LostChange, ...]


class UnfitError(Exception):
    """A change that does not fit; the message says why."""

    def __init__(self, change: LostChange, reason: str) -> None:
        super().__init__(reason)
        self.change = change


@attrs.frozen
class Story:
    """
    All changes of users of some rows that were not lost, and did something.

    Attributes:
        changes: By row, cluster, own position and change.
        applied: By applying cluster and foreign epoch, where the epoch was applied.
    """

    changes: Mapping[RowKey, Sequence[tuple[str, Position, RowChange]]]
    applied: Mapping[tuple[str, int], Position]

    @classmethod
    def of(cls, order: ChangeOrder, rows: Iterable[RowKey], lost: set[Origin]) -> Story:
        """Return the changes of rows, without lost ones, given by their places, and without those of a repair."""
        changes: dict[RowKey, list[tuple[str, Position, RowChange]]] = {row: [] for row in rows}
        applied: dict[tuple[str, int], Position] = {}
        for name in order.ended.clusters:
            for item in order.ended.cluster(name).cluster.timeline:
                if isinstance(item, EpochApply) and item.applied:
                    applied.setdefault((name, item.foreign_epoch), (item.epoch, item.group))
                elif isinstance(item, Transaction):
                    made = name, (item.epoch, item.group)
                    for each in item.changes:
                        row = each.table, each.key
                        if row in changes and each.origin not in lost and not order.repeats(made, each.origin):
                            changes[row].append((*made, each))
        return cls(changes, applied)

    def after(self, lost: LostChange) -> Iterator[RowChange]:
        """Yield the changes of its row that its cluster had not seen when the change was made."""
        for cluster, position, change in self.changes[lost.row]:
            seen = position if cluster == lost.cluster else self.applied.get((lost.cluster, position[0]))
            if seen is None or seen > lost.position:
                yield change


@attrs.define
class RowAgain:
    """
    One row, on which changes are applied again one after the other.

    Attributes:
        ended: The clusters.
        story: What was not lost.
        row: Table and identity of the row.
        deletes: Whether lost deletes may be applied again.
        raises: Whether the column that a function compares may get a greater value than any change set.
    """

    ended: EndedRun
    story: Story
    row: RowKey
    deletes: bool
    raises: bool

    def with_all(self, changes: Sequence[LostChange]) -> Reapplied | str:
        """
        Return what applies changes again, one after the other; or why all of them together have no effect.

        Raises:
            UnfitError: One of them does not fit, on top of those before it.
        """
        target = self._target(changes[0].cluster)
        before = target.stored(self.ended.state(target.cluster, self.row))
        now, written = before, set[int]()
        for each in changes:
            try:
                now, columns = self._carry_out(each, now, target)
            except NotDecidedError as error:
                raise UnfitError(each, str(error)) from None
            written |= columns
        raised = self._raised_column(target)
        if before is now or (before and now and all(now[place] == before[place] for place in now if place != raised)):
            return "the row holds what they leave"
        try:
            now, written = self._raised(target, before, now, written)
        except NotDecidedError as error:
            return str(error)
        if before is not None and now is not None:
            # A row that was deleted and inserted anew is updated.
            differing = {place for place, column in target.columns.items() if now[place] != before[place]}
            written |= {place for place in differing if target.columns[place].generated is None}
            written |= {place for place, column in target.columns.items() if column.on_update}
        why = one_line(f"reapply, {'; '.join(map(str, changes))}")
        return Reapplied(RepairedRow(target, *self.row, before, now, frozenset(written), why), tuple(changes))

    def _target(self, cluster: str) -> RowTable:
        """Return the table on the cluster where a change is made again: that which judges by epoch, or its own."""
        judges = [name for name in self.ended.clusters if self._refreshes(name)]
        found = self.ended.table(judges[0] if len(judges) == 1 else cluster, self.row[0])
        assert found is not None
        return found

    def _refreshes(self, cluster: str) -> bool:
        here = self.ended.cluster(cluster)
        return here.setups[self.row[0]].deployed(here.role).refreshes

    def _carry_out(
        self, lost: LostChange, now: Payloads | None, target: RowTable
    ) -> tuple[Payloads | None, frozenset[int]]:
        """
        Return the row after a change, and the columns that it sets.

        Raises:
            NotDecidedError: It does not fit.
        """
        own = self.ended.table(lost.cluster, self.row[0])
        assert own is not None
        state = self.ended.before.get(lost.origin, NOT_KNOWN)
        if state is NOT_KNOWN or is_partial(state):
            message = "what the row was before it is not known"
            raise NotDecidedError(message)
        was, image = own.stored(state), _values(lost.change)
        columns = {place: column for place, column in target.columns.items() if place not in target.key}
        if lost.change.operation is Operation.DELETE_ROW:
            return self._deleted(lost, was, now, columns)
        if was is None:
            return self._inserted(lost, image, now, target)
        if now is None:
            message = "the row is gone"
            raise NotDecidedError(message)
        raised = self._raised_column(target)
        tells = own.setup.format.updated_only
        places = [place for place in (image if tells else columns) if place in columns and place != raised]
        self._refuse_moved(lost, places, was, now, columns)
        values = {place: image[place] for place in places if place in image and columns[place].generated is None}
        if raised is not None and raised in image:
            values[raised] = max(
                now[raised], image[raised], key=lambda payload: in_node_order(_number(target, raised, payload))
            )
        return {**now, **values}, frozenset(values)

    def _deleted(
        self, lost: LostChange, was: Payloads | None, now: Payloads | None, columns: Mapping[int, Column]
    ) -> tuple[None, frozenset[int]]:
        if now is None or was is None:
            message = "the row is gone already"
            raise NotDecidedError(message)
        if not self.deletes:
            message = "it deletes the row, and deletes are not asked for"
            raise NotDecidedError(message)
        self._refuse_moved(lost, list(columns), was, now, columns)
        return None, frozenset()

    def _inserted(
        self, lost: LostChange, image: Payloads, now: Payloads | None, target: RowTable
    ) -> tuple[Payloads, frozenset[int]]:
        if now is not None:
            message = "another row with its key is there"
            raise NotDecidedError(message)
        since = next(self.story.after(lost), None)
        if since is not None:
            message = f"the row was changed since: {place_of(since)}"
            raise NotDecidedError(message)
        missing = [column.name for place, column in target.columns.items() if place not in image]
        if missing:
            message = f"its image has no {listed(missing)}"
            raise NotDecidedError(message)
        return {place: image[place] for place in target.columns}, frozenset()

    def _refuse_moved(
        self, lost: LostChange, places: Sequence[int], was: Payloads, now: Payloads, columns: Mapping[int, Column]
    ) -> None:
        """
        Refuse a change some of whose columns have moved.

        Raises:
            NotDecidedError: They hold something else than before it, or were set since.
        """
        moved = [columns[place].name for place in places if now.get(place) != was.get(place)]
        if moved:
            message = f"{listed(moved)} {'is' if len(moved) == 1 else 'are'} not what the change found"
            raise NotDecidedError(message)
        for since in self.story.after(lost):
            gone = since.operation is Operation.DELETE_ROW
            set_again = [columns[place].name for place in places if gone or place in since.written]
            if set_again:
                message = f"{listed(set_again)} {'was' if len(set_again) == 1 else 'were'} set since: {place_of(since)}"
                raise NotDecidedError(message)

    def _raised(
        self, target: RowTable, before: Payloads | None, now: Payloads | None, written: set[int]
    ) -> tuple[Payloads | None, set[int]]:
        """
        Return the row with a value in the compared column that the other cluster lets pass.

        Raises:
            NotDecidedError: It would not let it pass, and no other value may be set.
        """
        judge = self._judge(target)
        if before is None or now is None or judge is None or judge.column is None:
            return now, written
        written = written | {place for place, column in target.columns.items() if column.name == judge.column}
        place = self._raised_column(target)
        if place is None:
            return now, written
        had, has = (_number(target, place, each[place]) for each in (before, now))
        if in_node_order(has) > in_node_order(had):
            return now, written
        if not self.raises:
            message = f"{judge} lets only a greater {judge.column} than {had} pass; --raise-version sets one"
            raise NotDecidedError(message)
        greater = next_value(had, target.columns[place])
        if greater is None:
            message = f"{judge.column} has no greater value than {had}"
            raise NotDecidedError(message)
        return {**now, place: target.layout.codecs[place].encode(greater)}, written

    def _judge(self, target: RowTable) -> ConflictFunction | None:
        """Return the function by which the other cluster judges the row."""
        return self.ended.cluster(self.ended.other(target.cluster)).setups[self.row[0]].function

    def _raised_column(self, target: RowTable) -> int | None:
        """Return the column of which the other cluster lets only greater values pass; None if there is none."""
        judge = self._judge(target)
        if judge is None or judge.spec.cell(Operation.UPDATE_ROW) not in (Cell.GREATER, Cell.AT_LEAST):
            return None
        return next(place for place, column in target.columns.items() if column.name == judge.column)


def _number(table: RowTable, place: int, payload: bytes | None) -> int:
    """Return a value as functions compare it: NULL is 0."""
    value = 0 if payload is None else table.layout.codecs[place].decode(payload)
    assert isinstance(value, int)
    return value


def _values(change: RowChange) -> dict[int, bytes | None]:
    """Return what a change writes, by position."""
    image = change.after
    return {} if image is None else dict(zip(image.present, image.payloads, strict=True))


def place_of(change: RowChange) -> str:
    """Return what a change of a user was, and where it is logged, in words."""
    assert change.origin is not None
    file = change.origin.file.rpartition("/")[2]
    return f"{operation_in_words(change.operation)}, {file}, position {change.origin.position}"
