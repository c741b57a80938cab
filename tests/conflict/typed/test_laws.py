"""Laws of typed Histories: what is written is read again, and binlogs tell the same story."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conflict
from conflict import History, Verdicts
from conflict.judge.case import Recording, RecordingKind
from conflict.judge.judge import CaseStatus, judge_recording
from conflict.typed.playing import LOAD_EPOCH
from tests.conflict.typed.random_typed import typed_histories

RULES = [
    ("NDB$OLD(x)", 7),
    ("NDB$MAX(x)", 7),
    ("NDB$MAX(x)", 6),
    ("NDB$MAX_DELETE_WIN(x)", 7),
    ("NDB$MAX_INS(x)", 3),
    ("NDB$MAX_DEL_WIN_INS(x)", 9),
    ("NDB$EPOCH()", 7),
    ("NDB$EPOCH()", 8),
    ("NDB$EPOCH(0)", 7),
    ("NDB$EPOCH_TRANS()", 7),
    ("NDB$EPOCH2()", 8),
    ("NDB$EPOCH2_TRANS()", 7),
    (None, 2),
    (None, 7),
]


@given(typed_histories(rewinds=True))
@settings(max_examples=15)
def test_what_is_written_is_read_again(history: History) -> None:
    """JSON lines and the repr are the History."""
    assert History.from_json_lines(history.to_json_lines()) == history
    assert eval(repr(history)) == history  # that is what it is for


@given(typed_histories(), st.sampled_from(RULES))
@settings(max_examples=15)
def test_the_order_of_what_can_know_nothing_of_each_other_does_not_matter(
    history: History, rules: tuple[str | None, int]
) -> None:
    """The same lanes with the second cluster first: other steps come first, and nothing else becomes of them."""
    function, binlog_type = rules
    first = history.resolve(function, binlog_type, primary="A")
    exchanged = History(start=history.start, B=history.lanes["B"], A=history.lanes["A"])
    second = exchanged.resolve(function, binlog_type, primary="A")
    assert {name: first.rows(name) for name in "AB"} == {name: second.rows(name) for name in "AB"}
    assert first.counters == second.counters
    assert sorted(map(str, first.judged)) == sorted(map(str, second.judged))


def told(verdicts: Verdicts) -> dict[str, list[tuple[Any, ...]]]:
    """Return what appliers decided, in order."""
    return {
        name: [
            (f"id={each.key[0]}", each.operation.upper() + "_ROW", each.verdict.name, each.cause.name)
            for each in verdicts.judged
            if each.applier == name
        ]
        for name in "AB"
    }


def found(result: conflict.Result) -> dict[str, list[tuple[Any, ...]]]:
    """Return the same of a result, without the rows at first."""
    outcomes = result.outcomes().sort_by([("applier", "ascending"), ("epoch", "ascending")]).to_pylist()
    return {
        name: [
            (each["key"], each["operation"], each["verdict"], each["cause"] or "NONE")
            for each in outcomes
            if each["applier"] == name and each["epoch"] != LOAD_EPOCH
        ]
        for name in "AB"
    }


def in_order(decided: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(each) for name, each in decided.items()}


@given(typed_histories(), st.sampled_from(RULES))
@settings(max_examples=5)
def test_binlogs_tell_the_same(history: History, rules: tuple[str | None, int]) -> None:
    """Rows, outcomes and counters are those that `conflict.resolve` finds in the binlogs."""
    function, binlog_type = rules
    verdicts = history.resolve(function, binlog_type)
    with tempfile.TemporaryDirectory() as folder:
        run_file = history.to_binlogs(Path(folder, "run"), function, binlog_type)
        out = Path(folder, "result")
        result = conflict.resolve(run_file, out=out, engine="reference", policy="needs", all_outcomes=True)
        for name in "AB":
            assert sorted(map(str, verdicts.rows(name))) == sorted(map(str, result.rows(name, "d.t").to_pylist()))
            moved = {counter: value for counter, value in result.counters[name].items() if value}
            assert dict(verdicts.counters[name]) == moved
        assert in_order(told(verdicts)) == in_order(found(result))
        assert verdicts.stops.keys() == {name for name, stop in result.run["stops"].items() if stop}


@given(typed_histories(rewinds=True), st.sampled_from(RULES))
@settings(max_examples=4)
def test_a_recording_is_judged_as_one_of_real_clusters(history: History, rules: tuple[str | None, int]) -> None:
    """`conformance` finds in a recording what is expected."""
    with tempfile.TemporaryDirectory() as folder:
        path = history.to_recording(Path(folder, "case"), *rules)
        verdict = judge_recording(Recording(path, RecordingKind.CONFLICT, "case"), "reference")
        assert (verdict.status, verdict.detail) == (CaseStatus.PASS, "")


@pytest.mark.parametrize("rules", RULES)
def test_a_recording_is_a_history_again(rules: tuple[str | None, int], tmp_path: Path) -> None:
    """Read again, a recording has the same steps, and comes to the same."""
    history = History(
        start=["insert 1 v=0 x=1", "insert 2 v=0 x=1"],
        A=["update 1 v=5 x=2; update 2 x=3", "apply 1", "insert 3 v=1"],
        B=["update 1 v=7 x=2", "delete 2", "apply 1", "apply 3"],
    )
    again = History.from_recording(history.to_recording(tmp_path / "case", *rules))
    first, second = history.resolve(*rules), again.resolve(*rules)
    assert {name: first.rows(name) for name in "AB"} == {name: second.rows(name) for name in "AB"}
    assert first.counters == second.counters


def test_a_folder_that_is_there_is_not_touched(tmp_path: Path) -> None:
    """Files go into a new folder."""
    history = History(A=["insert 1"], B=["apply 1"])
    (tmp_path / "mine").mkdir()
    for write in (history.to_binlogs, history.to_recording):
        with pytest.raises(conflict.ConfigurationError, match="mine is there already; name another folder"):
            write(tmp_path / "mine")
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]
