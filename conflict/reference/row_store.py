"""
Rows as a data node stores them (column bytes, author and epoch), with undo for one epoch transaction.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from conflict.history.model import RowChange
from conflict.results.model import LastWrite
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.default_values import implied_value

__all__ = ["EMPTY_ROW", "Row", "RowKey", "RowStore"]

RowKey = tuple[str, bytes]


@attrs.frozen
class Row:
    """
    One row.

    Attributes:
        payloads: Bytes per column position; None is NULL. A column that was never written is absent.
        local: Whether it was last changed on this cluster, not by the applier (``ROW_AUTHOR`` = 0).
        epoch: Own epoch of its last change, in full precision.
        copies: How many equal rows it stands for; more than one in tables without a primary key alone.
        by: The operation that last wrote it; None if the log does not hold it.
    """

    payloads: dict[int, bytes | None]
    local: bool
    epoch: int
    copies: int = 1
    by: LastWrite | None = attrs.field(default=None, eq=False, repr=False)

    def with_image(self, image: RowImage, *, local: bool, epoch: int, by: LastWrite | None = None) -> Row:
        """Return the row with the columns of an image written over it."""
        written = dict(zip(image.present, image.payloads, strict=True))
        return Row({**self.payloads, **written}, local, epoch, by=by)

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
            if ordinal not in payloads and column.generated != "virtual":
                value = implied_value(column)
                payloads[ordinal] = None if value is None else layout.codecs[ordinal].encode(value)
        return payloads

    def lacking(self, columns: Iterable[int]) -> frozenset[int]:  # noqa: ARG002  # of rows older than the log, some
        """Return those of some columns of which the values are not known: none, where a log begins with no rows."""
        return frozenset()


EMPTY_ROW = Row({}, local=True, epoch=0)


@attrs.define
class RowStore:
    """
    All rows of one cluster.

    Attributes:
        rows: The rows that exist.
    """

    rows: dict[RowKey, Row] = attrs.field(factory=dict)
    _undo: dict[RowKey, Row | None] = attrs.field(factory=dict)

    def get(self, key: RowKey) -> Row | None:
        """Return a row; None if it does not exist."""
        return self.rows.get(key)

    def holds_all(self, table: str) -> bool:  # noqa: ARG002  # of a log that starts in the middle, some
        """Whether every row of a table is here: so it is, where a log begins with no rows."""
        return True

    def put(self, key: RowKey, row: Row | None) -> None:
        """Set a row, or remove it."""
        self._undo.setdefault(key, self.get(key))
        self._set(key, row)

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
        self.put(key, (row or EMPTY_ROW).with_image(change.after, local=local, epoch=epoch, by=by))

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
