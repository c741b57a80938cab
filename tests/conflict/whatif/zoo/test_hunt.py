"""The searches of a zoo as tasks: with wide levels, stopped and gone on with, killed, in any processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import conflict
from conflict.config.arguments import no_progress
from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.tasks import Progress, in_process, process_runner
from conflict.whatif.diverging.scope import Goal, Values
from conflict.whatif.diverging.search import search
from conflict.whatif.zoo.hunt import SEARCHES, Caught, hunt
from conflict.whatif.zoo.pairs import Bounds, Pair, all_functions, pairs_of

GOALS = tuple(Goal)
BOUNDS = Bounds(2, 1, 1, 0)


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    """Three functions, of which one is refused."""
    functions = ["NDB$MAX(x)", "NDB$EPOCH()", "NDB$OLD(x)", "none"]
    return list(pairs_of(functions, (8,), [Values.VERSION], BOUNDS))


@pytest.fixture(scope="module")
def whole(pairs: list[Pair]) -> list[Caught]:
    """What is found of them."""
    return hunt(pairs, GOALS, None, in_process, no_progress)


def schedules(found: Sequence[Caught]) -> list[tuple[str, dict[Goal, Any]]]:
    """What was found, without figures."""
    return [(each.pair.name, dict(each.schedules)) for each in found]


class Counting:
    """Runs tasks here as if on many cores, counts them, and stops after so many."""

    cores = 1000

    def __init__(self, most: int | None = None) -> None:
        self.done, self.most = 0, most

    def __call__(self, function: Callable[[Any], Any], tasks: Sequence[Any], progress: Progress) -> list[Any]:
        """Run the tasks."""
        found: list[Any] = []
        progress(0, len(tasks))
        for task in tasks:
            if self.done == self.most:
                raise KeyboardInterrupt
            found.append(function(task))
            self.done += 1
        return found


def test_the_order_is_that_of_the_pairs(pairs: list[Pair], whole: list[Caught]) -> None:
    """Whatever ran where; what is refused is left out."""
    assert [each.pair.name for each in whole] == [pair.name for pair in pairs if pair.refusal is None]
    assert len(whole) == len(pairs) - 1
    again = hunt(pairs, GOALS, None, process_runner(2, alone=0), no_progress)
    assert schedules(again) == schedules(whole)
    assert [each.states for each in again] == [each.states for each in whole]


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels of 15 states are spread over tasks of 10."""
    monkeypatch.setattr("conflict.whatif.zoo.hunt.WIDE", 15)
    monkeypatch.setattr("conflict.whatif.diverging.search._WIDE", 15)
    monkeypatch.setattr("conflict.whatif.diverging.search._TOGETHER", 10)


@pytest.mark.usefixtures("wide")
def test_wide_levels_are_spread_over_tasks(pairs: list[Pair], whole: list[Caught]) -> None:
    """And nothing else is found, nor more states seen."""
    runner = Counting()
    parts = hunt(pairs, GOALS, None, runner, no_progress)
    assert schedules(parts) == schedules(whole)
    assert [each.states for each in parts] == [each.states for each in whole]
    assert runner.done > 2 * len(whole)


@pytest.mark.usefixtures("wide")
def test_what_is_finished_is_not_searched_again(pairs: list[Pair], tmp_path: Path) -> None:
    """One that was stopped in the last search makes this one alone."""
    alone, folder = Counting(), Folder(str(tmp_path / "zoo"))
    expected = hunt(pairs, GOALS, None, alone, no_progress)
    with pytest.raises(KeyboardInterrupt):
        hunt(pairs, GOALS, folder, Counting(alone.done - 1), no_progress)
    rest = Counting()
    assert schedules(hunt(pairs, GOALS, folder, rest, no_progress)) == schedules(expected)
    assert 0 < rest.done < alone.done / 2
    nothing = Counting()
    assert schedules(hunt(pairs, GOALS, folder, nothing, no_progress)) == schedules(expected)
    assert nothing.done == 0


@pytest.mark.parametrize(
    ("functions", "formats", "bounds"),
    [(all_functions(), (8,), Bounds(2, 1, 1, 0)), (("NDB$MAX(x)",), (7,), Bounds(2, 1, 1, 1))],
)
def test_it_finds_what_an_exhaustive_search_of_each_anomaly_finds(
    functions: Sequence[str], formats: Sequence[int], bounds: Bounds
) -> None:
    """The same lengths, and nothing where there is nothing."""
    pairs = [each for each in pairs_of(functions, formats, [Values.VERSION], bounds) if each.refusal is None]
    for caught in hunt(pairs, GOALS, None, in_process, no_progress):
        for goal in GOALS:
            alone, found = search(caught.pair.scope, goal).steps, caught.schedules.get(goal)
            assert (alone and len(alone)) == (found and len(found))


def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The same cells, and what is finished is in the folder; without one, too."""
    assert spark.version
    asked: dict[str, Any] = {"function": "NDB$MAX(x)", "formats": "7,9", "values": "version", "transactions": 2}
    here = conflict.zoo(**asked, workers=1)
    for out in (tmp_path / "zoo", None):
        there = conflict.zoo(**asked, engine="spark", out=out)
        assert [cell.document() for cell in there] == [cell.document() for cell in here]
    assert len(list((tmp_path / "zoo" / SEARCHES).glob("*.json"))) == 2
    again = conflict.zoo(**asked, out=tmp_path / "zoo", workers=1)
    assert [cell.document() for cell in again] == [cell.document() for cell in here]


def test_a_damaged_file_is_named(pairs: list[Pair], tmp_path: Path) -> None:
    """One without content is searched again; another one is not taken for what was found."""
    folder = Folder(str(tmp_path / "zoo"))
    hunt(pairs, GOALS, folder, in_process, no_progress)
    file = min((tmp_path / "zoo" / SEARCHES).iterdir())
    file.write_text("")
    again = Counting()
    hunt(pairs, GOALS, folder, again, no_progress)
    assert again.done == 1
    file.write_text("{")
    with pytest.raises(HistoryError, match=f"{file.name} is damaged; delete this file"):
        hunt(pairs, GOALS, folder, in_process, no_progress)


def test_a_killed_zoo_goes_on(tmp_path: Path) -> None:
    """As if it had not been killed, and without the searches that were finished."""
    asked = ("--function", "NDB$MAX(x)", "--function", "NDB$EPOCH2()", "--formats", "7", "--transactions", "2")
    command = [sys.executable, "-m", "conflict", "zoo", *asked, "--workers", "1", "--out", str(tmp_path / "zoo")]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while not list((tmp_path / "zoo" / SEARCHES).glob("max_*.json")) and time.monotonic() < end:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    finished = {path: path.stat().st_mtime_ns for path in (tmp_path / "zoo" / SEARCHES).glob("*.json")}
    assert finished
    named = {"function": ["NDB$MAX(x)", "NDB$EPOCH2()"], "formats": 7, "transactions": 2, "workers": 1}
    zoo = conflict.zoo(**named, out=tmp_path / "zoo")  # type: ignore[arg-type]
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    whole = conflict.zoo(**named)  # type: ignore[arg-type]
    assert [cell.document() for cell in zoo] == [cell.document() for cell in whole]
    assert json.loads((tmp_path / "zoo" / "zoo.json").read_text())["states"] == whole.states
