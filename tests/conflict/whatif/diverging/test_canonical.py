"""States with one key are the same but for names, and lead to the same states."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from random import Random

import pytest

from conflict.resolvers.user_policies import SHIPPED, load_functions
from conflict.whatif.diverging.canonical import state_key
from conflict.whatif.diverging.scope import Goal, Scope, Values
from conflict.whatif.diverging.state import BothStates
from conflict.whatif.diverging.steps import Apply, Commit, Load, RowWish, SetBack, Step, possible_steps, taken
from tests.conflict.whatif.diverging.schedules import START, run, walk

PRESENT = (Goal.DIFFERENCE, Goal.STOP)
FUNCTIONS = (
    "NDB$OLD(x)",
    "NDB$MAX(x)",
    "NDB$MAX_DEL_WIN_INS(x)",
    "NDB$EPOCH()",
    "NDB$EPOCH_TRANS()",
    "NDB$EPOCH2()",
    None,
)


def reached(scope: Scope, goals: Collection[Goal]) -> Iterator[tuple[bytes, BothStates]]:
    """Yield states as a search for goals reaches them, each as often as a step leads to it."""
    level = [run(scope, [Load(rows)]) for rows in range(scope.rows + 1)]
    seen = set[bytes]()
    while level:
        following = []
        for state in level:
            for step in possible_steps(state, scope):
                after, _ = taken(state, step, scope)
                key = state_key(after, scope, goals)
                yield key, after
                if key not in seen and not after.stopped():
                    seen.add(key)
                    following.append(after)
        level = following


def future(state: BothStates, scope: Scope, goals: Collection[Goal]) -> tuple[object, ...]:
    """What a search makes of a state: whether it is quiet, what shows in it, and the keys of what follows."""
    keys = frozenset(state_key(taken(state, step, scope)[0], scope, goals) for step in possible_steps(state, scope))
    shown = {
        Goal.DIFFERENCE: state.differs(scope),
        Goal.STOP: state.stopped(),
        Goal.LOST: state.lost,
        Goal.RETURNS: state.has_returned(),
        Goal.COUNTERS: state.lost != state.counted,
    }
    return state.is_quiet(scope), tuple(shown[goal] for goal in goals), keys


def assert_keys_tell_the_future(scope: Scope, share: int, goals: Collection[Goal] = PRESENT) -> None:
    """Compare one in so many of the states that have a key in common with the first state that had it."""
    first: dict[bytes, BothStates] = {}
    futures: dict[bytes, tuple[object, ...]] = {}
    compared = 0
    for number, (key, state) in enumerate(reached(scope, goals)):
        if key not in first:
            first[key] = state
        elif number % share == 0:
            compared += 1
            if key not in futures:
                futures[key] = future(first[key], scope, goals)
            assert future(state, scope, goals) == futures[key]
    assert compared


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_key_one_future(function: str | None) -> None:
    """Whatever is left out of a key decides nothing."""
    assert_keys_tell_the_future(Scope(function, 7, transactions=2), 5)


@pytest.mark.parametrize("name", SHIPPED)
def test_one_key_one_future_of_a_resolver(name: str) -> None:
    """What a resolver reads belongs to the state: values, times, sites, whether a change was seen."""
    known = load_functions([name])
    assert_keys_tell_the_future(Scope(f"{name}()", 7, transactions=2, functions=known), 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_one_key_one_future_of_a_resolver_in_larger_scopes(name: str) -> None:
    """With two rows, and with an outage."""
    known = load_functions([name])
    assert_keys_tell_the_future(Scope(f"{name}()", 7, transactions=1, rows=2, functions=known), 3)
    assert_keys_tell_the_future(Scope(f"{name}()", 7, transactions=2, outages=1, functions=known), 7)


@pytest.mark.parametrize("function", ["NDB$MAX(x)", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", None])
def test_one_key_one_future_for_goals_with_a_past(function: str | None) -> None:
    """Who wrote what and who deleted what are left out where they decide nothing."""
    assert_keys_tell_the_future(Scope(function, 7, transactions=2), 5, tuple(Goal))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "binlog_type"),
    [
        ("NDB$OLD(x)", 7),
        ("NDB$MAX(x)", 9),
        ("NDB$MAX_INS(x)", 3),
        ("NDB$MAX_DEL_WIN_INS(x)", 8),
        ("NDB$EPOCH()", 2),
        ("NDB$EPOCH(0)", 7),
        ("NDB$EPOCH_TRANS()", 9),
        ("NDB$EPOCH2()", 8),
        ("NDB$EPOCH2_TRANS()", 7),
        (None, 6),
    ],
)
def test_one_key_one_future_in_larger_scopes(function: str | None, binlog_type: int) -> None:
    """With two rows, two data columns, outages and clocks."""
    for scope in (
        Scope(function, binlog_type, 2, rows=2),
        Scope(function, binlog_type, 2, columns=2, values=Values.CLOCK),
        Scope(function, binlog_type, 3),
        Scope(function, binlog_type, 2, outages=1),
    ):
        assert_keys_tell_the_future(scope, 7)
        for goals in (tuple(Goal), (Goal.LOST,), (Goal.RETURNS,), (Goal.COUNTERS, Goal.DIFFERENCE)):
            assert_keys_tell_the_future(scope, 17, goals)


def renamed(step: Step, rows: list[int], columns: list[int], *, exchanged: bool) -> Step:
    """Return a step on other rows, columns and clusters."""
    if isinstance(step, Load):
        return step
    side = 1 - step.side if exchanged else step.side
    if isinstance(step, SetBack):
        return SetBack(side)
    if isinstance(step, Apply):
        return Apply(side, step.joins)
    wishes = [
        RowWish(rows[each.row], each.operation, columns[each.column] if each.column >= 0 else -1)
        for each in step.wishes
    ]
    return Commit(side, tuple(sorted(wishes, key=lambda wish: wish.row)), step.joins)


@pytest.mark.parametrize("function", ["NDB$MAX(x)", "NDB$OLD(x)", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()"])
def test_names_make_no_difference(function: str) -> None:
    """A schedule on rows, columns and clusters with other names comes to the same key."""
    chance = Random(1)
    for _ in range(40):
        scope = Scope(function, 7, 4, rows=2, columns=2)
        steps = walk(scope, chance, load=chance.choice((0, 2)))
        exchanged = scope.symmetric and steps[0] == Load(0)
        other = [renamed(step, [1, 0], [1, 0], exchanged=exchanged) for step in steps]
        for goals in (PRESENT, tuple(Goal)):
            assert state_key(run(scope, steps), scope, goals) == state_key(run(scope, other), scope, goals)


def test_states_that_differ_have_other_keys() -> None:
    """In a row, in a value that is compared, in what has still to arrive, in what came back, in who wrote."""
    scope = Scope("NDB$EPOCH()", 7)
    update = Commit(0, (RowWish(0, 2, 0),))  # type: ignore[arg-type]
    schedules = [
        [Load(1)],
        [Load(0)],
        [Load(1), update],
        [Load(1), update, Apply(1)],
        [Load(1), update, Apply(1), Apply(0)],
        [Load(1), Commit(1, update.wishes)],
    ]
    assert len({state_key(run(scope, steps), scope) for steps in schedules}) == len(schedules)
    assert START.made == ()
