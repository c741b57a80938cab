"""
Rows as a data node keeps them: column bytes, author and epoch; with undo for one epoch transaction.
"""

from __future__ import annotations

import attrs

from conflict.history.model import RowChange
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation

__all__ = ["Row", "RowKey", "RowStore"]

RowKey = tuple[str, bytes]


@attrs.frozen
class Row:
    """
    One row.

    Attributes:
        payloads: Bytes per column position; None is NULL, a column that was never given is not there.
        local: Last changed in this cluster, not by the applier (``ROW_AUTHOR`` = 0).
        epoch: Epoch of its last change, in full.
    """

    payloads: dict[int, bytes | None]
    local: bool
    epoch: int

    def with_image(self, image: RowImage, *, local: bool, epoch: int) -> Row:
        """Return the row with the columns of an after image written over it."""
        written = dict(zip(image.present, image.payloads, strict=True))
        return Row({**self.payloads, **written}, local, epoch)


EMPTY_ROW = Row({}, local=True, epoch=0)


@attrs.define
class RowStore:
    """All rows of one cluster."""

    rows: dict[RowKey, Row] = attrs.field(factory=dict)
    _undo: dict[RowKey, Row | None] = attrs.field(factory=dict)

    def get(self, key: RowKey) -> Row | None:
        """Return a row, or None if it does not exist."""
        return self.rows.get(key)

    def put(self, key: RowKey, row: Row | None) -> None:
        """Set a row, or remove it."""
        self._undo.setdefault(key, self.rows.get(key))
        if row is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row

    def write(self, change: RowChange, *, local: bool, epoch: int) -> None:
        """
        Apply a row change; columns that its after image does not carry keep their values.

        An update of a missing row makes the row of both images.
        """
        key = (change.table, change.key)
        if change.operation is Operation.DELETE_ROW:
            self.put(key, None)
            return
        assert change.after is not None
        row = self.get(key)
        if row is None:
            row = EMPTY_ROW
            if change.before is not None:
                row = row.with_image(change.before, local=local, epoch=epoch)
        self.put(key, row.with_image(change.after, local=local, epoch=epoch))

    def commit(self) -> None:
        """Keep what was put since the last commit."""
        self._undo.clear()

    def roll_back(self) -> None:
        """Undo what was put since the last commit."""
        for key, row in self._undo.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
        self._undo.clear()
