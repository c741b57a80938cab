"""
NDB's conflict functions as one table, and the parser of `conflict_fn` texts.

A function is one row of `FUNCTIONS` and one pure function from (row state, operation) to a
`Decision`. Parsing, validation and both engines read the row.

Source: MySQL manual, "NDB Cluster Replication Conflict Resolution"; names and flags as in `ndb_conflict.h`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from types import MappingProxyType

import attrs

from conflict.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from conflict.errors import ConfigurationError
from ndb_formats.events.rows_event import Operation

__all__ = [
    "DEFAULT_GCI_BITS",
    "FUNCTIONS",
    "Argument",
    "ConflictFunction",
    "FunctionCode",
    "FunctionSpec",
    "Image",
    "parse_conflict_function",
]

DEFAULT_GCI_BITS = 6
MAX_GCI_BITS = 31

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
    """Number of a function in the kernels; 0 is a table without one."""

    NONE = 0
    MAX = 1
    EPOCH = 2


def presence_anomaly(row: RowState, operation: Operation) -> Decision | None:
    """Return the conflict of an insert on an existing row, or of an update or delete of a missing one."""
    if operation is Operation.WRITE_ROW:
        return EXISTS if row.exists else None
    return None if row.exists else MISSING


def decide_max(row: RowState, incoming: IncomingOperation) -> Decision:
    """NDB$MAX: the greater value wins, equal ones lose; a delete must have seen the stored value."""
    anomaly = presence_anomaly(row, incoming.operation)
    if anomaly is not None or incoming.operation is Operation.WRITE_ROW:
        return anomaly or APPLY
    if incoming.operation is Operation.UPDATE_ROW:
        assert incoming.after is not None
        assert row.value is not None
        value: int | None = incoming.after
        wins = incoming.after > row.value
    else:
        value = incoming.before
        wins = value == row.value
    return APPLY if wins else Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, value, row.value)


def decide_epoch(row: RowState, incoming: IncomingOperation) -> Decision:
    """NDB$EPOCH: a row changed here in an epoch that has not come back yet must not be overwritten."""
    anomaly = presence_anomaly(row, incoming.operation)
    if anomaly is not None or incoming.operation is Operation.WRITE_ROW:
        return anomaly or APPLY
    if row.local and row.epoch > incoming.max_replicated_epoch:
        return Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, incoming.max_replicated_epoch, row.epoch)
    return APPLY


Decide = Callable[[RowState, IncomingOperation], Decision]


@attrs.frozen
class FunctionSpec:
    """
    One conflict function.

    Attributes:
        name: As the server spells it; case matters.
        counter: Its own status counter.
        argument: What its argument is.
        needs: The image in which each operation must carry the resolve column.
        refreshes: Whether a rejected operation makes the row be sent again.
        decide: The decision; None while this version has not built the function.
        code: Its number in the kernels.
    """

    name: str
    counter: str
    argument: Argument
    needs: Mapping[Operation, Image] = MappingProxyType({})
    refreshes: bool = False
    decide: Decide | None = None
    code: FunctionCode = FunctionCode.NONE


_OLD_NEEDS = MappingProxyType({Operation.UPDATE_ROW: Image.BEFORE, Operation.DELETE_ROW: Image.BEFORE})
_MAX_NEEDS = MappingProxyType({Operation.UPDATE_ROW: Image.AFTER, Operation.DELETE_ROW: Image.BEFORE})
_DELETE_WINS_NEEDS = MappingProxyType({Operation.UPDATE_ROW: Image.AFTER})

FUNCTIONS: tuple[FunctionSpec, ...] = (
    FunctionSpec("NDB$OLD", "Ndb_conflict_fn_old", Argument.COLUMN, _OLD_NEEDS),
    FunctionSpec(
        "NDB$MAX",
        "Ndb_conflict_fn_max",
        Argument.COLUMN,
        _MAX_NEEDS,
        decide=decide_max,
        code=FunctionCode.MAX,
    ),
    FunctionSpec("NDB$MAX_DELETE_WIN", "Ndb_conflict_fn_max_del_win", Argument.COLUMN, _DELETE_WINS_NEEDS),
    FunctionSpec("NDB$MAX_INS", "Ndb_conflict_fn_max_ins", Argument.COLUMN, _MAX_NEEDS),
    FunctionSpec("NDB$MAX_DEL_WIN_INS", "Ndb_conflict_fn_max_del_win_ins", Argument.COLUMN, _DELETE_WINS_NEEDS),
    FunctionSpec(
        "NDB$EPOCH",
        "Ndb_conflict_fn_epoch",
        Argument.GCI_BITS,
        refreshes=True,
        decide=decide_epoch,
        code=FunctionCode.EPOCH,
    ),
    FunctionSpec("NDB$EPOCH_TRANS", "Ndb_conflict_fn_epoch_trans", Argument.GCI_BITS, refreshes=True),
    FunctionSpec("NDB$EPOCH2", "Ndb_conflict_fn_epoch2", Argument.GCI_BITS, refreshes=True),
    FunctionSpec("NDB$EPOCH2_TRANS", "Ndb_conflict_fn_epoch2_trans", Argument.GCI_BITS, refreshes=True),
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


def parse_conflict_function(text: str) -> ConflictFunction:
    """
    Parse a `conflict_fn` text: a name, '(', at most one argument, ')', blanks allowed in between.

    Raises:
        ConfigurationError: With the server's own words for what is wrong, and where.
    """
    rest = text.lstrip(" ")
    spec = _spec_at(rest)
    if spec is None:
        raise _parse_error(text, "unknown conflict resolution function", rest)
    rest = rest[len(spec.name) :].lstrip(" ")
    if not rest.startswith("("):
        raise _parse_error(text, "missing '('", rest)
    rest = rest[1:].lstrip(" ")
    argument = rest[: _argument_end(rest)]
    rest = rest[len(argument) :].lstrip(" ")
    if spec.argument is Argument.COLUMN and not argument:
        raise _parse_error(text, "missing function argument", rest)
    bits = _gci_bits(argument) if spec.argument is Argument.GCI_BITS else DEFAULT_GCI_BITS
    if bits > MAX_GCI_BITS:
        raise _parse_error(text, "Too many extra Gci bits", rest)
    if not rest.startswith(")"):
        raise _parse_error(text, "missing ')'", rest)
    rest = rest[1:].lstrip(" ")
    if rest:
        raise _parse_error(text, "garbage in the end", rest)
    return ConflictFunction(spec, argument if spec.argument is Argument.COLUMN else None, bits)


def _spec_at(text: str) -> FunctionSpec | None:
    """Return the function whose whole name `text` starts with."""
    name = re.split(r"[ (]", text, maxsplit=1)[0]
    return next((spec for spec in FUNCTIONS if spec.name == name), None)


def _argument_end(text: str) -> int:
    return next((place for place, character in enumerate(text) if character in " )"), len(text))


def _gci_bits(argument: str) -> int:
    """The server reads the argument as `strtoul` does: no digits at the start mean 0."""
    if not argument:
        return DEFAULT_GCI_BITS
    digits = argument[: len(argument) - len(argument.lstrip("0123456789"))]
    return int(digits or 0)


def _parse_error(text: str, what: str, where: str) -> ConfigurationError:
    message = f"Error in parsing conflict function. Message: {text.lstrip(' ')}, {what} at '{where}'"
    return ConfigurationError(message)
