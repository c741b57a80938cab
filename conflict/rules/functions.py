"""
The conflict functions as a table: one row per function, one cell per operation.

A cell says how an incoming write, update or delete is judged against the row that it meets. The cells also say which
image must carry the resolve column and whether rejected rows are refreshed. Two flags say whether whole transactions
are rejected and whether the clusters have roles. Both engines decide from these.
`judge` is the scalar meaning of a cell; `conflict.columnar.kernels.rules` is the same over numbers, and property tests
hold the two together. To add a function, add a row.

Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; names and flags as in `ndb_conflict.h`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum

import attrs

from conflict.rules.decision import APPLIED, IGNORED, Cause, Decision, IncomingOperation, RowState, Verdict
from ndb_formats.events.rows_event import Operation

__all__ = [
    "DEFAULT_GCI_BITS",
    "FUNCTIONS",
    "Argument",
    "Cell",
    "ConflictFunction",
    "FunctionSpec",
    "Image",
    "PythonRule",
    "judge",
]

DEFAULT_GCI_BITS = 6

PythonRule = Callable[[RowState, IncomingOperation], Decision]


class Cell(IntEnum):
    """
    How one kind of operation is judged.

    All cells but `APPLY` reject an update or delete of a missing row (ROW_DOES_NOT_EXIST). The comparing cells compare
    the resolve column of the operation with that of the stored row, and reject with ROW_IN_CONFLICT. They take the
    value from the after image; `EQUAL`, and every cell of a delete, take it from the before image.
    """

    # Nothing is judged: a write is an upsert, and what finds no row is ignored.
    APPLY = 0
    # Writes: rejected with ROW_ALREADY_EXISTS if the row is there.
    REJECT_IF_PRESENT = 1
    # Updates and deletes: applied if the row is there.
    REJECT_IF_MISSING = 2
    # Applied if the source saw the value that is stored here.
    EQUAL = 3
    # Applied if the operation brings a greater value; equal ones lose.
    GREATER = 4
    # As GREATER, and equal values win.
    AT_LEAST = 5
    # Applied if the operation brings a smaller value; equal ones lose.
    LESS = 6
    # Rejected if the row was changed here in an epoch that has not come back yet.
    BY_EPOCH = 7

    @property
    def words(self) -> str:
        """The cell in words, as run files and the documentation write it."""
        return self.name.lower().replace("_", " ")


COMPARING = frozenset({Cell.EQUAL, Cell.GREATER, Cell.AT_LEAST, Cell.LESS})


class Argument(Enum):
    """What stands in a function's parentheses."""

    COLUMN = "column"
    GCI_BITS = "extra gci bits"


class Image(Enum):
    """Which image of an operation must carry the resolve column."""

    BEFORE = "before"
    AFTER = "after"


@attrs.frozen
class FunctionSpec:
    """
    One row of the table.

    Attributes:
        name: As the server spells it; case matters.
        counter: Status counter of the operations that it rejects.
        write: How an insert is judged.
        update: How an update is judged.
        delete: How a delete is judged.
        transactional: A conflict rejects the whole transaction, and those that depend on it.
        roles: The second generation of the functions by epoch: it depends on ``ndb_applier_conflict_role``, what the
            primary applies is sent back to the secondary, and a delete of a missing row counts as a conflict.
        python: A rule that a user wrote in Python; it decides in place of the cells, in the reference engine alone.
    """

    name: str
    counter: str
    write: Cell
    update: Cell
    delete: Cell
    transactional: bool = False
    roles: bool = False
    python: PythonRule | None = None

    def cell(self, operation: Operation) -> Cell:
        """Return the cell of an operation."""
        return (self.write, self.update, self.delete)[operation - Operation.WRITE_ROW]

    @property
    def refreshes(self) -> bool:
        """Whether rows with rejected operations are sent again: the functions by epoch do that."""
        return Cell.BY_EPOCH in (self.write, self.update, self.delete)

    @property
    def argument(self) -> Argument:
        """What its argument is."""
        return Argument.GCI_BITS if self.refreshes else Argument.COLUMN

    @property
    def needs(self) -> Mapping[Operation, Image]:
        """The image in which each operation must carry the resolve column."""
        return {
            operation: Image.BEFORE if Cell.EQUAL is cell or operation is Operation.DELETE_ROW else Image.AFTER
            for operation in Operation
            if (cell := self.cell(operation)) in COMPARING
        }

    @property
    def conditional_write(self) -> bool:
        """Whether an insert is applied as a write that is judged where the row exists."""
        return self.write is not Cell.REJECT_IF_PRESENT

    @property
    def uses_role(self) -> bool:
        """Whether it depends on ``ndb_applier_conflict_role``."""
        return self.roles

    @property
    def reflects(self) -> bool:
        """Whether what the primary applies is sent back to the secondary, marked as reflected."""
        return self.roles

    @property
    def delete_delete_conflicts(self) -> bool:
        """Whether a delete of a missing row puts its transaction in conflict."""
        return self.transactional and self.roles

    def decide(self, row: RowState, incoming: IncomingOperation) -> Decision:
        """Decide on one operation; roles, reflected operations and transactions are the applier's concern."""
        if self.python is not None:
            return self.python(row, incoming)
        return judge(self.cell(incoming.operation), row, incoming)


def _row(
    name: str, counter: str, cells: tuple[Cell, Cell, Cell], *, transactional: bool = False, roles: bool = False
) -> FunctionSpec:
    """Return a row; the cells are those for write, update and delete."""
    write, update, delete = cells
    return FunctionSpec(f"NDB${name}", f"Ndb_conflict_fn_{counter}", write, update, delete, transactional, roles)


_PRESENT, _MISSING, _EQUAL, _GREATER = Cell.REJECT_IF_PRESENT, Cell.REJECT_IF_MISSING, Cell.EQUAL, Cell.GREATER
_EPOCH = Cell.BY_EPOCH

FUNCTIONS: tuple[FunctionSpec, ...] = (
    _row("OLD", "old", (_PRESENT, _EQUAL, _EQUAL)),
    _row("MAX", "max", (_PRESENT, _GREATER, _EQUAL)),
    _row("MAX_DELETE_WIN", "max_del_win", (_PRESENT, _GREATER, _MISSING)),
    _row("MAX_INS", "max_ins", (_GREATER, _GREATER, _EQUAL)),
    _row("MAX_DEL_WIN_INS", "max_del_win_ins", (_GREATER, _GREATER, _MISSING)),
    _row("EPOCH", "epoch", (_PRESENT, _EPOCH, _EPOCH)),
    _row("EPOCH_TRANS", "epoch_trans", (_PRESENT, _EPOCH, _EPOCH), transactional=True),
    _row("EPOCH2", "epoch2", (_PRESENT, _EPOCH, _EPOCH), roles=True),
    _row("EPOCH2_TRANS", "epoch2_trans", (_PRESENT, _EPOCH, _EPOCH), transactional=True, roles=True),
)


def judge(cell: Cell, row: RowState, incoming: IncomingOperation) -> Decision:
    """
    Return what a cell makes of an operation on a row.

    A conditional write of a row that lacks columns which it must be given is the applier's concern.
    """
    writes, deletes = incoming.operation is Operation.WRITE_ROW, incoming.operation is Operation.DELETE_ROW
    if cell is Cell.APPLY or (writes and not row.exists):
        return APPLIED if row.exists or writes else IGNORED
    if not row.exists:
        return Decision(Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST)
    if cell is Cell.REJECT_IF_PRESENT:
        return Decision(Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS)
    if cell is Cell.REJECT_IF_MISSING:
        return APPLIED
    if cell is Cell.BY_EPOCH:
        known = incoming.max_replicated_epoch
        return _in_conflict(known, row.epoch) if row.local and row.epoch > known else APPLIED
    brought, stored = incoming.before if cell is Cell.EQUAL or deletes else incoming.after, row.value
    assert brought is not None
    assert stored is not None
    wins = {
        Cell.EQUAL: brought == stored,
        Cell.GREATER: brought > stored,
        Cell.AT_LEAST: brought >= stored,
        Cell.LESS: brought < stored,
    }
    return APPLIED if wins[cell] else _in_conflict(brought, stored)


def _in_conflict(incoming: int, stored: int) -> Decision:
    return Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, incoming, stored)


@attrs.frozen
class ConflictFunction:
    """
    A function as configured for a table.

    Attributes:
        spec: Its row in the table.
        column: Resolve column, for functions that take one.
        gci_bits: Extra GCI bits, for functions that take them.
    """

    spec: FunctionSpec
    column: str | None = None
    gci_bits: int = DEFAULT_GCI_BITS

    def __str__(self) -> str:
        argument = self.column if self.spec.argument is Argument.COLUMN else self.gci_bits
        return f"{self.spec.name}({argument})"
