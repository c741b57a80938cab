"""
What a cluster of the reference engine logs, as row events of a binlog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from conflict.reference.epoch_log import LoggedChange
from ndb_formats.events.extra_row_info import ExtraRowInfo
from ndb_formats.rules.images import LoggedImages, Row
from ndb_formats.schema.tables import Table
from ndb_formats.writing.binlog_writer import APPLY_STATUS_TABLE, RowChange

__all__ = ["LoggedGroup", "row_events"]


@attrs.frozen
class LoggedGroup:
    """
    What one NDB transaction logged.

    Attributes:
        changes: Its row changes.
        transaction_id: Its id.
        applied: Server ids and epochs that came with it, of an applier's transaction: that of the source first.
    """

    changes: tuple[LoggedChange, ...]
    transaction_id: int
    applied: tuple[tuple[int, int], ...] = ()


def row_events(group: LoggedGroup, tables: Mapping[str, Table]) -> Iterator[RowChange]:
    """Yield the row events of a group: first those of `ndb_apply_status`, which name the epochs that it applied."""
    for server_id, epoch in group.applied:
        row: Row = dict(enumerate((server_id, epoch, "binlog.000001", 0, 0)))
        yield RowChange(APPLY_STATUS_TABLE, None, row, extra=ExtraRowInfo(group.transaction_id))
    for entry in group.changes:
        change = entry.change
        logged = LoggedImages(change.operation, change.before, change.after)
        extra = ExtraRowInfo(group.transaction_id, change.flags or None)
        yield RowChange(tables[change.table], None, None, extra=extra, server_id=entry.server_id, logged=logged)
