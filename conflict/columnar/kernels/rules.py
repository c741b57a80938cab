"""
The rules of `conflict.rules.functions` and of the roles, compiled: one operation against one row.
"""

from __future__ import annotations

import numpy as np

from conflict.rules.decision import Cause, Verdict
from conflict.rules.functions import FunctionCode
from ndb_formats.columnar.kernels.compiled import njit_uncounted
from ndb_formats.events.rows_event import Operation

__all__ = ["decide_operation", "needs_refresh"]

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)
IGNORED, DISCARDED, SKIPPED = int(Verdict.IGNORED), int(Verdict.DISCARDED), int(Verdict.SKIPPED)
NO_CAUSE, MISSING = int(Cause.NONE), int(Cause.ROW_DOES_NOT_EXIST)
EXISTS, IN_CONFLICT = int(Cause.ROW_ALREADY_EXISTS), int(Cause.ROW_IN_CONFLICT)
TRANSACTION = int(Cause.TRANS_IN_CONFLICT)
NO_FUNCTION, OLD, EPOCH = int(FunctionCode.NONE), int(FunctionCode.OLD), int(FunctionCode.EPOCH)
MAX_DELETE_WIN, MAX_INS = int(FunctionCode.MAX_DELETE_WIN), int(FunctionCode.MAX_INS)
MAX_DEL_WIN_INS = int(FunctionCode.MAX_DEL_WIN_INS)
NOTHING = np.uint64(0)


@njit_uncounted(inline="always")
def _stored_precision(epoch, bits):
    """See `conflict.reference.row_store.stored_precision`."""
    low = epoch & np.uint64(0xFFFFFFFF)
    if low >= (np.uint64(1) << np.uint64(bits)) - np.uint64(1):
        return epoch | np.uint64(0xFFFFFFFF)
    return epoch


@njit_uncounted(inline="always")
def _greater(after, value):
    if after > value:
        return APPLIED, NO_CAUSE, NOTHING, NOTHING
    return REJECTED, IN_CONFLICT, after, value


@njit_uncounted(inline="always")
def _equal(before, value):
    if before == value:
        return APPLIED, NO_CAUSE, NOTHING, NOTHING
    return REJECTED, IN_CONFLICT, before, value


@njit_uncounted(inline="always")
def _judge(function, bits, operation, exists, local, epoch, value, before, after, complete, max_replicated):
    """Return (verdict, cause, incoming, stored) of a function; the rules of `conflict.rules.functions`."""
    if operation == WRITE:
        conditional = function in (MAX_INS, MAX_DEL_WIN_INS)
        if not exists and (complete or not conditional):
            return APPLIED, NO_CAUSE, NOTHING, NOTHING
        if exists and conditional:
            return _greater(after, value)
        return REJECTED, EXISTS, NOTHING, NOTHING
    if not exists:
        return REJECTED, MISSING, NOTHING, NOTHING
    if function >= EPOCH:
        read_back = _stored_precision(epoch, bits)
        if local and read_back > max_replicated:
            return REJECTED, IN_CONFLICT, max_replicated, read_back
        return APPLIED, NO_CAUSE, NOTHING, NOTHING
    # What compares a column: NDB$OLD, NDB$MAX and the kinds of NDB$MAX.
    if operation == UPDATE:
        return _equal(before, value) if function == OLD else _greater(after, value)
    if function in (MAX_DELETE_WIN, MAX_DEL_WIN_INS):
        return APPLIED, NO_CAUSE, NOTHING, NOTHING
    return _equal(before, value)


@njit_uncounted(inline="always")
def _accept_reflected(operation, exists, local):
    """Return the decision of a secondary on what the primary sends back."""
    fits = not exists if operation == WRITE else exists and not local
    return (APPLIED if fits else DISCARDED), NO_CAUSE, NOTHING, NOTHING


@njit_uncounted(inline="always")
def decide_operation(
    function,
    bits,
    secondary,
    operation,
    reflected,
    exists,
    local,
    epoch,
    value,
    before_given,
    before,
    after_given,
    after,
    complete,
    needs_before,
    needs_after,
    max_replicated,
):
    """
    Return (verdict, cause, incoming, stored) of one operation that is not rejected with its transaction.

    Args:
        function: `FunctionCode`, its role considered.
        bits: Its extra GCI bits.
        secondary: Whether the applier's role is SECONDARY, and the function heeds it.
        operation: `Operation`.
        reflected: Whether the primary sent the operation back.
        exists: Whether the row is there.
        local: Whether it was last changed here.
        epoch: Own epoch of its last change.
        value: Its resolve column.
        before_given: Whether the before image carries the resolve column.
        before: Resolve column in the before image.
        after_given: Whether the after image carries the resolve column.
        after: Resolve column in the after image.
        complete: Whether the after image carries all columns that a new row must be given.
        needs_before: Whether the operation is left out if its before image lacks the resolve column.
        needs_after: Whether the operation is left out if its after image lacks the resolve column.
        max_replicated: Highest own epoch known to have come back.
    """
    if secondary and reflected:
        return _accept_reflected(operation, exists, local)
    if secondary or function == NO_FUNCTION:
        # Nothing is judged; an update that finds no row makes none, nor does a write of an incomplete one.
        finds = exists or (operation == WRITE and complete)
        return (APPLIED if finds else IGNORED), NO_CAUSE, NOTHING, NOTHING
    if (needs_before and not before_given) or (needs_after and not after_given):
        return SKIPPED, NO_CAUSE, NOTHING, NOTHING
    decision = _judge(function, bits, operation, exists, local, epoch, value, before, after, complete, max_replicated)
    if reflected and decision[0] == REJECTED:
        return DISCARDED, NO_CAUSE, NOTHING, NOTHING
    return decision


@njit_uncounted(inline="always")
def needs_refresh(refreshes, operation, cause):
    """Whether a rejected operation makes its row be sent again: a delete-delete is counted only."""
    return cause == TRANSACTION or (refreshes and not (operation == DELETE and cause == MISSING))
