"""
Which formats may have logged an event, by the columns that its images carry.
"""

from __future__ import annotations

from collections.abc import Iterable

from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.event_columns import EventColumns
from ndb_formats.rules.update_format import BINLOG_TYPES, UpdateFormat, ndb_event
from ndb_formats.schema.tables import Table

__all__ = ["fitting_types", "may_log"]


def may_log(update_format: UpdateFormat, table: Table, event: EventColumns) -> bool:
    """
    Whether a table that is logged in a format may have logged an event.

    A write may be an insert, or an update that is logged as a write. The columns of an after image are those that the
    statement wrote, with or without the key.

    Args:
        update_format: How the table is logged.
        table: The table.
        event: The operation, and the columns of both images.
    """
    if event.operation is Operation.DELETE_ROW:
        return ndb_event(update_format, table, Operation.DELETE_ROW, ()) == event
    if ndb_event(update_format, table, Operation.WRITE_ROW, ()) == event:
        return True
    after = frozenset(event.after or ())
    marks = (after, after - frozenset(table.key_ordinals))
    return any(ndb_event(update_format, table, Operation.UPDATE_ROW, marked) == event for marked in marks)


def fitting_types(versions: Iterable[Table], events: Iterable[EventColumns]) -> tuple[int, ...]:
    """Return the named binlog types other than 0 under which the versions of a table may have logged some events."""
    versions, events = list(versions), list(events)
    return tuple(
        row.number
        for row in BINLOG_TYPES
        if row.format is not None
        and row.names
        and all(any(may_log(row.format, table, event) for table in versions) for event in events)
    )
