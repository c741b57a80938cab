"""
How a logged change would stand in another NDB binlog type, where the log tells that exactly.

Computes docs/compare.md, "Formats".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import attrs

from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.event_columns import EventColumns
from ndb_formats.rules.update_format import UpdateFormat, ndb_event
from ndb_formats.schema.tables import Table

__all__ = ["Relogging"]


@attrs.frozen
class Relogging:
    """
    The changes of a table in another format.

    Attributes:
        table: The table.
        logged: The format that they are logged in.
        wanted: The other format.
    """

    table: Table
    logged: UpdateFormat
    wanted: UpdateFormat

    def event(self, operation: Operation, after: Collection[int] | None) -> EventColumns:
        """
        Return the columns of the event of a change.

        Args:
            operation: As logged.
            after: The columns of its after image as logged; None if there is none.
        """
        marked = frozenset(after or ()) - frozenset(self.table.key_ordinals)
        event = ndb_event(self.wanted, self.table, operation, marked)
        assert event is not None
        return event

    def fault(self, shapes: Iterable[EventColumns]) -> str | None:
        """Return why the log does not tell how these changes would be logged; None if it does."""
        if self.logged == self.wanted:
            return None
        if not self.wanted.logged:
            return "nothing would be logged"
        if not self.logged.logged:
            return "nothing is logged"
        if self.logged.as_write:
            return "updates are logged as writes, like inserts"
        if self.wanted.updated_only and not self.logged.updated_only:
            return "images with all columns do not tell which ones a statement set"
        for shape in shapes:
            event = self.event(shape.operation, shape.after)
            for which, needed, held in (("before", event.before, shape.before), ("after", event.after, shape.after)):
                missing = sorted(set(needed or ()) - set(held or ()))
                if missing:
                    name = self.table.columns[missing[0]].name
                    return f"{which} images of {_WORDS[shape.operation]} lack column {name}"
        return None


_WORDS: Mapping[Operation, str] = {
    Operation.WRITE_ROW: "inserts",
    Operation.UPDATE_ROW: "updates",
    Operation.DELETE_ROW: "deletes",
}
