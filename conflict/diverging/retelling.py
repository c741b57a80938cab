"""
A schedule told again, step by step, and as a History that both engines resolve.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from conflict.diverging.scope import Scope
from conflict.diverging.state import NAME, Side, State
from conflict.diverging.steps import Event, SetBack, Step, taken
from conflict.history.model import EpochApply, History, Timeline, Transaction

__all__ = ["Told", "history_of", "retell"]


@attrs.frozen
class Told:
    """
    A step that was taken.

    Attributes:
        step: The step.
        events: What the clusters did.
        state: Both clusters after it.
    """

    step: Step
    events: tuple[Event, ...]
    state: State


def retell(scope: Scope, steps: Sequence[Step]) -> list[Told]:
    """Take all steps of a schedule, the load first."""
    state, told = State((Side({}), Side({}))), list[Told]()
    for step in steps:
        state, events = taken(state, step, scope)
        told.append(Told(step, tuple(events), state))
    return told


def history_of(scope: Scope, told: Sequence[Told]) -> History:
    """Return what happened, without its consequences."""
    clusters = tuple(
        attrs.evolve(cluster, timeline=_timeline(number, told)) for number, cluster in enumerate(scope.clusters)
    )
    return History(clusters, {NAME: scope.layout})


def _timeline(number: int, told: Sequence[Told]) -> Timeline:
    events = [event for each in told for event in each.events if event.side == number]
    logged = {event.item.epoch for event in events if event.changes}
    items: list[Transaction | EpochApply] = []
    period, restarted = 0, False
    for each in told:
        if isinstance(each.step, SetBack) and each.step.side == number:
            period, restarted = period + 1, True
        for event in each.events:
            if event.side != number:
                continue
            item = event.item
            if isinstance(item, EpochApply):
                item = _placed(attrs.evolve(item, period=period, restarted=restarted), event, logged)
                restarted = False
            items.append(item)
    return tuple(items)


def _placed(apply: EpochApply, event: Event, logged: set[int]) -> EpochApply:
    """Return an epoch apply with or without a trace: an epoch that changed nothing is not logged, nor is one undone."""
    if event.stop is None and apply.epoch in logged:
        return apply
    return attrs.evolve(apply, traced=False, group=apply.group - 1)
