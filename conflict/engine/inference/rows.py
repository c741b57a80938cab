"""
Rows that are older than the log: what is known of them, if anything is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

import attrs

from conflict.engine.ledger.resolution import LastWrite
from conflict.engine.reference.row_store import Row, RowKey, RowStore
from conflict.history.model import Cluster
from conflict.history.timeline import RowChange
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowImage, RowLayout


@attrs.frozen
class OlderRow(Row):
    """
    A row that is known in part.

    Attributes:
        partial: Whether absent columns are not known, and do not have their defaults.
        dated: Whether `local` and `epoch` are known.
        assumed: Value of the resolve column while one of several possible values is tried; see
            `conflict.engine.inference.not_known`.
    """

    partial: bool = True
    dated: bool = True
    assumed: int | None = None

    def with_image(self, image: RowImage, *, local: bool, epoch: int, by: LastWrite | None = None) -> Row:
        """Return the row with the columns of an image written over it."""
        row = super().with_image(image, local=local, epoch=epoch, by=by)
        return in_part(row, row.payloads) if self.partial else row

    def changed_here(
        self, epoch: int, *, payloads: dict[int, bytes | None] | None = None, by: LastWrite | None = None
    ) -> Row:
        """Return the row as its own cluster left it in an epoch."""
        payloads = self.payloads if payloads is None else payloads
        return attrs.evolve(
            self, payloads=payloads, local=True, epoch=epoch, by=by or self.by, dated=True, assumed=None
        )

    def stored(self, setup: TableSetup, layout: RowLayout) -> dict[int, bytes | None]:
        """Return the bytes that a data node holds, as far as they are known."""
        return self.payloads if self.partial else super().stored(setup, layout)

    def lacking(self, columns: Iterable[int]) -> frozenset[int]:
        """Return those of some columns whose values are not known."""
        return frozenset(columns) - self.payloads.keys() if self.partial else frozenset()


# A row that may or may not exist: nothing in the log has shown it yet.
NOT_KNOWN = OlderRow({}, local=False, epoch=0, copies=0, dated=False)
# A row that exists; nothing else is known of it.
EXISTS = attrs.evolve(NOT_KNOWN, copies=1)


def is_partial(row: Row | None) -> TypeGuard[OlderRow]:
    """Whether a row exists, or may, and absent columns of it are not known."""
    return isinstance(row, OlderRow) and row.partial


def is_dated(row: Row) -> bool:
    """Whether it is known who changed a row last, and when."""
    return not isinstance(row, OlderRow) or row.dated


def in_part(row: Row, payloads: dict[int, bytes | None]) -> OlderRow:
    """Return a row with some values; all others are not known."""
    if isinstance(row, OlderRow):
        return attrs.evolve(row, payloads=payloads, partial=True)
    return OlderRow(payloads, row.local, row.epoch, row.copies, row.by)


def rows_at_start(cluster: Cluster) -> RowStore:
    """Return the rows of a cluster at the start of its log: none, or those that are given."""
    start = cluster.start
    if start is None:
        return RowStore()
    rows: dict[RowKey, Row] = {
        key: OlderRow(dict(payloads), local=False, epoch=0, dated=False) for key, payloads in start.rows.items()
    }
    return OlderRows(rows, given=start.tables)


@attrs.define
class OlderRows(RowStore):
    """
    The rows of a cluster whose log starts in the middle: one is `NOT_KNOWN` until something shows its state.

    Attributes:
        given: Tables whose older rows are all there from the start.
    """

    given: frozenset[str] = frozenset()
    _gone: set[RowKey] = attrs.field(factory=set)
    _lost: set[RowKey] = attrs.field(factory=set)

    def get(self, key: RowKey) -> Row | None:
        """Return a row, None if it does not exist, or `NOT_KNOWN`."""
        row = self.rows.get(key)
        if row is not None:
            return row
        known = key in self._gone or (key[0] in self.given and key not in self._lost)
        return None if known else NOT_KNOWN

    def holds_all(self, table: str) -> bool:
        """Whether every row of a table is here."""
        return table in self.given and not any(name == table for name, _ in self._lost)

    def _set(self, key: RowKey, row: Row | None) -> None:
        super()._set(key, None if row is NOT_KNOWN else row)
        (self._gone.add if row is None else self._gone.discard)(key)
        (self._lost.add if row is NOT_KNOWN else self._lost.discard)(key)

    def write(self, change: RowChange, *, local: bool, epoch: int, by: LastWrite | None = None) -> None:
        """
        Apply a row change, known as `by`; columns that its after image does not carry keep their values.

        The before image of an own update shows columns that were not known.
        """
        key = (change.table, change.key)
        found = self.get(key)
        super().write(change, local=local, epoch=epoch, by=by)
        row = self.rows.get(key)
        if row is None:
            return
        if is_partial(found) and local and change.before is not None:
            before = dict(zip(change.before.present, change.before.payloads, strict=True))
            self.put(key, in_part(row, {**before, **row.payloads}))
        elif change.unknown:
            payloads = {ordinal: each for ordinal, each in row.payloads.items() if ordinal not in change.unknown}
            self.put(key, in_part(row, payloads))
