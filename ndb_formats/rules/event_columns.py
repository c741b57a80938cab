"""
The columns of an event, and the columns that a statement writes.

A statement writes more columns than it names: ON UPDATE CURRENT_TIMESTAMP columns, and generated columns that depend on
a written one.
Source: MySQL's `TABLE::mark_generated_columns` and `COPY_INFO`; recorded for NDB and InnoDB.
"""

from __future__ import annotations

from collections.abc import Collection

import attrs

from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table


@attrs.frozen
class EventColumns:
    """
    The columns of one rows event.

    Attributes:
        operation: The operation as logged, which can differ from that of the statement.
        before: Ordinals of the columns of the before image, ascending; None for a write.
        after: Ordinals of the columns of the after image, ascending; None for a delete.
    """

    operation: Operation
    before: tuple[int, ...] | None
    after: tuple[int, ...] | None


def ordered(columns: Collection[int]) -> tuple[int, ...]:
    """Return ordinals of columns in ascending order, as in an event."""
    return tuple(sorted(columns))


def stored_columns(table: Table) -> frozenset[int]:
    """Return the ordinals of all columns but virtual generated ones, which are not stored."""
    return frozenset(ordinal for ordinal, column in enumerate(table.columns) if column.generated != "virtual")


def updated_columns(table: Table, written: Collection[int]) -> frozenset[int]:
    """
    Return the ordinals of the columns that an update writes, virtual ones included.

    Args:
        table: The table.
        written: Ordinals of the columns that the statement sets.
    """
    updated = set(written)
    if updated:
        updated |= {ordinal for ordinal, column in enumerate(table.columns) if column.on_update}
    names = {table.columns[ordinal].name for ordinal in updated}
    for ordinal, column in enumerate(table.columns):  # a generated column depends on no later generated column
        if names.intersection(column.depends_on):
            updated.add(ordinal)
            names.add(column.name)
    return frozenset(updated)
