"""A conflict function in Python: as NDB$MAX, but of two equal values the incoming one wins."""

from conflict.rules.decision import APPLIED, Cause, Decision, IncomingOperation, RowState, Verdict
from ndb_formats.events.rows_event import Operation


def at_least(row: RowState, incoming: IncomingOperation) -> Decision:
    """Apply an operation whose value is at least the stored one; a delete brings the value of its before image."""
    if incoming.operation is Operation.WRITE_ROW:
        return Decision(Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS) if row.exists else APPLIED
    if not row.exists:
        return Decision(Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST)
    value = incoming.before if incoming.operation is Operation.DELETE_ROW else incoming.after
    if row.value is None or value is None or value >= row.value:
        return APPLIED
    return Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, value, row.value)
