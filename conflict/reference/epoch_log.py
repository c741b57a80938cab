"""
What a cluster logs for the next applier: its own changes, and the changes of its applier.

An NDB transaction logs one event per row: an insert and an update are logged as an insert, an update and a delete as a
delete, a delete and an insert as an update, an insert and a delete not at all.

Source: `docs/concepts.md`, "What an NDB binlog holds".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from conflict.history.model import NO_FLAGS, EpochApply, RowChange
from conflict.reference.row_store import Row, RowKey
from conflict.results.model import OutcomePlace
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.extra_row_info import ConflictFlag
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.update_format import ndb_columns
from ndb_formats.types.values import Value

__all__ = ["FROM_AN_APPLIER", "ExceptionRow", "LogEntry", "LoggedChange", "merged_change", "refresh_change"]

# The events of an applier belong to its own NDB transaction, whose id a History does not hold.
FROM_AN_APPLIER = 2**64 - 1


@attrs.frozen
class LoggedChange:
    """
    A row operation in a cluster's log.

    Attributes:
        change: The operation.
        group: Group of the epoch to which it belongs.
        ordinal: Its number among the cluster's own changes of the epoch; -1 for a change of its applier.
        server_id: Server under whose id it is logged; that server's cluster does not apply it again.
        setup: Its table as the cluster had it then.
        cause: The operation that it answers, if an applier refreshed the row.
    """

    change: RowChange
    group: int
    ordinal: int
    server_id: int
    setup: TableSetup | None = attrs.field(default=None, repr=False, eq=False)
    cause: LoggedChange | None = attrs.field(default=None, repr=False, eq=False)

    @property
    def row(self) -> RowKey:
        """The row that it changes."""
        return self.change.table, self.change.key

    @property
    def steps(self) -> Iterator[tuple[int, int]]:
        """Group and ordinal of the operation, and of what caused it."""
        entry: LoggedChange | None = self
        while entry is not None:
            yield entry.group, entry.ordinal
            entry = entry.cause

    def is_sent_on_by(self, apply: EpochApply, row: RowKey) -> bool:
        """Whether an epoch apply made it, of a given row."""
        return self.ordinal < 0 and self.group == apply.group and self.row == row


@attrs.frozen
class ExceptionRow:
    """A row that the applier of a server wrote to an exceptions table that is itself replicated, and its outcome."""

    server_id: int
    table: str
    row: tuple[Value, ...]
    outcome: OutcomePlace


LogEntry = LoggedChange | ExceptionRow


def merged_change(
    setup: TableSetup,
    layout: RowLayout,
    change: RowChange,
    before: Row | None,
    after: Row | None,
    written: frozenset[int],
    flags: ConflictFlag = NO_FLAGS,
) -> RowChange | None:
    """
    Return the one event that an NDB transaction logs for a row, in the format of its table.

    Args:
        setup: The table.
        layout: Layout of its rows.
        change: One of the operations, which identifies the row.
        before: The row before the transaction.
        after: The row after it.
        written: Positions of the columns that the transaction wrote.
        flags: Conflict flags of the event.

    Returns:
        The event; None if nothing is logged.
    """
    if after is None and before is None:
        return None
    operation = Operation.UPDATE_ROW
    if before is None or after is None:
        operation = Operation.WRITE_ROW if before is None else Operation.DELETE_ROW
    columns = ndb_columns(setup.format, setup.table, operation, written)
    if columns is None:
        return None
    return RowChange(
        change.table,
        change.key,
        columns.operation,
        _image(setup, layout, before, columns.before),
        _image(setup, layout, after, columns.after),
        FROM_AN_APPLIER,
        flags,
        unknown=after.lacking(columns.after or ()) if after is not None else frozenset(),
        unknown_before=before.lacking(columns.before or ()) if before is not None else frozenset(),
    )


def _image(setup: TableSetup, layout: RowLayout, row: Row | None, columns: Iterable[int] | None) -> RowImage | None:
    """Return an image of some columns of a row; None if none are given."""
    if columns is None:
        return None
    assert row is not None
    payloads = row.stored(setup, layout)
    present = tuple(ordinal for ordinal in columns if ordinal in payloads)
    return RowImage(layout, present, tuple(payloads[ordinal] for ordinal in present))


def refresh_change(setup: TableSetup, layout: RowLayout, change: RowChange, row: Row | None) -> RowChange:
    """
    Return the event that refreshes a row: a write of all its columns, or a delete if it is missing.

    Args:
        setup: Its table.
        layout: Layout of its rows.
        change: The operation that was rejected, which identifies the row.
        row: The row as it is now; None if it is missing.
    """
    table, key, flags = change.table, change.key, ConflictFlag.REFRESH
    if row is None:
        return RowChange(table, key, Operation.DELETE_ROW, _key_image(setup, change), None, FROM_AN_APPLIER, flags)
    columns = range(len(setup.table.columns))
    after, unknown = _image(setup, layout, row, columns), row.lacking(columns)
    return RowChange(table, key, Operation.WRITE_ROW, None, after, FROM_AN_APPLIER, flags, unknown=unknown)


def _key_image(setup: TableSetup, change: RowChange) -> RowImage:
    """Return an image of the key columns alone, from a change that carries them; one of a row not known may not."""
    source = change.before if change.before is not None else change.after
    assert source is not None
    present = tuple(ordinal for ordinal in sorted(setup.table.key_ordinals) if ordinal in source.present)
    payloads = tuple(source.payloads[source.present.index(ordinal)] for ordinal in present)
    return RowImage(source.layout, present, payloads)
