"""
NDB's conflict functions as one table, and the parser of `conflict_fn` texts.

A function is one row of `FUNCTIONS` and one pure function from (row state, operation) to a
`Decision`. Parsing, validation and both engines read the row.

Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; names and flags as in `ndb_conflict.h`, texts as
`parse_conflict_fn_spec` of the server reads them, and as recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum
from types import MappingProxyType

import attrs

from conflict.errors import ConfigurationError
from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from ndb_formats.events.rows_event import Operation

__all__ = [
    "DEFAULT_GCI_BITS",
    "FUNCTIONS",
    "PARSE_ERROR",
    "Argument",
    "ConflictFunction",
    "Decide",
    "FunctionCode",
    "FunctionSpec",
    "Image",
    "parse_conflict_function",
]

DEFAULT_GCI_BITS = 6
MAX_GCI_BITS = 31
PARSE_ERROR = "Error in parsing conflict function. Message: "  # of server error 1626
_UNSIGNED_LONG = re.compile(r"[\t\n\v\f\r]*(?P<sign>[+-]?)(?P<digits>0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)

APPLY = Decision(Verdict.APPLIED)
MISSING = Decision(Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST)
EXISTS = Decision(Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS)


class Argument(Enum):
    """What stands in a function's parentheses."""

    COLUMN = "column"
    GCI_BITS = "extra gci bits"


class Image(Enum):
    """Which image of an operation a function reads the resolve column from."""

    BEFORE = "before"
    AFTER = "after"


class FunctionCode(IntEnum):
    """Number of a function in the kernels; 0 is a table without one, 100 one of a user's functions."""

    NONE = 0
    OLD = 1
    MAX = 2
    MAX_DELETE_WIN = 3
    MAX_INS = 4
    MAX_DEL_WIN_INS = 5
    EPOCH = 6
    EPOCH_TRANS = 7
    EPOCH2 = 8
    EPOCH2_TRANS = 9
    USER = 100


def presence_anomaly(row: RowState, operation: Operation) -> Decision | None:
    """Return the conflict of an insert on an existing row, or of an update or delete of a missing one."""
    if operation is Operation.WRITE_ROW:
        return EXISTS if row.exists else None
    return None if row.exists else MISSING


def _equal(row: RowState, incoming: IncomingOperation) -> Decision:
    """The source must have seen the value that is stored here."""
    if incoming.before == row.value:
        return APPLY
    return Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, incoming.before, row.value)


def _greater(row: RowState, incoming: IncomingOperation) -> Decision:
    """The greater value wins; equal ones lose."""
    assert incoming.after is not None
    assert row.value is not None
    if incoming.after > row.value:
        return APPLY
    return Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, incoming.after, row.value)


def decide_old(row: RowState, incoming: IncomingOperation) -> Decision:
    """NDB$OLD: an update or delete must have seen the stored value."""
    anomaly = presence_anomaly(row, incoming.operation)
    if anomaly is not None or incoming.operation is Operation.WRITE_ROW:
        return anomaly or APPLY
    return _equal(row, incoming)


def decide_max(row: RowState, incoming: IncomingOperation) -> Decision:
    """NDB$MAX: the greater value of an update wins; a delete is judged as by NDB$OLD."""
    if incoming.operation is not Operation.UPDATE_ROW:
        return decide_old(row, incoming)
    return _greater(row, incoming) if row.exists else MISSING


def decide_max_delete_win(row: RowState, incoming: IncomingOperation) -> Decision:
    """NDB$MAX_DELETE_WIN: as NDB$MAX, but a delete of a row that exists is always applied."""
    if incoming.operation is Operation.DELETE_ROW and row.exists:
        return APPLY
    return decide_max(row, incoming)


def decide_max_ins(row: RowState, incoming: IncomingOperation) -> Decision:
    """NDB$MAX_INS: as NDB$MAX, but an insert of a row that exists is judged as an update."""
    if incoming.operation is Operation.WRITE_ROW and row.exists:
        return _greater(row, incoming)
    return decide_max(row, incoming)


def decide_max_del_win_ins(row: RowState, incoming: IncomingOperation) -> Decision:
    """NDB$MAX_DEL_WIN_INS: inserts as by NDB$MAX_INS, all else as by NDB$MAX_DELETE_WIN."""
    if incoming.operation is Operation.WRITE_ROW:
        return decide_max_ins(row, incoming)
    return decide_max_delete_win(row, incoming)


def decide_epoch(row: RowState, incoming: IncomingOperation) -> Decision:
    """NDB$EPOCH*: a row changed here in an epoch that has not come back yet must not be overwritten."""
    anomaly = presence_anomaly(row, incoming.operation)
    if anomaly is not None or incoming.operation is Operation.WRITE_ROW:
        return anomaly or APPLY
    if row.local and row.epoch > incoming.max_replicated_epoch:
        return Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, incoming.max_replicated_epoch, row.epoch)
    return APPLY


Decide = Callable[[RowState, IncomingOperation], Decision]
NOTHING: Mapping[Operation, Image] = MappingProxyType({})


@attrs.frozen
class FunctionSpec:
    """
    One conflict function.

    Attributes:
        name: As the server spells it; case matters.
        counter: Its own status counter.
        argument: What its argument is.
        decide: The decision on one operation. What roles, reflected operations and transactions add to it is
            the applier's (`conflict.reference.applier`).
        code: Its number in the kernels.
        needs: The image in which each operation must carry the resolve column.
        conditional_write: An insert is applied as a write that is judged where the row exists.
        refreshes: A rejected operation makes the row be sent again.
        transactional: A conflict rejects the whole transaction, and those that depend on it.
        reflects: What the primary applies is sent back to the secondary, marked as reflected.
        uses_role: What it does depends on ``ndb_applier_conflict_role``.
        delete_delete_conflicts: A delete of a missing row puts its transaction in conflict.
    """

    name: str
    counter: str
    argument: Argument
    decide: Decide
    code: FunctionCode
    needs: Mapping[Operation, Image] = NOTHING
    conditional_write: bool = False
    refreshes: bool = False
    transactional: bool = False
    reflects: bool = False
    uses_role: bool = False
    delete_delete_conflicts: bool = False


def _by_column(
    name: str,
    counter: str,
    decide: Decide,
    *,
    write: Image | None = None,
    update: Image = Image.AFTER,
    delete: Image | None = Image.BEFORE,
) -> FunctionSpec:
    """Return a function that compares values of a column, read from the image given per operation."""
    images = {Operation.WRITE_ROW: write, Operation.UPDATE_ROW: update, Operation.DELETE_ROW: delete}
    needs = MappingProxyType({operation: image for operation, image in images.items() if image is not None})
    code = FunctionCode[name.removeprefix("NDB$")]
    return FunctionSpec(name, counter, Argument.COLUMN, decide, code, needs, conditional_write=write is not None)


def _by_epoch(name: str, counter: str, *, transactional: bool = False, roles: bool = False) -> FunctionSpec:
    """Return a function that compares epochs; the second generation has roles and sees to delete-delete."""
    return FunctionSpec(
        name,
        counter,
        Argument.GCI_BITS,
        decide_epoch,
        FunctionCode[name.removeprefix("NDB$")],
        refreshes=True,
        transactional=transactional,
        reflects=roles,
        uses_role=roles,
        delete_delete_conflicts=transactional and roles,
    )


FUNCTIONS: tuple[FunctionSpec, ...] = (
    _by_column("NDB$OLD", "Ndb_conflict_fn_old", decide_old, update=Image.BEFORE),
    _by_column("NDB$MAX", "Ndb_conflict_fn_max", decide_max),
    _by_column("NDB$MAX_DELETE_WIN", "Ndb_conflict_fn_max_del_win", decide_max_delete_win, delete=None),
    _by_column("NDB$MAX_INS", "Ndb_conflict_fn_max_ins", decide_max_ins, write=Image.AFTER),
    _by_column(
        "NDB$MAX_DEL_WIN_INS",
        "Ndb_conflict_fn_max_del_win_ins",
        decide_max_del_win_ins,
        write=Image.AFTER,
        delete=None,
    ),
    _by_epoch("NDB$EPOCH", "Ndb_conflict_fn_epoch"),
    _by_epoch("NDB$EPOCH_TRANS", "Ndb_conflict_fn_epoch_trans", transactional=True),
    _by_epoch("NDB$EPOCH2", "Ndb_conflict_fn_epoch2", roles=True),
    _by_epoch("NDB$EPOCH2_TRANS", "Ndb_conflict_fn_epoch2_trans", transactional=True, roles=True),
)


@attrs.frozen
class ConflictFunction:
    """
    A function as configured for a table.

    Attributes:
        spec: Its row in `FUNCTIONS`.
        column: Resolve column, for functions that take one.
        gci_bits: Extra GCI bits, for functions that take them.
    """

    spec: FunctionSpec
    column: str | None = None
    gci_bits: int = DEFAULT_GCI_BITS

    def __str__(self) -> str:
        argument = self.column if self.spec.argument is Argument.COLUMN else self.gci_bits
        return f"{self.spec.name}({argument})"


def parse_conflict_function(text: str, functions: Sequence[FunctionSpec] = FUNCTIONS) -> ConflictFunction:
    """
    Parse a `conflict_fn` text: a name, '(', at most one argument, ')', blanks allowed in between.

    A name is recognized by its letters alone, the longest one first, so that what follows ``NDB$MAX`` in
    ``NDB$MAXIMUM(x)`` is where a '(' is missed.

    Args:
        text: The text.
        functions: The functions that there are.

    Raises:
        ConfigurationError: With the server's own words for what is wrong, and where.
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


def _argument_end(text: str) -> int:
    return next((place for place, character in enumerate(text) if character in " )"), len(text))


def _gci_bits(argument: str) -> int:
    """
    Return the number that the server makes of an argument: what C's ``strtoul`` with base 0 returns, in 32 bits.

    No digits mean 0, ``0x`` and ``0`` before them hexadecimal and octal ones, and a minus counts down from 2^64.
    """
    if not argument:
        return DEFAULT_GCI_BITS
    found = _UNSIGNED_LONG.match(argument)
    if found is None:
        return 0
    digits = found["digits"].lower()
    size = int(digits, 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10)
    if size >= 2**64:
        size = 2**64 - 1
    elif found["sign"] == "-":
        size = 2**64 - size
    return size % 2**32


def _parse_error(text: str, what: str, where: str) -> ConfigurationError:
    return ConfigurationError(f"{PARSE_ERROR}{text}, {what} at '{where}'")
