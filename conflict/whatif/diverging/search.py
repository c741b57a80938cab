"""
The search: breadth first, so that the first schedule found is a shortest one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

import attrs

from conflict.whatif.diverging.canonical import needs_past, state_key
from conflict.whatif.diverging.scope import Goal, Scope
from conflict.whatif.diverging.state import BothStates, ClusterState, packed_state, unpacked_state
from conflict.whatif.diverging.steps import Load, Schedule, Step, possible_steps, taken

# Called with the depth, and how many of the states of that depth are expanded.
Progress = Callable[[int, int, int], None]


def nobody(depth: int, states: int, left: int) -> None:
    """Show nobody how far a search is."""


_TOGETHER = 250  # states that one task expands
_TASKS = 64  # that a mapper gets at once
_WIDE = 2000  # states of a level from which on a mapper expands it


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
    steps: Schedule | None
    states: int
    depth: int
    seconds: float
    complete: bool = True


@attrs.frozen
class Explored:
    """
    What a search for several goals found.

    Attributes:
        reached: The shortest schedule to each goal that was reached, in the order in which they were.
        seen: How many states had been seen when each of these was reached.
        states: How many states were seen, symmetric ones once.
        depth: Steps of the longest schedules that were tried, after the table was loaded.
        complete: Whether every state was seen, or every goal reached.
    """

    reached: Mapping[Goal, Schedule]
    seen: Mapping[Goal, int]
    states: int
    depth: int
    complete: bool = True


@attrs.frozen(eq=False)
class _Next:
    """A state that was reached: its key, the number in its task of the state before it, the step, its goals."""

    key: bytes
    parent: int
    step: Step
    state: BothStates | None
    goals: tuple[Goal, ...]


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

    def path(self, number: int) -> Schedule:
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
    progress: Progress = nobody,
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
    began = time.monotonic()
    found = explore(scope, (goal,), mapper=mapper, progress=progress, limit=limit)
    seconds = time.monotonic() - began
    return Found(scope, goal, found.reached.get(goal), found.states, found.depth, seconds, found.complete)


def explore(
    scope: Scope,
    goals: Sequence[Goal],
    *,
    mapper: Mapper | None = None,
    progress: Progress = nobody,
    limit: int | None = None,
    wide: int | None = None,
) -> Explored:
    """
    Search a scope for a shortest schedule to each of several goals, which sees each state once for all of them.

    Args:
        scope: The scope.
        goals: What schedules must lead to.
        mapper: As for `search`.
        progress: As for `search`.
        limit: As for `search`.
        wide: At how many states of a level to give up.
    """
    seen, reached, counts = _Seen(), dict[Goal, Schedule](), dict[Goal, int]()
    level, depth = _first_level(scope, goals, seen), 0
    left = tuple(goals)
    while level:
        if wide is not None and len(level) >= wide:
            return Explored(reached, counts, len(seen.keys), depth, complete=False)
        depth += 1
        following: list[tuple[int, BothStates]] = []
        for parent, each in _expanded(scope, left, level, mapper, partial(progress, depth)):
            if seen.add(each.key, parent, each.step) and each.state is not None:
                following.append((len(seen.steps) - 1, each.state))
            for goal in each.goals:
                if goal not in reached:
                    reached[goal], counts[goal] = (*seen.path(parent), each.step), len(seen.keys)
            if len(reached) == len(goals):
                return Explored(reached, counts, len(seen.keys), depth)
            if limit is not None and len(seen.keys) >= limit:
                return Explored(reached, counts, len(seen.keys), depth - 1, complete=False)
        level = following
        before, left = left, tuple(goal for goal in left if goal not in reached)
        if needs_past(before) != needs_past(left):
            level = _merged(level, scope, left)
    return Explored(reached, counts, len(seen.keys), depth - 1)


def _first_level(scope: Scope, goals: Sequence[Goal], seen: _Seen) -> list[tuple[int, BothStates]]:
    """Return the states that a search begins with, with their numbers; a table with rows first."""
    level, nothing = list[tuple[int, BothStates]](), BothStates((ClusterState({}), ClusterState({})))
    for rows in range(scope.rows, -1, -1):
        state, _ = taken(nothing, Load(rows), scope)
        if seen.add(state_key(state, scope, goals), -1, Load(rows)):
            level.append((len(seen.steps) - 1, state))
    return level


def _merged(
    level: Sequence[tuple[int, BothStates]], scope: Scope, goals: Sequence[Goal]
) -> list[tuple[int, BothStates]]:
    """Return the states of a level, one of those each that are the same now that fewer goals are left."""
    found: dict[bytes, tuple[int, BothStates]] = {}
    for number, state in level:
        found.setdefault(state_key(state, scope, goals), (number, state))
    return list(found.values())


def _expanded(
    scope: Scope,
    goals: Sequence[Goal],
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
            results = [_expand(scope, goals, each) for each in states]
        else:
            answers = workers(partial(_expand_packed, scope, goals), [packed_state(each) for each in states])
            results = [unpacked_state(each, scope) for each in answers]
        for part, found in zip(parts, results, strict=True):
            for each in found:
                yield part[each.parent][0], each


def _expand_packed(scope: Scope, goals: Sequence[Goal], states: bytes) -> bytes:
    return packed_state(_expand(scope, goals, unpacked_state(states, scope)))


def _expand(scope: Scope, goals: Sequence[Goal], states: list[BothStates]) -> list[_Next]:
    """Return all states that follow, each once, up to the first one at which every goal was reached."""
    found: list[_Next] = []
    keys, left = set[bytes](), list(goals)
    for parent, state in enumerate(states):
        for step in possible_steps(state, scope):
            after, _ = taken(state, step, scope)
            at = tuple(goal for goal in left if _is_reached(goal, after, scope))
            key = state_key(after, scope, goals)
            if at or key not in keys:
                # An applier that stopped stays so: nothing that happens then ends with everything applied.
                found.append(_Next(key, parent, step, None if after.stopped() else after, at))
            keys.add(key)
            left = [goal for goal in left if goal not in at]
            if not left:
                return found
    return found


def _is_reached(goal: Goal, state: BothStates, scope: Scope) -> bool:
    """Whether a state is at a goal."""
    if goal is Goal.STOP:
        return state.stopped()
    if goal is Goal.LOST:
        return state.lost
    if state.stopped() or not state.is_quiet(scope):
        return False
    if goal is Goal.RETURNS:
        return state.has_returned()
    return state.lost != state.counted if goal is Goal.COUNTERS else state.differs(scope)
