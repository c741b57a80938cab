"""
A rule of one's own whose answers are checked, before an engine goes by them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import attrs

from conflict.errors import ConfigurationError
from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, Verdict
from ndb_formats.events.rows_event import Operation

NAME = re.compile(r"[A-Za-z_$][\w$]*")
NAME_WORDS = "letters, digits, _ and $, and no digit first"
_LARGEST = 2**64 - 1


@attrs.frozen
class CheckedRule:
    """
    A user's rule, whose results are checked.

    Attributes:
        name: The function's name, for messages.
        rule: The user's function.
    """

    name: str
    rule: Callable[[RowState, IncomingOperation], object]

    def __call__(self, row: RowState, incoming: IncomingOperation) -> Decision:
        """
        Decide on one operation.

        Raises:
            ConfigurationError: The rule raised an exception, or its result is no possible decision on this operation.
        """
        try:
            decision = self.rule(row, incoming)
        except Exception as error:
            message = f"{self._context(row, incoming)}: it failed with {type(error).__name__}: {error}"
            raise ConfigurationError(message) from error
        fault = _fault(decision, row, incoming)
        if fault is not None:
            message = f"{self._context(row, incoming)}: it returned {decision!r}; {fault}"
            raise ConfigurationError(message)
        assert isinstance(decision, Decision)
        return decision

    def _context(self, row: RowState, incoming: IncomingOperation) -> str:
        operation = incoming.operation.name.split("_")[0].lower()
        return f"function {self.name}, {operation} of a row that {'exists' if row.exists else 'does not exist'}"


def _fault(decision: object, row: RowState, incoming: IncomingOperation) -> str | None:
    """Return why a rule's result is no possible decision; None if it is one."""
    if not isinstance(decision, Decision):
        return "a conflict.rules.decision.Decision is needed"
    if decision.verdict not in (Verdict.APPLIED, Verdict.REJECTED, Verdict.IGNORED, Verdict.MERGED):
        return "the verdict must be APPLIED, REJECTED, IGNORED or MERGED"
    if (decision.verdict is Verdict.MERGED) is not bool(decision.writes):
        return "a merge names the columns that it writes, and no other answer does"
    if (decision.verdict is Verdict.REJECTED) is (decision.cause not in set(Cause) - {Cause.NONE}):
        return "a rejected operation needs a cause, and no other has one"
    if decision.verdict.writes_row and not row.exists and incoming.operation is not Operation.WRITE_ROW:
        return "a missing row cannot be changed: reject the operation (Cause.ROW_DOES_NOT_EXIST) or ignore it"
    for value in (decision.incoming, decision.stored):
        if value is not None and not (isinstance(value, int) and 0 <= value <= _LARGEST):
            return "the values compared must be whole numbers from 0 to 2^64 - 1, or None"
    return None


def check_name(name: object) -> None:
    """
    Make sure that `conflict_fn` can contain a name.

    Raises:
        ConfigurationError: It cannot.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        message = f"{name!r} is no name for conflict_fn: use {NAME_WORDS}"
        raise ConfigurationError(message)
