"""A conflict function of one's own: as NDB$MAX, but of two equal values the one that comes in wins."""

from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from conflict.rules.functions import presence_anomaly
from ndb_formats.events.rows_event import Operation


def at_least(row: RowState, incoming: IncomingOperation) -> Decision:
    """Apply what is not smaller than what is stored; a delete compares what it saw."""
    anomaly = presence_anomaly(row, incoming.operation)
    if anomaly is not None:
        return anomaly
    brings = incoming.before if incoming.operation is Operation.DELETE_ROW else incoming.after
    if row.value is None or brings is None or brings >= row.value:
        return Decision(Verdict.APPLIED)
    return Decision(Verdict.REJECTED, Cause.ROW_IN_CONFLICT, brings, row.value)
