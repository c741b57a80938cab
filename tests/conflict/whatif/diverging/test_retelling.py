"""A schedule as a History and as a recording: both engines make the same of it as the search."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.judge.case import Recording, RecordingKind
from conflict.judge.judge import CaseStatus, judge_recording
from conflict.whatif.diverging.recording import write_recording, write_recordings
from conflict.whatif.diverging.retelling import history_of, retell
from conflict.whatif.diverging.scope import NAMES, Goal, Scope, Values
from conflict.whatif.diverging.search import search
from conflict.whatif.diverging.state import BothStates, cells
from tests.conflict.engine.columnar.both_engines import by_kernels, by_reference
from tests.conflict.whatif.diverging.schedules import walk
from tests.corpora import RECORDINGS

PAGE = Path(__file__).parents[4] / "docs" / "zoo.md"
CELLS = [("NDB$MAX(x)", number) for number in (2, 3, 6, 7, 8, 9)] + [
    ("NDB$EPOCH()", number) for number in (2, 3, 6, 7, 8, 9)
]


def configuration(scope: Scope) -> Run:
    """The run that a scope describes."""
    clusters = tuple(
        ClusterConfiguration(each.name, (LoggingServer(each.server_id),), each.role) for each in scope.clusters
    )
    return Run(Configuration(clusters, scope.schema, tuple(scope.replication_rows)))


def rows_of(state: BothStates, number: int, scope: Scope) -> list[tuple[int | None, ...]]:
    """The rows of a cluster at the end of a search."""
    return sorted(
        (scope.keys.index(key) + 1, *(None if value < 0 else value for value in cells(row, scope) or ()))
        for (_, key), row in state.sides[number].rows.items()
    )


def steps_on_the_page(function: str, binlog_type: int) -> int:
    """The steps of a cell of the page's table; of values, those of a version."""
    for line in PAGE.read_text("utf-8").splitlines():
        _, row, types, steps, *_ = [cell.strip() for cell in line.split("|")] + [""] * 3
        name, _, values = row.partition(", ")
        found = re.match(r"\d+", steps)
        if name == f"`{function}`" and str(binlog_type) in types.split(",") and values != "clock" and found:
            return int(found[0])
    raise AssertionError(function)


@pytest.mark.parametrize(("function", "binlog_type"), CELLS)
def test_both_engines_see_the_divergence(function: str, binlog_type: int) -> None:
    """Of every format of two functions: the rows that they resolve are those that the search ended with."""
    result = search(Scope(function, binlog_type), Goal.DIFFERENCE)
    assert result.steps is not None
    assert len(result.steps) - 1 == steps_on_the_page(function, binlog_type)
    told = retell(result.scope, result.steps)
    history, run = history_of(result.scope, told), configuration(result.scope)
    reference = by_reference(history, run)
    assert reference == by_kernels(history, run, in_process, buckets=1, epochs_per_segment=100)
    ends = [rows_of(told[-1].state, number, result.scope) for number in (0, 1)]
    assert ends[0] != ends[1]
    assert [reference[f"rows {name} t"] for name in "AB"] == ends


FUNCTIONS = [
    ("NDB$OLD(x)", 7),
    ("NDB$MAX(x)", 6),
    ("NDB$MAX_DELETE_WIN(x)", 3),
    ("NDB$MAX_INS(x)", 9),
    ("NDB$MAX_DEL_WIN_INS(x)", 8),
    ("NDB$EPOCH()", 2),
    ("NDB$EPOCH_TRANS()", 7),
    ("NDB$EPOCH2()", 6),
    ("NDB$EPOCH2_TRANS()", 9),
    (None, 2),
]


def judged(folder: Path, engine: str, *, use_steps: bool) -> tuple[CaseStatus, str]:
    """What an engine makes of a recording."""
    verdict = judge_recording(Recording(folder, RecordingKind.CONFLICT, folder.name), engine, use_steps=use_steps)
    return verdict.status, verdict.detail


@pytest.mark.parametrize(("function", "binlog_type"), FUNCTIONS)
def test_any_schedule_is_a_recording(function: str | None, binlog_type: int, tmp_path: Path) -> None:
    """The reference engine finds from its binlogs what the search did, with and without the steps."""
    chance = Random(binlog_type)
    for number in range(3):
        values = chance.choice((Values.VERSION, Values.CLOCK))
        scope = Scope(function, binlog_type, 4, rows=2, columns=2, values=values)
        folder = tmp_path / str(number)
        folder.mkdir()
        told = retell(scope, walk(scope, chance, load=number))
        write_recording(scope, told, "a random schedule", folder)
        expected = json.loads((folder / "expected.json").read_text())
        ends = [[list(row) for row in rows_of(told[-1].state, side, scope)] for side in (0, 1)]
        assert [expected[name]["tables"]["t"]["rows"] for name in "AB"] == ends
        for use_steps in (True, False):
            assert judged(folder, "reference", use_steps=use_steps) == (CaseStatus.PASS, "")


@pytest.mark.parametrize(("function", "binlog_type"), FUNCTIONS)
def test_outages_are_in_recordings(function: str | None, binlog_type: int, tmp_path: Path) -> None:
    """Steps leave nothing open of an outage; without them, it is tried where replicas were set back."""
    assert_outages_agree(function, binlog_type, 2, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("function", "binlog_type"), FUNCTIONS)
def test_more_outages_are_in_recordings(function: str | None, binlog_type: int, tmp_path: Path) -> None:
    """The same of more schedules."""
    assert_outages_agree(function, binlog_type, 40, tmp_path)


def assert_outages_agree(function: str | None, binlog_type: int, number: int, folder: Path) -> None:
    """Let both engines judge so many random schedules with one or two outages."""
    for seed in range(number):
        chance = Random(seed * 10 + binlog_type)
        values = chance.choice((Values.VERSION, Values.CLOCK))
        scope = Scope(function, binlog_type, 4, rows=2, columns=2, outages=1 + seed % 2, values=values)
        case = folder / str(seed)
        case.mkdir()
        write_recording(scope, retell(scope, walk(scope, chance, load=seed % 3)), "a random schedule", case)
        for engine in ("reference", "local"):
            assert judged(case, engine, use_steps=True) == (CaseStatus.PASS, ""), seed
            assert judged(case, engine, use_steps=False) == (CaseStatus.PASS, ""), seed


def test_found_schedules_as_recordings(tmp_path: Path) -> None:
    """One folder for each goal that was reached; the columnar engine agrees too."""
    results = [search(Scope("NDB$EPOCH()"), goal) for goal in Goal]
    write_recordings(results, tmp_path / "out")
    names = ["counters", "difference", "lost", "returns"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    for name in names:
        assert judged(tmp_path / "out" / name, "local", use_steps=True) == (CaseStatus.PASS, "")


def recorded(case: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Steps and expected contents of a recording of real clusters."""
    folder = RECORDINGS / "conflict" / case
    scenario = json.loads((folder / "scenario.json").read_text())
    return scenario["steps"], json.loads((folder / "expected.json").read_text())


def statements(steps: list[dict[str, Any]], key: int) -> list[tuple[str, str]]:
    """Who did what to a row of table t1 after it was loaded, and when appliers had applied everything."""
    found: list[tuple[str, str]] = []
    for step in steps[1:]:
        texts = (text for text in step.get("sql", ()) if f"WHERE k={key}" in text or f"VALUES ({key}," in text)
        found += [(step["on"], text.split()[0]) for text in texts]
        found += [(step["applier"], "wait")] if step.get("action") == "wait" else []
    return found


def row(expected: dict[str, Any], name: str, key: int) -> list[Any] | None:
    """A row of table t1 at the end."""
    return next((each for each in expected[name]["tables"]["t1"]["rows"] if each[0] == key), None)


def test_equal_values_as_recorded() -> None:
    """Row 3 of a recording takes the four steps of the shortest schedule of NDB$MAX, and ends as it does."""
    steps, expected = recorded("max/upd_upd_a_first_type7")
    assert statements(steps, 3) == [("A", "UPDATE"), ("B", "UPDATE"), ("A", "wait"), ("B", "wait")]
    here, there = row(expected, "A", 3), row(expected, "B", 3)
    assert here is not None
    assert there is not None
    assert here[1] == there[1] == 90  # x
    assert here[2:] != there[2:]
    result = search(Scope("NDB$MAX(x)"), Goal.DIFFERENCE)
    assert result.steps is not None
    told = retell(result.scope, result.steps)
    assert [(NAMES[each.step.side], type(each.step).__name__) for each in told[1:]] == [  # type: ignore[union-attr]
        ("A", "Commit"),
        ("B", "Commit"),
        ("A", "Apply"),
        ("B", "Apply"),
    ]
    (_, x, v), (_, other_x, other_v) = (rows_of(told[-1].state, side, result.scope)[0] for side in (0, 1))
    assert x == other_x
    assert v != other_v


def test_delete_delete_as_recorded() -> None:
    """Row 2 of a recording: both delete it, B inserts it anew, A's delete removes it on B; A keeps B's new row."""
    steps, expected = recorded("epoch/delete_delete_insert_type8")
    commits = [("A", "DELETE"), ("B", "DELETE"), ("B", "INSERT")]
    assert [each for each in statements(steps, 2) if each[1] != "wait"] == commits
    assert row(expected, "A", 2) is not None
    assert row(expected, "B", 2) is None
    result = search(Scope("NDB$EPOCH()", 8), Goal.DIFFERENCE)
    assert result.steps is not None
    told = retell(result.scope, result.steps)
    changes = [
        (NAMES[event.side], event.item.changes[0].operation.name)
        for each in told[1:]
        for event in each.events
        if hasattr(event.item, "changes")
    ]
    assert changes == [("A", "DELETE_ROW"), ("B", "DELETE_ROW"), ("B", "WRITE_ROW")]
    assert [len(each.rows) for each in told[-1].state.sides] == [1, 0]
    assert expected["A"]["status_difference"]["Ndb_conflict_epoch_delete_delete_count"] == 2  # of rows 1 and 2
