"""
Rows of tables without a primary key: equal rows are one row with a number of copies.

NDB gives such a row a hidden key that no event carries. So an applier looks for a row by the image in the event, takes
any of several equal ones, and stops where there is none. Conflict functions do not count.

Source: `docs/functions.md`, "Tables without a primary key".
"""

from __future__ import annotations

import attrs

from conflict.history.model import RowChange
from conflict.reference.row_store import EMPTY_ROW, NOT_KNOWN, Row, RowKey, RowStore
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation

__all__ = ["change_copies", "touched_keys"]


def touched_keys(change: RowChange) -> tuple[RowKey, ...]:
    """Return the rows that a change touches: one, or the one before and the one after in a table without a key."""
    first = change.table, change.key
    return (first,) if change.moved_to is None else (first, (change.table, change.moved_to))


def change_copies(store: RowStore, change: RowChange, *, local: bool, epoch: int) -> bool:
    """
    Apply a change of a row without a key: one copy of the row before goes, one of the row after comes.

    Returns:
        Whether the row before was there; if not, nothing changes.
    """
    if change.operation is not Operation.WRITE_ROW:
        key = change.table, change.key
        row = store.get(key)
        if row is None:
            return False
        store.put(key, attrs.evolve(row, copies=row.copies - 1) if row.copies > 1 else None)
    if change.after is not None:
        key = change.table, change.key if change.moved_to is None else change.moved_to
        row = store.get(key)
        copies = 1 if row is None or row is NOT_KNOWN else row.copies + 1
        store.put(key, attrs.evolve(_row(change.after, local=local, epoch=epoch), copies=copies))
    return True


def _row(image: RowImage, *, local: bool, epoch: int) -> Row:
    return EMPTY_ROW.with_image(image, local=local, epoch=epoch)
