"""The resolvers that come with the program: histories worked out by hand, and what `diverge` says of each."""

from __future__ import annotations

import attrs
import pytest

import conflict
from conflict.resolvers.examples.sum_of_deltas import sum_of_deltas
from conflict.resolvers.user_policies import SHIPPED, load_functions
from conflict.rules.functions import FUNCTIONS
from conflict.rules.own_rule import Read
from conflict.whatif.diverging.retelling import ending, retell
from conflict.whatif.diverging.scope import Goal, Scope
from conflict.whatif.diverging.search import search
from conflict.whatif.diverging.steps import Apply, Commit, Load, RowWish, Step
from ndb_formats.events.rows_event import Operation

A, B = 0, 1
INSERT, UPDATE, DELETE = (
    RowWish(0, Operation.WRITE_ROW),
    RowWish(0, Operation.UPDATE_ROW, 0),
    RowWish(0, Operation.DELETE_ROW),
)


def scope(name: str, *, everything: bool = False, **bounds: int) -> Scope:
    """
    Return a scope of a resolver; `everything`: it reads all that the state has, whatever it declares.

    Epochs apart: if they matter, what tells of them has to be applied, too, which takes more steps.
    """
    spec = load_functions([name])[-1]
    if everything and spec.own is not None:
        reads = spec.own.reads | {Read.VALUES, Read.TIMES, Read.SITES}
        spec = attrs.evolve(spec, own=attrs.evolve(spec.own, reads=reads))
    return Scope(f"{name}()", 7, functions=(*FUNCTIONS, spec), **bounds)


def ends(name: str, *steps: Step, rows: int = 1) -> tuple[str, str]:
    """Return row 1 on both clusters after some steps; it is loaded with v = 0, and transaction n sets v = n."""
    made = scope(name, rows=rows)
    found = ending(made, retell(made, [Load(rows), *steps]))
    return found["A"], found["B"]


CROSSING = Commit(A, (UPDATE,)), Commit(B, (UPDATE,)), Apply(A), Apply(B)
CASES = {
    "last_writer": [
        (CROSSING, ("row 1: v = 2", "row 1: v = 2")),  # B's update came last
        ((Commit(B, (UPDATE,)), Commit(A, (UPDATE,)), Apply(A), Apply(B)), ("row 1: v = 2", "row 1: v = 2")),  # A's did
        (
            (Commit(A, (DELETE,)), Commit(B, (UPDATE,)), Apply(A), Apply(B)),
            ("no row 1", "row 1: v = 2"),
        ),  # a lost delete
        ((Commit(A, (UPDATE,)), Commit(B, (DELETE,)), Apply(A), Apply(B)), ("no row 1", "no row 1")),
    ],
    "first_writer": [
        (CROSSING, ("row 1: v = 1", "row 1: v = 1")),
        ((Commit(B, (UPDATE,)), Commit(A, (UPDATE,)), Apply(A), Apply(B)), ("row 1: v = 1", "row 1: v = 1")),
        # B's second change has seen A's, and A does not know it yet.
        (
            (Commit(A, (UPDATE,)), Apply(B), Commit(B, (UPDATE,), joins=True), Apply(A)),
            ("row 1: v = 1", "row 1: v = 2"),
        ),
    ],
    "sum_of_deltas": [
        (CROSSING, ("row 1: v = 3", "row 1: v = 3")),  # 0 + 1 + 2
        # Three updates: to 1 and then 2 on A, to 3 on B, each from 0: 2 + 3.
        (
            (Commit(A, (UPDATE,)), Commit(A, (UPDATE,)), Commit(B, (UPDATE,)), Apply(A), Apply(B), Apply(B)),
            ("row 1: v = 5", "row 1: v = 5"),
        ),
        ((Commit(A, (DELETE,)), Commit(B, (UPDATE,)), Apply(A), Apply(B)), ("no row 1", "no row 1")),
    ],
    "certification": [
        (
            (*CROSSING, Apply(A), Apply(B)),
            ("row 1: v = 1", "row 1: v = 1"),
        ),
        # B's delete came after A's update: it is taken back by a refresh.
        (
            (Commit(A, (UPDATE,)), Commit(B, (DELETE,)), Apply(A), Apply(B), Apply(B)),
            ("row 1: v = 1", "row 1: v = 1"),
        ),
    ],
    "pgactive": [
        (CROSSING, ("row 1: v = 2", "row 1: v = 2")),
        ((Commit(A, (DELETE,)), Commit(B, (UPDATE,)), Apply(A), Apply(B)), ("no row 1", "no row 1")),  # a delete counts
        ((Commit(A, (DELETE,)), Commit(B, (DELETE,)), Apply(A), Apply(B)), ("no row 1", "no row 1")),
    ],
    "spock": [
        (CROSSING, ("row 1: v = 2", "row 1: v = 2")),
        ((Commit(A, (DELETE,)), Commit(B, (UPDATE,)), Apply(A), Apply(B)), ("no row 1", "row 1: v = 2")),
        ((Commit(A, (DELETE,)), Commit(B, (DELETE,)), Apply(A), Apply(B)), ("no row 1", "no row 1")),
    ],
}


@pytest.mark.parametrize(("name", "steps", "rows"), [(name, *each) for name, own in CASES.items() for each in own])
def test_by_hand(name: str, steps: tuple[Step, ...], rows: tuple[str, str]) -> None:
    """A few changes that cross, and how the row ends on A and B."""
    assert ends(name, *steps) == rows


def test_an_insert_that_meets_a_row() -> None:
    """Both clusters insert: the later one stays, as an update; a counter adds them up."""
    steps = Commit(A, (INSERT,)), Commit(B, (INSERT,)), Apply(A), Apply(B)
    found = {}
    for name in ("pgactive", "spock", "last_writer", "sum_of_deltas"):
        made = scope(name)
        found[name] = set(ending(made, retell(made, [Load(0), *steps])).values())
    later = {"row 1: v = 2"}
    assert found == {"pgactive": later, "spock": later, "last_writer": later, "sum_of_deltas": {"row 1: v = 3"}}


def test_a_transaction_fails_whole() -> None:
    """Of a transaction on two rows, the row that nobody else changed is taken back with the other."""
    both = UPDATE, RowWish(1, Operation.UPDATE_ROW, 0)
    steps = Commit(A, (UPDATE,)), Commit(B, both), Apply(A), Apply(B), Apply(B)
    made = scope("certification", rows=2)
    state = retell(made, [Load(2), *steps])
    assert set(ending(made, state).values()) == {"row 1: v = 1\nrow 2: v = 0"}


# Steps of the shortest schedule up to 2 transactions on 1 row after which rows differ; 0 where there is none.
DIVERGES = {"last_writer": 4, "first_writer": 4, "sum_of_deltas": 0, "certification": 0, "pgactive": 0, "spock": 4}


@pytest.mark.parametrize("name", SHIPPED)
def test_what_diverge_says(name: str) -> None:
    """Whether two transactions can part the clusters; no more states than declared are told apart, with one answer."""
    found = search(scope(name, transactions=2), Goal.DIFFERENCE)
    assert (0 if found.steps is None else len(found.steps) - 1) == DIVERGES[name]
    every = search(scope(name, transactions=2, everything=True), Goal.DIFFERENCE)
    assert len(found.steps or ()) == len(every.steps or ())
    assert found.states <= every.states


@pytest.mark.parametrize("name", ["last_writer", "sum_of_deltas", "certification", "pgactive"])
@pytest.mark.parametrize("goal", [Goal.DIFFERENCE, Goal.LOST])
def test_states_that_are_the_same(name: str, goal: Goal) -> None:
    """What a resolver does not read may be left out: the shortest schedules are as long, with two rows or an outage."""
    for bounds in ({"rows": 2, "transactions": 1}, {"outages": 1, "transactions": 1}):
        found, every = (search(scope(name, everything=each, **bounds), goal) for each in (False, True))
        assert len(found.steps or ()) == len(every.steps or ())


def test_what_is_withheld() -> None:
    """A resolver gets nothing that it does not declare."""
    spec = load_functions(["docs.examples.highest:highest"])[-1]
    blind = attrs.evolve(spec, own=attrs.evolve(spec.own, reads=frozenset()))
    made = Scope("highest()", 7, transactions=1, functions=(*FUNCTIONS, blind))
    with pytest.raises(Exception, match="function highest, update of a row that exists: it failed with KeyError: 'v'"):
        retell(made, [Load(1), Commit(A, (UPDATE,)), Apply(B)])


def test_a_typed_history() -> None:
    """A resolver stands where a function does, by name or as a value; a merge is told with its values."""
    history = conflict.History(start=["insert 1 v=0"], A=["update 1 v=5", "apply 1"], B=["update 1 v=7", "apply 1"])
    for rule in (sum_of_deltas, "sum_of_deltas"):
        said = " ".join(repr(history.resolve(rule)).split())
        assert "The clusters hold the same rows; no change is lost." in said
        assert "end row 1: v=12" in said
        assert "v = 12" in said


@pytest.mark.parametrize("name", ["last_writer", "first_writer", "certification", "pgactive", "spock"])
def test_the_second_change_of_one_site_in_an_epoch_is_later(name: str) -> None:
    """Both have the time of their epoch; they come in order, and both are applied."""
    history = conflict.History(start=["insert 1 v=0"], A=["1: update 1 v=1", "1: update 1 v=2"], B=["apply 1"])
    found = history.resolve(name)
    assert found.rows("B") == [{"id": 1, "v": 2, "x": None}]
    assert not found.lost
