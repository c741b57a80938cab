"""The example of a report, and the part of the rows that differ."""

import copy
from pathlib import Path
from typing import Any

import attrs
import pytest

import conflict
from conflict.reporting.example import example_of
from conflict.reporting.resolve_part import resolve_part
from conflict.results.conflicts import read_conflicts
from conflict.results.result import Result
from tests.corpora import DEMO


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The result of the demo."""
    return conflict.resolve(DEMO / "run.toml", out=tmp_path_factory.mktemp("example") / "result", engine="reference")


def test_an_example_is_a_lost_update(result: Result) -> None:
    """Wide and narrow, with the command for its words; the update of B is the one of the README."""
    shown = resolve_part(result, "a result").example
    assert shown is not None
    assert shown.title == "An example: a lost update of cft.t1 k=2"
    assert shown.command == "ndb-conflict explain 'a result' --table cft.t1 --key k=2"
    assert "8  16:00:16.973  update of 3: rejected, 5 won" in shown.wide
    assert "8  A  16:00:16.973  update of 3: rejected, 5 won" in shown.narrow
    assert "var(--cluster-0)" in shown.wide


def test_no_example(result: Result, tmp_path: Path) -> None:
    """Nothing is drawn of binlogs that are gone or too large, nor of functions of a user's own, which are not run."""
    conflicts = read_conflicts(result.folder, result.clusters)
    other: list[Any] = [copy.deepcopy(dict(result.run)) for _ in range(4)]
    other[0]["inputs"]["files"][0]["path"] = str(tmp_path / "gone")
    other[1]["inputs"]["files"][0]["bytes"] = 1 << 31
    other[2]["inputs"]["resolvers"] = ["module:name"]
    other[3]["inputs"]["text"] = '"conflict\\u005ffunction" = []\n'
    assert [example_of(attrs.evolve(result, run=run), conflicts, "r") for run in other] == [None] * 4


def test_the_part_of_the_rows_that_differ(result: Result) -> None:
    """Of cft.plain one row of two, as the table of the result says; the chart is drawn, though it has one bar."""
    chart = next(each for each in resolve_part(result, "r").telling.charts if each.name == "differing-rows")
    assert chart.data.to_pydict() == {"table": ["cft.plain"], "rows": [1]}
    assert list(chart.ends) == ["1 of 2 (50.0 %)"]
    assert chart.in_words == ""
    assert chart.description == "rows. cft.plain: rows 1 (1 of 2 (50.0 %))."
