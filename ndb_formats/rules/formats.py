"""
The formats that a change can be logged in, and the columns of its events in each.

`FORMATS` has a row for each value of ``binlog_row_image`` and for each NDB binlog type that logs in a way of its own.
Types 4 and 0 are left out: 4 logs as 6, and 0 as the server options say (2 by default). Type 1 logs nothing.
"""

from __future__ import annotations

from enum import Enum

import attrs

from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import EventColumns, RowImageRule, image_columns, image_event, stored_columns
from ndb_formats.rules.update_format import BINLOG_TYPES, UpdateFormat, is_ndb, key_change, ndb_columns, ndb_event
from ndb_formats.schema.tables import Table

_BINLOG_TYPES = frozenset({2, 3, 6, 7, 8, 9})


class KeyChange(Enum):
    """What an update does to the primary key of its row."""

    NONE = "none"
    SPELLING = "spelling"  # other bytes that are the same key: 'abc' to 'ABC'
    KEY = "key"  # another key


@attrs.frozen
class Format:
    """
    One format.

    Attributes:
        name: ``FULL``, ``MINIMAL``, ``NOBLOB``, or the number of a binlog type.
        title: The name of that binlog type; for ``binlog_row_image`` the setting.
        rule: What it puts into images.
    """

    name: str
    title: str
    rule: RowImageRule | UpdateFormat

    @property
    def of_ndb(self) -> bool:
        """Whether it is one of NDB's."""
        return isinstance(self.rule, UpdateFormat)


FORMATS = (
    *(Format(rule.name, f"binlog_row_image={rule.name}", rule) for rule in RowImageRule),
    *(
        Format(str(row.number), row.name, row.format)
        for row in BINLOG_TYPES
        if row.number in _BINLOG_TYPES and row.format is not None
    ),
)


def change_columns(
    rule: RowImageRule | UpdateFormat,
    table: Table,
    operation: Operation,
    marked: frozenset[int],
    *,
    key: KeyChange = KeyChange.NONE,
    unchanged: bool = False,
) -> tuple[EventColumns, ...]:
    """
    Return the columns of the events of a change: none if it is not logged, two if NDB logs it as delete and insert.

    The format need not be one of the table's engine: that answers how the change would be logged if the table had the
    other engine.

    Args:
        rule: The format.
        table: The table.
        operation: The operation of the statement; WRITE_ROW is an insert.
        marked: Ordinals of the columns that count as written under the table's engine (see `images.marked_columns`).
        key: What an update does to the key.
        unchanged: Whether an update leaves every value as it was; engines other than NDB do not log that.
    """
    if isinstance(rule, RowImageRule):
        if unchanged:
            return ()
        # NDB's marks leave out virtual columns, which other engines log.
        columns = image_columns if is_ndb(table) else image_event
        return (columns(rule, table, operation, marked),)
    if key is KeyChange.KEY:
        return key_change(rule, table)
    if key is KeyChange.SPELLING:
        marked = stored_columns(table)
    event = (ndb_event if is_ndb(table) else ndb_columns)(rule, table, operation, marked)
    return () if event is None else (event,)
