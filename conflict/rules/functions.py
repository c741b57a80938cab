"""
The conflict functions as a table: one row per function, one cell per operation; and `conflict_fn`, parsed.

A cell says how an incoming write, update or delete is judged by the row that it meets. The cells also say which image
must carry the resolve column and whether rejected rows are refreshed. Two flags say whether whole transactions are
rejected and whether the clusters have roles. Both engines decide from these. `judge` is the scalar meaning of a cell;
`conflict.engine.kernels.rules` is the same over numbers, and a law over every case holds the two together. To add a
function, add a row (see `docs/adding.md`).

Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; names and flags as in `ndb_conflict.h`;
`parse_conflict_fn_spec` of the server, and recordings of its messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum
from functools import cache

import attrs

from conflict.errors import ConfigurationError
from conflict.rules.decision import (
    APPLIED,
    IGNORED,
    Cause,
    Decision,
    IncomingOperation,
    RowState,
    Verdict,
    in_node_order,
)
from conflict.rules.own_rule import Image, OwnRule
from ndb_formats.cursor import whole_number
from ndb_formats.errors import did_you_mean
from ndb_formats.events.rows_event import Operation

DEFAULT_GCI_BITS = 6


class Cell(IntEnum):
    """
    How one kind of operation is judged.

    Except under `APPLY`, an update or delete of a missing row is rejected (ROW_DOES_NOT_EXIST). The comparing cells
    compare the operation's value with the stored value, and reject with ROW_IN_CONFLICT. The operation's value is the
    resolve column in the after image; for `EQUAL` and for deletes, in the before image. Values are ordered as data
    nodes order them (`conflict.rules.decision.in_node_order`).
    """

    # Nothing is judged: a write inserts or overwrites; an update or delete of a missing row is ignored.
    APPLY = 0
    # Writes: rejected with ROW_ALREADY_EXISTS if the row exists.
    REJECT_IF_PRESENT = 1
    # Updates and deletes: applied if the row exists.
    REJECT_IF_MISSING = 2
    # Applied if the before image has the value that is stored here.
    EQUAL = 3
    # Applied if the operation's value is greater than the stored one.
    GREATER = 4
    # Applied if the operation's value is greater than or equal to the stored one.
    AT_LEAST = 5
    # Applied if the operation's value is less than the stored one.
    LESS = 6
    # Rejected if the row was last changed on this cluster, in an epoch later than the max replicated one.
    BY_EPOCH = 7
    # Rejected if the row was last changed on this cluster, in an epoch later than the max replicated one, and the
    # operation's value is not less than the stored one.
    LESS_IF_UNSEEN = 8

    @property
    def words(self) -> str:
        """The cell in words, as run files and the documentation write it."""
        return self.name.lower().replace("_", " ")


# Cells that no run file can have: only `conflict.whatif.comparing.pairs` has them, on logs that start with empty
# tables.
OF_POLICIES = frozenset({Cell.LESS_IF_UNSEEN})


class Argument(Enum):
    """The argument of a function."""

    COLUMN = "column"
    GCI_BITS = "extra gci bits"


@attrs.frozen
class FunctionSpec:
    """
    One row of the table.

    Attributes:
        name: As the server spells it; case-sensitive.
        counter: Status counter of the operations that it rejects.
        write: How an insert is judged.
        update: How an update is judged.
        delete: How a delete is judged.
        transactional: A conflict rejects the whole transaction, and the transactions that depend on it.
        uses_role: It depends on ``ndb_applier_conflict_role``: the primary's applier logs what it applies for the
            secondary, and a delete of a missing row is a conflict of its transaction.
        own: A user's rule, which decides in place of the cells; only the reference engine calls it.
    """

    name: str
    counter: str
    write: Cell
    update: Cell
    delete: Cell
    transactional: bool = False
    uses_role: bool = False
    own: OwnRule | None = None

    def cell(self, operation: Operation) -> Cell:
        """Return the cell of an operation."""
        return (self.write, self.update, self.delete)[operation - Operation.WRITE_ROW]

    @property
    def refreshes(self) -> bool:
        """Whether rows with rejected operations are refreshed: the functions by epoch do that."""
        if self.own is not None:
            return self.own.refreshes
        return Cell.BY_EPOCH in (self.write, self.update, self.delete)

    @property
    def by_epoch(self) -> bool:
        """Whether it compares epochs, and is not one's own rule, of which nobody knows."""
        return self.refreshes and self.own is None

    @property
    def on_primary_alone(self) -> bool:
        """Whether it is set on one cluster, which is the primary by that: NDB$EPOCH and NDB$EPOCH_TRANS."""
        return self.by_epoch and not self.uses_role

    @property
    def argument(self) -> Argument:
        """The kind of its argument."""
        if self.own is not None:
            return Argument.COLUMN if self.own.takes_column else Argument.GCI_BITS
        return Argument.GCI_BITS if self.refreshes else Argument.COLUMN

    @property
    def needs(self) -> Mapping[Operation, Image]:
        """The image that must carry the resolve column, per operation that compares it."""
        return _needs(self) if self.own is None else self.own.needs

    @property
    def needs_changed(self) -> frozenset[Operation]:
        """The operations whose before image must carry every column that they change."""
        return frozenset() if self.own is None else self.own.needs_changed

    @property
    def needs_old_values(self) -> bool:
        """Whether it judges updates by their before image, which one that arrives as a write does not have."""
        return self.needs.get(Operation.UPDATE_ROW) is Image.BEFORE or Operation.UPDATE_ROW in self.needs_changed

    @property
    def conditional_write(self) -> bool:
        """Whether a write of a row that exists can be applied."""
        return self.own is not None or self.write is not Cell.REJECT_IF_PRESENT

    @property
    def compares_alone(self) -> bool:
        """Whether its decisions on a row depend on nothing but the row's existence and its resolve column."""
        cells = {self.write, self.update, self.delete}
        return self.own is None and cells.isdisjoint({Cell.BY_EPOCH, Cell.LESS_IF_UNSEEN})

    @property
    def delete_delete_conflicts(self) -> bool:
        """Whether a delete of a missing row puts its transaction in conflict."""
        return self.transactional and self.uses_role

    def decide(self, row: RowState, incoming: IncomingOperation) -> Decision:
        """Decide on one operation; the applier handles roles, reflected operations and transactions."""
        if self.own is not None:
            return self.own.decide(row, incoming)
        return judge(self.cell(incoming.operation), row, incoming)


_EQUAL_CELL, _LESS_CELL, _UNSEEN_CELL = int(Cell.EQUAL), int(Cell.LESS), int(Cell.LESS_IF_UNSEEN)
_DELETE = int(Operation.DELETE_ROW)


def is_comparing(cell: int) -> bool:
    """Whether a cell compares the operation's value with the stored one. Kernels compile this, too."""
    return _EQUAL_CELL <= cell <= _LESS_CELL or cell == _UNSEEN_CELL


def reads_before(cell: int, operation: int) -> bool:
    """Whether a comparing cell finds the operation's value in its before image. Kernels compile this, too."""
    return cell == _EQUAL_CELL or operation == _DELETE


@cache
def _needs(spec: FunctionSpec) -> Mapping[Operation, Image]:
    return {
        operation: Image.BEFORE if reads_before(cell, operation) else Image.AFTER
        for operation in Operation
        if is_comparing(cell := spec.cell(operation))
    }


def _row(
    name: str, counter: str, cells: tuple[Cell, Cell, Cell], *, transactional: bool = False, uses_role: bool = False
) -> FunctionSpec:
    """Return a row; the cells are those for write, update and delete."""
    write, update, delete = cells
    return FunctionSpec(f"NDB${name}", f"Ndb_conflict_fn_{counter}", write, update, delete, transactional, uses_role)


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
    _row("EPOCH2", "epoch2", (_PRESENT, _EPOCH, _EPOCH), uses_role=True),
    _row("EPOCH2_TRANS", "epoch2_trans", (_PRESENT, _EPOCH, _EPOCH), transactional=True, uses_role=True),
)


def judge(cell: Cell, row: RowState, incoming: IncomingOperation) -> Decision:
    """
    Return the decision of a cell on an operation.

    The applier handles writes that lack a column which a new row must be given.
    """
    writes = incoming.operation is Operation.WRITE_ROW
    if cell is Cell.APPLY or (writes and not row.exists):
        return APPLIED if row.exists or writes else IGNORED
    if not row.exists:
        return Decision(Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST)
    if cell is Cell.REJECT_IF_PRESENT:
        return Decision(Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS)
    if cell is Cell.REJECT_IF_MISSING:
        return APPLIED
    known = incoming.max_replicated_epoch
    unseen = row.local and row.epoch > known
    if cell is Cell.BY_EPOCH:
        return _in_conflict(known, row.epoch) if unseen else APPLIED
    if cell is Cell.LESS_IF_UNSEEN and not unseen:
        return APPLIED
    brought, stored = incoming.before if reads_before(cell, incoming.operation) else incoming.after, row.value
    assert brought is not None
    assert stored is not None
    mine, theirs = in_node_order(stored), in_node_order(brought)
    wins = {
        Cell.EQUAL: theirs == mine,
        Cell.GREATER: theirs > mine,
        Cell.AT_LEAST: theirs >= mine,
        Cell.LESS: theirs < mine,
        Cell.LESS_IF_UNSEEN: theirs < mine,
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
        if self.spec.own is not None and self.column is None:
            return f"{self.spec.name}()"
        return f"{self.spec.name}({argument})"

    @property
    def short(self) -> str:
        """It as users write it: without the default argument."""
        return f"{self.spec.name}()" if self.column is None and self.gci_bits == DEFAULT_GCI_BITS else str(self)


MAX_GCI_BITS = 31
PARSE_ERROR = "Error in parsing conflict function. Message: "  # of server error 1626
_UNSIGNED_LONG = re.compile(r"[\t\n\v\f\r]*(?P<sign>[+-]?)(?P<digits>0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)


class UnreadableFunctionError(ConfigurationError):
    """A `conflict_fn` that the server cannot read."""

    @property
    def words(self) -> str:
        """The server's words, as in its error log."""
        return str(self.args[0])

    def __str__(self) -> str:
        return PARSE_ERROR + self.words


def parse_conflict_function(text: str, functions: Sequence[FunctionSpec] = FUNCTIONS) -> ConflictFunction:
    """
    Parse a `conflict_fn` text: a name, '(', at most one argument and ')', with spaces allowed in between.

    The longest name that the text starts with is its name. In ``NDB$MAXIMUM(x)`` that is ``NDB$MAX``, and the error is
    the missing '(' after it.

    Args:
        text: The text.
        functions: The known functions.

    Raises:
        UnreadableFunctionError: With the server's message and the position of the error.
    """
    rest = text.lstrip(" ")
    found = [spec for spec in functions if rest.startswith(spec.name)]
    if not found:
        raise _parse_error(text, "unknown conflict resolution function", rest)
    spec = max(found, key=lambda each: len(each.name))
    rest = rest[len(spec.name) :].lstrip(" ")
    if not rest.startswith("("):
        raise _parse_error(text, "missing '('", rest)
    rest = rest[1:].lstrip(" ")
    argument = rest[: _argument_end(rest)]
    rest = rest[len(argument) :]
    if spec.argument is Argument.COLUMN and not argument:
        raise _parse_error(text, "missing function argument", rest)
    bits = _gci_bits(argument) if spec.argument is Argument.GCI_BITS else DEFAULT_GCI_BITS
    if bits > MAX_GCI_BITS:
        raise _parse_error(text, "Too many extra Gci bits", rest)
    rest = rest.lstrip(" ")
    if not rest.startswith(")"):
        raise _parse_error(text, "missing ')'", rest)
    rest = rest[1:].lstrip(" ")
    if rest:
        raise _parse_error(text, "garbage in the end", rest)
    return ConflictFunction(spec, argument if spec.argument is Argument.COLUMN else None, bits)


def typed_function(text: str, functions: Sequence[FunctionSpec] = FUNCTIONS) -> ConflictFunction:
    """
    Parse a function that a user typed: as `parse_conflict_function`, and the message says what was probably meant.

    Raises:
        ConfigurationError: As there.
    """
    try:
        return parse_conflict_function(text, functions)
    except ConfigurationError as error:
        message = f"{error}{what_was_meant(text, functions)}"
        raise ConfigurationError(message) from error


def what_was_meant(text: str, functions: Sequence[FunctionSpec] = FUNCTIONS) -> str:
    """Return, for a message, what a text that cannot be parsed may mean; a shell replaces ``$MAX`` by nothing."""
    if not text.strip():
        return "; for no function leave it out, or give NULL in mysql.ndb_replication"
    name, _, rest = text.partition("(")
    name = name.strip()
    if name == "NDB":
        meant = f"NDB$MAX({rest.strip()}" if rest.strip(" )") else "NDB$EPOCH()"
        return f"; a shell takes $... out of double quotes: use single quotes, as in '{meant}'"
    plain = name.replace("\\", "")
    plain = plain if "$" in plain else f"NDB${plain}"
    known = (spec.name for spec in functions)
    near = did_you_mean(name if plain == name else plain.lower(), known, 0.75)  # "NDB$" alone makes any two alike
    return near + (r"; inside single quotes no \ stands before $" if "\\" in name else "")


def _argument_end(text: str) -> int:
    return next((index for index, character in enumerate(text) if character in " )"), len(text))


def _gci_bits(argument: str) -> int:
    """
    Return the number that the server reads from an argument: the low 32 bits of C's ``strtoul`` with base 0.

    Without digits it is 0; ``0x`` starts a hexadecimal and ``0`` an octal number; a minus sign subtracts from 2^64.
    """
    if not argument:
        return DEFAULT_GCI_BITS
    found = _UNSIGNED_LONG.match(argument)
    if found is None:
        return 0
    digits = found["digits"].lower()
    if digits.startswith("0"):
        size = int(digits, 16 if digits.startswith("0x") else 8)
    else:
        number = whole_number(digits)
        size = 2**64 if number is None else number
    if size >= 2**64:
        size = 2**64 - 1
    elif found["sign"] == "-":
        size = 2**64 - size
    return size % 2**32


def _parse_error(text: str, what: str, where: str) -> UnreadableFunctionError:
    return UnreadableFunctionError(f"{text}, {what} at '{where}'")
