"""
The decision on one operation: `conflict.rules.functions.judge` and the roles, compiled.

Computes docs/functions.md, "The table". `tests/conflict/engine/columnar/test_decision_laws.py` compares it with the
scalar rules, case by case.
"""

from __future__ import annotations

import numpy as np

from conflict.rules.decision import Cause, Verdict
from conflict.rules.decision import in_node_order as order_of_nodes
from conflict.rules.decision import is_delete_delete as both_deleted
from conflict.rules.decision import marks_transaction as marks
from conflict.rules.functions import Cell
from conflict.rules.functions import is_comparing as compares_value
from conflict.rules.functions import reads_before as before_is_read
from ndb_formats.columnar.kernel import inlined
from ndb_formats.events.rows_event import Operation

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
APPLIED, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)
IGNORED, DISCARDED, SKIPPED = int(Verdict.IGNORED), int(Verdict.DISCARDED), int(Verdict.SKIPPED)
NO_CAUSE, MISSING = int(Cause.NONE), int(Cause.ROW_DOES_NOT_EXIST)
EXISTS, IN_CONFLICT = int(Cause.ROW_ALREADY_EXISTS), int(Cause.ROW_IN_CONFLICT)
TRANSACTION = int(Cause.TRANS_IN_CONFLICT)
APPLY, REJECT_IF_PRESENT, REJECT_IF_MISSING = int(Cell.APPLY), int(Cell.REJECT_IF_PRESENT), int(Cell.REJECT_IF_MISSING)
EQUAL, GREATER, AT_LEAST = int(Cell.EQUAL), int(Cell.GREATER), int(Cell.AT_LEAST)
BY_EPOCH, LESS_IF_UNSEEN = int(Cell.BY_EPOCH), int(Cell.LESS_IF_UNSEEN)
NOTHING = np.uint64(0)  # for a value that is not compared
LOW_WORD = np.uint64(0xFFFFFFFF)
is_delete_delete, marks_transaction = inlined(both_deleted), inlined(marks)
is_comparing, reads_before = inlined(compares_value), inlined(before_is_read)
in_node_order = inlined(order_of_nodes)


@inlined
def _stored_precision(epoch, bits):
    """Return an epoch as a row stores it; see `conflict.rules.decision.stored_precision`."""
    low = epoch & LOW_WORD
    if low >= (np.uint64(1) << np.uint64(bits)) - np.uint64(1):
        return epoch | LOW_WORD
    return epoch


@inlined
def _wins(cell, brought, stored):
    """Whether the brought value wins against the stored one in a comparing cell."""
    if cell == EQUAL:
        return brought == stored
    theirs, mine = in_node_order(brought), in_node_order(stored)
    if cell == GREATER:
        return theirs > mine
    if cell == AT_LEAST:
        return theirs >= mine
    return theirs < mine


@inlined
def _judge(cell, rule, mine, operation, before, after, complete, max_replicated):
    """Return (verdict, cause, incoming, stored) of a cell; see `conflict.rules.functions.judge`."""
    writes = operation == WRITE
    if cell == APPLY:
        finds = mine["exists"] or (writes and complete)
        return (APPLIED if finds else IGNORED), NO_CAUSE, NOTHING, NOTHING
    if not mine["exists"]:
        if not writes:
            return REJECTED, MISSING, NOTHING, NOTHING
        if complete or cell == REJECT_IF_PRESENT:
            return APPLIED, NO_CAUSE, NOTHING, NOTHING
        # The data node refuses a row that lacks a column, which the applier reports like a row that exists already.
        return REJECTED, EXISTS, NOTHING, NOTHING
    if cell == REJECT_IF_PRESENT:
        return REJECTED, EXISTS, NOTHING, NOTHING
    if cell == REJECT_IF_MISSING:
        return APPLIED, NO_CAUSE, NOTHING, NOTHING
    if cell in (BY_EPOCH, LESS_IF_UNSEEN):
        epoch = _stored_precision(mine["epoch"], rule["gci_bits"])
        if not (mine["local"] and epoch > max_replicated):
            return APPLIED, NO_CAUSE, NOTHING, NOTHING
        if cell == BY_EPOCH:
            return REJECTED, IN_CONFLICT, max_replicated, epoch
    brought = before if reads_before(cell, operation) else after
    if _wins(cell, brought, mine["value"]):
        return APPLIED, NO_CAUSE, NOTHING, NOTHING
    return REJECTED, IN_CONFLICT, brought, mine["value"]


@inlined
def decide_operation(cell, rule, mine, incoming, max_replicated):
    """
    Return (verdict, cause, incoming, stored) of one operation that is not rejected with its transaction.

    Args:
        cell: `Cell` of the operation in the applier's role.
        rule: Of the table; `RULE` of `conflict.engine.kernels.records`.
        mine: The row as the applier finds it; `ROW_STATE`.
        incoming: Operation; whether it is reflected; whether its before image carries the resolve column, and its
            value; the same of the after image; whether the after image carries all that a new row must be given.
        max_replicated: Max replicated epoch before the epoch apply.
    """
    operation, reflected, before_given, before, after_given, after, complete = incoming
    if rule["secondary"] and reflected:
        fits = not mine["exists"] if operation == WRITE else mine["exists"] and not mine["local"]
        return (APPLIED if fits else DISCARDED), NO_CAUSE, NOTHING, NOTHING
    if rule["skips"] and is_comparing(cell):
        given = before_given if reads_before(cell, operation) else after_given
        if not given:
            return SKIPPED, NO_CAUSE, NOTHING, NOTHING
    decision = _judge(cell, rule, mine, operation, before, after, complete, max_replicated)
    if reflected and decision[0] == REJECTED:
        return DISCARDED, NO_CAUSE, NOTHING, NOTHING
    return decision


@inlined
def needs_refresh(refreshes, operation, cause):
    """Whether a rejected operation refreshes its row; a delete-delete does not, though it is rejected, too."""
    return cause == TRANSACTION or (refreshes and not is_delete_delete(operation, cause))
