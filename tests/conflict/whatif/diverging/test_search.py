"""The shortest schedules that part two clusters, worked out by hand, and what no schedule reaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from conflict.config.arguments import DeploymentPolicy
from conflict.errors import ConfigurationError
from conflict.rules.decision import Cause, Verdict
from conflict.whatif.diverging.retelling import ending, retell, timeline
from conflict.whatif.diverging.scope import Goal, Scope, Values
from conflict.whatif.diverging.search import Found, explore, search
from conflict.whatif.diverging.state import BothStates
from conflict.whatif.diverging.steps import (
    Apply,
    Commit,
    Load,
    RowWish,
    SetBack,
    Step,
    loses_update,
    possible_steps,
    taken,
)
from ndb_formats.events.rows_event import Operation
from tests.conflict.whatif.diverging.schedules import run

INSERT, DELETE = RowWish(0, Operation.WRITE_ROW), RowWish(0, Operation.DELETE_ROW)
UPDATE = RowWish(0, Operation.UPDATE_ROW, 0)


def found(function: str | None, goal: Goal = Goal.DIFFERENCE, **bounds: object) -> Found:
    """Search a scope of one row."""
    return search(Scope(function, **bounds), goal)  # type: ignore[arg-type]


def rejections(scope: Scope, steps: Sequence[Step]) -> list[tuple[int, Operation, Cause]]:
    """Return what was rejected: by whom, what and why."""
    return [
        (event.side, outcome.operation, outcome.cause)
        for each in retell(scope, steps)
        for event in each.events
        for outcome in event.outcomes
        if outcome.verdict is Verdict.REJECTED
    ]


@pytest.mark.parametrize("function", ["NDB$EPOCH()", "NDB$EPOCH_TRANS()"])
def test_delete_delete(function: str) -> None:
    """Both delete the row, and B inserts it anew: A rejects B's delete unseen, and its own delete removes B's row."""
    result = found(function)
    assert result.steps == (
        Load(1),
        Commit(0, (DELETE,)),
        Commit(1, (DELETE,)),
        Commit(1, (INSERT,), joins=True),
        Apply(1, joins=True),
        Apply(0),
    )
    told = retell(result.scope, result.steps)
    assert rejections(result.scope, result.steps) == [(0, Operation.DELETE_ROW, Cause.ROW_DOES_NOT_EXIST)]
    assert ending(result.scope, told) == {"A": "row 1: v = 3", "B": "no row 1"}


@pytest.mark.parametrize(
    "function", ["NDB$MAX(x)", "NDB$MAX_DELETE_WIN(x)", "NDB$MAX_INS(x)", "NDB$MAX_DEL_WIN_INS(x)"]
)
def test_equal_values(function: str) -> None:
    """Both count the version up to the same number: neither applier takes the other's update."""
    result = found(function)
    assert result.steps == (Load(1), Commit(0, (UPDATE,)), Commit(1, (UPDATE,)), Apply(0), Apply(1))
    assert ending(result.scope, retell(result.scope, result.steps)) == {
        "A": "row 1: x = 2, v = 1",
        "B": "row 1: x = 2, v = 2",
    }
    causes = [(side, Operation.UPDATE_ROW, Cause.ROW_IN_CONFLICT) for side in (0, 1)]
    assert rejections(result.scope, result.steps) == causes


def test_a_clock_does_not_help_partial_updates() -> None:
    """Under type 8, the later value carries one column alone: the other cluster's is kept there, and rejected here."""
    result = found("NDB$MAX(x)", binlog_type=8, transactions=2, columns=2, values=Values.CLOCK)
    assert result.steps is not None
    told = retell(result.scope, result.steps)
    assert ending(result.scope, told) == {"A": "row 1: x = 3, v = 1, w = 2", "B": "row 1: x = 3, v = 0, w = 2"}
    full = found("NDB$MAX(x)", binlog_type=9, transactions=2, columns=2, values=Values.CLOCK)
    assert full.steps is not None
    # Not by updates: a delete is rejected where the row was updated, and that update where the row is deleted.
    assert {each.wishes[0].operation for each in full.steps if isinstance(each, Commit)} == {
        Operation.DELETE_ROW,
        Operation.UPDATE_ROW,
    }


@pytest.mark.parametrize("function", ["NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"])
def test_both_roles_keep_clusters_equal(function: str) -> None:
    """With a primary key, without DDL, no schedule of two transactions lets rows end different; the page has more."""
    result = found(function, transactions=2, columns=2)
    assert result.steps is None
    assert result.complete
    assert result.states > 100


def test_an_outage_parts_clusters() -> None:
    """An epoch that is applied again under NDB$EPOCH overwrites what B's users did since."""
    result = found("NDB$EPOCH()", transactions=1, outages=1)
    assert result.steps is not None
    assert any(isinstance(step, SetBack) for step in result.steps)
    assert found("NDB$EPOCH()", transactions=1).steps is None


@pytest.mark.parametrize("function", [None, "NDB$EPOCH()"])
def test_an_outage_loses_updates(function: str | None) -> None:
    """The insert that B applies again overwrites B's update, which it had not seen; alone, that update is not lost."""
    result = found(function, Goal.LOST, transactions=1, outages=1)
    assert result.steps == (Load(1), SetBack(1), Commit(1, (UPDATE,)), Apply(1))
    assert found(function, Goal.LOST, transactions=1).steps is None


def test_an_outage_undoes_a_delete() -> None:
    """The insert that B applies again makes the row that B's user deleted."""
    result = found("NDB$MAX(x)", Goal.LOST, transactions=1, outages=2)
    assert result.steps == (Load(1), SetBack(1), Commit(1, (DELETE,)), Apply(1))


def test_what_comes_again_and_is_rejected_loses_nothing() -> None:
    """The insert had its effect on B the first time; B's update, which has the greater value, stays."""
    scope = Scope("NDB$MAX(x)", transactions=1, outages=1)
    before = run(scope, [Load(1), SetBack(1), Commit(1, (UPDATE,))])
    _, events = taken(before, Apply(1), scope)
    assert [outcome.verdict for event in events for outcome in event.outcomes] == [Verdict.REJECTED]
    assert not any(loses_update(before, event) for event in events)


def test_what_stops_an_applier() -> None:
    """Type 6 logs deletes with the key alone, and NDB$MAX compares the value that the row had."""
    result = found("NDB$MAX(x)", Goal.STOP, binlog_type=6)
    assert result.steps == (Load(1), Commit(0, (DELETE,)), Apply(1))
    assert "stops: " in timeline(result.scope, retell(result.scope, result.steps))[-1].text
    assert found("NDB$MAX(x)", Goal.STOP, transactions=2).steps is None


def test_lost_updates() -> None:
    """The shortest way is the same for all functions: two updates that have not seen each other."""
    for function in ("NDB$EPOCH()", "NDB$OLD(x)", None):
        result = found(function, Goal.LOST)
        assert result.steps == (Load(1), Commit(0, (UPDATE,)), Commit(1, (UPDATE,)), Apply(0))


def test_seen_updates_are_not_lost() -> None:
    """An update is not lost to one whose cluster had applied it."""
    scope = Scope(None, transactions=2)
    steps = [Load(1), Commit(0, (UPDATE,)), Apply(1), Commit(1, (UPDATE,)), Apply(0)]
    assert search(Scope(None, transactions=1), Goal.LOST).steps is None
    assert not run(scope, steps).differs(scope)


def shortest(scope: Scope, depth: int) -> dict[Goal, int]:
    """Try every schedule of so many steps, one after the other, and return the length of the shortest to each goal."""
    level: list[BothStates] = [run(scope, [Load(rows)]) for rows in range(scope.rows + 1)]
    lengths: dict[Goal, int] = {}
    for length in range(1, depth + 1):
        level = [taken(state, step, scope)[0] for state in level for step in possible_steps(state, scope)]
        quiet = [state for state in level if not state.stopped() and state.is_quiet(scope)]
        at = {
            Goal.DIFFERENCE: any(state.differs(scope) for state in quiet),
            Goal.LOST: any(state.lost for state in level),
            Goal.STOP: any(state.stopped() for state in level),
            Goal.RETURNS: any(state.has_returned() for state in quiet),
            Goal.COUNTERS: any(state.lost != state.counted for state in quiet),
        }
        lengths |= {goal: length for goal in Goal if at[goal] and goal not in lengths}
        level = [state for state in level if not state.stopped()]
    return lengths


@pytest.mark.parametrize(
    ("function", "binlog_type"),
    [
        ("NDB$OLD(x)", 7),
        ("NDB$MAX(x)", 6),
        ("NDB$MAX_INS(x)", 7),
        ("NDB$EPOCH()", 2),
        ("NDB$EPOCH2_TRANS()", 7),
        (None, 3),
    ],
)
def test_merged_states_lose_no_schedule(function: str | None, binlog_type: int) -> None:
    """One search for all goals, and one for each, are as good as trying every schedule."""
    scope, depth = Scope(function, binlog_type, transactions=2), 4
    lengths = shortest(scope, depth)
    together = explore(scope, tuple(Goal)).reached
    assert {goal: len(steps) - 1 for goal, steps in together.items() if len(steps) - 1 <= depth} == lengths
    for goal in Goal:
        alone = search(scope, goal).steps
        assert (None if alone is None else len(alone)) == (len(together[goal]) if goal in together else None)


def test_a_search_gives_up_at_a_wide_level() -> None:
    """Where it was told to; it says so."""
    scope, goals = Scope("NDB$EPOCH()"), (Goal.DIFFERENCE, Goal.RETURNS, Goal.COUNTERS)
    whole, left = explore(scope, goals), explore(scope, goals, wide=40)
    assert (whole.complete, left.complete) == (True, False)
    assert 40 <= left.states < whole.states
    assert left.depth < whole.depth


def test_a_deleted_row_comes_back() -> None:
    """A rejects B's delete and sends the row again; a row that somebody inserted anew does not count."""
    result = found("NDB$EPOCH()", Goal.RETURNS)
    assert result.steps is not None
    assert [each.wishes for each in result.steps if isinstance(each, Commit)] == [(UPDATE,), (DELETE,)]
    scope = Scope(None, transactions=3)
    inserted_unseen = [Load(0), Commit(0, (INSERT,)), Commit(1, (INSERT,)), Commit(0, (DELETE,)), Apply(0)]
    assert not run(scope, inserted_unseen).gone
    seen = [Load(0), Commit(0, (INSERT,)), Apply(1), Commit(1, (DELETE,))]
    assert run(scope, seen).gone
    assert not run(scope, [*seen, Commit(1, (INSERT,))]).gone


def test_counters_that_lie() -> None:
    """NDB$MAX counts two deletes of one row as conflicts; under NDB$EPOCH that is told apart, and an insert is lost."""
    deletes = found("NDB$MAX(x)", Goal.COUNTERS)
    assert deletes.steps == (Load(1), Commit(0, (DELETE,)), Commit(1, (DELETE,)), Apply(0), Apply(1))
    end = run(deletes.scope, list(deletes.steps))
    assert (end.lost, end.counted) == (False, True)
    silent = found("NDB$EPOCH()", Goal.COUNTERS)
    assert silent.steps is not None
    end = run(silent.scope, list(silent.steps))
    assert (end.lost, end.counted) == (True, False)


def test_tasks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels that are split over tasks come to the same."""
    alone = found("NDB$MAX(x)")
    monkeypatch.setattr("conflict.whatif.diverging.search._WIDE", 1)
    monkeypatch.setattr("conflict.whatif.diverging.search._TOGETHER", 7)
    calls: list[int] = []

    def mapper(function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        calls.append(len(tasks))
        return [function(task) for task in tasks]

    split = search(Scope("NDB$MAX(x)"), Goal.DIFFERENCE, mapper)
    assert (split.steps, split.states, split.depth) == (alone.steps, alone.states, alone.depth)
    assert max(calls) > 1


def test_a_limit_ends_the_search() -> None:
    """It says so, and how far it came."""
    result = search(Scope("NDB$EPOCH2()"), Goal.DIFFERENCE, limit=50)
    assert (result.steps, result.complete, result.states) == (None, False, 50)
    assert result.depth < 5


def test_bounds_of_epochs() -> None:
    """Users commit in so many epochs of each cluster at most."""
    one = Scope("NDB$EPOCH()", epochs=1)
    state = run(one, [Load(1), Commit(0, (UPDATE,))])
    assert {step.joins for step in possible_steps(state, one) if isinstance(step, Commit) and step.side == 0} == {True}


@pytest.mark.parametrize(
    ("function", "binlog_type", "said"),
    [
        ("NDB$EPOCH2()", 3, "the servers refuse the table"),
        ("NDB$MAX(x)", 8, "--policy needs allows it"),
        ("NDB$EPOCH()", 1, "logs nothing"),
        ("NDB$OTHER()", 7, "unknown conflict resolution function"),
    ],
)
def test_scopes_that_are_refused(function: str, binlog_type: int, said: str) -> None:
    """As servers and the policy refuse them, before anything is searched."""
    with pytest.raises(ConfigurationError, match=said):
        Scope(function, binlog_type).check(DeploymentPolicy.MANUAL)
