"""
What the applier decides on one operation, and which transactions of an epoch depend on one another.

The conflict functions themselves are in `conflict.rules.functions`; here are the cases around them: tables without a
function, the secondary of the functions with roles, and writes that cannot become a row. All are pure functions of the
row, the operation and the table.

Source: MySQL manual, "NDB$EPOCH_TRANS": a transaction that touches a row which an earlier one touched depends on
that one, and is in conflict if that one is.
"""

from __future__ import annotations

from collections.abc import Hashable

import attrs

from conflict.engine.reference.row_store import Row
from conflict.engine.reference.sight import Sight
from conflict.history.timeline import RowChange
from conflict.rules.decision import (
    APPLIED,
    IGNORED,
    Cause,
    Decision,
    IncomingOperation,
    RowState,
    Verdict,
    stored_precision,
    unwritten_value,
)
from conflict.rules.functions import Cell, ConflictFunction
from conflict.rules.own_rule import Image
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import ABSENT

DISCARDED = Decision(Verdict.DISCARDED)


def decide_without_function(row: Row | None, change: RowChange, table: Table) -> Decision:
    """
    Decide without a conflict function: a write inserts or overwrites, an update or delete of a missing row is ignored.

    An update that the secondary of NDB$EPOCH2 applies is ignored as well: the server sends it as a write without the
    primary key, and the data node does not insert such a row.
    """
    if row is not None:
        return APPLIED
    inserts = change.operation is Operation.WRITE_ROW and not _cannot_be_inserted(change, table)
    return APPLIED if inserts else IGNORED


def decide_as_secondary(row: Row | None, change: RowChange, table: Table) -> Decision:
    """
    Decide on the secondary of NDB$EPOCH2 and NDB$EPOCH2_TRANS: the primary's own changes apply unconditionally.

    A reflected operation is needed only where both clusters deleted the row. A row that exists, or that this cluster
    changed since, is newer than the reflected operation, which is then discarded.
    """
    if not change.flags & ConflictFlag.REFLECTED:
        return decide_without_function(row, change, table)
    if change.operation is Operation.WRITE_ROW:
        return APPLIED if row is None else DISCARDED
    return DISCARDED if row is None or row.local else APPLIED


def decide_by_function(
    row: Row | None,
    change: RowChange,
    function: ConflictFunction,
    table: Table,
    max_replicated_epoch: int,
    sight: Sight | None = None,
) -> Decision:
    """
    Decide by a conflict function.

    A reflected operation that is rejected is discarded instead: it is no conflict.

    Args:
        row: The row as the applier finds it; None if it does not exist.
        change: The operation; its images carry what the function compares (see `missing_image`).
        function: Conflict function of the table.
        table: The table.
        max_replicated_epoch: Highest own epoch known to have come back.
        sight: What a rule of one's own sees besides.
    """
    state = RowState(exists=False)
    if row is not None:
        value = stored_value(row, function, table)
        state = RowState(True, row.local, stored_precision(row.epoch, function.gci_bits), value)
    before, after = compared_value(change.before, function, table), compared_value(change.after, function, table)
    incoming = IncomingOperation(change.operation, before, after, max_replicated_epoch)
    if function.spec.own is not None and sight is not None:
        if sight.hides_update and state.exists and function.spec.needs_old_values:
            return Decision(Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS)  # an insert, as far as one can tell
        state, incoming = sight.of(function.spec.own.reads, state, row, incoming, change)
    decision = function.spec.decide(state, incoming)
    conditional = function.spec.conditional_write and change.operation is Operation.WRITE_ROW
    if conditional and row is None and decision.verdict.writes_row and _cannot_be_inserted(change, table):
        rejected = Decision(Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS)
        decision = IGNORED if function.spec.write is Cell.APPLY else rejected
    reflected = bool(change.flags & ConflictFlag.REFLECTED)
    if reflected and decision.verdict is Verdict.REJECTED:
        return DISCARDED
    return decision


def missing_image(change: RowChange, function: ConflictFunction, table: Table) -> Image | None:
    """Return the image that should carry what the function looks for and does not; None if nothing is missing."""
    if change.operation in function.spec.needs_changed and not _shows_what_it_changes(change, table):
        return Image.BEFORE
    needed = function.spec.needs.get(change.operation)
    if needed is None:
        return None
    image = change.before if needed is Image.BEFORE else change.after
    return needed if compared_value(image, function, table) is None else None


def _shows_what_it_changes(change: RowChange, table: Table) -> bool:
    """Whether a before image has every column that the operation changes: all of them for a delete."""
    before = frozenset(() if change.before is None else change.before.present)
    changed = range(len(table.columns)) if change.after is None else change.after.present
    return all(ordinal in before or table.columns[ordinal].generated == "virtual" for ordinal in changed)


def _cannot_be_inserted(change: RowChange, table: Table) -> bool:
    """
    Whether a write, which may be a logged update, lacks a column that a new row must be given.

    The data node refuses such a row with a constraint violation. The applier handles every constraint violation as a
    row that already exists.
    """
    assert change.after is not None
    present = {*change.written, *table.key_ordinals}
    return any(ordinal not in present and column.must_be_given for ordinal, column in enumerate(table.columns))


def compared_value(image: RowImage | None, function: ConflictFunction, table: Table) -> int | None:
    """Return the resolve column's value in an image, NULL as 0; None if the image does not carry it."""
    if image is None or function.column is None:
        return None
    value = image.value(table.ordinal(function.column))
    if value is ABSENT:
        return None
    assert value is None or isinstance(value, int)
    return value or 0


def stored_value(row: Row, function: ConflictFunction, table: Table) -> int | None:
    """Return the resolve column's value in a row, its default if it was never written; NULL is 0."""
    if function.column is None:
        return None
    ordinal = table.ordinal(function.column)
    if ordinal not in row.payloads:
        return unwritten_value(table.columns[ordinal])
    payload = row.payloads[ordinal]
    return int.from_bytes(payload, "little") if payload is not None else 0


@attrs.define
class DependencyTracker:
    """
    The transactions of one foreign epoch, identified by their groups.

    Attributes:
        conflicting: Transactions with an operation in conflict.
    """

    conflicting: set[int] = attrs.field(factory=set)
    _last: dict[Hashable, int] = attrs.field(factory=dict)
    _dependents: dict[int, set[int]] = attrs.field(factory=dict)

    def touch(self, row: Hashable, transaction: int) -> int | None:
        """
        Note that a transaction touches a row, whatever the decision is; call in the order of the log.

        Returns:
            The transaction on which it depends for that; None if it is the first one of the row, or was the last one.
        """
        previous = self._last.get(row, transaction)
        self._last[row] = transaction
        if previous == transaction:
            return None
        self._dependents.setdefault(previous, set()).add(transaction)
        return previous

    @property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """The pairs of transactions that touched a row one right after the other, the earlier one first."""
        return frozenset((before, after) for before, found in self._dependents.items() for after in found)

    def in_conflict(self) -> frozenset[int]:
        """Return the conflicting transactions, and all that depend on them, on those, and so on."""
        found: set[int] = set()
        waiting = list(self.conflicting)
        while waiting:
            transaction = waiting.pop()
            if transaction not in found:
                found.add(transaction)
                waiting += self._dependents.get(transaction, ())
        return frozenset(found)
