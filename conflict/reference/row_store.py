"""
Rows as a data node stores them (column bytes, author and epoch), with undo for one epoch transaction.
"""

from __future__ import annotations

import attrs

from conflict.history.model import RowChange
from conflict.results.model import LastWrite
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation

__all__ = ["NOT_KNOWN", "Row", "RowKey", "RowStore"]

RowKey = tuple[str, bytes]


@attrs.frozen
class Row:
    """
    One row.

    Attributes:
        payloads: Bytes per column position; None is NULL. A column that was never written is absent.
        local: Whether it was last changed on this cluster, not by the applier (``ROW_AUTHOR`` = 0).
        epoch: Own epoch of its last change, in full precision.
        partial: Whether it is older than the log, so that absent columns are not known.
        dated: Whether `local` and `epoch` are known.
        assumed: Value of the resolve column while one of several possible values is tried; see
            `conflict.reference.not_known`.
        by: The operation that last wrote it; None if the log does not hold it.
        copies: How many equal rows it stands for; more than one in tables without a primary key alone.
    """

    payloads: dict[int, bytes | None]
    local: bool
    epoch: int
    partial: bool = False
    dated: bool = True
    assumed: int | None = None
    copies: int = 1
    by: LastWrite | None = attrs.field(default=None, eq=False, repr=False)

    def with_image(self, image: RowImage, *, local: bool, epoch: int, by: LastWrite | None = None) -> Row:
        """Return the row with the columns of an image written over it."""
        written = dict(zip(image.present, image.payloads, strict=True))
        return Row({**self.payloads, **written}, local, epoch, self.partial, by=by)

    def without_columns(self, columns: frozenset[int]) -> Row:
        """Return the row with columns that are not known any more."""
        if not columns:
            return self
        payloads = {ordinal: payload for ordinal, payload in self.payloads.items() if ordinal not in columns}
        return attrs.evolve(self, payloads=payloads, partial=True)


EMPTY_ROW = Row({}, local=True, epoch=0)
# A row that may or may not exist: it is older than the log, and nothing has told.
NOT_KNOWN = Row({}, local=False, epoch=0, partial=True, dated=False)


@attrs.define
class RowStore:
    """
    All rows of one cluster.

    Attributes:
        rows: The rows that exist.
        older: Whether there may be rows that are older than the log: a row is `NOT_KNOWN` until something tells.
        given: Tables of which all older rows are there from the start.
    """

    rows: dict[RowKey, Row] = attrs.field(factory=dict)
    older: bool = False
    given: frozenset[str] = frozenset()
    _gone: set[RowKey] = attrs.field(factory=set)
    _lost: set[RowKey] = attrs.field(factory=set)
    _undo: dict[RowKey, Row | None] = attrs.field(factory=dict)

    def get(self, key: RowKey) -> Row | None:
        """Return a row, None if it does not exist, or `NOT_KNOWN`."""
        row = self.rows.get(key)
        if row is not None or not self.older:
            return row
        known = key in self._gone or (key[0] in self.given and key not in self._lost)
        return None if known else NOT_KNOWN

    def may_hold_older(self, table: str) -> bool:
        """Whether a table may have rows that are older than the log and are not given."""
        return self.older and table not in self.given

    def put(self, key: RowKey, row: Row | None) -> None:
        """Set a row, or remove it."""
        self._undo.setdefault(key, self.get(key))
        self._set(key, row)

    def _set(self, key: RowKey, row: Row | None) -> None:
        if row is None or row is NOT_KNOWN:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row
        if self.older:
            (self._gone.add if row is None else self._gone.discard)(key)
            (self._lost.add if row is NOT_KNOWN else self._lost.discard)(key)

    def write(self, change: RowChange, *, local: bool, epoch: int, by: LastWrite | None = None) -> None:
        """
        Apply a row change, known as `by`; columns that its after image does not carry keep their values.

        An update of a missing row makes the row of both images. The before image of an own update tells the columns of
        a row that is older than the log.
        """
        key = (change.table, change.key)
        if change.operation is Operation.DELETE_ROW:
            self.put(key, None)
            return
        assert change.after is not None
        row = self.get(key)
        known = {} if row is None else row.payloads
        if change.before is not None and (row is None or (row.partial and local)):
            row = (row or EMPTY_ROW).with_image(change.before, local=local, epoch=epoch)
            row = attrs.evolve(row, payloads={**row.payloads, **known})
        row = (row or EMPTY_ROW).with_image(change.after, local=local, epoch=epoch, by=by)
        self.put(key, row.without_columns(change.unknown))

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
