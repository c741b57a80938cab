"""
What the rules of logging answer, and what they share: which columns count as written.

A statement writes more than it names: a generated column is computed again when a column that it is
made of is written, and so is an ON UPDATE CURRENT_TIMESTAMP column whenever the row is.
Source: MySQL's `TABLE::mark_generated_columns` and `COPY_INFO`; recorded for both engines.
"""

from __future__ import annotations

from collections.abc import Collection

import attrs

from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table

__all__ = ["EventColumns", "ordered", "stored_columns", "updated_columns"]


@attrs.frozen
class EventColumns:
    """
    Which columns one row event carries.

    Attributes:
        operation: The operation as logged, which need not be what the statement did.
        before: Positions of the columns of the before image, ascending; None for a write.
        after: Positions of the columns of the after image, ascending; None for a delete.
    """

    operation: Operation
    before: tuple[int, ...] | None
    after: tuple[int, ...] | None


def ordered(columns: Collection[int]) -> tuple[int, ...]:
    """Return column positions as an event names them: ascending."""
    return tuple(sorted(columns))


def stored_columns(table: Table) -> frozenset[int]:
    """Return the positions of all columns but virtual generated ones, which no engine stores."""
    return frozenset(place for place, column in enumerate(table.columns) if column.generated != "virtual")


def updated_columns(table: Table, written: Collection[int]) -> frozenset[int]:
    """
    Return the positions of the columns that an update writes, virtual ones among them.

    Args:
        table: The table.
        written: Positions of the columns that the statement sets.
    """
    updated = set(written)
    if updated:
        updated |= {place for place, column in enumerate(table.columns) if column.on_update}
    names = {table.columns[place].name for place in updated}
    for place, column in enumerate(table.columns):  # a generated column can only be made of earlier generated ones
        if names.intersection(column.depends_on):
            updated.add(place)
            names.add(column.name)
    return frozenset(updated)
