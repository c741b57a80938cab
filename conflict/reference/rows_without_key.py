"""
Rows of tables without a primary key: equal rows are one row with a number of copies.

NDB gives such a row a hidden key that no event carries. So an applier looks for a row by the image in the event, takes
any of several equal ones, and stops where there is none. Conflict functions do not count.

Source: `docs/functions.md`, "Tables without a primary key".
"""

from __future__ import annotations

from collections import Counter

import attrs

from conflict.history.effects import Effect, copy_effects, net_copies
from conflict.history.model import RowChange
from conflict.reference.row_store import EMPTY_ROW, NOT_KNOWN, Row, RowKey, RowStore
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation

__all__ = ["CopyChanges", "change_copies", "copies_of", "touched_keys"]


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


def change_copies(store: RowStore, change: RowChange, *, local: bool, epoch: int) -> bool:
    """
    Apply a change of a row without a key: one copy of the row before goes, one of the row after comes.

    Returns:
        Whether the row before was there; if not, nothing changes. A log that starts in the middle may have begun with
        more copies than it tells, so there a row that is not known is there.
    """
    if change.operation is not Operation.WRITE_ROW:
        key = change.table, change.key
        row = store.get(key)
        if row is not None:
            store.put(key, attrs.evolve(row, copies=row.copies - 1) if row.copies > 1 else None)
        elif not store.may_hold_older(change.table):
            return False
    if change.after is not None:
        key = touched_keys(change)[-1]
        row = store.get(key)
        copies = 1 if row is None or row is NOT_KNOWN else row.copies + 1
        store.put(key, attrs.evolve(_row(change.after, local=local, epoch=epoch), copies=copies))
    return True


def copies_of(store: RowStore, row: RowKey) -> int:
    """Return how many copies of a row are known to be there."""
    found = store.get(row)
    return 0 if found is None or found is NOT_KNOWN else found.copies


def _row(image: RowImage, *, local: bool, epoch: int) -> Row:
    return EMPTY_ROW.with_image(image, local=local, epoch=epoch)
