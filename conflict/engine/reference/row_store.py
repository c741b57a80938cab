"""
Rows as a data node stores them (column bytes, author and epoch), with undo for one epoch transaction.

Equal rows of a table without a primary key are one row with a number of copies. NDB gives such a row a hidden key that
no event carries. So an applier looks for a row by the image in the event, takes any of several equal ones, and stops
where there is none. Conflict functions do not count.

Source: `docs/functions.md`, "Tables without a primary key".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping, Sequence

import attrs

from conflict.config.definitions import AlteredColumn
from conflict.engine.ledger.resolution import LastWrite
from conflict.history.row_identities import identity_without_key, payloads_of
from conflict.history.shown_effects import Effect, copy_effects, net_copies
from conflict.history.timeline import RowChange
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.altered_values import added_value, altered_value
from ndb_formats.schema.default_values import implied_value
from ndb_formats.schema.tables import Table
from ndb_formats.schema.value_conversions import NOT_KNOWN, KnownValue

RowKey = tuple[str, bytes]


@attrs.frozen
class Row:
    """
    One row.

    Attributes:
        payloads: Bytes per column position; None is NULL. A column that was never written is absent.
        local: Whether it was last changed on this cluster, not by the applier (``ROW_AUTHOR`` = 0).
        epoch: Own epoch of its last change, in full precision.
        copies: How many equal rows it represents; more than one in tables without a primary key alone.
        by: The operation that last wrote it; None if the log does not hold it.
        unknown: Columns whose values a statement made, and nobody can tell.
    """

    payloads: dict[int, bytes | None]
    local: bool
    epoch: int
    copies: int = 1
    by: LastWrite | None = attrs.field(default=None, eq=False, repr=False)
    unknown: frozenset[int] = frozenset()

    def with_image(self, image: RowImage, *, local: bool, epoch: int, by: LastWrite | None = None) -> Row:
        """Return the row with the columns of an image written over it."""
        written = dict(zip(image.present, image.payloads, strict=True))
        return Row({**self.payloads, **written}, local, epoch, by=by, unknown=self.unknown.difference(written))

    def changed_here(
        self, epoch: int, *, payloads: dict[int, bytes | None] | None = None, by: LastWrite | None = None
    ) -> Row:
        """Return the row as its own cluster left it in an epoch, with other values or another last write if given."""
        payloads = self.payloads if payloads is None else payloads
        return attrs.evolve(self, payloads=payloads, local=True, epoch=epoch, by=by or self.by)

    def stored(self, setup: TableSetup, layout: RowLayout) -> dict[int, bytes | None]:
        """Return the bytes that a data node holds: a column that no operation wrote has its default."""
        table, places = setup.shown
        payloads = dict(self.payloads)
        for ordinal, column in zip(places, table.columns, strict=True):
            written = ordinal in payloads or ordinal in self.unknown
            if not written and column.generated != "virtual" and not setup.is_open(column):
                value = implied_value(column)
                payloads[ordinal] = None if value is None else layout.codecs[ordinal].encode(value)
        return payloads

    def lacking(self, columns: Iterable[int]) -> frozenset[int]:
        """Return those of some columns whose values are not known."""
        return self.unknown.intersection(columns)

    def altered(self, columns: Sequence[AlteredColumn], setup: TableSetup | None, layout: RowLayout) -> Row:
        """
        Return the row after a statement that gave it values of some columns.

        Args:
            columns: The columns.
            setup: The table before the statement; None if it was not NDB's then.
            layout: How rows of the History table are read.
        """
        payloads, unknown = self.payloads if setup is None else self.stored(setup, layout), set(self.unknown)
        made = dict[int, bytes | None]()
        for each in columns:
            value = _value_after(each, payloads, layout)
            if value is NOT_KNOWN:
                unknown.add(each.place)
            else:
                made[each.place] = None if value is None else layout.codecs[each.place].encode(value)
        return attrs.evolve(self, payloads={**payloads, **made}, unknown=frozenset(unknown.difference(made)))


def _value_after(altered: AlteredColumn, payloads: Mapping[int, bytes | None], layout: RowLayout) -> KnownValue:
    """Return what a statement gave a row in one column."""
    if altered.source is None or altered.before is None:
        return added_value(altered.after)
    if altered.source not in payloads:
        return NOT_KNOWN
    payload = payloads[altered.source]
    value = None if payload is None else layout.codecs[altered.source].decode(payload)
    return altered_value(value, altered.before, altered.after, altered.mode)


EMPTY_ROW = Row({}, local=True, epoch=0)


@attrs.define
class RowStore:
    """
    All rows of one cluster.

    Attributes:
        rows: The rows that exist.
    """

    rows: MutableMapping[RowKey, Row] = attrs.field(factory=dict)
    _undo: dict[RowKey, Row | None] = attrs.field(factory=dict)
    _trial: dict[RowKey, Row | None] | None = None  # the rows before a trial that were changed since

    def get(self, key: RowKey) -> Row | None:
        """Return a row; None if it does not exist."""
        return self.rows.get(key)

    def holds_all(self, table: str) -> bool:  # noqa: ARG002  # of a log that starts in the middle, some
        """Whether every row of a table is here: so it is, where a log begins with no rows."""
        return True

    def put(self, key: RowKey, row: Row | None) -> None:
        """Set a row, or remove it."""
        before = self.get(key)
        self._undo.setdefault(key, before)
        if self._trial is not None:
            self._trial.setdefault(key, before)
        self._set(key, row)

    def begin_trial(self) -> None:
        """Remember the rows, also over commits, until `end_trial`."""
        self._trial = {}

    def end_trial(self) -> list[RowKey]:
        """Take back what happened since `begin_trial`, and return the rows that were changed."""
        changed, self._trial = self._trial or {}, None
        self._undo.clear()
        for key, row in changed.items():
            self._set(key, row)
        return list(changed)

    def _set(self, key: RowKey, row: Row | None) -> None:
        if row is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row

    def write(self, change: RowChange, *, local: bool, epoch: int, by: LastWrite | None = None) -> None:
        """Apply a row change, known as `by`; columns that its after image does not carry keep their values."""
        key = (change.table, change.key)
        if change.operation is Operation.DELETE_ROW:
            self.put(key, None)
            return
        assert change.after is not None
        row = self.get(key)
        if row is None and change.before is not None:  # an update of a missing row makes the row of both images
            row = EMPTY_ROW.with_image(change.before, local=local, epoch=epoch)
        row = (row or EMPTY_ROW).with_image(change.after, local=local, epoch=epoch, by=by)
        if change.unknown:
            payloads = {place: payload for place, payload in row.payloads.items() if place not in change.unknown}
            row = attrs.evolve(row, payloads=payloads, unknown=row.unknown | change.unknown)
        self.put(key, row)

    def commit(self) -> None:
        """Keep what was put since the last commit."""
        self._undo.clear()

    def roll_back(self) -> list[RowKey]:
        """Undo what was put since the last commit, and return the rows."""
        undone = list(self._undo)
        for key, row in self._undo.items():
            self._set(key, row)
        self._undo.clear()
        return undone


def touched_keys(change: RowChange) -> tuple[RowKey, ...]:
    """Return the rows that a change touches: one, or the one before and the one after in a table without a key."""
    return tuple((change.table, key) for key in change.identities)


@attrs.define
class CopyChanges:
    """
    What one epoch apply did to rows without a key.

    An NDB transaction logs one event per hidden key, and which of several equal rows it took is not known. How many
    copies of each row came or went is the same whichever it took.

    Attributes:
        net: By row, how many copies came; negative if they went.
        made: The changes, each with the server under whose id it is logged.
        reflected: Inserts that the primary reflects.
    """

    net: Counter[RowKey] = attrs.field(factory=Counter)
    made: list[tuple[RowChange, int]] = attrs.field(factory=list)
    reflected: list[RowChange] = attrs.field(factory=list)

    def note(self, change: RowChange, server_id: int, copies: int) -> None:
        """
        Note a change that was applied.

        Args:
            change: The change.
            server_id: Server under whose id it is logged.
            copies: How many copies of the row before are left.
        """
        self.net.update(net_copies(change))
        self.made.append((change, server_id))
        if change.operation is Operation.WRITE_ROW:
            return
        # An insert whose row was changed after it is not logged as an insert that is reflected.
        alike = [number for number, each in enumerate(self.reflected) if each.key == change.key]
        if len(alike) > copies:
            del self.reflected[alike[-1]]

    def effects(self) -> dict[RowKey, Effect]:
        """Return what became of each row."""
        return copy_effects(self.net)


def change_copies(store: RowStore, table: Table, change: RowChange, *, local: bool, epoch: int) -> RowChange | None:
    """
    Apply a change of a row without a key: one copy of the row before goes, one of the row after comes.

    Args:
        store: The rows of the cluster.
        table: The table as the cluster has it.
        change: The change.
        local: Whether the cluster made it, and not its applier.
        epoch: Own epoch.

    Returns:
        The change, with the identities of the rows that it took; None if the row before was not there, and then nothing
        changes. Where not all rows are known, one that is not is there.
    """
    known: dict[int, bytes | None] = {}
    if change.operation is not Operation.WRITE_ROW:
        key = change.table, change.key
        if store.get(key) is None:
            key = _row_that_agrees(store, table, change) or key
        row = store.get(key)
        if row is not None:
            store.put(key, attrs.evolve(row, copies=row.copies - 1) if row.copies > 1 else None)
            known = row.payloads
        elif store.holds_all(change.table):
            return None
        if key[1] != change.key:
            change = _with_values(change, table, known)
    if change.after is not None:
        _add(store, touched_keys(change)[-1], Row({**known, **payloads_of(change.after)}, local, epoch))
    return change


def _row_that_agrees(store: RowStore, table: Table, change: RowChange) -> RowKey | None:
    """
    Return a row that has the same values as a before image in all columns that both have; None if there is none.

    The image lacks columns that its cluster does not have, and a row those that a statement computed.
    """
    before = {place: value for place, value in payloads_of(change.before).items() if not table.columns[place].is_blob}
    for key, row in store.rows.items():
        if key[0] == change.table and all(row.payloads.get(place, value) == value for place, value in before.items()):
            return key
    return None


def _with_values(change: RowChange, table: Table, known: Mapping[int, bytes | None]) -> RowChange:
    """Return an update or delete with the identities of a row some of whose values are known."""
    before = {**payloads_of(change.before), **known}
    after = identity_without_key(table, {**before, **payloads_of(change.after)})
    key = identity_without_key(table, before)
    return attrs.evolve(change, key=key, moved_to=None if change.after is None else after)


def _add(store: RowStore, key: RowKey, row: Row) -> None:
    """Add the copies of a row to those that are there."""
    there = copies_of(store, key)
    store.put(key, attrs.evolve(row, copies=there + row.copies))


def as_own_row(change: RowChange, table: Table) -> RowChange:
    """Return an arriving change as one of rows of the applier's own table, which may have more columns."""
    image = change.before if change.before is not None else change.after
    assert image is not None
    layout = image.layout
    before, after = (_completed(table, layout, payloads_of(each)) for each in (change.before, change.after))
    if change.operation is Operation.WRITE_ROW:
        written = RowImage(layout, tuple(after), tuple(after.values()))
        return attrs.evolve(change, key=identity_without_key(table, after), after=written)
    moved_to = None if change.after is None else identity_without_key(table, after)
    return attrs.evolve(change, key=identity_without_key(table, before), moved_to=moved_to)


def redefine(store: RowStore, name: str, table: Table, layout: RowLayout) -> None:
    """
    Give the rows of a table without a primary key the columns that a statement left it, and so other identities.

    Args:
        store: The rows of the cluster.
        name: Name of the History table.
        table: The table after the statement.
        layout: How rows of the History table are read.
    """
    rows = {key: row for key, row in store.rows.items() if key[0] == name}
    for key in rows:
        store.put(key, None)
    for row in rows.values():
        payloads = _completed(table, layout, row.payloads)
        _add(store, (name, identity_without_key(table, payloads)), attrs.evolve(row, payloads=payloads))


def _completed(table: Table, layout: RowLayout, payloads: Mapping[int, bytes | None]) -> dict[int, bytes | None]:
    """Return the values of the columns of a table: what is not there has its default, unless the server computes it."""
    found: dict[int, bytes | None] = {}
    for place, column in enumerate(table.columns):
        if place in payloads:
            found[place] = payloads[place]
        elif not column.is_computed:
            value = implied_value(column)
            found[place] = None if value is None else layout.codecs[place].encode(value)
    return {place: payload for place, payload in found.items() if table.columns[place].generated != "virtual"}


def copies_of(store: RowStore, row: RowKey) -> int:
    """Return how many copies of a row are known to be there."""
    found = store.get(row)
    return 0 if found is None else found.copies
