"""
Lost updates: changes of users that were rejected, or overwritten by a change that had not seen them.

They are the two kinds that `simulate` counts, see docs/model.md.
"""

from __future__ import annotations

from conflict.diverging.scope import Scope
from conflict.diverging.state import NAME, State, cells
from conflict.diverging.steps import Event
from conflict.results.model import Outcome
from conflict.rules.decision import Verdict, is_delete_delete

__all__ = ["loses"]


def loses(before: State, event: Event, after: State, scope: Scope) -> bool:
    """
    Whether an epoch apply lost an update.

    A delete of a row that is gone loses nothing. Of an epoch that is applied again, what is rejected had its effect the
    first time; what is applied can overwrite what users did since.
    """
    return any(
        outcome.ordinal >= 0
        and (_is_rejected(outcome, before, event.side) or _overwrites(outcome, before, event.side, after, scope))
        for outcome in event.outcomes
    )


def _is_rejected(outcome: Outcome, before: State, side: int) -> bool:
    """Whether an operation was rejected when it came for the first time."""
    gone = is_delete_delete(outcome.operation, outcome.cause)
    again = outcome.source_epoch <= before.sides[side].reached
    return outcome.verdict is Verdict.REJECTED and not gone and not again


def _overwrites(outcome: Outcome, before: State, side: int, after: State, scope: Scope) -> bool:
    """Whether an operation that was applied replaced a value of this cluster that its transaction had not seen."""
    if outcome.verdict is not Verdict.APPLIED or outcome.transaction_id is None:
        return False
    key, first = (NAME, outcome.key), scope.first_data_column - 1
    old = cells(before.sides[side].rows.get(key), scope)
    new = cells(after.sides[side].rows.get(key), scope)
    seen = after.made[outcome.transaction_id].seen
    for place, value in enumerate(old or ()):
        if place >= first and value >= 0 and (new is None or new[place] != value):
            made = after.made[value]
            if made.side == side and made.epoch > seen:
                return True
    return False
