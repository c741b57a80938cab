"""Steps of a recording to hints."""

from typing import Any

from conflict.history.scheduling.hints import hints_of_steps
from conflict.history.scheduling.schedule import Hint
from conflict.history.scheduling.summaries import Summary
from conflict.rules.replication_table import Role

Steps = list[dict[str, Any]]


def commit(side: str, epoch: int, affected: int = 1) -> dict[str, Any]:
    """Return a transaction of one statement."""
    return {"on": side, "epoch": epoch, "result": [{"affected": affected}]}


def action(name: str, applier: str | None = None, **more: object) -> dict[str, Any]:
    """Return a step that concerns one applier, or both."""
    return {"action": name, **({} if applier is None else {"applier": applier}), **more}


def hints(steps: Steps, a: tuple[int, ...] = (10, 20, 30), b: tuple[int, ...] = (100,)) -> dict[int, Hint]:
    """Return the hints of cluster A's applier; each epoch holds one transaction."""
    summaries = {
        "A": [Summary(number, (0,), ()) for number in a],
        "B": [Summary(number, (0,), ()) for number in b],
    }
    (found,) = hints_of_steps(steps, summaries)["A"]
    return found


def test_no_steps():
    """Without steps nothing is known."""
    assert hints([]) == {100: Hint((0, -1), None)}


def test_both_sides_get_hints():
    """Each cluster's applier applies the other's epochs."""
    summaries = {"A": [Summary(10, (0,), ())], "B": [Summary(100, (0,), ())]}
    found = hints_of_steps([commit("A", 10), commit("B", 100)], summaries)
    assert found == {"A": [{100: Hint((10, 0), None)}], "B": [{10: Hint((0, -1), None)}]}


def test_three_clusters_get_none():
    """A step does not say for which of the others it waits."""
    summaries = {name: [Summary(10, (0,), ())] for name in "ABC"}
    assert hints_of_steps([commit("A", 10), action("quiesce")], summaries) == {}


def test_not_before_it_was_made():
    """Transactions that ran before the epoch was made came before it was applied."""
    assert hints([commit("A", 10), commit("B", 100), commit("A", 20)]) == {100: Hint((10, 0), None)}


def test_a_stopped_applier_applies_nothing_until_it_starts():
    """What ran while it was stopped came first."""
    steps = [
        commit("A", 10),
        action("stop", "A"),
        commit("B", 100),
        commit("A", 20),
        action("start", "A"),
        commit("A", 30),
    ]
    assert hints(steps) == {100: Hint((20, 0), None, run=1)}


def test_never_started_again():
    """An epoch made after the last stop was not applied."""
    assert hints([action("stop", "A"), commit("B", 100)]) == {100: Hint(applied=False)}


def test_made_before_the_stop():
    """An epoch made before an applier stops may have been applied by then."""
    assert hints([commit("A", 10), commit("B", 100), action("stop", "A")]) == {100: Hint((10, 0), None)}


def test_the_other_applier_does_not_matter():
    """A stop of B's applier is no hint on A's."""
    assert hints([action("stop", "B"), commit("A", 10), commit("B", 100)]) == {100: Hint((10, 0), None)}


def test_a_step_for_both():
    """A stop without an applier stops both."""
    assert hints([action("stop"), commit("B", 100)]) == {100: Hint(applied=False)}


def test_wait():
    """When a wait ends, everything has been applied."""
    steps = [commit("A", 10), commit("B", 100), commit("A", 20), action("wait", "A"), commit("A", 30)]
    assert hints(steps) == {100: Hint((10, 0), (20, 0))}


def test_wait_before_any_transaction():
    """The bound is the start."""
    assert hints([commit("B", 100), action("wait", "A"), commit("A", 10)]) == {100: Hint((0, -1), (0, -1))}


def test_quiesce():
    """Quiescing waits for both appliers."""
    assert hints([commit("B", 100), commit("A", 10), action("quiesce")]) == {100: Hint((0, -1), (10, 0))}


def test_a_wait_that_timed_out():
    """A wait with a result ended before everything was applied."""
    steps = [commit("B", 100), action("wait", "A", result="timeout")]
    assert hints(steps) == {100: Hint((0, -1), None)}


def test_a_wait_of_a_stopped_applier():
    """It is no hint."""
    steps = [commit("B", 100), action("stop", "A"), action("wait", "A")]
    assert hints(steps) == {100: Hint((0, -1), None)}


def test_a_wait_before_the_epoch():
    """Only a wait after the epoch was made bounds it."""
    assert hints([action("wait", "A"), commit("A", 10), commit("B", 100)]) == {100: Hint((10, 0), None)}


def test_stop_start_wait():
    """Taken between start and wait, with one transaction in between."""
    steps = [
        action("stop", "A"),
        commit("B", 100),
        commit("A", 10),
        action("start", "A"),
        commit("A", 20),
        action("wait", "A"),
        commit("A", 30),
    ]
    assert hints(steps) == {100: Hint((10, 0), (20, 0), run=1)}


def test_steps_that_log_nothing():
    """Transactions that were rolled back or changed nothing are in no binlog."""
    nothing = [
        {"on": "A", "epoch": 10, "rolled_back": True, "result": [{"affected": 1}]},
        commit("A", 20, affected=0),
        {"on": "A", "epoch": 30, "result": [None, "error"]},
        {"on": "A"},
    ]
    assert hints([*nothing, commit("B", 100)]) == {100: Hint((0, -1), None)}


def test_several_transactions_of_an_epoch():
    """They are the epoch's groups in the order of the steps; later ones share the last group."""
    summaries = {"A": [Summary(10, (0, 2), ())], "B": [Summary(100, (0,), ()), Summary(101, (0,), ())]}
    steps = [
        commit("A", 10),
        commit("B", 100),
        commit("A", 10),
        commit("A", 10),
        commit("B", 101),
    ]
    assert hints_of_steps(steps, summaries)["A"] == [{100: Hint((10, 0), None), 101: Hint((10, 2), None)}]


def test_an_epoch_that_no_step_made():
    """A refresh's epoch is as old as the last step's before it."""
    steps = [commit("B", 100), commit("A", 10), commit("B", 102)]
    assert hints(steps, b=(100, 101, 102)) == {
        100: Hint((0, -1), None),
        101: Hint((0, -1), None),
        102: Hint((10, 0), None),
    }


def test_an_epoch_that_is_not_in_the_binlog():
    """A transaction whose epoch was lost gives no bound."""
    assert hints([commit("A", 15), commit("B", 100)]) == {100: Hint((0, -1), None)}


def test_rewind():
    """A rewind stops the applier; after the next start it applies every epoch again, in a run of its own."""
    steps = [
        commit("B", 100),
        action("wait", "A"),
        commit("A", 10),
        action("rewind", "A"),
        commit("A", 20),
        action("start", "A"),
        action("wait", "A"),
        commit("A", 30),
    ]
    summaries = {"A": [Summary(number, (0,), ()) for number in (10, 20, 30)], "B": [Summary(100, (0,), ())]}
    found = hints_of_steps(steps, summaries)
    assert found["A"] == [{100: Hint((0, -1), (0, -1))}, {100: Hint((20, 0), (20, 0), run=1)}]
    assert len(found["B"]) == 1


def test_a_rewind_without_a_start():
    """Nothing is applied again, and what was made after it is not applied at all."""
    steps = [commit("B", 100), action("rewind", "A"), commit("B", 101)]
    summaries = {"A": [Summary(10, (0,), ())], "B": [Summary(number, (0,), ()) for number in (100, 101)]}
    assert hints_of_steps(steps, summaries)["A"] == [
        {100: Hint((0, -1)), 101: Hint(applied=False)},
        {100: Hint(applied=False), 101: Hint(applied=False)},
    ]


def test_a_stop_names_the_last_epoch():
    """What came up to it was applied before the stop, and all else after the next start."""
    steps = [
        commit("B", 100),
        commit("B", 101),
        commit("A", 10),
        action("stop", "A", epoch=100),
        commit("A", 20),
        action("start", "A"),
        commit("A", 30),
    ]
    assert hints(steps, b=(100, 101)) == {100: Hint((0, -1), (10, 0)), 101: Hint((20, 0), run=1)}


def test_a_stop_before_any_epoch():
    """Epoch 0 is none: an applier that is not started again applied nothing."""
    assert hints([commit("B", 100), action("stop", "A", epoch=0)]) == {100: Hint(applied=False)}


def test_a_role_holds_from_the_next_start():
    """Roles change while the applier is stopped; the last one before it starts again counts."""
    steps = [
        commit("B", 100),
        action("wait", "A"),
        action("stop", "A"),
        action("role", "A", role="NONE"),
        action("role", "A", role="SECONDARY"),
        action("role", "B", role="PRIMARY"),
        commit("B", 101),
        action("start", "A"),
    ]
    found = hints(steps, b=(100, 101))
    assert [found[epoch].role for epoch in (100, 101)] == [None, Role.SECONDARY]
