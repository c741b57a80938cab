"""A conflict function of one's own, in Python: as NDB$MAX, but of two equal values the one that comes in wins."""

from conflict.rules.decision import APPLIED, Cause, Decision, IncomingOperation, RowState, Verdict
from ndb_formats.events.rows_event import Operation


def at_least(row: RowState, incoming: IncomingOperation) -> Decision:
    """Apply what is not smaller than what is stored; a delete compares what it saw."""
    if incoming.operation is Operation.WRITE_ROW:
        return Decision(Verdict.REJECTED, Cause.ROW_ALREADY_EXISTS) if row.exists else APPLIED
    if not row.exists:
        return Decision(Verdict.REJECTED, Cause.ROW_DOES_NOT_EXIST)
    brings = incoming.before if incoming.operation is Operation.DELETE_ROW else incoming.after
    if row.value is None or brings is None or brings >= row.value:
        return APPLIED
    return Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, brings, row.value)
