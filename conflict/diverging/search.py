"""
The search: breadth first, so that the first schedule found is a shortest one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from typing import TypeVar

import attrs

from conflict.diverging.canonical import state_key
from conflict.diverging.losses import loses
from conflict.diverging.scope import Scope
from conflict.diverging.state import Side, State
from conflict.diverging.steps import Event, Load, Step, possible, taken

__all__ = ["Found", "Goal", "Mapper", "in_turn", "search"]

Task = TypeVar("Task")
Result = TypeVar("Result")
# Runs a function on every task and returns the results in order.
Mapper = Callable[[Callable[[Task], Result], Sequence[Task]], list[Result]]
# Called with the depth, the states seen, and the states whose next steps are still to be tried at this depth.
Progress = Callable[[int, int, int], None]

_TOGETHER = 2000  # states that one task expands


class Goal(StrEnum):
    """
    What a schedule is searched for.

    DIFFERENCE: Rows end different on the two clusters once everything has been applied.
    LOST: A change of a user is rejected, or overwritten by one that had not seen it.
    STOP: An applier stops with an error.
    """

    DIFFERENCE = "difference"
    LOST = "lost"
    STOP = "stop"

    def is_reached(self, before: State, events: Sequence[Event], after: State, scope: Scope) -> bool:
        """Whether a step reached the goal."""
        if self is Goal.STOP:
            return after.stopped()
        if self is Goal.LOST:
            return any(loses(before, event, after, scope) for event in events)
        return not after.stopped() and after.is_quiet(scope) and after.differs(scope)


@attrs.frozen
class Found:
    """
    What a search found.

    Attributes:
        scope: What was searched.
        goal: For what.
        steps: The shortest schedule; None if there is none in the scope, or none was found before the limit.
        states: How many states were seen, symmetric ones once.
        depth: Steps of the longest schedules that were tried, after the table was loaded.
        seconds: How long it took.
        complete: Whether the whole scope was searched, or the goal was reached.
    """

    scope: Scope
    goal: Goal
    steps: tuple[Step, ...] | None
    states: int
    depth: int
    seconds: float
    complete: bool = True


@attrs.frozen(eq=False)
class _Next:
    """A state that was reached: its key, the number of the state before it in its task, the step, whether at the goal."""

    key: bytes
    parent: int
    step: Step
    state: State | None
    hit: bool


def in_turn(function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """Run a function on every task, one after the other."""
    return [function(task) for task in tasks]


@attrs.define
class _Seen:
    """The states that were seen: their keys, and how each was reached first."""

    keys: set[bytes] = attrs.field(factory=set)
    parents: list[int] = attrs.field(factory=list)
    steps: list[Step] = attrs.field(factory=list)

    def add(self, key: bytes, parent: int, step: Step) -> bool:
        """Add a state; return whether it is new."""
        if key in self.keys:
            return False
        self.keys.add(key)
        self.parents.append(parent)
        self.steps.append(step)
        return True

    def path(self, number: int) -> tuple[Step, ...]:
        """Return the steps that lead to a state."""
        found: list[Step] = []
        while number >= 0:
            found.append(self.steps[number])
            number = self.parents[number]
        return tuple(reversed(found))


def search(
    scope: Scope,
    goal: Goal,
    mapper: Mapper[list[State], list[_Next]] = in_turn,
    progress: Progress = lambda depth, states, left: None,
    limit: int | None = None,
) -> Found:
    """
    Search a scope for a shortest schedule.

    Args:
        scope: The scope.
        goal: What a schedule must come to.
        mapper: Expands the states of a level, a list of them at a time.
        progress: Called now and then.
        limit: After how many states to give up.
    """
    began, seen, level = time.monotonic(), _Seen(), list[tuple[int, State]]()
    for rows in range(scope.rows, -1, -1):  # a table with rows first
        load = Load(rows)
        state, _ = taken(State((Side({}), Side({}))), load, scope)
        if seen.add(_key(state, scope, goal), -1, load):
            level.append((len(seen.steps) - 1, state))
    depth = 0
    while level:
        depth += 1
        following: list[tuple[int, State]] = []
        for parent, each in _expanded(scope, goal, level, mapper, partial(progress, depth)):
            if seen.add(each.key, parent, each.step) and each.state is not None:
                following.append((len(seen.steps) - 1, each.state))
            if each.hit:
                steps = (*seen.path(parent), each.step)
                return Found(scope, goal, steps, len(seen.steps), depth, time.monotonic() - began)
            if limit is not None and len(seen.steps) >= limit:
                return Found(scope, goal, None, len(seen.steps), depth - 1, time.monotonic() - began, complete=False)
        level = following
    return Found(scope, goal, None, len(seen.steps), depth - 1, time.monotonic() - began)


def _key(state: State, scope: Scope, goal: Goal) -> bytes:
    return state_key(state, scope, with_history=goal is Goal.LOST)


def _expanded(
    scope: Scope,
    goal: Goal,
    level: Sequence[tuple[int, State]],
    mapper: Mapper[list[State], list[_Next]],
    progress: Callable[[int, int], None],
) -> Iterator[tuple[int, _Next]]:
    """Yield what follows the states of a level, each with the number of the state before it."""
    expand = partial(_expand, scope, goal)
    for begin in range(0, len(level), _TOGETHER):
        parts = [level[begin : begin + _TOGETHER]]
        for part, found in zip(parts, mapper(expand, [[state for _, state in part] for part in parts]), strict=True):
            for each in found:
                yield part[each.parent][0], each


def _expand(scope: Scope, goal: Goal, states: list[State]) -> list[_Next]:
    """Return all states that follow, each once."""
    found: dict[bytes, _Next] = {}
    for parent, state in enumerate(states):
        for step in possible(state, scope):
            after, events = taken(state, step, scope)
            hit = goal.is_reached(state, events, after, scope)
            key = _key(after, scope, goal)
            if hit or key not in found:
                # An applier that stopped stays so, and nothing that happens then ends all applied.
                found[key] = _Next(key, parent, step, None if after.stopped() else after, hit)
            if hit:
                return list(found.values())
    return list(found.values())
