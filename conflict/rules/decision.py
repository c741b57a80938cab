"""
The decision on one incoming row operation, as data, and as a sentence (`explain`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

import attrs

from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.default_values import implied_value
from ndb_formats.schema.tables import Column
from ndb_formats.types.values import Value

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Truth = TypeVar("Truth", bool, "npt.NDArray[np.bool_]")
_LOW_WORD = 0xFFFFFFFF
_SIGN = 1 << 63


def stored_precision(epoch: int, gci_bits: int) -> int:
    """
    Return an epoch as it is read from a row that stores `gci_bits` extra GCI bits.

    The low word is stored as at most 2^bits - 1. At that maximum it is read as all ones, so that few bits lead to more
    conflicts, never to fewer.
    """
    low = epoch & _LOW_WORD
    return epoch | _LOW_WORD if low >= (1 << gci_bits) - 1 else epoch


def in_node_order(value: int) -> int:
    """
    Return the place of a resolve value, from 0, in the order in which data nodes compare such values.

    They compare signed numbers of 64 bits. So 2^63 and more, which a BIGINT UNSIGNED can hold, are negative there: the
    least is 2^63, 2^64 - 1 comes right before 0, and the greatest is 2^63 - 1. Of an INT UNSIGNED, which they extend
    with zeros, nothing is negative. It is its own inverse. Recorded with 9.7.2. Kernels compile this, too.
    """
    return value ^ _SIGN


def extreme_values(column: Column) -> tuple[int, int]:
    """Return the least and the greatest value of a resolve column, in the order of `in_node_order`."""
    return (0, (1 << 32) - 1) if column.type == "int" else (_SIGN, _SIGN - 1)


def next_value(value: int, column: Column) -> int | None:
    """Return the next greater value of a resolve column, in the order of `in_node_order`; None if there is none."""
    return None if value == extreme_values(column)[1] else (value + 1) % (2 * _SIGN)


def unwritten_value(column: Column) -> int:
    """Return the resolve column of a row in which no operation wrote it: its default; NULL is 0."""
    value = implied_value(column)
    assert value is None or isinstance(value, int)
    return value or 0


class Verdict(IntEnum):
    """What the applier does with an operation."""

    APPLIED = 0
    REJECTED = 1
    # An idempotent operation without effect: an update or delete of a missing row on a table without a function.
    IGNORED = 2
    # A reflected operation on a row that the secondary changed itself, or that is missing.
    DISCARDED = 3
    # An operation that lacks the value to compare, in a run that skips such operations.
    SKIPPED = 4
    # The decision depends on what a row was before the log starts.
    CANNOT_TELL = 5
    # A resolver of one's own wrote other values than the operation brings; only the reference engine has it.
    MERGED = 6

    @property
    def writes_row(self) -> bool:
        """Whether the operation changes its row."""
        return self in (Verdict.APPLIED, Verdict.MERGED)


class Cause(IntEnum):
    """Why an operation is rejected, numbered as in ``NDB$CFT_CAUSE`` of an exceptions table; 0 is no conflict."""

    NONE = 0
    ROW_DOES_NOT_EXIST = 1
    ROW_ALREADY_EXISTS = 2
    ROW_IN_CONFLICT = 3
    TRANS_IN_CONFLICT = 4


_DELETE, _MISSING, _REJECTED = int(Operation.DELETE_ROW), int(Cause.ROW_DOES_NOT_EXIST), int(Verdict.REJECTED)
_FIRST_VERDICT_BIT = 8  # causes have the bits below


@attrs.frozen
class RowState:
    """
    A row as the applier finds it.

    Attributes:
        exists: Whether it exists.
        local: Whether it was last changed on this cluster, not by the applier (``ROW_AUTHOR`` = 0).
        epoch: Epoch of its last change, as `stored_precision` gives it (``ROW_GCI64``).
        value: Stored value of the resolve column; None if the function has none.
    """

    exists: bool
    local: bool = False
    epoch: int = 0
    value: int | None = None


@attrs.frozen
class IncomingOperation:
    """
    One row operation of the other cluster.

    Attributes:
        operation: Write, update or delete.
        before: Resolve column in the before image; None if the image does not carry it.
        after: Resolve column in the after image; None if the image does not carry it.
        max_replicated_epoch: Highest own epoch known to have come back.
    """

    operation: Operation
    before: int | None = None
    after: int | None = None
    max_replicated_epoch: int = 0


@attrs.frozen
class Decision:
    """
    What the applier does with one operation, and why.

    Attributes:
        verdict: What the applier does.
        cause: Why, if rejected.
        incoming: What was compared: the operation's value or the max replicated epoch. None if nothing was, or if the
            log starts in the middle and shows no epoch that came back.
        stored: What it was compared with: the row's value or epoch. None if nothing was.
        writes: Of a merge, the columns that it writes, by name, and their values.
    """

    verdict: Verdict
    cause: Cause = Cause.NONE
    incoming: int | None = None
    stored: int | None = None
    writes: tuple[tuple[str, Value], ...] = ()


def is_delete_delete(operation: int, cause: int) -> bool:
    """
    Whether a delete found no row, which a server takes for a row that both clusters deleted.

    It is a conflict under every function: rejected, counted and logged as an exception. But no row is refreshed for it
    (`conflict.engine.kernels.rules.needs_refresh`), no update is lost, and only `NDB$EPOCH2_TRANS` rejects its
    transaction (`FunctionSpec.delete_delete_conflicts`). Kernels compile this, too.
    """
    return operation == _DELETE and cause == _MISSING


def marks_transaction(transactional: Truth, delete_delete: Truth, delete_delete_conflicts: Truth) -> Truth:
    """
    Whether a rejected operation puts its transaction in conflict. Kernels compile this, too; it takes whole arrays.

    Args:
        transactional: Whether the function rejects whole transactions.
        delete_delete: Whether the operation is one; see `is_delete_delete`.
        delete_delete_conflicts: Whether the function counts that among the conflicts of a transaction.
    """
    return transactional & (delete_delete <= delete_delete_conflicts)  # if it is one, the function must count it


def outcome_bit(verdict: int, cause: int) -> int:
    """
    Return the bit of an outcome in a set of candidates: that of its cause if it is rejected, else of its verdict.

    Kernels compile this, too.
    """
    return 1 << int(cause if verdict == _REJECTED else _FIRST_VERDICT_BIT + verdict)


def decision_text(decision: Decision) -> str:
    """Return the name of a decision in results: its cause if it has one, else its verdict."""
    return decision.cause.name if decision.cause else decision.verdict.name


def decision_of(text: str) -> Decision:
    """Return the decision of a name in results; the inverse of `decision_text`."""
    if text in Cause.__members__:
        return Decision(Verdict.REJECTED, Cause[text])
    return Decision(Verdict[text])


APPLIED = Decision(Verdict.APPLIED)
IGNORED = Decision(Verdict.IGNORED)

_VERDICT_WORDS = {
    Verdict.APPLIED: "was applied",
    Verdict.IGNORED: "found no row and was ignored",
    Verdict.DISCARDED: "came back from the primary, where the row has changed since, and was discarded",
    Verdict.SKIPPED: "lacks the value to compare and was left out",
    Verdict.MERGED: "was applied with other values",
}
_CAUSE_WORDS = {
    Cause.ROW_DOES_NOT_EXIST: "the row does not exist here",
    Cause.ROW_ALREADY_EXISTS: "the row already exists here",
    Cause.TRANS_IN_CONFLICT: "its transaction is in conflict",
}


@attrs.frozen
class Compared:
    """
    What a decision compared, for its words.

    Attributes:
        by_epoch: Whether epochs were compared, not values of a column.
        column: The column whose values were compared; None if it is not named.
        refreshed: Whether the row had been refreshed here, not changed by a user.
    """

    by_epoch: bool = False
    column: str | None = None
    refreshed: bool = False


NOTHING_TOLD = Compared()


def operation_word(operation: Operation) -> str:
    """Return an operation as a word: write, update or delete."""
    return operation.name.split("_")[0].lower()


def explain(decision: Decision, what: str, compared: Compared = NOTHING_TOLD) -> str:
    """
    Return a decision as one clause.

    Args:
        decision: The decision.
        what: The operation in words, such as "update" or "refresh of row 2".
        compared: What was compared.
    """
    if decision.verdict is Verdict.REJECTED:
        return f"the {what} was rejected: {reason_words(decision, compared)}"
    if decision.verdict is Verdict.CANNOT_TELL:
        return f"the decision on the {what} depends on what its row was before the log starts"
    merged = ", ".join(f"{name} = {'NULL' if value is None else str(value)}" for name, value in decision.writes)
    return f"the {what} {_VERDICT_WORDS[decision.verdict]}{f': {merged}' if merged else ''}"


def came_back_words(highest: int | None) -> str:
    """
    Return which own epochs had come back when an operation was judged, as one clause.

    Args:
        highest: The highest of them; 0 if none had; None if the log starts in the middle and shows none.
    """
    if highest is None:
        return "it is not known which epochs had come back: none in this part of the log"
    return f"only epochs up to {highest} had come back" if highest else "no epoch had come back yet"


def value_words(value: int) -> str:
    """Return a resolve value in words; one that data nodes take for a negative number as that, too."""
    return f"{value} ({value - 2 * _SIGN} to data nodes, whose numbers are signed)" if value >= _SIGN else str(value)


def reason_words(decision: Decision, compared: Compared = NOTHING_TOLD) -> str:
    """Return why an operation was rejected, as one clause."""
    if decision.cause is not Cause.ROW_IN_CONFLICT:
        return _CAUSE_WORDS[decision.cause]
    if compared.by_epoch:
        changed = "refreshed" if compared.refreshed else "changed"
        when = "before the log starts" if decision.stored is None else f"in epoch {decision.stored}"
        return f"the row was {changed} here {when}, and {came_back_words(decision.incoming)}"
    if decision.incoming is None:  # a rule of one's own, which does not say what it compared
        return "the row stays as it is here"
    stored = "value, which is older than the log" if decision.stored is None else value_words(decision.stored)
    brought = value_words(decision.incoming)
    brought = f"{compared.column}={brought}" if compared.column else brought
    return f"it brings {brought}, which does not win over the row's {stored}"
