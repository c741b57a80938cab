"""
Lost updates: whether an epoch apply loses a change of a user, as `conflict.rules.lost_updates` defines it.
"""

from __future__ import annotations

from conflict.diverging.state import State
from conflict.diverging.steps import Event
from conflict.results.model import Outcome
from conflict.rules.lost_updates import loses

__all__ = ["loses_update"]


def loses_update(before: State, event: Event, after: State) -> bool:
    """
    Whether an epoch apply lost an update.

    Of an epoch that is applied again, what is rejected had its effect the first time; what is applied can overwrite
    what users did since.
    """
    return any(_is_rejected(each, before, event.side) for each in event.outcomes) or any(
        _is_unseen(over, by, event.side, after) for by, over in event.overwritten
    )


def _is_rejected(outcome: Outcome, before: State, side: int) -> bool:
    """Whether a change of a user was rejected, and lost, when it came for the first time."""
    again = outcome.source_epoch <= before.sides[side].reached
    return outcome.ordinal >= 0 and loses(outcome.verdict, outcome.operation, outcome.cause) and not again


def _is_unseen(over: int, by: int, side: int, state: State) -> bool:
    """Whether a transaction of a cluster was overwritten by one that had not seen it."""
    made = state.made[over]
    return made.side == side and made.epoch > state.made[by].seen
