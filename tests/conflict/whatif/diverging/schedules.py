"""Schedules to test with."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from conflict.whatif.diverging.scope import Scope
from conflict.whatif.diverging.state import BothStates, ClusterState
from conflict.whatif.diverging.steps import Commit, Load, Step, possible_steps, taken

START = BothStates((ClusterState({}), ClusterState({})))


def run(scope: Scope, steps: Sequence[Step]) -> BothStates:
    """Return the state after some steps."""
    state = START
    for step in steps:
        state, _ = taken(state, step, scope)
    return state


def walk(scope: Scope, chance: Random, load: int) -> list[Step]:
    """Return the steps of a random schedule that goes on until nothing is left to do, or an applier stops."""
    steps: list[Step] = [Load(load)]
    state = run(scope, steps)
    while not state.stopped():
        choices = list(possible_steps(state, scope))
        if not choices:
            break
        commits = [step for step in choices if isinstance(step, Commit)]
        others = [step for step in choices if not isinstance(step, Commit)]
        steps.append(chance.choice(commits if commits and (not others or chance.random() < 0.5) else others))
        state, _ = taken(state, steps[-1], scope)
    return steps
