"""
The search: breadth first, so that the first schedule found is a shortest one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

import attrs

from conflict.whatif.diverging.canonical import state_key
from conflict.whatif.diverging.scope import Goal, Scope
from conflict.whatif.diverging.state import BothStates, ClusterState, packed_state, unpacked_state
from conflict.whatif.diverging.steps import Load, Step, StepEvent, loses_update, possible_steps, taken

# Called with the depth, and how many of the states of that depth are expanded.
Progress = Callable[[int, int, int], None]

_TOGETHER = 250  # states that one task expands
_TASKS = 64  # that a mapper gets at once
_WIDE = 2000  # states of a level from which on the mapper expands it


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
    """A state that was reached: its key, the number in its task of the state before it, the step, if it is a hit."""

    key: bytes
    parent: int
    step: Step
    state: BothStates | None
    hit: bool


class Mapper(Protocol):
    """Runs a function on every task, possibly in other processes, and returns the results in order."""

    def __call__(self, function: Callable[[bytes], bytes], tasks: Sequence[bytes]) -> list[bytes]:
        """Run `function` on all of `tasks`; it may run twice on a task without harm."""
        ...


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
    mapper: Mapper | None = None,
    progress: Progress = lambda depth, states, left: None,
    limit: int | None = None,
) -> Found:
    """
    Search a scope for a shortest schedule.

    Args:
        scope: The scope.
        goal: What a schedule must lead to.
        mapper: Spreads wide levels over workers; None expands all states here.
        progress: Called now and then.
        limit: After how many states to give up.
    """
    began, seen, level = time.monotonic(), _Seen(), list[tuple[int, BothStates]]()
    for rows in range(scope.rows, -1, -1):  # a table with rows first
        load = Load(rows)
        state, _ = taken(BothStates((ClusterState({}), ClusterState({}))), load, scope)
        if seen.add(_key(state, scope, goal), -1, load):
            level.append((len(seen.steps) - 1, state))
    depth = 0
    while level:
        depth += 1
        following: list[tuple[int, BothStates]] = []
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


def _key(state: BothStates, scope: Scope, goal: Goal) -> bytes:
    return state_key(state, scope, with_history=goal is Goal.LOST)


def _expanded(
    scope: Scope,
    goal: Goal,
    level: Sequence[tuple[int, BothStates]],
    mapper: Mapper | None,
    progress: Callable[[int, int], None],
) -> Iterator[tuple[int, _Next]]:
    """Yield what follows the states of a level, each with the number of the state before it."""
    workers = mapper if len(level) >= _WIDE else None
    at_once = _TOGETHER if workers is None else _TASKS * _TOGETHER
    for begin in range(0, len(level), at_once):
        progress(begin, len(level))
        rest = level[begin : begin + at_once]
        parts = [rest[first : first + _TOGETHER] for first in range(0, len(rest), _TOGETHER)]
        states = [[state for _, state in part] for part in parts]
        if workers is None:
            results = [_expand(scope, goal, each) for each in states]
        else:
            answers = workers(partial(_expand_packed, scope, goal), [packed_state(each) for each in states])
            results = [unpacked_state(each, scope) for each in answers]
        for part, found in zip(parts, results, strict=True):
            for each in found:
                yield part[each.parent][0], each


def _expand_packed(scope: Scope, goal: Goal, states: bytes) -> bytes:
    return packed_state(_expand(scope, goal, unpacked_state(states, scope)))


def _expand(scope: Scope, goal: Goal, states: list[BothStates]) -> list[_Next]:
    """Return all states that follow, each once, up to the first one at the goal."""
    found: dict[bytes, _Next] = {}
    for parent, state in enumerate(states):
        for step in possible_steps(state, scope):
            after, events = taken(state, step, scope)
            hit = _is_reached(goal, state, events, after, scope)
            key = _key(after, scope, goal)
            if hit or key not in found:
                # An applier that stopped stays so: nothing that happens then ends with everything applied.
                found[key] = _Next(key, parent, step, None if after.stopped() else after, hit)
            if hit:
                return list(found.values())
    return list(found.values())


def _is_reached(goal: Goal, before: BothStates, events: Sequence[StepEvent], after: BothStates, scope: Scope) -> bool:
    """Whether a step reached the goal."""
    if goal is Goal.STOP:
        return after.stopped()
    if goal is Goal.LOST:
        return any(loses_update(before, event, after) for event in events)
    return not after.stopped() and after.is_quiet(scope) and after.differs(scope)
